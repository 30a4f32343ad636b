/*
 * code_versions.h: the CodeVersions contract: the tiers of a method's code, and the versions of its IL. Each version of
 * the code after the first has a node in a list of the MethodDesc, which records both. From .NET 11 on the MethodDesc
 * has the tier of the first version; before, nothing records it. Each version of the IL after the first has a node in a
 * list of the Module. Source: dotnet/runtime docs/design/datacontracts/CodeVersions.md, src/coreclr/vm/codeversion.h.
 */
#ifndef CDACQ_CONTRACTS_TYPE_SYSTEM_CODE_VERSIONS_H
#define CDACQ_CONTRACTS_TYPE_SYSTEM_CODE_VERSIONS_H

#include "descriptors/fields.h"

/*
 * The tier of the code of a method that starts at `start`: "Tier0", "Tier1", "Tier1OSR", "Optimized",
 * "Tier0Instrumented", "Tier1Instrumented". NULL if it is not known; then the reader may have failed. "Optimized" is
 * the tier of code that no tier can replace; whether it is optimized is not known if its assembly forbids that.
 */
const char *code_versions_tier(struct reader *reader, uint64_t method_desc, uint64_t start);

/*
 * The version of the IL that the same code was compiled from. 0: the first, which nothing has replaced, or not known;
 * then the reader may have failed.
 */
uint64_t code_versions_il_version(struct reader *reader, uint64_t method_desc, uint64_t start);

/*
 * Whether hot reload has replaced the IL of a method of the Module, or added the method. Its old code can still run.
 * True also if that cannot be read; the reader then fails. False where the runtime does not keep such IL as a version:
 * up to .NET 10 it is dynamic IL (dynamic_il.h).
 */
bool code_versions_is_edited(struct reader *reader, uint64_t module, uint32_t token);

#endif
