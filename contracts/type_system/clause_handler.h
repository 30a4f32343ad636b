/*
 * clause_handler.h: what an exception clause catches.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, GetExceptionClauses: IsCatchAllHandler.
 */
#ifndef CDACQ_CONTRACTS_TYPE_SYSTEM_CLAUSE_HANDLER_H
#define CDACQ_CONTRACTS_TYPE_SYSTEM_CLAUSE_HANDLER_H

#include "cdacq/block.h"
#include "contracts/module_cache.h"

/*
 * Whether a TYPED clause catches System.Object, and so every exception. The contract looks up the token in the
 * runtime's table of loaded types, where a type that was not loaded yet is missing; this reads the type's name in the
 * metadata of `module`, which declares the method and may be NULL. False, without failing, if it is not known.
 */
bool clause_is_catch_all(struct reader *reader, const struct module *module,
                         const struct cdacq_exception_clause *clause, bool *ret);

#endif
