#include "contracts/execution_manager/block_function.h"

#include "contracts/code_info/gc_info.h"
#include "contracts/execution_manager/exception_clauses.h"
#include "contracts/execution_manager/jit_manager.h"

bool block_function_find(struct reader *reader, const struct code_block *block, struct block_function *ret)
{
    uint64_t first = block->cold ? block->cold_functions : block->runtime_functions;
    uint32_t count = block->cold ? block->cold_function_count : block->runtime_function_count;
    if (!count) {
        *ret = (struct block_function){.start = block->start};
        return true;
    }
    struct unwind_table table = unwind_table_at(reader, first, count, block->unwind_base);
    uint32_t i = unwind_table_find(reader, &table, (uint32_t)(block->ip - block->unwind_base));
    if (i == UINT32_MAX)
        return false;
    uint32_t root = unwind_table_root(reader, &table, i); /* a fragment belongs to the function before it */
    *ret = (struct block_function){
        .entry = first + (uint64_t)i * table.entry_size,
        .start = table.base + unwind_table_begin(reader, &table, root),
        .table = table,
        .index = i,
    };
    return !reader_failed(reader);
}

/*
 * Cold code of the JIT: a part of the body on arm64 is a fragment. Elsewhere, the handlers are the last functions of a
 * method, in the order of its clauses.
 */
static bool is_cold_funclet_of_jit(struct reader *reader, const struct code_block *block,
                                   const struct unwind_table *table, uint32_t i)
{
    struct exception_clauses clauses;
    struct cdacq_exception_clause first;
    uint32_t root = unwind_table_root(reader, table, i);
    if (reader->layout->architecture == ARCHITECTURE_ARM64)
        return !unwind_table_is_fragment(reader, table, root);
    if (!block->manager->clauses(reader, block, &clauses) || !clauses.count ||
        !exception_clause_read(reader, &clauses, 0, &first))
        return false;
    uint64_t begin = table->base + unwind_table_begin(reader, table, root);
    return first.handler_start <= block->hot_size + (begin - block->cold_start);
}

bool block_cold_function_is_funclet(struct reader *reader, const struct code_block *block,
                                    const struct unwind_table *table, uint32_t i)
{
    return block->manager->in_images ? unwind_table_is_cold_funclet(reader, table, i)
                                     : is_cold_funclet_of_jit(reader, block, table, i);
}

/* The function that covers block->ip, of those that its manager finds. */
struct function_search {
    uint64_t ip, start;
    bool is_filter;
};

static bool take_function(uint64_t begin, bool is_filter, void *context)
{
    struct function_search *search = context;
    if (begin > search->ip)
        return false;
    search->start = begin;
    search->is_filter = is_filter;
    return true;
}

/* Whether block->ip is in a funclet, of a block without RUNTIME_FUNCTIONs. *ret_known: false if that is not known. */
static bool search_funclet(struct reader *reader, const struct code_block *block, struct function_search *ret,
                           bool *ret_known)
{
    *ret = (struct function_search){.ip = block->ip, .start = block->start};
    bool is_funclet = block->manager->functions(reader, block, take_function, ret) && ret->start != block->start;
    *ret_known = !reader_failed(reader);
    return *ret_known && is_funclet;
}

/* The function that covers block->ip if that is a funclet. *ret_known is false if that cannot be read. */
static bool find_funclet(struct reader *reader, const struct code_block *block, struct block_function *ret,
                         bool *ret_known)
{
    struct function_search search;
    *ret_known = true;
    if (block->manager->functions) {
        bool is_funclet = search_funclet(reader, block, &search, ret_known);
        *ret = (struct block_function){.start = search.start};
        return is_funclet;
    }
    if (!block->runtime_function_count || !has_funclets(reader))
        return false;
    *ret_known = block_function_find(reader, block, ret);
    if (!*ret_known)
        return false;
    bool is_funclet = block->cold ? block_cold_function_is_funclet(reader, block, &ret->table, ret->index)
                                  : ret->start != block->start;
    *ret_known = !reader_failed(reader);
    return *ret_known && is_funclet;
}

bool block_is_funclet(struct reader *reader, const struct code_block *block, bool *ret)
{
    struct block_function function;
    bool known;
    *ret = find_funclet(reader, block, &function, &known);
    return known;
}

static enum funclet_kind kind_of(const struct cdacq_exception_clause *clause)
{
    return clause->kind == CDACQ_CLAUSE_FINALLY ? FUNCLET_FINALLY
           : clause->kind == CDACQ_CLAUSE_FAULT ? FUNCLET_FAULT
                                                : FUNCLET_CATCH;
}

bool block_funclet_kind(struct reader *reader, const struct code_block *block, bool *ret_is_funclet,
                        enum funclet_kind *ret)
{
    struct exception_clauses clauses;
    struct cdacq_exception_clause clause;
    struct block_function function;
    bool known;
    *ret = FUNCLET_NONE;
    if (block->manager->functions) { /* nothing says more of other funclets */
        struct function_search search;
        *ret_is_funclet = search_funclet(reader, block, &search, &known);
        if (*ret_is_funclet && search.is_filter)
            *ret = FUNCLET_FILTER;
        return known;
    }
    *ret_is_funclet = find_funclet(reader, block, &function, &known);
    if (!*ret_is_funclet)
        return known;
    if (!block->manager->clauses(reader, block, &clauses))
        return false;
    uint64_t start =
        block->cold ? block->hot_size + (function.start - block->cold_start) : function.start - block->start;
    bool exact = false; /* a cold part does not begin where the funclet does */
    for (uint32_t i = 0; i < clauses.count && *ret != FUNCLET_FILTER && reader_step(reader, "exception clauses"); i++) {
        if (!exception_clause_read(reader, &clauses, i, &clause))
            break;
        bool begins = !clause.duplicated && clause.handler_start == start;
        if (clause.kind == CDACQ_CLAUSE_FILTER && clause.filter_offset == start)
            *ret = FUNCLET_FILTER; /* whatever else the clauses say: the contract asks for nothing more */
        else if (!exact && (begins || (!*ret && !clause.duplicated && clause.handler_start <= start &&
                                       start < clause.handler_end)))
            *ret = kind_of(&clause);
        exact |= begins;
    }
    return !reader_failed(reader);
}

bool block_is_filter_funclet(struct reader *reader, const struct code_block *block, bool *ret)
{
    bool is_funclet;
    enum funclet_kind kind;
    bool known = block_funclet_kind(reader, block, &is_funclet, &kind);
    *ret = kind == FUNCLET_FILTER;
    return known;
}

bool block_hot_size(struct reader *reader, const struct code_block *block, uint64_t *ret)
{
    uint64_t gc_info;
    uint32_t version, length = 0;
    *ret = block->hot_size;
    if (!block->runtime_function_count) /* the size came from the GC info */
        return true;
    if (block->manager->gc_info(reader, block, &gc_info, &version) && gc_info)
        length = gc_info_code_length(reader, gc_info, version);
    /* Without the GC info, the unwind information suffices. */
    reader_recover(reader, FAILURE(CDACQ_ERR_FIELD) | FAILURE(CDACQ_ERR_MEMORY));
    if (length && length != block->hot_size + block->cold_size)
        reader_fail(reader, CDACQ_ERR_CORRUPT, gc_info, "code length in the GC info");
    return !reader_failed(reader);
}
