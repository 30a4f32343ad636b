/*
 * code_versions.h: the CodeVersions contract, as far as it tells how well a method's code was optimized.
 *
 * A method begins with one version of its code; each further one has a node in a list that hangs on the MethodDesc. The
 * node tells the tier that it was compiled for. What the first version was compiled for stands with the MethodDesc from
 * .NET 11 on; before, it cannot be told from data. Source: dotnet/runtime docs/design/datacontracts/CodeVersions.md.
 */
#ifndef CDACQ_CONTRACTS_TYPE_SYSTEM_CODE_VERSIONS_H
#define CDACQ_CONTRACTS_TYPE_SYSTEM_CODE_VERSIONS_H

#include "descriptors/field_reader.h"

/*
 * The tier of the JIT-compiled code of a method that starts at `start`: "Tier0", "Tier1", "Tier1OSR", "Optimized",
 * "Tier0Instrumented", "Tier1Instrumented". NULL where it cannot be told; then the reader may have failed.
 */
const char *code_versions_tier(struct field_reader *reader, uint64_t method_desc, uint64_t start);

#endif
