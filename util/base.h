/*
 * base.h: checked arithmetic, loads and stores in either byte order, and cleanup at the end of a scope. Every other
 * file may use it. All functions are pure and thread-safe.
 */
#ifndef CDACQ_UTIL_BASE_H
#define CDACQ_UTIL_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARRAY_SIZE(a)     (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)         ((a) < (b) ? (a) : (b))
#define MAX(a, b)         ((a) > (b) ? (a) : (b))
#define LIKELY(x)         __builtin_expect(!!(x), 1)
#define UNLIKELY(x)       __builtin_expect(!!(x), 0)
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

/* Frees or closes a variable at the end of its scope. `return take_ptr(p)` returns the pointer without freeing it. */
#define CLEANUP_FREE  __attribute__((cleanup(cleanup_free_)))
#define CLEANUP_CLOSE __attribute__((cleanup(cleanup_close_)))
#define take_ptr(p)               \
    ({                            \
        __auto_type taken_ = (p); \
        (p) = NULL;               \
        taken_;                   \
    })

static inline void cleanup_free_(void *p)
{
    free(*(void **)p);
}

static inline void cleanup_close_(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

/* The value of a digit of bases up to 16. Other characters: 16. */
static inline unsigned digit_value(char c)
{
    unsigned letter = ((unsigned char)c | 0x20u) - 'a', digit = (unsigned char)c - '0';
    return digit < 10 ? digit : letter < 6 ? letter + 10 : 16;
}

/* a + b, or UINT64_MAX if the sum does not fit. */
static inline uint64_t add_saturated(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* Whether [offset, offset + count) lies in [0, size), without overflow. */
static inline bool range_fits(uint64_t offset, uint64_t count, uint64_t size)
{
    return offset <= size && count <= size - offset;
}

static inline uint64_t align_down(uint64_t value, uint64_t power_of_two)
{
    return value & ~(power_of_two - 1);
}

static inline uint64_t align_up(uint64_t value, uint64_t power_of_two)
{
    return align_down(add_saturated(value, power_of_two - 1), power_of_two);
}

/* load_u16() to store_u64(): unaligned loads and stores in the byte order that `big` gives, whatever the host's is. */
#define DEFINE_LOAD_AND_STORE(bits)                                                            \
    static inline uint##bits##_t load_u##bits(const void *p, bool big)                         \
    {                                                                                          \
        uint##bits##_t v;                                                                      \
        memcpy(&v, p, sizeof v);                                                               \
        return big == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) ? v : __builtin_bswap##bits(v); \
    }                                                                                          \
    static inline void store_u##bits(void *p, uint##bits##_t v, bool big)                      \
    {                                                                                          \
        v = load_u##bits(&v, big);                                                             \
        memcpy(p, &v, sizeof v);                                                               \
    }

DEFINE_LOAD_AND_STORE(16)
DEFINE_LOAD_AND_STORE(32)
DEFINE_LOAD_AND_STORE(64)

/* For qsort: compares the uint64_t that both items begin with. */
static inline int compare_u64(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* Sorts items by the uint64_t that they begin with. Takes one pass if they are in order already, as most lists are. */
static inline void sort_u64(void *items, size_t count, size_t size)
{
    const char *item = items;
    for (size_t i = 1; i < count; i++, item += size)
        if (compare_u64(item, item + size) > 0) {
            qsort(items, count, size, compare_u64);
            return;
        }
}

/* The last component of a path. Target paths are POSIX paths on any host. */
static inline const char *path_basename(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

#endif
