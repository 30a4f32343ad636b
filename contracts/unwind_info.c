#include "contracts/unwind_info.h"

struct unwind_table unwind_table_at(const struct reader *reader, uint64_t address, uint32_t count, uint64_t base)
{
    return (struct unwind_table){
        .address = address,
        .count = count,
        .entry_size = reader->layout->sizes[T_RuntimeFunction],
        .base = base,
    };
}

void unwind_table_view(struct reader *reader, struct unwind_table *table)
{
    const struct layout_slot *fields = reader->layout->fields;
    /* A view is read without checks, so every field must lie within an entry. */
    bool fits = range_fits(fields[F_RuntimeFunction_BeginAddress].offset, 4, table->entry_size) &&
                range_fits(fields[F_RuntimeFunction_UnwindData].offset, 4, table->entry_size) &&
                range_fits(fields[F_RuntimeFunction_EndAddress].offset, 4, table->entry_size);
    if (fits && !reader->target->recording)
        table->view = reader_try_view(reader, table->address, (size_t)table->count * table->entry_size);
}

uint32_t unwind_table_find(struct reader *reader, const struct unwind_table *table, uint32_t relative)
{
    uint32_t low = 0, high = table->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (unwind_table_begin(reader, table, middle) <= relative)
            low = middle + 1;
        else
            high = middle;
    }
    return low && !reader_failed(reader) ? low - 1 : UINT32_MAX;
}

uint32_t unwind_table_length(struct reader *reader, const struct unwind_table *table, uint32_t i)
{
    uint32_t begin = unwind_table_begin(reader, table, i);
    if (has_field(reader, F_RuntimeFunction_EndAddress)) {
        uint32_t end = unwind_table_field(reader, table, i, F_RuntimeFunction_EndAddress);
        return end > begin ? end - begin : 0;
    }
    uint64_t unwind_data = table->base + unwind_table_field(reader, table, i, F_RuntimeFunction_UnwindData);
    if (has_field(reader, F_UnwindInfo_FunctionLength))
        return (uint32_t)read_field(reader, unwind_data, F_UnwindInfo_FunctionLength);
    return (read_u32(reader, unwind_data) & ((1u << 18) - 1)) * (reader->pointer_size / 2u);
}

bool unwind_info_is_chained(struct reader *reader, uint64_t unwind_data)
{
    enum { FLAGS_SHIFT = 3, UNW_FLAG_CHAININFO = 4 };
    return read_u8(reader, unwind_data) >> FLAGS_SHIFT & UNW_FLAG_CHAININFO;
}
