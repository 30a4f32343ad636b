/*
 * execution_manager.h: the ExecutionManager contract: from an address to the code block that owns it.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md.
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_EXECUTION_MANAGER_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_EXECUTION_MANAGER_H

#include "contracts/code_lookup/range_sections.h"
#include "contracts/execution_manager/jit_manager.h"
#include "contracts/execution_manager/stub_ranges.h"

/* What differs between versions of the contract. */
struct execution_manager_version {
    const struct nibble_map_version *nibble_map;
    const struct stub_kinds *stub_kinds;
    uint32_t parts; /* a bit for each part of a contract that runtimes with this version need (descriptors/layout.h) */
    /* Reads the only range of code. False, and the reader fails, if it cannot be read. NULL: a map has the ranges. */
    bool (*only_section)(struct reader *reader, struct range_section *ret);
};

/*
 * The first two are of descriptors of schema 0. Schema 2 (.NET 11) starts its versions again at "c1"; "n1" is that of
 * NativeAOT.
 */
extern const struct execution_manager_version execution_manager_1, execution_manager_2, execution_manager_c1,
    execution_manager_n1;

/* That of a runtime which cannot be read: no address is in its code. */
extern const struct execution_manager_version execution_manager_none;

struct precode_stubs_version;

struct execution_manager {
    const struct execution_manager_version *version;
    struct jit_managers managers;
    const struct precode_stubs_version *precode_stubs; /* NULL: published in no version that this build reads */
    const struct layout *layout;
    uint64_t map; /* the RangeSectionMap */
    struct range_sections sections;
    uint64_t the_pre_stub;     /* the start of its code; 0 if not published */
    struct image_bounds image; /* of the runtime */
};

void execution_manager_init(struct execution_manager *manager, const struct execution_manager_version *version,
                            const struct layout *layout);
void execution_manager_deinit(struct execution_manager *manager);

/* Reads where ThePreStub is, which lies outside of all ranges. It stays 0 if that cannot be read. */
void execution_manager_read_globals(struct execution_manager *manager, struct reader *reader);

/*
 * The range section, or the range of stubs outside of the map, that holds `address`. False if there is none or the
 * reader fails.
 */
bool execution_manager_section(struct execution_manager *manager, struct reader *reader, uint64_t address,
                               struct range_section *ret);

/* The section that the runtime itself has for `address` now; no list that was read before is used. */
bool execution_manager_current_section(struct execution_manager *manager, struct reader *reader, uint64_t address,
                                       struct range_section *ret);

/*
 * Whether the code at `address`, which no section holds, may have been freed: range_section_map_reaches(). Never if the
 * only section is fixed.
 */
bool execution_manager_reaches(const struct execution_manager *manager, struct reader *reader, uint64_t address);

/* Lists all sections, as range_section_map_list() does. */
bool execution_manager_list(const struct execution_manager *manager, struct reader *reader,
                            struct range_section_list *ret);

/* The manager of a section's code. */
const struct jit_manager_ops *jit_manager_of(const struct range_section *section);

/* The stub, or the method up to its real end, that owns `ip`, an address without tag bits. False if none, or failed. */
bool execution_manager_find(struct execution_manager *manager, struct reader *reader, uint64_t ip,
                            struct code_block *ret);

/*
 * NonVirtualEntry2MethodDesc: the MethodDesc that `entry` enters, the address of code (as specified, any address in a
 * method's) or, if the target has those, of a PortableEntryPoint. False, and *ret untouched, if the reader fails or
 * there is none: outside of all code, in a stub without a method, in ReadyToRun code that was not prepared.
 */
bool execution_manager_entry_method_desc(struct execution_manager *manager, struct reader *reader, uint64_t entry,
                                         uint64_t *ret);

#endif
