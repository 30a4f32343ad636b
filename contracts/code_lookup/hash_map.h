/*
 * hash_map.h: HashMap and PtrHashMap: open addressing over buckets of a few keys and as many values. The number of
 * buckets precedes them. The top bit of a bucket's first value is set if keys overflowed to another bucket, so that a
 * search must go on.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, "HashMap"; src/coreclr/vm/hash.cpp.
 */
#ifndef CDACQ_CONTRACTS_CODE_LOOKUP_HASH_MAP_H
#define CDACQ_CONTRACTS_CODE_LOOKUP_HASH_MAP_H

#include "descriptors/fields.h"

#define HASH_MAP_NOT_FOUND UINT64_C(0xffffffff) /* 32 bits on every target */

/* The value under `key`; HASH_MAP_NOT_FOUND if there is none or the reader fails. */
uint64_t hash_map_find(struct reader *reader, uint64_t map, uint64_t key);

/* The pointer under `key`, which is stored shifted right by one. 0 if there is none or the reader fails. */
uint64_t ptr_hash_map_find(struct reader *reader, uint64_t map, uint64_t key);

#endif
