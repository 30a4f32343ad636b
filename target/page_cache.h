/*
 * page_cache.h: bytes that are read when first needed, a page at a time, and kept unchanged from then on. Missing bytes
 * are remembered too, as far as there is room, so that repeated reads do not repeat the call. A function copies the
 * bytes from a process, from a file with pread, or from the caller. Threads: a lock serialises look-ups and thus calls
 * of the function; any thread may read the bytes of a span.
 */
#ifndef CDACQ_TARGET_PAGE_CACHE_H
#define CDACQ_TARGET_PAGE_CACHE_H

#include <pthread.h>

#include "target/target.h"

enum {
    PAGE_CACHE_MAX = 1 << 18, /* 1 GiB, far more than any call needs */
    PAGE_CACHE_MISSING = 1024,
};

/* Copies [address, address + size) up to the first missing byte. Returns the number of bytes copied. */
typedef size_t page_cache_read(uint64_t address, void *buffer, size_t size, void *context);

struct page_cache {
    struct pages pages;
    /* Bytes and pages where nothing could be read, inverted. A hash gives the slot, whose old entry goes. */
    uint64_t missing_bytes[PAGE_CACHE_MISSING], missing_pages[PAGE_CACHE_MISSING];
    page_cache_read *read;
    void *context;
    pthread_mutex_t lock;
};

/* False when out of memory. */
bool page_cache_init(struct page_cache *cache, page_cache_read *read, void *context);
void page_cache_deinit(struct page_cache *cache);

/*
 * The span around `address` within its page, valid until the cache is freed. False where the byte is missing, or
 * PAGE_CACHE_MAX pages are kept already.
 */
bool page_cache_at(struct page_cache *cache, uint64_t address, struct span *ret);

#endif
