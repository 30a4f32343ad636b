/*
 * code_heap_infos.h: GetCodeHeapInfos, GetJitManagerInfo. From .NET 11 on the runtime describes its list of code heaps;
 * before that they are found by the range sections that they fill.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md; src/coreclr/vm/codeman.h, EEJitManager.
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_CODE_HEAP_INFOS_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_CODE_HEAP_INFOS_H

#include "cdacq/block.h"
#include "util/vector.h"
#include "contracts/execution_manager/execution_manager.h"

enum { CODE_HEAP_MAX = 64 * 1024 };

/* The manager of a kind of code; its address is 0 if the target has none. False, and the reader fails, if unknown. */
bool jit_manager_info(const struct execution_manager *execution_manager, struct reader *reader,
                      enum cdacq_code_kind kind, struct cdacq_jit_manager_info *ret);

DEFINE_VECTOR(code_heap_list, struct cdacq_code_heap_info);

/* The heaps of a manager. The reader fails if there may be more. The caller frees the list. */
void code_heaps_list(const struct execution_manager *execution_manager, struct reader *reader,
                     enum cdacq_code_kind kind, struct code_heap_list *ret);

#endif
