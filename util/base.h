/*
 * base.h: the floor that every other file stands on: checked arithmetic, byte-order loads and scope-bound
 * cleanup. It knows nothing of targets or of .NET. Everything here is pure and thread-safe.
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

/* Frees at the end of the scope, whichever way it is left. `return take_ptr(p)` hands the value out instead. */
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

/* a + b, or UINT64_MAX where that does not fit: an end that nothing can reach instead of one that wrapped. */
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

/* Loads from unaligned bytes in the byte order of a target; `big` is the target's, never the host's. */
static inline uint16_t load_u16(const void *p, bool big)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return big == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) ? v : __builtin_bswap16(v);
}

static inline uint32_t load_u32(const void *p, bool big)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return big == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) ? v : __builtin_bswap32(v);
}

static inline uint64_t load_u64(const void *p, bool big)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return big == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) ? v : __builtin_bswap64(v);
}

static inline void store_u16(void *p, uint16_t v, bool big)
{
    v = load_u16(&v, big);
    memcpy(p, &v, sizeof v);
}

static inline void store_u32(void *p, uint32_t v, bool big)
{
    v = load_u32(&v, big);
    memcpy(p, &v, sizeof v);
}

static inline void store_u64(void *p, uint64_t v, bool big)
{
    v = load_u64(&v, big);
    memcpy(p, &v, sizeof v);
}

/* The part of a path behind its last slash. Target paths are POSIX paths whatever the host. */
static inline const char *path_basename(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

#endif
