/*
 * native_format.h: the compressed tables of ReadyToRun images: variable-length integers, NativeArray, NativeHashtable.
 * Every access is checked, and malformed data reads as absent. If a section's bytes are at hand, these are pure
 * functions of them. Otherwise a reader reads them as they are needed, at the cost of its fuel; if it fails, everything
 * reads as absent, so ask the reader. It belongs to one thread.
 * Source: dotnet/runtime docs/design/coreclr/botr/readytorun-format.md; src/coreclr/vm/nativeformatreader.h.
 */
#ifndef CDACQ_CONTRACTS_READY_TO_RUN_NATIVE_FORMAT_H
#define CDACQ_CONTRACTS_READY_TO_RUN_NATIVE_FORMAT_H

#include "target/reader.h"

/* A section. Offsets are relative to its start. */
struct native_section {
    const uint8_t *bytes; /* NULL: they are in the target, at `address` */
    uint32_t size;
    uint64_t address;
    struct reader *reader; /* fails if they are missing */
};

/* Reads an integer at *offset and advances *offset past it. False if it does not fit in the section. */
bool native_unsigned(const struct native_section *section, uint32_t *offset, uint32_t *ret);
bool native_signed(const struct native_section *section, uint32_t *offset, int32_t *ret);

/* A sparse array of variable-sized elements: a tree of blocks of 16. */
struct native_array {
    struct native_section section;
    uint32_t base; /* of the block index */
    uint32_t count;
    uint8_t index_size; /* bytes of a block index entry, as a power of two */
};

/* The array at the start of `section`. False if there is none. */
bool native_array_open(struct native_section section, struct native_array *ret);

/* The offset of element `index`. False if the array has no such element. */
bool native_array_at(const struct native_array *array, uint32_t index, uint32_t *ret_offset);

/* A hash table: buckets of entries, each a byte of hash and a relative offset to the element. */
struct native_hashtable {
    struct native_section section;
    uint32_t base;
    uint32_t bucket_count;
    uint8_t index_size;
};

bool native_hashtable_open(struct native_section section, struct native_hashtable *ret);

/*
 * Calls `visit` with the offset of every element, at most as many as the section has bytes, until it returns false.
 * False if a bucket is malformed; the other buckets are visited all the same.
 */
bool native_hashtable_each(const struct native_hashtable *table, bool (*visit)(uint32_t offset, void *context),
                           void *context);

#endif
