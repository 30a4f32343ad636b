/*
 * unwind_entry.h: the RUNTIME_FUNCTIONs of a method as the unwinders take them (contracts/unwind).
 */
#ifndef CDACQ_CONTRACTS_STACK_WALK_UNWIND_ENTRY_H
#define CDACQ_CONTRACTS_STACK_WALK_UNWIND_ENTRY_H

#include "contracts/execution_manager/block_function.h"
#include "contracts/unwind/unwinder.h"

/*
 * Entry `index` of the table of the block's hot or cold part. `is_funclet`: it is a funclet or a part of one. False,
 * and the reader fails, if it cannot be read.
 */
bool unwind_entry_read(struct reader *reader, const struct code_block *block, const struct unwind_table *table,
                       uint32_t index, bool is_funclet, struct unwind_function *ret);

/* The table of the part that block->ip is in. */
struct unwind_table unwind_entry_table(const struct reader *reader, const struct code_block *block);

/* Whether entry `index` of that table is a funclet or a part of one. False too if the reader fails. */
bool unwind_entry_is_funclet(struct reader *reader, const struct code_block *block, const struct unwind_table *table,
                             uint32_t index);

#endif
