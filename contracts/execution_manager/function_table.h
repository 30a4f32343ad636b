/*
 * function_table.h: GetDynamicFunctionTableEntries: the RUNTIME_FUNCTIONs of all methods of a code heap, for the
 * unwinder of Windows. The runtime registers a DynamicFunctionTable for each heap; only runtimes for Windows describe
 * it.
 * Source: dotnet/runtime src/coreclr/debug/daccess/fntableaccess.cpp, OutOfProcessFunctionTableCallbackEx.
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_FUNCTION_TABLE_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_FUNCTION_TABLE_H

#include "contracts/execution_manager/execution_manager.h"
#include "util/vector.h"

/* The entries of one method: their number, and the address of the first. */
struct function_entries {
    uint64_t first;
    uint32_t count;
};

DEFINE_VECTOR(function_table, struct function_entries);

/*
 * Appends the entries of the methods of the heap that `table` describes, by descending start of the method; methods
 * that cannot be read are left out. None if no heap matches or the runtime does not describe such tables. False if the
 * reader fails.
 */
bool function_table_read(const struct execution_manager *manager, struct reader *reader, uint64_t table,
                         struct function_table *ret);

#endif
