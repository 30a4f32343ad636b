/*
 * interpreter_jit_manager.h: the interpreter's JIT manager: methods that are interpreted. What stands in their code
 * heaps is byte code; an address in it is where the interpreter is in a method. A method's block has an
 * InterpreterRealCodeHeader, no unwind info and no funclets; how long it is its GC info tells.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, "InterpreterJitManager"; GCInfo.md, where the
 * interpreter's encoding, on every architecture, begins as that of x64 does.
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_INTERPRETER_JIT_MANAGER_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_INTERPRETER_JIT_MANAGER_H

#include "contracts/execution_manager/code_heap.h"

/*
 * The method or stub block that `ip` is in. False where there is none, and when the reader fails. Where GC info does
 * not tell the length the method answers at its start alone; further on the reader fails.
 */
bool interpreter_jit_manager_find(const struct execution_manager *manager, struct field_reader *reader,
                                  const struct range_section *section, uint64_t ip, struct code_block *ret);

/*
 * The method or stub block that starts at `start`, which a nibble map told; ret->ip is `start`. hot_size is 0 where it
 * is not known.
 */
bool interpreter_jit_manager_block_at(const struct execution_manager *manager, struct field_reader *reader,
                                      const struct range_section *section, uint64_t start, struct code_block *ret);

#endif
