/*
 * gc_bits.h: the stream of bits that GC info is, the lowest bit of a byte first, with numbers of variable length.
 * Source: dotnet/runtime docs/design/datacontracts/GCInfo.md, "Encoding Scheme"; src/coreclr/inc/gcinfodecoder.h.
 */
#ifndef CDACQ_CONTRACTS_CODE_INFO_GC_BITS_H
#define CDACQ_CONTRACTS_CODE_INFO_GC_BITS_H

#include "target/reader.h"

struct gc_bits {
    struct reader *reader;
    uint64_t base, position; /* the address of the first byte; the next bit */
    uint64_t begin;          /* of the buffer: an address */
    unsigned size;           /* of what it holds */
    uint8_t buffer[32];
};

/* Up to 32 bits. */
uint32_t gc_bits_take(struct gc_bits *bits, unsigned count);

/* Groups of `base` bits, the lowest first, each with a bit that says whether another follows. */
uint32_t gc_bits_number(struct gc_bits *bits, unsigned base);
int32_t gc_bits_signed(struct gc_bits *bits, unsigned base);

/* How many bits tell `count` numbers apart. */
unsigned gc_bits_width(uint32_t count);

/* Fails the reader: the GC info is damaged. Returns false. */
bool gc_bits_corrupt(struct gc_bits *bits);

/* Counts a step of work. False if there were too many or the reader failed. */
static inline bool gc_bits_step(struct gc_bits *bits)
{
    return reader_step(bits->reader, "GC info");
}

#endif
