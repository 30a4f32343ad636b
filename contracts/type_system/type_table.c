#include "contracts/type_system/type_table.h"

enum {
    /* A table is an array: its length, two words of its own, then the chains; bit 0 ends a chain. */
    BUCKETS_BEGIN = 3,
    BUCKETS_MAX = 1 << 24,
    CHAIN_END = 1,
    ENTRY_TAG = 1, /* of a type in an entry */
};

bool type_table_begin(struct reader *reader, uint64_t module, struct type_table_position *ret)
{
    uint64_t table = read_optional(reader, module, F_Module_AvailableTypeParams);
    uint64_t buckets = read_optional(reader, table, F_EETypeHashTable_Buckets);
    *ret = (struct type_table_position){.buckets = buckets, .count = buckets ? read_pointer(reader, buckets) : 0};
    return !reader_failed(reader) && ret->count && ret->count <= BUCKETS_MAX;
}

bool type_table_next(struct reader *reader, struct type_table_position *position, uint64_t *ret)
{
    while (reader_step(reader, "types that a module has loaded")) {
        if (position->entry && !(position->entry & CHAIN_END)) {
            *ret = read_field(reader, position->entry, F_EETypeHashTable_VolatileEntryValue) & ~(uint64_t)ENTRY_TAG;
            position->entry = read_field(reader, position->entry, F_EETypeHashTable_VolatileEntryNextEntry);
            return !reader_failed(reader);
        }
        if (position->bucket == position->count)
            return false;
        uint64_t at = position->buckets + (BUCKETS_BEGIN + position->bucket++) * reader->pointer_size;
        position->entry = read_pointer(reader, at);
    }
    return false;
}
