/*
 * sized.h: structs that cross the public API, whose first field is the size that they were compiled with: a caller
 * that is older than the library has a smaller struct, a newer one a larger. Pure functions; thread-safe.
 */
#ifndef CDACQ_UTIL_SIZED_H
#define CDACQ_UTIL_SIZED_H

#include "util/error.h"

enum {
    SIZED_MIN = 2 * sizeof(size_t), /* the size and a field: a size that was not set is 0, mostly */
    SIZED_MAX = 4096,               /* no struct is as large: a size that was not set may be anything */
};

static inline size_t sized_size(const void *sized)
{
    size_t size;
    memcpy(&size, sized, sizeof size);
    return size;
}

static inline void sized_set_size(void *sized, size_t size)
{
    memcpy(sized, &size, sizeof size);
}

/* ARGUMENT unless the caller's struct has a size that it can have: `least` or more. `name` is "struct cdacq_method". */
static inline enum cdacq_status sized_check_least(const void *sized, size_t least, const char *name,
                                                  struct cdacq_error *err)
{
    size_t size = sized ? sized_size(sized) : 0;
    return LIKELY(size >= least && size <= SIZED_MAX)
               ? CDACQ_OK
               : error_set(err, CDACQ_ERR_ARGUMENT, 0, "%s: size is not set", name);
}

static inline enum cdacq_status sized_check(const void *sized, const char *name, struct cdacq_error *err)
{
    return sized_check_least(sized, SIZED_MIN, name, err);
}

/* Copies a struct of `from_size` bytes to one whose size is set and stays. What only the latter has is zero. */
static inline void sized_copy(void *to, const void *from, size_t from_size)
{
    size_t size = sized_size(to), both = MIN(size, from_size);
    if (LIKELY(size == from_size)) /* known to the compiler, mostly */
        memcpy((char *)to + sizeof size, (const char *)from + sizeof size, from_size - sizeof size);
    else
        memcpy((char *)to + sizeof size, (const char *)from + sizeof size, both - sizeof size);
    if (size > both)
        memset((char *)to + both, 0, size - both);
}

#endif
