/*
 * code_heap.h: code heaps: ranges that hold blocks of code, with a nibble map that says where each of them starts. The
 * word before a block points to its header, or, before a block of stubs, is a small number: their kind. Compiled and
 * interpreted methods are kept in the same way; their headers differ.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, "EE JitManager"; src/coreclr/vm/codeman.h. The
 * specification compares the word's address with StubCodeBlockLast; the runtime compares its value, and so does this.
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_CODE_HEAP_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_CODE_HEAP_H

#include "contracts/execution_manager/jit_manager.h"

/* The start of the block that `ip` is in by the nibble map; 0 where there is none, or the reader fails. */
uint64_t code_heap_start(const struct nibble_map_version *version, struct field_reader *reader,
                         const struct range_section *section, uint64_t ip);

/*
 * The header of the block that starts at `start`. 0 for stubs, whose block *ret then is, and when the reader fails.
 */
uint64_t code_heap_header(const struct stub_kinds *kinds, struct field_reader *reader, uint64_t start,
                          struct code_block *ret);

/* A field of the header of a method's block. 0, and the reader fails, when it cannot be read. */
uint64_t code_heap_header_field(struct field_reader *reader, const struct code_block *block, enum layout_field field);

/* All code of the section's code heap, for `manager`, whose methods it holds: jit_manager_ops.each. */
void code_heap_each(const struct jit_manager_ops *manager, struct jit_managers *managers, struct field_reader *reader,
                    const struct range_section *section, block_part_visitor *visit, void *context);

#endif
