#include "contracts/gc/heap_memory.h"

enum { READ_FOR_A_UNIT = 256 }; /* bytes */

void heap_block_read(struct reader *reader, struct heap_block *block, uint64_t address, uint64_t max)
{
    const struct target_ops *ops = reader->target->ops;
    bool follows = address >= block->address && address - block->address <= block->size;
    block->address = address;
    if (!ops->peek || reader->target->recording) {
        block->bytes = reader_try_run(reader, address, (size_t)MIN(max, (uint64_t)SIZE_MAX), &block->size);
        block->size = block->bytes ? block->size : 0;
    } else {
        block->next_size = follows ? MIN(2 * block->next_size, (size_t)HEAP_BLOCK_LAST) : HEAP_BLOCK_FIRST;
        block->bytes = block->buffer;
        block->size = ops->peek(reader->target, address, block->buffer, (size_t)MIN(max, (uint64_t)block->next_size));
    }
    reader_charge(reader, (uint32_t)MIN(block->size / READ_FOR_A_UNIT + 1, (size_t)UINT32_MAX));
    reader_step(reader, "objects of the heap");
}
