/*
 * il_offsets.h: from the code of a method to its IL, and to where its variables are, by the debug info that its manager
 * finds. Code that was compiled at run time has it in the encoding of the DebugInfo contract; a ReadyToRun image in
 * that of its own version.
 * Source: dotnet/runtime docs/design/datacontracts/DebugInfo.md.
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_IL_OFFSETS_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_IL_OFFSETS_H

#include "formats/debug_info.h"
#include "contracts/execution_manager/jit_manager.h"

/*
 * The IL offsets of a method's block, empty where it has no debug info, as dynamic methods have none. `encoding` is
 * that of code compiled at run time, NULL where this build does not read it. False, and the reader fails, when they
 * cannot be read. The caller frees *ret.
 */
bool block_il_map(const struct debug_info_encoding *encoding, struct reader *reader, const struct code_block *block,
                  struct il_map *ret);

/*
 * What stands for the number of xmm0 in the places of a block, those of xmm1 to xmm15 follow. No number of the debug
 * info is as high.
 */
enum { BLOCK_XMM0 = 0x10000 };

DEFINE_VECTOR(block_variables, struct debug_info_variable);

/*
 * Appends the places that a method's arguments and locals have at a native offset. Where the debug info tells none of
 * them, *ret_problem says why, else it is NULL: in a prolog or an epilog, it does not follow each instruction. False,
 * and the reader fails, when they cannot be read.
 */
bool block_variables_read(const struct debug_info_encoding *encoding, struct reader *reader,
                          const struct code_block *block, uint32_t native_offset, struct block_variables *ret,
                          const char **ret_problem);

#endif
