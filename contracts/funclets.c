#include "contracts/funclets.h"

#include "contracts/exception_clauses.h"

bool block_is_funclet(struct reader *reader, const struct code_block *block, bool *ret)
{
    struct function_place function;
    *ret = false;
    if (block->kind == CDACQ_CODE_INTERPRETER || !has_funclets(reader))
        return true;
    if (!execution_manager_unwind_info(reader, block, &function))
        return false;
    if (!block->cold)
        *ret = function.start != block->start;
    else
        *ret = unwind_table_is_cold_funclet(reader, &function.table, function.index);
    return !reader_failed(reader);
}

bool block_is_filter_funclet(const struct execution_manager *manager, struct reader *reader,
                             const struct code_block *block, bool *ret)
{
    struct exception_clauses clauses;
    struct cdacq_exception_clause clause;
    struct function_place function;
    bool is_funclet;
    *ret = false;
    if (!block_is_funclet(reader, block, &is_funclet))
        return false;
    if (!is_funclet)
        return true;
    if (!execution_manager_unwind_info(reader, block, &function) ||
        !exception_clauses_of(manager, reader, block, &clauses))
        return false;
    uint64_t offset =
        block->cold ? block->hot_size + (function.start - block->cold_start) : function.start - block->start;
    for (uint32_t i = 0; i < clauses.count && !*ret && reader_step(reader, "exception clauses"); i++)
        if (exception_clause_read(reader, &clauses, i, &clause) && clause.kind == CDACQ_CLAUSE_FILTER &&
            clause.filter_offset == offset)
            *ret = true;
    return !reader_failed(reader);
}
