/*
 * non_virtual_entry.h: NonVirtualEntry2MethodDesc: from an entry point, as in a slot, a delegate or a call, to the
 * MethodDesc that it enters.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, "NonVirtualEntry2MethodDesc".
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_NON_VIRTUAL_ENTRY_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_NON_VIRTUAL_ENTRY_H

#include "contracts/execution_manager/execution_manager.h"

/*
 * `entry` is the address of code, or of a PortableEntryPoint if the target has those. As specified, it may be any
 * address in a method's code. False, and *ret untouched, if it enters no method that has a MethodDesc (it is outside of
 * all code, in a stub without a method, or in ReadyToRun code that was not prepared), or if the reader fails.
 */
bool execution_manager_entry_method_desc(struct execution_manager *manager, struct field_reader *reader, uint64_t entry,
                                         uint64_t *ret);

#endif
