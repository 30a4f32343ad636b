/*
 * code_block.h: what a code manager says of the code that an address is in: the common result of all of them.
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_CODE_BLOCK_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_CODE_BLOCK_H

#include "cdacq/code_kind.h"

/* Where a ReadyToRun image names a method by itself. */
enum method_entry_kind {
    ENTRY_NONE,      /* no table of the image names it */
    ENTRY_METHODDEF, /* `entry` is a methoddef rid */
    ENTRY_INSTANCE,  /* `entry` is the offset of a signature in the instance entry points */
    ENTRY_COMPONENT, /* of a composite image: `entry` is a methoddef rid of `component` */
};

struct code_block {
    uint64_t ip;
    uint64_t start;    /* of the hot code */
    uint64_t hot_size; /* funclets included; 0 for stubs */
    uint64_t cold_start, cold_size;
    uint64_t offset;            /* of ip: GetRelativeOffset */
    uint64_t method_desc;       /* 0 where the runtime has none for it (yet) */
    uint64_t unwind_base;       /* what RUNTIME_FUNCTION addresses are relative to */
    uint64_t runtime_functions; /* of the method's hot code: the first one's address */
    uint32_t runtime_function_count;
    uint32_t cold_function_count;
    uint64_t cold_functions; /* the first one's address */
    uint64_t module;         /* of ReadyToRun code: the image's Module; 0 else */
    uint32_t entry;
    uint16_t component; /* index among the assemblies of a composite image */
    uint8_t kind;       /* enum cdacq_code_kind */
    uint8_t entry_kind;
    bool cold;       /* ip is in the cold part */
    bool unverified; /* bytes of a file that nothing confirmed have decided this */
};

static inline bool code_block_is_method(const struct code_block *block)
{
    return block->kind >= CDACQ_CODE_JITTED && block->kind <= CDACQ_CODE_INTERPRETER;
}

#endif
