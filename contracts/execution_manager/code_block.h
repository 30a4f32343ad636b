/*
 * code_block.h: the block of code that owns an address: what every JIT manager returns.
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_CODE_BLOCK_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_CODE_BLOCK_H

#include "cdacq/code_kind.h"

struct jit_manager_ops;
struct r2r_image;
struct aot_image;

struct code_block {
    const struct jit_manager_ops *manager; /* whose block it is; set for methods */
    const struct r2r_image *image;         /* of ReadyToRun code, valid while the target is open; else NULL */
    uint64_t ip;
    uint64_t start;    /* of the hot code */
    uint64_t hot_size; /* funclets included; 0 for stubs */
    uint64_t cold_start, cold_size;
    uint64_t offset;      /* of ip: GetRelativeOffset */
    uint64_t method_desc; /* 0 if the runtime has none (yet) */
    uint64_t unwind_base; /* what RUNTIME_FUNCTION addresses are relative to */
    union {
        uint64_t runtime_functions; /* of the method's hot code: the first one's address */
        struct aot_image *aot;      /* of NativeAOT code, which has none; see code_block_aot() */
    };
    uint32_t runtime_function_count;
    uint32_t cold_function_count;
    uint64_t cold_functions;   /* the first one's address */
    uint64_t prepared_unknown; /* of ReadyToRun code without method_desc: where the map that may have it is missing */
    uint32_t entry;
    uint16_t component; /* index among the assemblies of a composite image */
    uint8_t kind;       /* enum cdacq_code_kind */
    uint8_t entry_kind; /* enum method_entry_kind: what `entry` is */
    bool cold;          /* ip is in the cold part */
    bool unverified;    /* this rests on a file that nothing confirmed */
};

static inline bool code_block_is_method(const struct code_block *block)
{
    return block->manager != NULL;
}

#endif
