/*
 * page_cache.h: bytes that are fetched when first asked for, a page at a time, and kept: what was once handed out stays
 * as it was, whatever becomes of where it came from. What was not there is remembered too, as far as there is room, so
 * that who asks often for it does not go to the source each time. Behind it stands a function that copies: from a
 * process, from a file with pread, or the caller's own. Threads: a lock lets one thread at a time look, so the function
 * is never called by two at once; bytes that were handed out may be read by all.
 */
#ifndef CDACQ_TARGET_PAGE_CACHE_H
#define CDACQ_TARGET_PAGE_CACHE_H

#include <pthread.h>

#include "target/target.h"

enum {
    PAGE_CACHE_MAX = 1 << 18, /* 1 GiB: far above what any question needs */
    PAGE_CACHE_MISSING = 1024,
};

/* Copies [address, address + size) up to the first byte that is not there; returns how many bytes came. */
typedef size_t page_cache_read(void *context, uint64_t address, void *buffer, size_t size);

struct page_cache {
    struct pages pages;
    /* Where reading got nothing: single bytes and whole pages, in the slot of their hash, where the last one stays. */
    uint64_t missing_bytes[PAGE_CACHE_MISSING], missing_pages[PAGE_CACHE_MISSING];
    page_cache_read *read;
    void *context;
    pthread_mutex_t lock;
};

/* False when out of memory. */
bool page_cache_init(struct page_cache *cache, page_cache_read *read, void *context);
void page_cache_deinit(struct page_cache *cache);

/*
 * The run around `address`: within its page, good until the cache is freed. False where no byte is there, or
 * PAGE_CACHE_MAX pages are kept already.
 */
bool page_cache_at(struct page_cache *cache, uint64_t address, struct span *ret);

#endif
