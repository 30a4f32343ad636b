/*
 * type_table.h: the types that a module has made: instances of generic types, arrays, pointers (EETypeHashTable).
 * Source: src/coreclr/vm/{typehash.h,dacenumerablehash.h}; dotnet/runtime docs/design/datacontracts/Loader.md.
 */
#ifndef CDACQ_CONTRACTS_TYPE_SYSTEM_TYPE_TABLE_H
#define CDACQ_CONTRACTS_TYPE_SYSTEM_TYPE_TABLE_H

#include "descriptors/fields.h"

/* Private to type_table.c. */
struct type_table_position {
    uint64_t buckets, count, bucket, entry;
};

/* Begins with the table of a module. False: it has none, or the runtime does not describe it; the reader may fail. */
bool type_table_begin(struct reader *reader, uint64_t module, struct type_table_position *ret);

/* The next type handle, which may have the tag of a TypeDesc. False at the end, or if the reader fails. */
bool type_table_next(struct reader *reader, struct type_table_position *position, uint64_t *ret);

#endif
