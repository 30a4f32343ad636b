/*
 * auxiliary_symbols.h: AuxiliarySymbols (since .NET 11): helpers of JIT-compiled code, whose addresses the runtime
 * chooses when it starts. It publishes the name of each and where it begins, but not where it ends.
 * Source: dotnet/runtime docs/design/datacontracts/AuxiliarySymbols.md.
 */
#ifndef CDACQ_CONTRACTS_CODE_LOOKUP_AUXILIARY_SYMBOLS_H
#define CDACQ_CONTRACTS_CODE_LOOKUP_AUXILIARY_SYMBOLS_H

#include "descriptors/fields.h"

/* Where the first helper of a name, as "JIT_WriteBarrier", begins. 0 if there is none or the reader fails. */
uint64_t auxiliary_symbols_find(struct reader *reader, const char *name);

#endif
