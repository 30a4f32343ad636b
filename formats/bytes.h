/*
 * bytes.h: the source of a format reader's bytes: a mapped file, a buffer, or target memory that is read page by
 * page. A reader asks it for windows.
 */
#ifndef CDACQ_FORMATS_BYTES_H
#define CDACQ_FORMATS_BYTES_H

#include "cdacq/error.h"
#include "util/base.h"

struct bytes {
    /*
     * The `count` bytes at `offset`, or NULL if any of them is missing. The caller has compared them with `size`. The
     * pointer is valid until the next call on the same source.
     */
    const void *(*window)(void *context, uint64_t offset, size_t count);
    void *context;
    uint64_t size; /* the source ends here */
};

static inline const void *bytes_window(const struct bytes *bytes, uint64_t offset, size_t count)
{
    if (!range_fits(offset, count, bytes->size))
        return NULL;
    return bytes->window(bytes->context, offset, count);
}

/* The same as a status. FORMAT: it goes past the end of the source. MEMORY: bytes of the source are missing. */
static inline enum cdacq_status bytes_require(const struct bytes *bytes, uint64_t offset, size_t count,
                                              const uint8_t **ret)
{
    if (UNLIKELY(!range_fits(offset, count, bytes->size)))
        return CDACQ_ERR_FORMAT;
    const uint8_t *p = bytes->window(bytes->context, offset, count);
    if (UNLIKELY(!p))
        return CDACQ_ERR_MEMORY;
    *ret = p;
    return CDACQ_OK;
}

static inline const void *bytes_buffer_window(void *context, uint64_t offset, size_t count)
{
    (void)count;
    return (const uint8_t *)context + offset;
}

/* A source over a buffer that outlives it. */
static inline struct bytes bytes_of_buffer(const void *buffer, uint64_t size)
{
    return (struct bytes){.window = bytes_buffer_window, .context = (void *)(uintptr_t)buffer, .size = size};
}

/* A little-endian word, as PE images have them. False if it is missing. */
static inline bool bytes_u32(const struct bytes *bytes, uint64_t offset, uint32_t *ret)
{
    const void *p = bytes_window(bytes, offset, 4);
    if (!p)
        return false;
    *ret = load_u32(p, false);
    return true;
}

#endif
