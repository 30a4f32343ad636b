#include "target/page_cache.h"

/* The bytes of an incomplete page are followed by a bit for each byte: whether it is valid. */
enum { VALID_WORDS = PAGE_SIZE / 64 };

static uint64_t *valid_of(const struct page *page)
{
    return (uint64_t *)(void *)(page->bytes + PAGE_SIZE);
}

static bool is_whole(const struct page *page)
{
    return page->lines == UINT64_MAX;
}

static bool is_valid(const struct page *page, uint64_t offset)
{
    return valid_of(page)[offset / 64] >> offset % 64 & 1;
}

/* Where the run of valid bytes begins that has the one at `offset`. */
static uint64_t run_begin(const struct page *page, uint64_t offset)
{
    const uint64_t *valid = valid_of(page);
    uint64_t word = offset / 64, last = offset, gaps = ~valid[word] << (63 - offset % 64); /* bit 63: of `last` */
    while (!gaps && word) {
        gaps = ~valid[--word];
        last = word * 64 + 63;
    }
    return gaps ? last - (uint64_t)__builtin_clzll(gaps) + 1 : 0;
}

/* Where it ends. */
static uint64_t run_end(const struct page *page, uint64_t offset)
{
    const uint64_t *valid = valid_of(page);
    uint64_t word = offset / 64, first = offset, gaps = ~valid[word] >> offset % 64; /* bit 0: of `first` */
    while (!gaps && word + 1 < VALID_WORDS) {
        gaps = ~valid[++word];
        first = word * 64;
    }
    return gaps ? first + (uint64_t)__builtin_ctzll(gaps) : PAGE_SIZE;
}

bool page_cache_init(struct page_cache *cache, page_cache_read *read, void *context)
{
    *cache = (struct page_cache){.read = read, .context = context};
    return pthread_mutex_init(&cache->lock, NULL) == 0;
}

void page_cache_deinit(struct page_cache *cache)
{
    for (struct page *page = NULL; (page = pages_next(&cache->pages, page));)
        free(page->bytes);
    pages_deinit(&cache->pages);
    pthread_mutex_destroy(&cache->lock);
}

/* Addresses are stored inverted, so that an empty slot, 0, means the last byte, whose page is never read. */
static uint64_t *missing_slot(uint64_t *missing, uint64_t address)
{
    return &missing[(address * UINT64_C(0x9e3779b97f4a7c15) >> 32) % PAGE_CACHE_MISSING];
}

static bool is_missing(uint64_t *missing, uint64_t address)
{
    return *missing_slot(missing, address) == ~address;
}

/* Reads, unless `missing` has the address. Adds the address to it if nothing could be read. */
static size_t read_from(struct page_cache *cache, uint64_t *missing, uint64_t address, void *buffer, size_t size)
{
    if (is_missing(missing, address))
        return 0;
    size_t got = cache->read(address, buffer, size, cache->context); /* may claim more than `size` */
    if (!got)
        *missing_slot(missing, address) = ~address;
    return MIN(got, size);
}

/* Reads more of an incomplete page: from `offset` to the end of its line. Valid bytes stay as they are. */
static bool fetch_line(struct page_cache *cache, struct page *page, uint64_t offset)
{
    uint8_t line[LINE_SIZE];
    size_t wanted = (size_t)(LINE_SIZE - offset % LINE_SIZE);
    size_t size = read_from(cache, cache->missing_bytes, page->address + offset, line, wanted);
    for (size_t i = 0; i < size; i++)
        if (!is_valid(page, offset + i)) {
            page->bytes[offset + i] = line[i];
            valid_of(page)[(offset + i) / 64] |= UINT64_C(1) << (offset + i) % 64;
        }
    return size > 0;
}

/* Reads a new page. False, and nothing is kept, where its byte at `offset` is missing. */
static bool fetch_page(struct page_cache *cache, struct page *page, uint64_t offset)
{
    CLEANUP_FREE uint8_t *bytes = calloc(1, PAGE_SIZE + VALID_WORDS * sizeof(uint64_t));
    if (!bytes)
        return false;
    page->bytes = bytes;
    size_t size = read_from(cache, cache->missing_pages, page->address, bytes, PAGE_SIZE);
    for (size_t i = 0; i < size; i++)
        valid_of(page)[i / 64] |= UINT64_C(1) << i % 64;
    if (size == PAGE_SIZE)
        page->lines = UINT64_MAX;
    else if (!is_valid(page, offset) && !fetch_line(cache, page, offset))
        return false;
    uint8_t *smaller = is_whole(page) ? realloc(bytes, PAGE_SIZE) : NULL;
    if (smaller)
        bytes = smaller;
    page->bytes = take_ptr(bytes);
    return true;
}

static bool find(struct page_cache *cache, uint64_t address, struct span *ret)
{
    uint64_t begin = align_down(address, PAGE_SIZE), offset = address - begin;
    if (begin > UINT64_MAX - PAGE_SIZE)
        return false; /* its end has no address */
    struct page *page = pages_find(&cache->pages, begin);
    if (!page) {
        struct page fetched = {.address = begin};
        if (is_missing(cache->missing_bytes, address))
            return false;
        if (cache->pages.count >= PAGE_CACHE_MAX || !fetch_page(cache, &fetched, offset))
            return false;
        page = pages_insert(&cache->pages, fetched, NULL);
        if (!page) {
            free(fetched.bytes);
            return false;
        }
    }
    if (is_whole(page)) {
        *ret = (struct span){.begin = begin, .end = begin + PAGE_SIZE, .bytes = page->bytes};
        return true;
    }
    if (!is_valid(page, offset) && !fetch_line(cache, page, offset))
        return false;
    uint64_t from = run_begin(page, offset), to = run_end(page, offset);
    *ret = (struct span){.begin = begin + from, .end = begin + to, .bytes = page->bytes + from};
    return true;
}

bool page_cache_at(struct page_cache *cache, uint64_t address, struct span *ret)
{
    pthread_mutex_lock(&cache->lock);
    bool found = find(cache, address, ret);
    pthread_mutex_unlock(&cache->lock);
    return found;
}
