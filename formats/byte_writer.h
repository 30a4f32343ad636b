/*
 * byte_writer.h: bytes that are formed in memory, for the writers of sections: numbers in the target's byte order, and
 * those of DWARF. A failed allocation, or more than BYTE_WRITER_CAP bytes, sets `broken`; later appends do nothing, and
 * the caller checks once, at the end. A zeroed struct is an empty writer of a little-endian target.
 */
#ifndef CDACQ_FORMATS_BYTE_WRITER_H
#define CDACQ_FORMATS_BYTE_WRITER_H

#include "util/base.h"

enum { BYTE_WRITER_CAP = 1024 * 1024 * 1024 }; /* so that every offset fits 32-bit DWARF */

struct byte_writer {
    uint8_t *data;
    size_t length, capacity;
    bool big_endian, broken;
};

void byte_writer_deinit(struct byte_writer *writer);

/* Reallocates for `size` more bytes. False, with `broken` set, if that cannot be done. */
bool byte_writer_grow(struct byte_writer *writer, size_t size);

/* `size` bytes at the end, not initialised; NULL when broken. */
static inline uint8_t *byte_writer_add(struct byte_writer *writer, size_t size)
{
    if (UNLIKELY(size > writer->capacity - writer->length || writer->broken) && !byte_writer_grow(writer, size))
        return NULL;
    writer->length += size;
    return writer->data + writer->length - size;
}

static inline void put_bytes(struct byte_writer *writer, const void *bytes, size_t size)
{
    uint8_t *p = byte_writer_add(writer, size);
    if (p && size)
        memcpy(p, bytes, size);
}

static inline void put_u8(struct byte_writer *writer, unsigned value)
{
    uint8_t *p = byte_writer_add(writer, 1);
    if (p)
        *p = (uint8_t)value;
}

static inline void put_u16(struct byte_writer *writer, unsigned value)
{
    uint8_t *p = byte_writer_add(writer, 2);
    if (p)
        store_u16(p, (uint16_t)value, writer->big_endian);
}

static inline void put_u32(struct byte_writer *writer, uint32_t value)
{
    uint8_t *p = byte_writer_add(writer, 4);
    if (p)
        store_u32(p, value, writer->big_endian);
}

static inline void put_u64(struct byte_writer *writer, uint64_t value)
{
    uint8_t *p = byte_writer_add(writer, 8);
    if (p)
        store_u64(p, value, writer->big_endian);
}

/* A number of 4 or 8 bytes. */
static inline void put_word(struct byte_writer *writer, uint64_t value, unsigned size)
{
    if (size == 4)
        put_u32(writer, (uint32_t)value);
    else
        put_u64(writer, value);
}

/* A string and its NUL. */
static inline void put_string(struct byte_writer *writer, const char *string, size_t length)
{
    put_bytes(writer, string, length);
    put_u8(writer, 0);
}

/* LEB128. */
void put_uleb(struct byte_writer *writer, uint64_t value);
void put_sleb(struct byte_writer *writer, int64_t value);

/* Replaces the four bytes at `at`, which were written before. */
static inline void patch_u32(struct byte_writer *writer, size_t at, uint32_t value)
{
    if (!writer->broken)
        store_u32(writer->data + at, value, writer->big_endian);
}

#endif
