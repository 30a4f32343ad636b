/*
 * debug_info.h: GetDebugInfo: where the blob is that maps a method's code to its IL. JIT-compiled code points to it; a
 * ReadyToRun image has a NativeArray of them (section 105) by the method's first runtime function, whose elements may
 * refer back to an earlier, equal one.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, "GetDebugInfo"; readytorun-format.md.
 */
#ifndef CDACQ_CONTRACTS_CODE_INFO_DEBUG_INFO_H
#define CDACQ_CONTRACTS_CODE_INFO_DEBUG_INFO_H

#include "contracts/execution_manager/execution_manager.h"

/*
 * The blob of the method of a block, 0 where it has none, and whether it begins with a byte of flags. False, and the
 * reader fails, when that cannot be told.
 */
bool debug_info_of(const struct execution_manager *manager, struct field_reader *reader, const struct code_block *block,
                   uint64_t *ret, bool *ret_has_flag_byte);

#endif
