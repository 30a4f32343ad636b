#include "target/live_pages.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/uio.h>

#define BLOCK_SIZE ((uint64_t)LIVE_BLOCK_PAGES * PAGE_SIZE)

enum {
    CHECK_VECTORS = 1000,     /* of one call; the kernel takes 1,024 */
    CHECK_BYTES = 256 * 1024, /* of one call */
    CHECK_PIECE = 64 * 1024,  /* of one vector */
    CHECK_GAP = 512,          /* bytes between two reads that one vector may cover: cheaper than another vector */
};

/* Memory whose pages exist already: one call is cheaper than a fault for each page. */
struct live_slab {
    struct live_slab *next;
    uint8_t *bytes;
    size_t size, used;
};

enum { SLAB_FIRST = 16, SLAB_LAST = 256 }; /* blocks; each slab is twice as large as the one before */

static uint8_t *take_block(struct live_pages *pages)
{
    struct live_slab *slab = pages->slabs;
    if (!slab || slab->used == slab->size) {
        size_t size = slab ? MIN(slab->size * 2, SLAB_LAST * BLOCK_SIZE) : SLAB_FIRST * BLOCK_SIZE;
        struct live_slab *larger = malloc(sizeof *larger);
        void *bytes = larger
                          ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)
                          : MAP_FAILED;
        if (bytes == MAP_FAILED) {
            free(larger);
            return NULL;
        }
        *larger = (struct live_slab){slab, bytes, size, 0};
        slab = pages->slabs = larger;
    }
    slab->used += BLOCK_SIZE;
    return slab->bytes + slab->used - BLOCK_SIZE;
}

void live_pages_deinit(struct live_pages *pages)
{
    while (pages->slabs) {
        struct live_slab *slab = pages->slabs;
        pages->slabs = slab->next;
        munmap(slab->bytes, slab->size);
        free(slab);
    }
    live_blocks_deinit(&pages->blocks);
    free(pages->scratch);
    pages->scratch = NULL;
    pages->scratch_size = 0;
}

void live_pages_trim(struct live_pages *pages)
{
    if (pages->blocks.count > LIVE_BLOCK_KEPT)
        live_pages_deinit(pages);
}

static struct live_block *block_at(struct live_pages *pages, uint64_t address)
{
    struct live_block *block = live_blocks_find(&pages->blocks, address);
    if (block || pages->blocks.count >= LIVE_BLOCK_MAX || address > UINT64_MAX - BLOCK_SIZE)
        return block;
    uint8_t *bytes = take_block(pages);
    return bytes ? live_blocks_insert(&pages->blocks, (struct live_block){.address = address, .bytes = bytes}, NULL)
                 : NULL;
}

/* Reads the page `wanted` and, with the same call, the block's other pages that are not there yet. */
static bool fetch(struct live_pages *pages, uint64_t now, struct live_block *block, unsigned wanted)
{
    struct iovec local[LIVE_BLOCK_PAGES], remote[LIVE_BLOCK_PAGES];
    unsigned order[LIVE_BLOCK_PAGES], count = 0;
    for (unsigned i = 0; i < LIVE_BLOCK_PAGES; i++) {
        unsigned page = (wanted + i) % LIVE_BLOCK_PAGES;
        if (block->read[page] == now || block->missing[page] == now)
            continue;
        local[count] = (struct iovec){block->bytes + page * PAGE_SIZE, PAGE_SIZE};
        remote[count] = (struct iovec){(void *)(uintptr_t)(block->address + page * PAGE_SIZE), PAGE_SIZE};
        order[count++] = page;
    }
    ssize_t n = process_vm_readv(pages->pid, local, count, remote, count, 0);
    if (n < 0)
        pages->error = errno;
    for (unsigned i = 0; i < count && n >= (ssize_t)((i + 1) * PAGE_SIZE); i++)
        block->read[order[i]] = now;
    if (block->read[wanted] != now)
        block->missing[wanted] = now;
    return block->read[wanted] == now;
}

bool live_pages_at(struct live_pages *pages, uint64_t now, uint64_t address, struct span *ret)
{
    struct live_block *block = block_at(pages, align_down(address, BLOCK_SIZE));
    unsigned page = (unsigned)(address % BLOCK_SIZE / PAGE_SIZE), from = page, to = page + 1;
    if (!block || block->missing[page] == now || (block->read[page] != now && !fetch(pages, now, block, page)))
        return false;
    while (from && block->read[from - 1] == now)
        from--;
    while (to < LIVE_BLOCK_PAGES && block->read[to] == now)
        to++;
    *ret = (struct span){
        .begin = block->address + from * PAGE_SIZE,
        .end = block->address + to * PAGE_SIZE,
        .bytes = block->bytes + from * PAGE_SIZE,
        .changing = true,
    };
    return true;
}

/* ---- Reading again ---- */

/* Reads that are compared with one call. They lie in the scratch memory one after the other, by vector. */
struct check {
    struct live_pages *pages;
    uint64_t now;
    struct iovec remote[CHECK_VECTORS];
    size_t count;
    uint64_t bytes; /* of all vectors */
};

/* Whether the process now holds what was read in [address, address + size); `bytes` is what it holds. */
static bool is_as_read(const struct check *check, uint64_t address, const uint8_t *bytes, uint64_t size)
{
    while (size) {
        uint64_t begin = align_down(address, BLOCK_SIZE), offset = address - begin;
        const struct live_block *block = live_blocks_find(&check->pages->blocks, begin);
        uint64_t n = MIN(size, PAGE_SIZE - offset % PAGE_SIZE);
        if (!block || block->read[offset / PAGE_SIZE] != check->now || memcmp(block->bytes + offset, bytes, n) != 0)
            return false;
        address += n;
        bytes += n;
        size -= n;
    }
    return true;
}

/* Reads the vectors' bytes and compares the items [from, to) with them, which they cover. Empties the vectors. */
static bool check_items(struct check *check, const struct logged_read *items, size_t from, size_t to)
{
    struct live_pages *pages = check->pages;
    if (check->bytes > pages->scratch_size) {
        uint8_t *larger = realloc(pages->scratch, check->bytes);
        if (!larger)
            return false;
        pages->scratch = larger;
        pages->scratch_size = check->bytes;
    }
    struct iovec local = {pages->scratch, check->bytes};
    ssize_t n = process_vm_readv(pages->pid, &local, 1, check->remote, check->count, 0);
    if (n < 0)
        pages->error = errno;
    if (n != (ssize_t)check->bytes)
        return false;
    const uint8_t *bytes = pages->scratch;
    size_t vector = 0;
    for (size_t i = from; i < to; i++) {
        while (items[i].address - (uintptr_t)check->remote[vector].iov_base >= check->remote[vector].iov_len)
            bytes += check->remote[vector++].iov_len;
        if (!is_as_read(check, items[i].address, bytes + (items[i].address - (uintptr_t)check->remote[vector].iov_base),
                        items[i].size))
            return false;
    }
    check->count = 0;
    check->bytes = 0;
    return true;
}

static int compare_reads(const void *a, const void *b)
{
    const struct logged_read *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

/* Sorts the reads, joins those that overlap, and cuts long ones into pieces. False when out of memory. */
static bool prepare(struct logged_reads *reads, size_t from)
{
    size_t out = from, count = reads->count;
    qsort(reads->items + from, count - from, sizeof *reads->items, compare_reads);
    for (size_t i = from; i < count; i++) {
        struct logged_read *last = out > from ? &reads->items[out - 1] : NULL, item = reads->items[i];
        if (!item.size)
            continue;
        if (last && item.address - last->address <= last->size)
            last->size = MAX(last->size, item.address - last->address + item.size);
        else
            reads->items[out++] = item;
    }
    reads->count = out;
    bool cut = false;
    for (size_t i = from; i < reads->count; i++) { /* the rest of an item is one of its own, which the loop meets */
        struct logged_read item = reads->items[i];
        if (item.size <= CHECK_PIECE)
            continue;
        cut = true;
        reads->items[i].size = CHECK_PIECE;
        if (!logged_reads_append(reads, (struct logged_read){item.address + CHECK_PIECE, item.size - CHECK_PIECE}))
            return false;
    }
    if (cut)
        qsort(reads->items + from, reads->count - from, sizeof *reads->items, compare_reads);
    return true;
}

bool live_pages_unchanged(struct live_pages *pages, uint64_t now, struct read_log *log, size_t from)
{
    struct logged_reads *reads = &log->reads;
    if (log->incomplete)
        return false;
    if (from >= reads->count)
        return true;
    struct check *check = malloc(sizeof *check);
    bool same = check && prepare(reads, from);
    size_t first = from;
    if (same)
        *check = (struct check){.pages = pages, .now = now};
    for (size_t i = from; same && i < reads->count; i++) {
        const struct logged_read *item = &reads->items[i];
        struct iovec *last = check->count ? &check->remote[check->count - 1] : NULL;
        uint64_t covered = last ? item->address - (uintptr_t)last->iov_base : 0;
        if (last && covered - last->iov_len <= CHECK_GAP && covered + item->size <= CHECK_PIECE) {
            check->bytes += covered + item->size - last->iov_len;
            last->iov_len = covered + item->size;
            continue;
        }
        if (check->count == CHECK_VECTORS || check->bytes + item->size > CHECK_BYTES) {
            same = check_items(check, reads->items, first, i);
            first = i;
            if (!same) /* the vectors are still full */
                break;
        }
        check->remote[check->count++] = (struct iovec){(void *)(uintptr_t)item->address, item->size};
        check->bytes += item->size;
    }
    same = same && check_items(check, reads->items, first, reads->count);
    free(check);
    return same;
}
