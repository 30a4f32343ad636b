/*
 * execution_manager.h: the ExecutionManager contract: from an address to the code block that owns it.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md.
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_EXECUTION_MANAGER_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_EXECUTION_MANAGER_H

#include <stdatomic.h>

#include "contracts/execution_manager/code_block.h"
#include "contracts/code_lookup/nibble_map.h"
#include "contracts/code_lookup/range_section_map.h"
#include "contracts/code_info/unwind_info.h"

/* What differs between versions of the contract. */
struct execution_manager_version {
    const struct nibble_map_version *nibble_map;
    /* Stub kinds by the number in front of a stub block; index up to StubCodeBlockLast. */
    const uint8_t *stub_kinds;
    size_t stub_kind_count;
};

/* Of descriptors of schema 0, and, as they are counted anew from .NET 11 on, of schema 2. */
extern const struct execution_manager_version execution_manager_1, execution_manager_2, execution_manager_c1;

struct r2r_image;
struct precode_stubs_version;

struct execution_manager {
    const struct execution_manager_version *version;
    const struct precode_stubs_version *precode_stubs; /* NULL: published in no version that this build reads */
    const struct layout *layout;
    uint64_t map;                       /* of the RangeSectionMap */
    uint64_t the_pre_stub;              /* where its code begins; 0 where the target does not tell */
    _Atomic(struct r2r_image *) images; /* a list that only grows */
    _Atomic(uint64_t) functions;        /* runtime functions of all of them: bounded */
};

void execution_manager_init(struct execution_manager *manager, const struct execution_manager_version *version,
                            const struct layout *layout);
void execution_manager_deinit(struct execution_manager *manager);

/* Reads what the target tells of code outside of all ranges: ThePreStub. What cannot be read is left out. */
void execution_manager_read_globals(struct execution_manager *manager, struct field_reader *reader);

enum code_manager {
    CODE_MANAGER_EE,
    CODE_MANAGER_R2R,
    CODE_MANAGER_INTERPRETER,
    CODE_MANAGER_RANGE_LIST,
};

/* Which manager the code of a section belongs to. */
enum code_manager range_section_manager(const struct range_section *section);

/*
 * The block that `ip`, an address without tag bits, is in: a method (up to its real end) or a stub. False where there
 * is none, or when the reader fails.
 */
bool execution_manager_find(struct execution_manager *manager, struct field_reader *reader, uint64_t ip,
                            struct code_block *ret);

/* The same for an address whose section is known. */
bool execution_manager_find_in(struct execution_manager *manager, struct field_reader *reader,
                               const struct range_section *section, uint64_t address, struct code_block *ret);

/* The stub kind that the number in front of a stub block means. */
enum cdacq_code_kind execution_manager_stub_kind(const struct execution_manager *manager, uint64_t number);

/* A function of a method: its body, a funclet, or a cold part of either. */
struct function_place {
    uint64_t entry; /* its RUNTIME_FUNCTION */
    uint64_t start; /* of its code, or, of a fragment, of the function's that it belongs to */
    struct unwind_table table;
    uint32_t index; /* of the entry in the table */
};

/*
 * The function of a method's block that covers block->ip. Interpreted methods, and those of a JIT without funclets,
 * have no RUNTIME_FUNCTION: its entry is 0 then, and it starts where the method does. False where none covers it, or
 * when the reader fails.
 */
bool execution_manager_unwind_info(struct field_reader *reader, const struct code_block *block,
                                   struct function_place *ret);

#endif
