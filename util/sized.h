/*
 * sized.h: structs of the public API. Their first field is the size that the caller was compiled with: an older caller
 * has a smaller struct than the library, a newer one a larger struct. Pure functions; thread-safe.
 */
#ifndef CDACQ_UTIL_SIZED_H
#define CDACQ_UTIL_SIZED_H

#include "util/error.h"

enum {
    SIZED_MIN = 2 * sizeof(size_t), /* the size and one field; a size that was not set is mostly 0 */
    SIZED_MAX = 4096,               /* more than any struct; a size that was not set may be any number */
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

/* ARGUMENT unless the struct's size is plausible and at least `least`. `name` is "struct cdacq_method". */
static inline enum cdacq_status sized_check_least(const void *sized, size_t least, const char *name,
                                                  struct cdacq_error *err)
{
    size_t size = sized ? sized_size(sized) : 0;
    return LIKELY(size >= least && size <= SIZED_MAX)
               ? CDACQ_OK
               : error_set(err, CDACQ_ERR_ARGUMENT, 0, "%s: %s", name, sized ? "size is not set" : "NULL");
}

static inline enum cdacq_status sized_check(const void *sized, const char *name, struct cdacq_error *err)
{
    return sized_check_least(sized, SIZED_MIN, name, err);
}

/* Copies a struct of `from_size` bytes. `to` keeps its own size; the fields that only `to` has become 0. */
static inline void sized_copy(void *to, const void *from, size_t from_size)
{
    size_t size = sized_size(to), both = MIN(size, from_size);
    if (LIKELY(size == from_size)) /* the compiler mostly knows from_size, and copies without a call */
        memcpy((char *)to + sizeof size, (const char *)from + sizeof size, from_size - sizeof size);
    else
        memcpy((char *)to + sizeof size, (const char *)from + sizeof size, both - sizeof size);
    if (size > both)
        memset((char *)to + both, 0, size - both);
}

#endif
