/*
 * execution_manager.h: the ExecutionManager contract: from an address to the code block that owns it.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md.
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_EXECUTION_MANAGER_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_EXECUTION_MANAGER_H

#include "contracts/execution_manager/jit_manager.h"

/* What differs between versions of the contract. */
struct execution_manager_version {
    const struct nibble_map_version *nibble_map;
    const struct stub_kinds *stub_kinds;
};

/* Of descriptors of schema 0, and, as they are counted anew from .NET 11 on, of schema 2. */
extern const struct execution_manager_version execution_manager_1, execution_manager_2, execution_manager_c1;

struct precode_stubs_version;

struct execution_manager {
    struct jit_managers managers;
    const struct precode_stubs_version *precode_stubs; /* NULL: published in no version that this build reads */
    const struct layout *layout;
    uint64_t map;          /* of the RangeSectionMap */
    uint64_t the_pre_stub; /* where its code begins; 0 where the target does not say */
};

void execution_manager_init(struct execution_manager *manager, const struct execution_manager_version *version,
                            const struct layout *layout);
void execution_manager_deinit(struct execution_manager *manager);

/* Reads what the target publishes of code outside of all ranges: ThePreStub. What cannot be read is left out. */
void execution_manager_read_globals(struct execution_manager *manager, struct field_reader *reader);

/* The manager of a section's code. */
const struct jit_manager_ops *jit_manager_of(const struct range_section *section);

/* The manager whose methods are of a kind; NULL where none is. */
const struct jit_manager_ops *jit_manager_of_kind(enum cdacq_code_kind kind);

/*
 * The block that `ip`, an address without tag bits, is in: a method (up to its real end) or a stub. False where there
 * is none, or when the reader fails.
 */
bool execution_manager_find(struct execution_manager *manager, struct field_reader *reader, uint64_t ip,
                            struct code_block *ret);

/* The same for an address whose section is known. */
bool execution_manager_find_in(struct execution_manager *manager, struct field_reader *reader,
                               const struct range_section *section, uint64_t address, struct code_block *ret);

#endif
