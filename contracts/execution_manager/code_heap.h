/*
 * code_heap.h: the operations that all managers of code heaps share. A code heap is a range of blocks with a nibble map
 * of their starts. The word before a block points to its header, or, before a block of stubs, is the number of their
 * kind. Compiled and interpreted methods are kept alike; their headers differ. Runtimes that publish BottomEndAddress
 * and TopStartAddress can put the cold parts of methods at the end of the heap.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, "EE JitManager"; src/coreclr/vm/codeman.h. The
 * specification compares the word's address with StubCodeBlockLast; the runtime, and this code, compare its value.
 */
#ifndef CDACQ_CONTRACTS_EXECUTION_MANAGER_CODE_HEAP_H
#define CDACQ_CONTRACTS_EXECUTION_MANAGER_CODE_HEAP_H

#include "contracts/code_info/gc_info.h"
#include "contracts/execution_manager/jit_manager.h"

/*
 * The header of the block at `start`, and where its method starts: elsewhere if the block is a method's cold part,
 * which follows a pointer to the pointer to the header. 0 for stubs, whose block *ret then is, and when the reader
 * fails.
 */
uint64_t code_heap_header(const struct section_reader *section, uint64_t start, uint64_t *ret_method,
                          struct code_block *ret);

/* The end of a CodeHeapListNode's code or, of a heap with cold code at its end, of its hot code. */
uint64_t code_heap_end(struct reader *reader, uint64_t node);

/* A field of the header of a method's block. 0, and the reader fails, when it cannot be read. */
uint64_t code_heap_header_field(struct reader *reader, const struct code_block *block, enum layout_field field);

/* The operations of jit_manager_ops. */
bool code_heap_find(const struct section_reader *section, uint64_t ip, struct code_block *ret);
void code_heap_each(const struct section_reader *section, block_part_visitor *visit, void *context);
bool code_heap_gc_info(struct reader *reader, const struct code_block *block, uint64_t *ret, uint32_t *ret_version);
bool code_heap_clauses(struct reader *reader, const struct code_block *block, struct exception_clauses *ret);

#endif
