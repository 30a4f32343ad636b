/*
 * code_heap.h: code heaps: ranges in which blocks of code stand, with a nibble map that tells where each starts. In
 * front of a block stands a pointer to its header, or, for a block of stubs, a small number: their kind
 * (StubCodeBlockKind). What is compiled and what is interpreted is kept in the same way; the headers differ.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, "EE JitManager"; src/coreclr/vm/codeman.h. The
 * specification compares the place with StubCodeBlockLast; the runtime compares the value that stands there, as done
 * here.
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_CODE_HEAP_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_CODE_HEAP_H

#include "contracts/execution_manager/code_block.h"
#include "contracts/code_lookup/nibble_map.h"
#include "contracts/code_lookup/range_section_map.h"

struct execution_manager;

/*
 * The start of the block that `ip` is in, as far as the nibble map tells; 0 where there is none, or the reader fails.
 */
uint64_t code_heap_start(const struct execution_manager *manager, struct field_reader *reader,
                         const struct range_section *section, uint64_t ip);

/*
 * The header of the block that starts at `start`. 0 for stubs, whose block *ret then is, and when the reader fails.
 */
uint64_t code_heap_header(const struct execution_manager *manager, struct field_reader *reader, uint64_t start,
                          struct code_block *ret);

/*
 * A field that the headers of both kinds of methods have: `jit` of a RealCodeHeader, `interpreter` of the other. 0, and
 * the reader fails, when it cannot be read.
 */
uint64_t code_block_field(struct field_reader *reader, const struct code_block *block, enum layout_field jit,
                          enum layout_field interpreter);

/* Calls `found` for the start of every block of the section's code heap, ascending, until it returns false. */
bool code_heap_each(const struct execution_manager *manager, struct field_reader *reader,
                    const struct range_section *section, bool (*found)(uint64_t start, void *context), void *context);

#endif
