/*
 * ee_jit_manager.h: the EE JIT manager: code that was compiled at run time, in code heaps with a nibble map each.
 * In front of a method's code stands a pointer to its RealCodeHeader; in front of a stub block, in the same place, a
 * small number: the kind of stub (StubCodeBlockKind). Source: dotnet/runtime
 * docs/design/datacontracts/ExecutionManager.md, "EE JitManager". The specification compares the place with
 * StubCodeBlockLast; the runtime compares the value that stands there (src/coreclr/vm/codeman.h), as done here.
 */
#ifndef CDACQ_CONTRACTS_EE_JIT_MANAGER_H
#define CDACQ_CONTRACTS_EE_JIT_MANAGER_H

#include "contracts/code_block.h"
#include "contracts/nibble_map.h"
#include "contracts/range_section_map.h"

struct execution_manager;

/*
 * The method or stub block that `ip` is in. False where there is none: no block starts before it, or the method's code
 * ends before it; also when the reader fails.
 */
bool ee_jit_manager_find(const struct execution_manager *manager, struct reader *reader,
                         const struct range_section *section, uint64_t ip, struct code_block *ret);

/* The method or stub block that starts at `start`, which a nibble map told; ret->ip is `start`. */
bool ee_jit_manager_block_at(const struct execution_manager *manager, struct reader *reader,
                             const struct range_section *section, uint64_t start, struct code_block *ret);

/* The RealCodeHeader of a method's block. 0, and the reader fails, when it cannot be read. */
uint64_t ee_jit_manager_header(struct reader *reader, const struct code_block *block);

/* Calls `found` for the start of every block of the section's code heap, ascending, until it returns false. */
bool ee_jit_manager_each(const struct execution_manager *manager, struct reader *reader,
                         const struct range_section *section, bool (*found)(uint64_t start, void *context),
                         void *context);

#endif
