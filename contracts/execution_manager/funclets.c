#include "contracts/execution_manager/funclets.h"

#include "contracts/execution_manager/exception_clauses.h"

/* The function that covers block->ip where that is a funclet. False where it is none, and when the reader fails. */
static bool find_funclet(struct field_reader *reader, const struct code_block *block, struct function_place *ret,
                         bool *ret_known)
{
    *ret_known = true;
    if (block->kind == CDACQ_CODE_INTERPRETER || !has_funclets(reader))
        return false;
    *ret_known = execution_manager_unwind_info(reader, block, ret);
    if (!*ret_known)
        return false;
    bool is_funclet =
        block->cold ? unwind_table_is_cold_funclet(reader, &ret->table, ret->index) : ret->start != block->start;
    *ret_known = !reader_failed(&reader->raw);
    return *ret_known && is_funclet;
}

bool block_is_funclet(struct field_reader *reader, const struct code_block *block, bool *ret)
{
    struct function_place function;
    bool known;
    *ret = find_funclet(reader, block, &function, &known);
    return known;
}

bool block_is_filter_funclet(const struct execution_manager *manager, struct field_reader *reader,
                             const struct code_block *block, bool *ret)
{
    struct exception_clauses clauses;
    struct cdacq_exception_clause clause;
    struct function_place function;
    bool known;
    *ret = false;
    if (!find_funclet(reader, block, &function, &known))
        return known;
    if (!exception_clauses_of(manager, reader, block, &clauses))
        return false;
    uint64_t offset =
        block->cold ? block->hot_size + (function.start - block->cold_start) : function.start - block->start;
    for (uint32_t i = 0; i < clauses.count && !*ret && reader_step(&reader->raw, "exception clauses"); i++)
        if (exception_clause_read(reader, &clauses, i, &clause) && clause.kind == CDACQ_CLAUSE_FILTER &&
            clause.filter_offset == offset)
            *ret = true;
    return !reader_failed(&reader->raw);
}
