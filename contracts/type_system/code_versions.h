/*
 * code_versions.h: the CodeVersions contract: the tiers of a method's code, and the versions of its IL. Each version of
 * the code after the first has a node in a list of the MethodDesc, which records both. From .NET 11 on the MethodDesc
 * has the tier of the first version; before, nothing records it. Source: dotnet/runtime
 * docs/design/datacontracts/CodeVersions.md.
 */
#ifndef CDACQ_CONTRACTS_TYPE_SYSTEM_CODE_VERSIONS_H
#define CDACQ_CONTRACTS_TYPE_SYSTEM_CODE_VERSIONS_H

#include "descriptors/field_reader.h"

/*
 * The tier of the code of a method that starts at `start`: "Tier0", "Tier1", "Tier1OSR", "Optimized",
 * "Tier0Instrumented", "Tier1Instrumented". NULL if it is not known; then the reader may have failed.
 */
const char *code_versions_tier(struct field_reader *reader, uint64_t method_desc, uint64_t start);

/*
 * The version of the IL that the same code was compiled from. 0: the first, which nothing has replaced, or not known;
 * then the reader may have failed.
 */
uint64_t code_versions_il_version(struct field_reader *reader, uint64_t method_desc, uint64_t start);

#endif
