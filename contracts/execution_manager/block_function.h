/*
 * block_function.h: GetUnwindInfo, GetFuncletStartAddress, IsFunclet, IsFilterFunclet, GetMethodRegionInfo: which
 * function of a method covers an address (its body, a funclet for a handler, filter or finally block, or a cold part of
 * either), and how long its hot code is. Comparing starts would take a cold part for a funclet. This follows the
 * runtime: on x64 the cold part of a body is chained to it, elsewhere cold code is never a funclet.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md; src/coreclr/vm/codeman.cpp,
 * ReadyToRunJitManager::IsFunclet and JitCodeToMethodRegionInfo. The specification sums up the lengths of
 * RUNTIME_FUNCTIONs, which gives a split method's hot part too short: that of its first function.
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_BLOCK_FUNCTION_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_BLOCK_FUNCTION_H

#include "contracts/code_info/unwind_info.h"
#include "contracts/execution_manager/code_block.h"

struct block_function {
    uint64_t entry; /* its RUNTIME_FUNCTION */
    uint64_t start; /* of its code; of a fragment, that of the function that it belongs to */
    struct unwind_table table;
    uint32_t index; /* of the entry in the table */
};

/*
 * The function that covers block->ip. Interpreted methods, and those of a JIT without funclets, have no
 * RUNTIME_FUNCTION: then its entry is 0 and its start the method's. False if none covers it or the reader fails.
 */
bool block_function_find(struct reader *reader, const struct code_block *block, struct block_function *ret);

/* Whether function `i` of a block's cold functions is a funclet. False, too, when the reader fails. */
bool block_cold_function_is_funclet(struct reader *reader, const struct code_block *block,
                                    const struct unwind_table *table, uint32_t i);

/* *ret: whether block->ip is in a funclet. False, and the reader fails, when that cannot be read. */
bool block_is_funclet(struct reader *reader, const struct code_block *block, bool *ret);

/* The same for a filter: a funclet that begins where a clause of the method has its filter. */
bool block_is_filter_funclet(struct reader *reader, const struct code_block *block, bool *ret);

/* What a funclet does, by the clause that it handles. */
enum funclet_kind { FUNCLET_NONE, FUNCLET_CATCH, FUNCLET_FILTER, FUNCLET_FINALLY, FUNCLET_FAULT };

/*
 * The kind of the funclet that block->ip is in; FUNCLET_NONE in the method's body. False, and the reader fails, when it
 * cannot be read; *ret_is_funclet is set as block_is_funclet() sets it even if only the clauses cannot be read.
 */
bool block_funclet_kind(struct reader *reader, const struct code_block *block, bool *ret_is_funclet,
                        enum funclet_kind *ret);

/*
 * The length of a method's hot part. The runtime takes the length of all code from the GC info, and that of the cold
 * part from the unwind information. False, and the reader fails, if it cannot be read or the two disagree.
 */
bool block_hot_size(struct reader *reader, const struct code_block *block, uint64_t *ret);

#endif
