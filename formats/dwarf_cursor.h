/*
 * dwarf_cursor.h: reads the numbers of DWARF data from a buffer, one after the other. A read beyond the end returns 0
 * and marks the cursor as failed, which it stays; whoever reads checks once. Pure functions.
 */
#ifndef CDACQ_FORMATS_DWARF_CURSOR_H
#define CDACQ_FORMATS_DWARF_CURSOR_H

#include "util/base.h"

struct dwarf_cursor {
    const uint8_t *at, *end;
    bool big;
    bool failed;
};

static inline struct dwarf_cursor dwarf_cursor_of(const uint8_t *bytes, size_t size, bool big)
{
    return (struct dwarf_cursor){.at = bytes, .end = bytes + size, .big = big};
}

static inline size_t dwarf_left(const struct dwarf_cursor *cursor)
{
    return (size_t)(cursor->end - cursor->at);
}

/* The next `size` bytes; NULL, and the cursor fails, where there are fewer. */
static inline const uint8_t *dwarf_bytes(struct dwarf_cursor *cursor, uint64_t size)
{
    if (cursor->failed || size > dwarf_left(cursor)) {
        cursor->failed = true;
        return NULL;
    }
    const uint8_t *bytes = cursor->at;
    cursor->at += size;
    return bytes;
}

/* `width` is 1, 2, 4 or 8. */
static inline uint64_t dwarf_uint(struct dwarf_cursor *cursor, unsigned width)
{
    const uint8_t *bytes = dwarf_bytes(cursor, width);
    if (!bytes)
        return 0;
    return width == 1   ? *bytes
           : width == 2 ? load_u16(bytes, cursor->big)
           : width == 4 ? load_u32(bytes, cursor->big)
                        : load_u64(bytes, cursor->big);
}

static inline int64_t dwarf_int(struct dwarf_cursor *cursor, unsigned width)
{
    unsigned unused = 64 - width * 8;
    return (int64_t)(dwarf_uint(cursor, width) << unused) >> unused;
}

static inline uint64_t dwarf_leb(struct dwarf_cursor *cursor, bool is_signed)
{
    uint64_t value = 0;
    unsigned shift = 0;
    for (;;) {
        uint8_t byte = (uint8_t)dwarf_uint(cursor, 1);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        shift += shift < 64 ? 7 : 0;
        if (byte & 0x80)
            continue;
        if (is_signed && (byte & 0x40) && shift < 64)
            value |= UINT64_MAX << shift;
        return value;
    }
}

static inline uint64_t dwarf_uleb(struct dwarf_cursor *cursor)
{
    return dwarf_leb(cursor, false);
}

static inline int64_t dwarf_sleb(struct dwarf_cursor *cursor)
{
    return (int64_t)dwarf_leb(cursor, true);
}

#endif
