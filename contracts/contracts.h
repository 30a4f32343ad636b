/*
 * contracts.h: which version of which contract this build reads: a table with a row each. A version counts only
 * together with the schema of the descriptor that publishes it: schema 0 numbers its contracts (.NET 9 and 10), schema
 * 2 counts them anew as "c1", "c2" (.NET 11). Versions are compared as text. Source: dotnet/runtime
 * docs/design/datacontracts/data_descriptor.md, "Contracts".
 */
#ifndef CDACQ_CONTRACTS_CONTRACTS_H
#define CDACQ_CONTRACTS_CONTRACTS_H

#include "contracts/execution_manager/execution_manager.h"

struct contracts {
    const struct execution_manager_version *execution_manager;
    const struct precode_stubs_version *precode_stubs; /* NULL: in no version that this build reads */
    uint32_t usable; /* of enum layout_contract, a bit each: published in a version that this build reads */
};

/* Fails with CONTRACT unless the descriptor publishes ExecutionManager in a version that this build reads. */
enum cdacq_status contracts_select(const struct descriptor *descriptor, struct contracts *ret, struct cdacq_error *err);

/*
 * Whether the descriptor, which publishes no ExecutionManager, looks like NativeAOT's. Source: dotnet/runtime
 * src/coreclr/nativeaot/Runtime/datadescriptor/datadescriptor.inc.
 */
bool contracts_native_aot(const struct descriptor *descriptor);

/* Whether a descriptor of the host's can supply what keeps contracts_select() from succeeding: ExecutionManager. */
bool contracts_need_descriptor(const struct descriptor *descriptor);

/* Whether this build reads that version of a contract. */
bool contracts_supported(const char *name, unsigned schema, const char *version);

/* "1, 2": the versions of a contract that this build reads under a schema; "" where there are none. */
void contracts_known(const char *name, unsigned schema, char *buffer, size_t size);

#endif
