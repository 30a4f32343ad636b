/*
 * live_pages.h: memory of a running process, read when it is first needed in a question. What was read stays as it is
 * until the next question begins, and is then read anew. Blocks of pages are read with one call. One thread at a time.
 * Source: process_vm_readv(2).
 */
#ifndef CDACQ_TARGET_LIVE_PAGES_H
#define CDACQ_TARGET_LIVE_PAGES_H

#include "target/read_log.h"
#include "target/target.h"

enum {
    LIVE_BLOCK_PAGES = 4,
    LIVE_BLOCK_MAX = 1 << 16,  /* blocks: 1 GiB */
    LIVE_BLOCK_KEPT = 1 << 12, /* when a question begins: 64 MiB */
};

/* Pages with their bytes. A page is valid in the question whose number it has. */
struct live_block {
    uint64_t address;
    uint8_t *bytes;                     /* in a slab */
    uint64_t read[LIVE_BLOCK_PAGES];    /* the question in which the page was read */
    uint64_t missing[LIVE_BLOCK_PAGES]; /* the question in which it could not be read */
};

static inline uint64_t live_block_address(const struct live_block *block)
{
    return block->address;
}

DEFINE_HASH_TABLE(live_blocks, struct live_block, uint64_t, live_block_address, hash_u64, equal_u64);

/* Memory for the bytes of blocks. */
struct live_slab;

struct live_pages {
    struct live_blocks blocks;
    struct live_slab *slabs; /* the newest first */
    int pid;
    int error; /* errno of the last read that failed; 0 if none has */
    uint8_t *scratch;
    size_t scratch_size;
};

void live_pages_deinit(struct live_pages *pages);

/* Forgets what was read, if that is much. Spans of earlier questions are no longer valid. */
void live_pages_trim(struct live_pages *pages);

/* The span around `address` as the question `now` has it. False if the byte is missing. Valid until live_pages_trim. */
bool live_pages_at(struct live_pages *pages, uint64_t now, uint64_t address, struct span *ret);

/*
 * Reads again what the question `now` has read, from the log's item `from` on. True if all of it is the same: there was
 * a moment between the last of the first reads and the first of these at which the process held all of it. Sorts those
 * items. False also if memory runs out or the process has ended.
 */
bool live_pages_unchanged(struct live_pages *pages, uint64_t now, struct read_log *log, size_t from);

#endif
