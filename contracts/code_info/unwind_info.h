/*
 * unwind_info.h: RUNTIME_FUNCTION tables: sorted {begin, [end,] unwind data}, relative to a base address; and the
 * unwind data that they lead to:
 *
 *  - x64: UNWIND_INFO: four bytes, the unwind codes padded to four bytes, the RVA of the personality routine or, for
 *    the continuation of a function (UNW_FLAG_CHAININFO), the RUNTIME_FUNCTION of its beginning.
 *  - x86: the function's length, four bytes.
 *  - arm, arm64, riscv64, loongarch64: a header of one or two words, a word for each epilog unless the header describes
 *    the only one (bit E), the unwind codes, the RVA of the personality routine; or, on arm and arm64, packed into the
 *    entry.
 *
 * The GC info of a ReadyToRun method follows its unwind data. If code is too long for one entry, or is split, further
 * entries describe fragments, which have no prolog and belong to the function before them.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md; src/coreclr/vm/codeman.cpp, GetUnwindDataBlob,
 * IsFunctionFragment and LazyIsFunclet; Microsoft's "x64/ARM/ARM64 exception handling".
 */
#ifndef CDACQ_CONTRACTS_CODE_INFO_UNWIND_INFO_H
#define CDACQ_CONTRACTS_CODE_INFO_UNWIND_INFO_H

#include "contracts/code_lookup/platform_metadata.h"

/* Entries are read one by one, so that a search touches little of a large table. */
struct unwind_table {
    uint64_t address;
    uint32_t count, entry_size;
    uint64_t base;         /* what its addresses are relative to */
    const uint8_t *window; /* the same bytes if they are contiguous; else NULL */
};

/* Whether handlers are functions of their own. If not, as on x86 Windows before .NET 10, code has no unwind data. */
static inline bool has_funclets(const struct reader *reader)
{
    return reader->layout->globals[G_FeatureEHFunclets] != 0;
}

/* The table of `count` entries at `address`. */
struct unwind_table unwind_table_at(const struct reader *reader, uint64_t address, uint32_t count, uint64_t base);

/* Takes a window on the whole table if it is contiguous, for many searches. Not of a recording target. */
void unwind_table_window(struct reader *reader, struct unwind_table *table);

/* A 32-bit field of an entry. 0, and the reader fails, when it cannot be read. */
static inline uint32_t unwind_table_field(struct reader *reader, const struct unwind_table *table, uint32_t i,
                                          enum layout_field field)
{
    uint64_t offset = (uint64_t)i * table->entry_size + reader->layout->fields[field].offset;
    if (LIKELY(table->window != NULL))
        return load_u32(table->window + offset, reader->big_endian);
    return (uint32_t)field_read(reader, field, read_u32(reader, table->address + offset));
}

/* The begin of an entry, relative, without the Thumb bit of arm. */
static inline uint32_t unwind_table_begin(struct reader *reader, const struct unwind_table *table, uint32_t i)
{
    uint32_t begin = unwind_table_field(reader, table, i, F_RuntimeFunction_BeginAddress);
    bool thumb = reader->layout->architecture == ARCHITECTURE_ARM ||
                 reader->layout->code_pointer_flags & CODE_POINTER_ARM32_THUMB;
    return thumb ? begin & ~UINT32_C(1) : begin;
}

/*
 * Whether entry `i` ends before the next one begins. True of the last one, and if the memory of one is missing, as in
 * small cores.
 */
bool unwind_table_is_before_next(struct reader *reader, const struct unwind_table *table, uint32_t i);

/*
 * The last entry whose begin is at or before `relative`, by binary search; UINT32_MAX if there is none, or if the
 * entries around it are not in order or overlap: then the reader fails.
 */
uint32_t unwind_table_find(struct reader *reader, const struct unwind_table *table, uint32_t relative);

/*
 * The length of the function of an entry: by its end address (x64); by UnwindInfo.FunctionLength or the GC info (x86);
 * else by the packed entry, or by the low 18 bits of its unwind data, in units of two bytes (arm) or four. 0, and the
 * reader fails, when it cannot be read.
 */
uint32_t unwind_table_length(struct reader *reader, const struct unwind_table *table, uint32_t i);

/*
 * The address and size of the unwind data of an entry, the personality routine's RVA included. False, without failing,
 * if there are none (the entry is packed or refers to another one) or the architecture is not known; false, and the
 * reader fails, if they are malformed or cannot be read.
 */
bool unwind_table_data(struct reader *reader, const struct unwind_table *table, uint32_t i, uint64_t *ret_address,
                       uint32_t *ret_size);

/* Whether an entry describes a fragment; never on x64, where such code is chained. False if the reader fails. */
bool unwind_table_is_fragment(struct reader *reader, const struct unwind_table *table, uint32_t i);

/* The entry with which the function or funclet of entry `i` begins: `i` itself unless it is a fragment. */
uint32_t unwind_table_root(struct reader *reader, const struct unwind_table *table, uint32_t i);

/* Whether an entry of cold code describes a funclet: on x64 unless it is chained to the method's body, else never. */
bool unwind_table_is_cold_funclet(struct reader *reader, const struct unwind_table *table, uint32_t i);

#endif
