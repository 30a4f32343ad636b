#include "target/live_pages.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "util/file.h"
#include "util/helper.h"

enum {
    READ_AHEAD = 8,           /* pages that one call reads at most; one if the page before it was not read */
    CHECK_VECTORS = 1000,     /* parts of pages that one call reads again; the kernel takes 1,024 */
    CHECK_BYTES = 256 * 1024, /* bytes that one call reads again */
    FILE_VECTORS = 128,       /* lines of files that one call compares */
    RENEWED_MAX = 64,         /* pages that one call renews */
};

/* Memory for pages. The kernel makes all of it at once, which is cheaper than a fault for each page. */
struct live_slab {
    struct live_slab *next;
    uint8_t *bytes;
    size_t size, used;
};

enum {
    SLAB_FIRST = 40 * PAGE_SIZE,
    SLAB_NEXT = 512 * PAGE_SIZE, /* a huge page on most machines */
};

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; older kernels make each page when it is first written to */
#endif

static struct live_slab *add_slab(struct live_pages *pages, size_t size)
{
    struct live_slab *slab = malloc(sizeof *slab);
    void *bytes = slab ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
    if (bytes == MAP_FAILED) {
        free(slab);
        pages->error = ENOMEM;
        return NULL;
    }
    (void)madvise(bytes, size, MADV_HUGEPAGE);
    (void)madvise(bytes, size, MADV_POPULATE_WRITE);
    *slab = (struct live_slab){pages->slabs, bytes, size, 0};
    return pages->slabs = slab;
}

/* Counts a page as memory. False if the bound does not allow it. The bound may be set after the first pages. */
static bool charge_page(struct live_pages *pages)
{
    if (!pages->work || !pages->work->memory_max)
        return true;
    bool taken = work_take_memory(pages->work, PAGE_SIZE);
    pages->charged += taken ? PAGE_SIZE : 0;
    return taken;
}

static uint8_t *take_page(struct live_pages *pages)
{
    struct live_slab *slab = pages->slabs;
    if (!charge_page(pages))
        return NULL;
    if (!slab || slab->used == slab->size)
        slab = add_slab(pages, slab ? SLAB_NEXT : SLAB_FIRST);
    if (!slab)
        return NULL;
    slab->used += PAGE_SIZE;
    return slab->bytes + slab->used - PAGE_SIZE;
}

/* Gives back the page that was taken last. A page of an earlier slab is lost until all are freed. */
static void return_page(struct live_pages *pages, const uint8_t *bytes)
{
    struct live_slab *slab = pages->slabs;
    if (!slab->used || bytes != slab->bytes + slab->used - PAGE_SIZE)
        return;
    slab->used -= PAGE_SIZE;
    if (pages->charged) {
        pages->charged -= PAGE_SIZE;
        work_return_memory(pages->work, PAGE_SIZE);
    }
}

void live_pages_deinit(struct live_pages *pages)
{
    while (pages->slabs) {
        struct live_slab *slab = pages->slabs;
        pages->slabs = slab->next;
        munmap(slab->bytes, slab->size);
        free(slab);
    }
    if (pages->charged)
        work_return_memory(pages->work, pages->charged);
    pages->charged = 0;
    live_page_table_deinit(&pages->table);
    checked_pages_deinit(&pages->checked);
    free(pages->scratch);
    pages->scratch = NULL;
}

void live_pages_trim(struct live_pages *pages)
{
    if (pages->table.count > LIVE_PAGE_KEPT)
        live_pages_deinit(pages);
}

static bool is_read(const struct live_page *page, uint64_t now)
{
    return page && page->epoch == now && !page->missing;
}

/*
 * As process_vm_readv. There is one local buffer for all parts, or one for each. When a process ends, that call fails
 * at once, but the file has the memory until nobody else reads it, and shows only then that the process is gone.
 */
static ssize_t read_parts(struct live_pages *pages, const struct iovec *local, size_t local_count,
                          const struct iovec *remote, size_t count)
{
    if (!pages->by_file) {
        ssize_t n = process_vm_readv(pages->pid, local, local_count, remote, count, 0);
        if (n < 0)
            pages->error = errno;
        bool unavailable = n < 0 && (errno == ENOSYS || errno == EPERM || errno == ESRCH);
        pages->by_file = unavailable && pages->memory >= 0;
        if (!pages->by_file)
            return n;
    }
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        uint8_t *bytes = local_count > 1 ? local[i].iov_base : (uint8_t *)local[0].iov_base + size;
        size_t got = file_read_at(pages->memory, (uintptr_t)remote[i].iov_base, bytes, remote[i].iov_len);
        size += got;
        if (got < remote[i].iov_len)
            break;
    }
    if (size == 0)
        pages->error = errno ? EFAULT : ESRCH; /* at the end of the file there is no memory any more */
    return size ? (ssize_t)size : -1;
}

/* ---- By the helper ---- */

struct far_question {
    int pid;
    uint64_t address, size;
};

/* Runs in the helper. `fd` is /proc/PID/mem, or -1. */
static int far_memory(const void *question, size_t size, int fd, struct helper_answer *ret)
{
    struct far_question asked = {0};
    memcpy(&asked, question, MIN(size, sizeof asked));
    struct iovec local = {ret->bytes, MIN(asked.size, sizeof ret->bytes)};
    struct iovec remote = {(void *)(uintptr_t)asked.address, local.iov_len};
    ssize_t n = process_vm_readv(asked.pid, &local, 1, &remote, 1, 0);
    if (n < 0 && fd >= 0 && (errno == ENOSYS || errno == EPERM || errno == ESRCH)) {
        n = (ssize_t)file_read_at(fd, asked.address, ret->bytes, local.iov_len);
        errno = n || errno ? EFAULT : ESRCH;
    }
    ret->size = n > 0 ? (size_t)n : 0;
    return n > 0 ? 0 : errno;
}

/* Reads memory through the helper. Returns the number of bytes before the first one that is missing. */
static size_t read_far(struct live_pages *pages, uint64_t address, uint8_t *buffer, size_t size)
{
    for (size_t done = 0; done < size;) {
        struct far_question question = {pages->pid, address + done, MIN(size - done, (size_t)HELPER_ANSWER_MAX)};
        struct helper_call call = {.work = far_memory,
                                   .question = &question,
                                   .question_size = sizeof question,
                                   .question_fd = pages->memory,
                                   .answer = buffer + done,
                                   .answer_room = question.size};
        if (!helper_ask(&call)) {
            pages->error = errno;
            return done;
        }
        done += call.answer_size;
        if (call.answer_size < question.size)
            return done;
    }
    return size;
}

static struct live_part part_at(const struct live_pages *pages, uint64_t address)
{
    return pages->part_at ? pages->part_at(pages->context, address) : (struct live_part){UINT64_MAX, false};
}

/* As read_parts(), of parts that are all near, or all far. */
static ssize_t read_kind(struct live_pages *pages, bool is_far, const struct iovec *local, size_t local_count,
                         const struct iovec *remote, size_t count)
{
    size_t size = 0;
    if (!is_far)
        return read_parts(pages, local, local_count, remote, count);
    for (size_t i = 0; i < count; i++) {
        uint8_t *bytes = local_count > 1 ? local[i].iov_base : (uint8_t *)local[0].iov_base + size;
        size_t got = read_far(pages, (uintptr_t)remote[i].iov_base, bytes, remote[i].iov_len);
        size += got;
        if (got < remote[i].iov_len)
            break;
    }
    return size ? (ssize_t)size : -1;
}

/* ---- Reading pages ---- */

/* Pages that are read with one call. */
struct batch {
    struct iovec local[READ_AHEAD], remote[READ_AHEAD];
    bool taken[READ_AHEAD]; /* the page of `local` is new, and is given back if nothing is read into it */
    unsigned count;
};

/* Adds the page at `address` unless it was asked for in this epoch, or there is no room. */
static bool batch_add(struct live_pages *pages, uint64_t now, uint64_t address, struct batch *batch)
{
    const struct live_page *page = live_page_table_find(&pages->table, address);
    if (page ? page->epoch == now : pages->table.count + batch->count >= LIVE_PAGE_MAX)
        return false;
    bool taken = !page || !page->bytes;
    uint8_t *bytes = taken ? take_page(pages) : page->bytes;
    if (!bytes)
        return false;
    batch->local[batch->count] = (struct iovec){bytes, PAGE_SIZE};
    batch->remote[batch->count] = (struct iovec){(void *)(uintptr_t)address, PAGE_SIZE};
    batch->taken[batch->count++] = taken;
    return true;
}

/* Notes the bytes of a page, or with NULL that it is missing. Returns NULL when out of memory. */
static struct live_page *note_page(struct live_pages *pages, uint64_t now, uint64_t address, bool is_far,
                                   uint8_t *bytes)
{
    struct live_page *page = live_page_table_insert(&pages->table, (struct live_page){.address = address}, NULL);
    if (!page)
        return NULL;
    page->epoch = now;
    page->missing = !bytes;
    page->is_far = is_far;
    if (bytes)
        page->bytes = bytes;
    return page;
}

/*
 * Reads the page at `address`, and further ones if those before it were read, because memory is often read in order.
 * NULL: the page is missing.
 */
static const struct live_page *fetch(struct live_pages *pages, uint64_t now, uint64_t address)
{
    struct batch batch = {.count = 0};
    unsigned before = 0;
    while (before < READ_AHEAD / 2 && address / PAGE_SIZE > before &&
           is_read(live_page_table_find(&pages->table, address - (before + 1) * PAGE_SIZE), now))
        before++;
    unsigned wanted = before ? 2 * before : 1;
    struct live_part part = part_at(pages, address);
    uint64_t end = MIN(part.end, UINT64_MAX - 2 * PAGE_SIZE + 1);
    for (uint64_t at = address; batch.count < wanted && at < end; at += PAGE_SIZE)
        if (!batch_add(pages, now, at, &batch))
            break;
    if (!batch.count)
        return NULL;
    ssize_t n = read_kind(pages, part.is_far, batch.local, batch.count, batch.remote, batch.count);
    unsigned got = n < 0 ? 0 : (unsigned)((size_t)n / PAGE_SIZE);
    bool noted = got || note_page(pages, now, address, part.is_far, NULL);
    for (unsigned i = 0; i < got && noted; i++)
        noted = note_page(pages, now, address + i * PAGE_SIZE, part.is_far, batch.local[i].iov_base);
    for (unsigned i = batch.count; i > got; i--)
        if (batch.taken[i - 1])
            return_page(pages, batch.local[i - 1].iov_base);
    return got ? live_page_table_find(&pages->table, address) : NULL;
}

bool live_pages_at(struct live_pages *pages, uint64_t now, uint64_t address, struct span *ret)
{
    uint64_t begin = align_down(address, PAGE_SIZE);
    const struct live_page *page = live_page_table_find(&pages->table, begin);
    if (!page || page->epoch != now)
        page = fetch(pages, now, begin);
    if (!is_read(page, now))
        return false;
    *ret = (struct span){.begin = begin, .end = begin + PAGE_SIZE, .bytes = page->bytes, .changing = true};
    return true;
}

void live_pages_renew(struct live_pages *pages, uint64_t now, uint64_t begin, uint64_t end)
{
    struct iovec local[RENEWED_MAX], remote[RENEWED_MAX];
    struct live_page *renewed[RENEWED_MAX];
    size_t count = 0;
    for (uint64_t at = align_down(begin, PAGE_SIZE); at < end; at += PAGE_SIZE) {
        struct live_page *page = live_page_table_find(&pages->table, at);
        if (page && is_read(page, now) && !page->is_far && count < RENEWED_MAX) {
            local[count] = (struct iovec){page->bytes, PAGE_SIZE};
            remote[count] = (struct iovec){(void *)(uintptr_t)at, PAGE_SIZE};
            renewed[count++] = page;
        }
        if (page)
            page->epoch = 0;
        if (at > UINT64_MAX - 2 * PAGE_SIZE)
            break;
    }
    ssize_t n = count ? read_parts(pages, local, count, remote, count) : 0;
    for (size_t i = 0; i < (n < 0 ? 0 : (size_t)n / PAGE_SIZE); i++)
        renewed[i]->epoch = now;
}

size_t live_pages_peek(struct live_pages *pages, uint64_t address, void *buffer, size_t size)
{
    size_t done = 0;
    while (done < size && address <= UINT64_MAX - size) {
        struct live_part part = part_at(pages, address + done);
        struct iovec local = {(uint8_t *)buffer + done, (size_t)MIN(part.end - (address + done), size - done)};
        struct iovec remote = {(void *)(uintptr_t)(address + done), local.iov_len};
        ssize_t n = read_kind(pages, part.is_far, &local, 1, &remote, 1);
        done += n < 0 ? 0 : (size_t)n;
        if (n < (ssize_t)local.iov_len)
            break;
    }
    return done;
}

/* ---- Reading again ---- */

/* A part of a logged read that lies in one page. */
struct piece {
    const struct logged_read *item;
    uint64_t done; /* bytes of the item in earlier pieces */
    uint64_t page; /* its address */
    uint32_t begin, end;
};

/* Steps to the next piece of the items before `end`. At first, only `item` is set. False: there are no more. */
static bool next_piece(struct piece *piece, const struct logged_read *end)
{
    while (piece->item < end && piece->done == piece->item->size) {
        piece->item++;
        piece->done = 0;
    }
    if (piece->item == end)
        return false;
    uint64_t address = piece->item->address + piece->done;
    piece->page = align_down(address, PAGE_SIZE);
    piece->begin = (uint32_t)(address - piece->page);
    piece->end = (uint32_t)MIN(PAGE_SIZE, piece->begin + (piece->item->size - piece->done));
    piece->done += piece->end - piece->begin;
    return true;
}

/* Lists the pages that hold what was read. False if the copy of one is no longer there, or when out of memory. */
static bool list_pages(struct live_pages *pages, uint64_t now, const struct read_log *log, size_t from)
{
    struct checked_pages *checked = &pages->checked;
    struct piece piece = {.item = log->reads.items + from};
    struct live_page *page = NULL; /* of the last piece */
    checked->count = 0;
    pages->checks++;
    while (next_piece(&piece, log->reads.items + log->reads.count)) {
        if (!page || page->address != piece.page)
            page = live_page_table_find(&pages->table, piece.page);
        if (!is_read(page, now))
            return false;
        if (page->check == pages->checks) {
            struct checked_page *known = &checked->items[page->place];
            known->begin = MIN(known->begin, piece.begin);
            known->end = MAX(known->end, piece.end);
            continue;
        }
        page->check = pages->checks;
        page->place = checked->count;
        if (!checked_pages_append(checked, (struct checked_page){.address = page->address,
                                                                 .bytes = page->bytes,
                                                                 .begin = piece.begin,
                                                                 .end = piece.end,
                                                                 .is_far = page->is_far}))
            return false;
    }
    return true;
}

/* Reads parts of the listed pages from `from` on with one call. Returns the number of pages; 0 if that fails. */
static size_t read_again(struct live_pages *pages, size_t from)
{
    struct iovec remote[CHECK_VECTORS];
    size_t count = 0;
    uint32_t size = 0;
    for (; from + count < pages->checked.count && count < CHECK_VECTORS; count++) {
        struct checked_page *page = &pages->checked.items[from + count];
        if (size + (page->end - page->begin) > CHECK_BYTES || page->is_far != pages->checked.items[from].is_far)
            break;
        remote[count] = (struct iovec){(void *)(uintptr_t)(page->address + page->begin), page->end - page->begin};
        page->at = size;
        size += page->end - page->begin;
    }
    struct iovec local = {pages->scratch, size};
    ssize_t n = read_kind(pages, pages->checked.items[from].is_far, &local, 1, remote, count);
    return n == (ssize_t)size ? count : 0;
}

/* Whether all items in the pages [from, to) of the list are unchanged. The bytes between items may have changed. */
static bool items_hold(struct live_pages *pages, const struct read_log *log, size_t first, size_t from, size_t to)
{
    struct piece piece = {.item = log->reads.items + first};
    const struct live_page *page = NULL;
    while (next_piece(&piece, log->reads.items + log->reads.count)) {
        if (!page || page->address != piece.page)
            page = live_page_table_find(&pages->table, piece.page);
        if (page->place < from || page->place >= to)
            continue;
        const struct checked_page *checked = &pages->checked.items[page->place];
        if (checked->differs && memcmp(pages->scratch + checked->at + (piece.begin - checked->begin),
                                       checked->bytes + piece.begin, piece.end - piece.begin) != 0)
            return false;
    }
    return true;
}

const struct logged_file *live_pages_differing_file(struct live_pages *pages, const struct logged_files *files)
{
    const struct logged_file *items = files->items;
    struct iovec remote[FILE_VECTORS];
    uint8_t bytes[FILE_VECTORS * LINE_SIZE];
    for (size_t i = 0, n; i < files->count; i += n) {
        struct iovec local = {bytes, 0};
        size_t most = MIN(files->count - i, (size_t)FILE_VECTORS);
        bool is_far = part_at(pages, items[i].address).is_far;
        n = 1;
        while (n < most && part_at(pages, items[i + n].address).is_far == is_far)
            n++;
        for (size_t k = 0; k < n; k++) {
            remote[k] = (struct iovec){(void *)(uintptr_t)items[i + k].address, items[i + k].size};
            local.iov_len += items[i + k].size;
        }
        ssize_t got = read_kind(pages, is_far, &local, 1, remote, n);
        size_t at = 0;
        for (size_t k = i; k < i + n; at += items[k++].size)
            if (at + items[k].size > (size_t)MAX(got, 0) || memcmp(bytes + at, items[k].bytes, items[k].size) != 0)
                return &items[k];
    }
    return NULL;
}

bool live_pages_unchanged(struct live_pages *pages, uint64_t now, const struct read_log *log, size_t from)
{
    struct checked_pages *checked = &pages->checked;
    if (log->incomplete)
        return false;
    if (from >= log->reads.count)
        return true;
    if (!pages->scratch && !(pages->scratch = malloc(CHECK_BYTES)))
        return false;
    if (!list_pages(pages, now, log, from))
        return false;
    for (size_t i = 0, n; i < checked->count; i += n) {
        bool differs = false;
        n = read_again(pages, i);
        for (size_t k = i; k < i + n; k++) {
            struct checked_page *page = &checked->items[k];
            page->differs = memcmp(pages->scratch + page->at, page->bytes + page->begin, page->end - page->begin) != 0;
            differs |= page->differs;
        }
        if (!n || (differs && !items_hold(pages, log, from, i, i + n)))
            return false;
    }
    return true;
}
