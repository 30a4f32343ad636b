#include "contracts/code_info/gc_bits.h"

static uint8_t byte_at(struct gc_bits *bits, uint64_t address)
{
    if (address - bits->begin >= bits->size) {
        bits->begin = address;
        bits->size =
            reader_try_copy(bits->reader, address, bits->buffer, sizeof bits->buffer) ? sizeof bits->buffer : 1;
        if (bits->size == 1) /* the end of what can be read is near */
            bits->buffer[0] = (uint8_t)read_uint(bits->reader, address, 1);
    }
    return bits->buffer[address - bits->begin];
}

uint32_t gc_bits_take(struct gc_bits *bits, unsigned count)
{
    uint64_t value = 0;
    for (unsigned got = 0; got < count;) {
        unsigned at = bits->position & 7, n = MIN(8 - at, count - got);
        uint64_t part = (unsigned)byte_at(bits, bits->base + bits->position / 8) >> at & ((1u << n) - 1);
        value |= part << got;
        got += n;
        bits->position += n;
    }
    return (uint32_t)value;
}

uint32_t gc_bits_number(struct gc_bits *bits, unsigned base)
{
    uint32_t value = 0;
    for (unsigned shift = 0; shift < 32; shift += base) {
        uint32_t chunk = gc_bits_take(bits, base + 1);
        value |= (chunk & ((1u << base) - 1)) << shift;
        if (!(chunk >> base))
            return value;
    }
    reader_fail(bits->reader, CDACQ_ERR_CORRUPT, bits->base, "a number in the GC info");
    return 0;
}

int32_t gc_bits_signed(struct gc_bits *bits, unsigned base)
{
    uint32_t value = 0;
    for (unsigned shift = 0; shift < 32; shift += base) {
        uint32_t chunk = gc_bits_take(bits, base + 1);
        value |= (chunk & ((1u << base) - 1)) << shift;
        if (chunk >> base)
            continue;
        unsigned unused = shift + base < 32 ? 32 - shift - base : 0;
        return (int32_t)(value << unused) >> unused;
    }
    reader_fail(bits->reader, CDACQ_ERR_CORRUPT, bits->base, "a number in the GC info");
    return 0;
}

unsigned gc_bits_width(uint32_t count)
{
    unsigned width = 0;
    while (UINT64_C(1) << width < count)
        width++;
    return width;
}

bool gc_bits_corrupt(struct gc_bits *bits)
{
    return reader_fail(bits->reader, CDACQ_ERR_CORRUPT, bits->base, "GC info");
}
