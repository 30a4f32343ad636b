#include "contracts/stack_walk/unwind_entry.h"

#include "contracts/execution_manager/jit_manager.h"

struct unwind_table unwind_entry_table(const struct reader *reader, const struct code_block *block)
{
    uint64_t first = block->cold ? block->cold_functions : block->runtime_functions;
    uint32_t count = block->cold ? block->cold_function_count : block->runtime_function_count;
    return unwind_table_at(reader, first, count, block->unwind_base);
}

bool unwind_entry_is_funclet(struct reader *reader, const struct code_block *block, const struct unwind_table *table,
                             uint32_t index)
{
    if (!block->runtime_function_count || !has_funclets(reader))
        return false;
    if (block->cold)
        return unwind_table_is_cold_funclet(reader, table, index);
    uint32_t root = unwind_table_root(reader, table, index);
    return table->base + unwind_table_begin(reader, table, root) != block->start;
}

bool unwind_entry_read(struct reader *reader, const struct code_block *block, const struct unwind_table *table,
                       uint32_t index, bool is_funclet, struct unwind_function *ret)
{
    uint32_t begin = unwind_table_begin(reader, table, index);
    uint32_t data = unwind_table_field(reader, table, index, F_RuntimeFunction_UnwindData);
    *ret = (struct unwind_function){
        .base = table->base,
        .begin = table->base + begin,
        .end = table->base + begin + unwind_table_length(reader, table, index),
        .other_begin = block->cold ? block->start : block->cold_start,
        .other_end = block->cold ? block->start + block->hot_size : block->cold_start + block->cold_size,
        .unwind_data = table->base + data,
        .packed = data & 3 ? data : 0,
        .method = block->start,
        .funclet = is_funclet,
    };
    if (reader->layout->architecture == ARCHITECTURE_X86)
        block->manager->gc_info(reader, block, &ret->gc_info, &ret->gc_info_version);
    return !reader_failed(reader);
}
