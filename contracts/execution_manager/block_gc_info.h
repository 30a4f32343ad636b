/*
 * block_gc_info.h: what the GC info says of a method's block: where a collection can begin, and what a call of the
 * method leaves on the stack.
 * Source: dotnet/runtime docs/design/datacontracts/GCInfo.md, IsGcSafe, GetCalleePoppedArgumentsSize.
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_BLOCK_GC_INFO_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_BLOCK_GC_INFO_H

#include "contracts/code_info/gc_header.h"
#include "contracts/execution_manager/code_block.h"
#include "descriptors/fields.h"

/*
 * IsGcSafe: whether a collection can begin at the block's ip: a safe point, or in a range that is interruptible. On
 * x86, only the latter. False, and the reader fails, if the GC info is missing, damaged, or of an unknown version.
 */
bool block_is_gc_safe(struct reader *reader, const struct code_block *block, bool *ret);

/*
 * GetStackParameterSize: how many bytes of arguments the method removes from the stack when it returns; 0 except on
 * x86, and of funclets.
 */
bool block_stack_parameter_size(struct reader *reader, const struct code_block *block, uint32_t *ret);

/*
 * What tells the exact type arguments of a method's shared generic code, and where it is: bytes from the frame pointer,
 * or else from the stack pointer of the caller. Not on x86. False, and the reader fails, as above, or if it is in
 * neither place.
 */
bool block_generic_context(struct reader *reader, const struct code_block *block, enum gc_generic_context *ret,
                           int64_t *ret_slot, bool *ret_from_frame_pointer);

#endif
