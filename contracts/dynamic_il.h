/*
 * dynamic_il.h: GetDynamicIL of the Loader contract: which methods have other IL than the file of their assembly,
 * because hot reload or a profiler gave them another body. Source: dotnet/runtime
 * docs/design/datacontracts/{Loader,SHash}.md.
 */
#ifndef CDACQ_CONTRACTS_DYNAMIC_IL_H
#define CDACQ_CONTRACTS_DYNAMIC_IL_H

#include "descriptors/fields.h"

/*
 * Whether a method of the Module has a body of its own. True also if the Module has such bodies, but they cannot be
 * read. The reader then fails.
 */
bool dynamic_il_exists(struct reader *reader, uint64_t module, uint32_t token);

#endif
