/*
 * heap_memory.h: memory of the heap, read in large blocks: of a core where it lies, of a running process into a
 * buffer. For readers that go through the heap in the order of addresses.
 */
#ifndef CDACQ_CONTRACTS_GC_HEAP_MEMORY_H
#define CDACQ_CONTRACTS_GC_HEAP_MEMORY_H

#include "target/reader.h"

enum {
    HEAP_BLOCK_FIRST = 4096,      /* bytes that are read at a time of a running process, and, where objects are */
    HEAP_BLOCK_LAST = 256 * 1024, /* small, in the end */
};

/* Bytes of the target from `address` on. */
struct heap_block {
    uint64_t address;
    const uint8_t *bytes;
    size_t size;
    uint8_t *buffer; /* of HEAP_BLOCK_LAST bytes; the caller's */
    size_t next_size;
};

/* Reads the block that begins at `address`, of at most `max` bytes. Its size is 0 if no byte is there. */
void heap_block_read(struct reader *reader, struct heap_block *block, uint64_t address, uint64_t max);

/* Whether `size` bytes from `address` on are in the block, which is read anew, up to `end`, if they are not. */
static inline bool heap_block_have(struct reader *reader, struct heap_block *block, uint64_t address, uint64_t end,
                                   size_t size)
{
    if (LIKELY(address - block->address < block->size && block->size - (size_t)(address - block->address) >= size))
        return true;
    heap_block_read(reader, block, address, end - address);
    return block->size >= size;
}

#endif
