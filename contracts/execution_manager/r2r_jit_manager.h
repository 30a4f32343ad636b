/*
 * r2r_jit_manager.h: the ReadyToRun JIT manager: code that was compiled ahead of time, in mapped images.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, "R2R JitManager".
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_R2R_JIT_MANAGER_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_R2R_JIT_MANAGER_H

#include "contracts/execution_manager/execution_manager.h"
#include "contracts/ready_to_run/r2r_image.h"

/* The image of a section, opened when it is first asked for. NULL, and the reader fails, when that cannot be done. */
const struct r2r_image *r2r_jit_manager_image(struct execution_manager *manager, struct field_reader *reader,
                                              const struct range_section *section);

/* The image that a block is of; NULL for blocks of other managers. */
const struct r2r_image *r2r_jit_manager_image_of(const struct execution_manager *manager,
                                                 const struct code_block *block);

/* The runtime function with which a block's method starts; its caller checks that the image has it. */
static inline uint64_t r2r_jit_manager_function_of(const struct r2r_image *image, const struct code_block *block)
{
    return (block->runtime_functions - image->functions.address) / image->functions.entry_size;
}

/* The method or thunk that `ip` is in. False where there is none (padding, data), or when the reader fails. */
bool r2r_jit_manager_find(const struct r2r_image *image, struct field_reader *reader, uint64_t ip,
                          struct code_block *ret);

/* The method that starts at hot function `start`; ret->ip is its start. */
bool r2r_jit_manager_block_at(const struct r2r_image *image, struct field_reader *reader, uint32_t start,
                              struct code_block *ret);

/* The start that a hot function belongs to: the nearest one at or before it. UINT32_MAX where there is none. */
uint32_t r2r_jit_manager_start_of(const struct r2r_image *image, const struct r2r_entries *entries,
                                  struct field_reader *reader, uint32_t function);

/*
 * GetGCInfo of a method's block: where its GC info is, and in which version, 0 where that is not known. False, and the
 * reader fails, when it cannot be told.
 */
bool r2r_jit_manager_gc_info(const struct r2r_image *image, struct field_reader *reader, const struct code_block *block,
                             uint64_t *ret, uint32_t *ret_version);

/* Which method a block is by the image's tables, which are read for that: for a MethodDesc that cannot be read. */
void r2r_jit_manager_entry(const struct r2r_image *image, struct field_reader *reader, struct code_block *block);

#endif
