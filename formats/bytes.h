/*
 * bytes.h: where a format reader gets its bytes from. A reader of PE files or metadata must work alike on a
 * mapped file, on a buffer and on target memory that is read page by page, so it asks for windows.
 */
#ifndef CDACQ_FORMATS_BYTES_H
#define CDACQ_FORMATS_BYTES_H

#include "util/base.h"

struct bytes {
    /*
     * The `count` bytes at `offset`, or NULL when any of them is missing. `offset + count` has been checked
     * against `size` before the call. The pointer is good until the next call on the same source: copy out
     * what must live longer.
     */
    const void *(*window)(void *context, uint64_t offset, size_t count);
    void *context;
    uint64_t size; /* the source ends here; nothing beyond is ever asked for */
};

static inline const void *bytes_window(const struct bytes *bytes, uint64_t offset, size_t count)
{
    if (!range_fits(offset, count, bytes->size))
        return NULL;
    return bytes->window(bytes->context, offset, count);
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
