/*
 * pages.h: a set of 4 KiB pages by address, each with room for a copy of its bytes where the owner wants one. A live
 * target keeps what it has read in one; a recording target notes what was touched. One thread at a time. The addresses are
 * of a process that may choose them so that all collide.
 */
#ifndef CDACQ_TARGET_PAGES_H
#define CDACQ_TARGET_PAGES_H

#include "util/hash_table.h"

#define PAGE_SIZE  UINT64_C(4096)
#define LINE_SIZE  UINT64_C(64)
#define PAGE_LINES (PAGE_SIZE / LINE_SIZE)

struct page {
    uint64_t address; /* of its first byte */
    uint8_t *bytes;   /* of the owner of the set; NULL where only membership counts */
    uint64_t lines;   /* a bit for each of its PAGE_LINES lines: which of them the owner means */
};

static inline uint64_t page_address(const struct page *page)
{
    return page->address;
}

DEFINE_HASH_TABLE(pages, struct page, uint64_t, page_address, hash_u64, equal_u64);

#endif
