/*
 * contracts.h: the versions of contracts that this build reads, a row each. A version belongs to the schema of its
 * descriptor: schema 2 (.NET 11) starts its versions again at "c1". Versions are compared as text.
 * Source: dotnet/runtime docs/design/datacontracts/data_descriptor.md, "Contracts".
 */
#ifndef CDACQ_CONTRACTS_CONTRACTS_H
#define CDACQ_CONTRACTS_CONTRACTS_H

#include "cdacq/error.h"
#include "util/base.h"

struct debug_info_encoding;
struct descriptor;
struct execution_manager_version;
struct precode_stubs_version;

struct contracts {
    const struct execution_manager_version *execution_manager;
    const struct precode_stubs_version *precode_stubs; /* NULL: published in no version that this build reads */
    const struct debug_info_encoding *debug_info;      /* NULL: the same */
    uint32_t usable; /* a bit for each enum layout_contract that is published in a version that this build reads */
};

/* Fails with CONTRACT unless the descriptor publishes ExecutionManager in a version that this build reads. */
enum cdacq_status contracts_select(const struct descriptor *descriptor, struct contracts *ret, struct cdacq_error *err);

/*
 * Whether it is NativeAOT's: it says so, or it has nothing of CoreCLR's.
 * Source: src/coreclr/nativeaot/Runtime/datadescriptor/datadescriptor.inc.
 */
bool contracts_native_aot(const struct descriptor *descriptor);

/* Whether contracts_select() fails only because no ExecutionManager is published, which a supplement could add. */
bool contracts_need_descriptor(const struct descriptor *descriptor);

bool contracts_supported(const char *name, unsigned schema, const char *version);

/*
 * "1, 2": the versions of a contract that this build reads under a schema, of the kind of runtime that `version` is of;
 * "" if there are none.
 */
void contracts_known(const char *name, unsigned schema, const char *version, char *buffer, size_t size);

/*
 * "Thread c2 (not c1), Loader none (not c1)": the contracts that the descriptor publishes in a version that this build
 * does not read, or not at all, as far as they fit. For a CoreCLR that publishes all of them, as it has since schema 2.
 */
void contracts_unknown(const struct descriptor *descriptor, char *buffer, size_t size);

#endif
