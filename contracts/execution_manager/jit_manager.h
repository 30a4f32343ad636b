/*
 * jit_manager.h: what a JIT manager does. The runtime has several, each with code of its own form; each is a row of
 * operations in a file of its own. A code block carries the row of its manager, so no other code asks which one it is.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md; src/coreclr/vm/codeman.h, IJitManager.
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_JIT_MANAGER_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_JIT_MANAGER_H

#include "cdacq/block.h"
#include "contracts/execution_manager/code_block.h"
#include "contracts/native_aot/aot_image.h"
#include "contracts/ready_to_run/r2r_images.h"
#include "descriptors/layout.h"
#include "util/base.h"

struct exception_clauses;
struct nibble_map_version;
struct range_section;
struct reader;
struct stub_kinds;

/* Takes a function of a method: its body, or a funclet. False ends the visit. */
typedef bool block_function_visitor(uint64_t begin, bool is_filter, void *context);

/* What the managers of one target share. */
struct jit_managers {
    const struct nibble_map_version *nibble_map;
    const struct stub_kinds *stub_kinds;
    struct r2r_images images;
    struct aot_image aot; /* of NativeAOT */
};

/* A section, and what its manager reads it with. */
struct section_reader {
    const struct jit_manager_ops *manager;
    struct jit_managers *managers;
    struct reader *reader;
    const struct range_section *section;
};

enum block_part_kind {
    PART_HOT,
    PART_COLD,
    PART_STUB,    /* stubs, whose end is not known: a look-up walks */
    PART_UNKNOWN, /* its header cannot be read: a look-up walks and reports why */
};

enum { PART_NO_NUMBER = (1 << 30) - 1 }; /* of a part that never continues the one before it */

/* Takes the part [begin, end) of a block. `number` is the manager's, for block_at. False ends the visit. */
typedef bool block_part_visitor(uint64_t begin, uint64_t end, enum block_part_kind kind, uint32_t number,
                                void *context);

struct jit_manager_ops {
    const char *range_kind;                         /* what listings call its ranges */
    enum cdacq_code_kind method_kind;               /* of its methods; CDACQ_CODE_UNKNOWN: it has only stubs */
    enum cdacq_jit_type jit_type;                   /* GetJITType of them */
    enum layout_global heaps_variable;              /* of a manager that keeps code heaps: points to it */
    enum layout_field gc_info_field, clauses_field; /* of such a manager: in the headers of methods */
    bool compiles;                                  /* at run time, so that methods have tiers */
    bool in_images;                                 /* its code lies in images that were compiled ahead of time */
    bool by_call_frames;                            /* its code is unwound by call-frame information, as native code */

    /* The stub, or the method up to its real end, that owns `ip`. False if there is none or the reader fails. */
    bool (*find)(const struct section_reader *section, uint64_t ip, struct code_block *ret);
    /* All code of a section, ascending. What cannot be read is PART_UNKNOWN, or the reader fails. */
    void (*each)(const struct section_reader *section, block_part_visitor *visit, void *context);
    /* How many parts `each` visits, about; a null operation means that there are few. 0 if it is not known. */
    size_t (*part_count)(const struct section_reader *section);
    /* The block of a part from `each`, as `find` returns it for the part's first address. NULL if only stubs exist. */
    bool (*block_at)(const struct section_reader *section, uint64_t begin, uint32_t number, struct code_block *ret);

    /*
     * For a method's block. All return false, and the reader fails, when the answer cannot be read. GetUnwindInfo has
     * no operation here: a block carries its RUNTIME_FUNCTIONs (block_function.h).
     */

    /* The functions of a block without RUNTIME_FUNCTIONs, ascending. NULL: its code is one function. */
    bool (*functions)(struct reader *reader, const struct code_block *block, block_function_visitor *visit,
                      void *context);

    /* GetGCInfo: its address and its version, 0 if that is not known. */
    bool (*gc_info)(struct reader *reader, const struct code_block *block, uint64_t *ret, uint32_t *ret_version);
    /* GetDebugInfo: the address of the blob that maps code to IL, or 0, and whether a byte of flags precedes it. */
    bool (*debug_info)(struct reader *reader, const struct code_block *block, uint64_t *ret, bool *ret_has_flag_byte);
    /* GetExceptionClauses: where they are; a count of 0 if there are none. */
    bool (*clauses)(struct reader *reader, const struct code_block *block, struct exception_clauses *ret);
};

/* The image of a block of NativeAOT code, valid while the target is open; NULL for other blocks. */
static inline struct aot_image *code_block_aot(const struct code_block *block)
{
    return block->manager && block->manager->by_call_frames ? block->aot : NULL;
}

extern const struct jit_manager_ops ee_jit_manager, r2r_jit_manager, interpreter_jit_manager, range_list_manager,
    native_aot_manager;

#endif
