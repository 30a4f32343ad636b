/*
 * block_function.h: GetUnwindInfo, GetFuncletStartAddress, IsFunclet, IsFilterFunclet: which function of a method
 * covers an address: its body, a funclet (handlers, filters and finally blocks are functions of their own after the
 * body), or a cold part of either. Comparing starts would take a cold part for a funclet; this follows the runtime
 * instead: on x64 the cold part of a body continues it (its unwind info is chained), elsewhere cold code is never a
 * funclet. Source: dotnet/runtime src/coreclr/vm/codeman.cpp, ReadyToRunJitManager::IsFunclet;
 * docs/design/datacontracts/ExecutionManager.md, "GetUnwindInfo", "IsFunclet", "IsFilterFunclet".
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_BLOCK_FUNCTION_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_BLOCK_FUNCTION_H

#include "contracts/code_info/unwind_info.h"
#include "contracts/execution_manager/code_block.h"

struct block_function {
    uint64_t entry; /* its RUNTIME_FUNCTION */
    uint64_t start; /* of its code, or, of a fragment, of the function's that it belongs to */
    struct unwind_table table;
    uint32_t index; /* of the entry in the table */
};

/*
 * The function of a method's block that covers block->ip. Interpreted methods, and those of a JIT without funclets,
 * have no RUNTIME_FUNCTION: its entry is 0 then, and it starts where the method does. False where none covers it, or
 * when the reader fails.
 */
bool block_function_find(struct field_reader *reader, const struct code_block *block, struct block_function *ret);

/* Whether block->ip is in a funclet. False, and the reader fails, when that cannot be read. */
bool block_is_funclet(struct field_reader *reader, const struct code_block *block, bool *ret);

/* Whether block->ip is in a filter: a funclet that begins where a clause of the method has its filter. */
bool block_is_filter_funclet(struct field_reader *reader, const struct code_block *block, bool *ret);

#endif
