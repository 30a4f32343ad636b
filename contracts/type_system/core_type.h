/*
 * core_type.h: types of the core library (System.Private.CoreLib) by their names.
 * Source: dotnet/runtime docs/design/datacontracts/Loader.md (GetLookupTables).
 */
#ifndef CDACQ_CONTRACTS_TYPE_SYSTEM_CORE_TYPE_H
#define CDACQ_CONTRACTS_TYPE_SYSTEM_CORE_TYPE_H

#include "contracts/module_cache.h"

/* The Module of the core library. 0: not known; the reader fails if it cannot be read. */
uint64_t core_module(struct reader *reader);

/* The MethodTable of a type of the core library that is not generic. 0: it is not loaded, or cannot be found. */
uint64_t core_type(struct module_cache *cache, uint64_t core, const char *space, const char *name);

#endif
