/*
 * funclets.h: IsFunclet, IsFilterFunclet: handlers, filters and finally blocks are functions of their own behind the
 * method's body. A cold part is one too where only its start is compared; the runtime decides otherwise, and so it is
 * done here: on x64 the cold part of a body continues it (its unwind info is chained), elsewhere cold code is never
 * taken for a funclet. Source: dotnet/runtime src/coreclr/vm/codeman.cpp, ReadyToRunJitManager::IsFunclet;
 * docs/design/datacontracts/ExecutionManager.md, "IsFunclet", "IsFilterFunclet".
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_FUNCLETS_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_FUNCLETS_H

#include "contracts/execution_manager/execution_manager.h"

/* False, and the reader fails, when it cannot be told. */
bool block_is_funclet(struct field_reader *reader, const struct code_block *block, bool *ret);

/* Whether block->ip is in a filter: a funclet that begins where a clause of the method has its filter. */
bool block_is_filter_funclet(const struct execution_manager *manager, struct field_reader *reader,
                             const struct code_block *block, bool *ret);

#endif
