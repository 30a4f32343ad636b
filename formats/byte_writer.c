#include "formats/byte_writer.h"

#include "util/vector.h"

void byte_writer_deinit(struct byte_writer *writer)
{
    free(writer->data);
    *writer = (struct byte_writer){.big_endian = writer->big_endian};
}

bool byte_writer_grow(struct byte_writer *writer, size_t size)
{
    if (writer->broken || size > BYTE_WRITER_CAP - writer->length) {
        writer->broken = true;
        return false;
    }
    size_t needed = writer->length + size;
    if (needed <= writer->capacity)
        return true;
    uint8_t *data = vector_grow(writer->data, &writer->capacity, needed, 1);
    writer->broken = !data;
    if (data)
        writer->data = data;
    return data != NULL;
}

void put_uleb(struct byte_writer *writer, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        put_u8(writer, (unsigned)(value & 0x7f) | 0x80);
    put_u8(writer, (unsigned)value);
}

void put_sleb(struct byte_writer *writer, int64_t value)
{
    for (; value < -0x40 || value > 0x3f; value >>= 7) /* an arithmetic shift */
        put_u8(writer, (unsigned)(value & 0x7f) | 0x80);
    put_u8(writer, (unsigned)(value & 0x7f));
}
