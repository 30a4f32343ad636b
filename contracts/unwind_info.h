/*
 * unwind_info.h: RUNTIME_FUNCTION tables: sorted {begin, [end,] unwind data}, all relative to a base address.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, "GetUnwindInfo", "GetMethodRegionInfo".
 */
#ifndef CDACQ_CONTRACTS_UNWIND_INFO_H
#define CDACQ_CONTRACTS_UNWIND_INFO_H

#include "contracts/platform_metadata.h"

/* A table in the target's memory. Entries are read one by one, so that a search touches little of a large one. */
struct unwind_table {
    uint64_t address;
    uint32_t count, entry_size;
    uint64_t base;       /* what its addresses are relative to */
    const uint8_t *view; /* the same bytes, where they are at hand in one run; else NULL */
};

/* The table of `count` entries at `address`. */
struct unwind_table unwind_table_at(const struct reader *reader, uint64_t address, uint32_t count, uint64_t base);

/* Takes a view of the whole table where that can be had: for many searches. Not of a recording target. */
void unwind_table_view(struct reader *reader, struct unwind_table *table);

/* The 32-bit field of an entry at a field's offset. 0, and the reader fails, when it cannot be read. */
static inline uint32_t unwind_table_field(struct reader *reader, const struct unwind_table *table, uint32_t i,
                                          enum layout_field field)
{
    uint64_t offset = (uint64_t)i * table->entry_size + reader->layout->fields[field].offset;
    if (LIKELY(table->view != NULL))
        return load_u32(table->view + offset, reader->big_endian);
    return (uint32_t)field_read(reader, field, read_u32(reader, table->address + offset));
}

/* The begin of an entry, relative: it stands there as a code pointer. */
static inline uint32_t unwind_table_begin(struct reader *reader, const struct unwind_table *table, uint32_t i)
{
    return unwind_table_field(reader, table, i, F_RuntimeFunction_BeginAddress) &
           ~(uint32_t)(reader->layout->code_pointer_flags & CODE_POINTER_ARM32_THUMB);
}

/* The last entry whose begin is at or before `relative`, by binary search; UINT32_MAX where there is none. */
uint32_t unwind_table_find(struct reader *reader, const struct unwind_table *table, uint32_t relative);

/*
 * The length of the function of an entry: by its end address where the platform has one (x64); by UnwindInfo.
 * FunctionLength where that is described (x86); else by the first word of its unwind data, whose low 18 bits count
 * units of half a pointer (arm, arm64 and kin). 0, and the reader fails, when it cannot be read.
 */
uint32_t unwind_table_length(struct reader *reader, const struct unwind_table *table, uint32_t i);

#endif
