#include "src/cli/base/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "util/file.h"
#include "util/text.h"

enum {
    AREAS_MAX = 64,
    AREA_MIN = 1 << 20, /* bytes: smaller arrays are those of malloc */
    PAGE = 4096,
};

#define BOUND_MAX (UINT64_C(2) << 30)

/* A mapping. */
struct area {
    uint8_t *begin;
    uint64_t size;
    int fd; /* -1: it is in no file */
};

static struct {
    struct area areas[AREAS_MAX];
    size_t count;
    uint64_t bound;
    bool has_bound;
    char failure[256]; /* "": none */
} spill;

void spill_set_bound(uint64_t bytes)
{
    spill.bound = bytes;
    spill.has_bound = true;
}

static uint64_t find_bound(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (!spill.has_bound)
        spill_set_bound(pages > 0 && page > 0 ? MIN((uint64_t)pages / 2 * (uint64_t)page, BOUND_MAX) : BOUND_MAX);
    return spill.bound;
}

const char *spill_failure(void)
{
    return spill.failure[0] ? spill.failure : "out of memory";
}

static uint64_t sum_sizes(bool in_files)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < spill.count; i++)
        sum += (spill.areas[i].fd >= 0) == in_files ? spill.areas[i].size : 0;
    return sum;
}

uint64_t spill_size(void)
{
    return sum_sizes(true);
}

static struct area *find(const void *items)
{
    for (size_t i = 0; items && i < spill.count; i++)
        if (spill.areas[i].begin == items)
            return &spill.areas[i];
    return NULL;
}

/* ---- Files ------------------------------------------------------------------------------------------------------ */

/* Gives a file its blocks. False with errno set. */
static bool extend(int fd, uint64_t size)
{
    struct rlimit limit;
    if (size > INT64_MAX || (getrlimit(RLIMIT_FSIZE, &limit) == 0 && size > limit.rlim_cur)) {
        errno = EFBIG; /* a signal would end the process */
        return false;
    }
    errno = posix_fallocate(fd, 0, (off_t)size);
    return !errno;
}

static void *fail_in(const char *directory, uint64_t size)
{
    char needed[32], bound[32];
    int why = errno;
    text_bytes(needed, sizeof needed, size);
    text_bytes(bound, sizeof bound, find_bound());
    snprintf(spill.failure, sizeof spill.failure,
             "it takes more memory than %s, and a file of %s cannot be written in %s (TMPDIR): %s", bound, needed,
             directory, strerror(why));
    return NULL;
}

/* Moves an array to a file, or makes a larger one of its file. */
static void *grow_in_file(struct area *area, uint64_t size)
{
    static const char *directory;
    bool is_new = area->fd < 0;
    int fd = is_new ? file_create_temporary(&directory) : area->fd;
    void *begin = MAP_FAILED;
    if (fd >= 0 && extend(fd, size))
        begin = is_new ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                       : mremap(area->begin, area->size, size, MREMAP_MAYMOVE);
    if (begin == MAP_FAILED) {
        fail_in(directory, size);
        if (is_new && fd >= 0)
            close(fd);
        return NULL;
    }
    if (is_new && area->size) {
        memcpy(begin, area->begin, area->size);
        munmap(area->begin, area->size);
    }
    *area = (struct area){begin, size, fd};
    return begin;
}

/* ---- Arrays ----------------------------------------------------------------------------------------------------- */

static void *grow_area(struct area *area, uint64_t size)
{
    if (area->fd >= 0 || sum_sizes(false) - area->size + size > find_bound())
        return grow_in_file(area, size);
    void *begin = area->size ? mremap(area->begin, area->size, size, MREMAP_MAYMOVE)
                             : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (begin == MAP_FAILED)
        return NULL;
    *area = (struct area){begin, size, -1};
    return begin;
}

void *spill_resize(void *items, uint64_t old_size, uint64_t size)
{
    struct area *area = find(items), added = {.fd = -1};
    if (size > SIZE_MAX / 2)
        return NULL;
    if (area)
        return size <= area->size ? items : grow_area(area, align_up(size, PAGE));
    if (size < AREA_MIN || spill.count == AREAS_MAX) {
        uint8_t *grown = realloc(items, MAX(size, 1));
        if (grown && size > old_size)
            memset(grown + old_size, 0, size - old_size);
        return grown;
    }
    void *begin = grow_area(&added, align_up(size, PAGE));
    if (!begin)
        return NULL;
    if (old_size)
        memcpy(begin, items, MIN(old_size, size));
    free(items);
    spill.areas[spill.count++] = added;
    return begin;
}

void spill_free(void *items)
{
    struct area *area = find(items);
    if (!area) {
        free(items);
        return;
    }
    munmap(area->begin, area->size);
    if (area->fd >= 0)
        close(area->fd);
    *area = spill.areas[--spill.count];
}

/* By a quarter: a mapping moves without a copy. */
void *spill_grow(void *items, size_t *capacity, size_t needed, size_t item_size)
{
    enum { FIRST = 128 }; /* bytes */
    size_t larger = *capacity * item_size < AREA_MIN ? *capacity * 2 : *capacity + *capacity / 4;
    larger = MAX(MAX(larger, needed), FIRST / item_size);
    if (larger > (size_t)PTRDIFF_MAX / item_size)
        return NULL;
    void *grown = spill_resize(items, (uint64_t)*capacity * item_size, (uint64_t)larger * item_size);
    if (grown)
        *capacity = larger;
    return grown;
}
