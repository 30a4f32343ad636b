/*
 * unwind_info.h: RUNTIME_FUNCTION tables: sorted {begin, [end,] unwind data}, all relative to a base address.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, "GetUnwindInfo", "GetMethodRegionInfo".
 */
#ifndef CDACQ_CONTRACTS_UNWIND_INFO_H
#define CDACQ_CONTRACTS_UNWIND_INFO_H

#include "descriptors/layout.h"

/* A table that has been taken into a window, for many look-ups. */
struct unwind_table {
    const uint8_t *entries;
    uint32_t count, entry_size;
    uint64_t base; /* what its addresses are relative to */
};

/* The begin of an entry of a table in a window, relative. */
static inline uint32_t unwind_table_begin(const struct reader *reader, const struct unwind_table *table, uint32_t i)
{
    return load_u32(table->entries + (size_t)i * table->entry_size +
                        reader->layout->fields[F_RuntimeFunction_BeginAddress].offset,
                    reader->big_endian);
}

/* The last entry whose begin is at or before `relative`, by binary search; UINT32_MAX where there is none. */
uint32_t unwind_table_find(const struct reader *reader, const struct unwind_table *table, uint32_t relative);

/*
 * The length of the function of an entry: by its end address where the platform has one (x64); by UnwindInfo.
 * FunctionLength where that is described (x86); else by the first word of its unwind data, whose low 18 bits count
 * units of half a pointer (arm, arm64 and kin). 0, and the reader fails, when it cannot be read.
 */
uint32_t unwind_table_length(struct reader *reader, const struct unwind_table *table, uint32_t i);

#endif
