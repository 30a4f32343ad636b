/*
 * ee_jit_manager.h: the EE JIT manager: code that was compiled at run time, in code heaps. A method's block has a
 * RealCodeHeader.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, "EE JitManager".
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_EE_JIT_MANAGER_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_EE_JIT_MANAGER_H

#include "contracts/execution_manager/code_heap.h"

/*
 * The method or stub block that `ip` is in. False where there is none: no block starts before it, or the method's code
 * ends before it; also when the reader fails.
 */
bool ee_jit_manager_find(const struct execution_manager *manager, struct field_reader *reader,
                         const struct range_section *section, uint64_t ip, struct code_block *ret);

/* The method or stub block that starts at `start`, which a nibble map told; ret->ip is `start`. */
bool ee_jit_manager_block_at(const struct execution_manager *manager, struct field_reader *reader,
                             const struct range_section *section, uint64_t start, struct code_block *ret);

#endif
