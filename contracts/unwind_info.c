#include "contracts/unwind_info.h"

uint32_t unwind_table_find(const struct reader *reader, const struct unwind_table *table, uint32_t relative)
{
    uint32_t low = 0, high = table->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (unwind_table_begin(reader, table, middle) <= relative)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? low - 1 : UINT32_MAX;
}

uint32_t unwind_table_length(struct reader *reader, const struct unwind_table *table, uint32_t i)
{
    const struct layout_slot *fields = reader->layout->fields;
    const uint8_t *entry = table->entries + (size_t)i * table->entry_size;
    uint32_t begin = unwind_table_begin(reader, table, i);
    if (fields[F_RuntimeFunction_EndAddress].present) {
        uint32_t end = load_u32(entry + fields[F_RuntimeFunction_EndAddress].offset, reader->big_endian);
        return end > begin ? end - begin : 0;
    }
    uint64_t unwind_data =
        table->base + load_u32(entry + fields[F_RuntimeFunction_UnwindData].offset, reader->big_endian);
    if (has_field(reader, F_UnwindInfo_FunctionLength))
        return (uint32_t)read_field(reader, unwind_data, F_UnwindInfo_FunctionLength);
    return (read_u32(reader, unwind_data) & ((1u << 18) - 1)) * (reader->pointer_size / 2u);
}
