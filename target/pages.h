/*
 * pages.h: a set of 4 KiB pages by address, each with room for a copy of its bytes where the owner wants one. A live
 * target keeps what it has read in one; a recording target notes what was touched. One thread at a time.
 */
#ifndef CDACQ_TARGET_PAGES_H
#define CDACQ_TARGET_PAGES_H

#include "util/base.h"

#define PAGE_SIZE  UINT64_C(4096)
#define LINE_SIZE  UINT64_C(64)
#define PAGE_LINES (PAGE_SIZE / LINE_SIZE)

struct page {
    uint64_t address; /* of its first byte */
    uint8_t *bytes;   /* owned by the set; NULL where only membership counts */
    uint64_t lines;   /* a bit for each of its PAGE_LINES lines: which of them the owner means */
};

struct pages {
    struct page *slots; /* open addressing; a power of two; an empty slot has address UINT64_MAX */
    size_t count, capacity;
};

void pages_deinit(struct pages *pages);

/*
 * The page at `address`, which is aligned, added when it is not there. NULL when out of memory. The pointer is good
 * until the next call. `*ret_added` (optional) says whether it is new.
 */
struct page *pages_add(struct pages *pages, uint64_t address, bool *ret_added);

/* The page at `address`, or NULL. */
struct page *pages_find(const struct pages *pages, uint64_t address);

#endif
