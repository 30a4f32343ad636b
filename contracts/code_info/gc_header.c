#include "contracts/code_info/gc_header.h"

enum { CODE_LENGTH_MAX = 1 << 28, RETURN_KIND_SLIM = 2, PROLOG_SIZE = 5, EPILOG_SIZE = 3, FLAGS = 10 };

/* The header's flags. */
enum {
    HAS_SECURITY_OBJECT = 0x2, /* of no version that is read, except that the bit is there */
    HAS_GS_COOKIE = 0x4,
    HAS_PSP_SYM = 0x8,
    HAS_GENERIC_CONTEXT = 0x30, /* two bits: enum gc_generic_context */
    GENERIC_CONTEXT_UNIT = 0x10,
    HAS_FRAME_REGISTER = 0x40,
    HAS_EDIT_AND_CONTINUE = 0x100,
    HAS_REVERSE_PINVOKE = 0x200,
};

#define OF_64_BITS                                                                                              \
    .length = 8, .return_kind = 4, .slot = 6, .preserved_area = 4, .stack_area = 3, .ranges = 1, .to_start = 6, \
    .to_end = 6
#define OF_RISC OF_64_BITS, .length_shift = 2, .frame_register = 2, .points = 3

/* Architectures without a row have no such stream of bits. */
static const struct gc_encoding encodings[ARCHITECTURE_COUNT] = {
    [ARCHITECTURE_X64] = {OF_64_BITS, .frame_register = 3, .points = 2},
    [ARCHITECTURE_ARM] = {.length = 7,
                          .length_shift = 1,
                          .return_kind = 2,
                          .slot = 5,
                          .frame_register = 1,
                          .preserved_area = 3,
                          .stack_area = 3,
                          .points = 3,
                          .ranges = 2,
                          .to_start = 4,
                          .to_end = 6},
    [ARCHITECTURE_ARM64] = {OF_RISC, .fixed_frame = 4},
    [ARCHITECTURE_LOONGARCH64] = {OF_RISC},
    [ARCHITECTURE_RISCV64] = {OF_RISC},
};

const struct gc_encoding gc_encoding_interpreter = {.length = 8,
                                                    .return_kind = 4,
                                                    .slot = 6,
                                                    .frame_register = 3,
                                                    .preserved_area = 4,
                                                    .points = 2,
                                                    .ranges = 1,
                                                    .to_start = 6,
                                                    .to_end = 6};

const struct gc_encoding *gc_encoding_of(enum architecture architecture)
{
    return encodings[architecture].length ? &encodings[architecture] : NULL;
}

static void read_optional_slots(struct gc_bits *bits, const struct gc_encoding *encoding, uint32_t flags,
                                struct gc_header *ret)
{
    static const uint32_t slots[] = {HAS_SECURITY_OBJECT, HAS_GS_COOKIE, HAS_PSP_SYM, HAS_GENERIC_CONTEXT};
    if (flags & (HAS_GS_COOKIE | HAS_SECURITY_OBJECT | HAS_GENERIC_CONTEXT))
        gc_bits_number(bits, PROLOG_SIZE);
    if (flags & HAS_GS_COOKIE)
        gc_bits_number(bits, EPILOG_SIZE);
    for (size_t i = 0; i < ARRAY_SIZE(slots); i++)
        if (flags & slots[i]) {
            int32_t slot = gc_bits_signed(bits, encoding->slot);
            if (slots[i] == HAS_GENERIC_CONTEXT)
                ret->generic_context_slot = (int64_t)slot * bits->reader->pointer_size;
        }
    ret->generic_context = (flags & HAS_GENERIC_CONTEXT) / GENERIC_CONTEXT_UNIT;
}

bool gc_header_read(struct gc_bits *bits, const struct gc_encoding *encoding, unsigned version, struct gc_header *ret)
{
    if (version < GC_VERSION_MIN || version > GC_VERSION_MAX)
        return reader_fail(bits->reader, CDACQ_ERR_CORRUPT, bits->base, "GC info: version");
    bool fat = gc_bits_take(bits, 1);
    uint32_t flags = fat ? gc_bits_take(bits, FLAGS) : gc_bits_take(bits, 1) * HAS_FRAME_REGISTER;
    if (version < 4)
        gc_bits_take(bits, fat ? encoding->return_kind : RETURN_KIND_SLIM);
    uint32_t units = gc_bits_number(bits, encoding->length);
    struct gc_header header = {
        .code_length = units << encoding->length_shift,
        .frame_register = UINT32_MAX,
        .shift = version < 4 ? 0 : encoding->length_shift,
        .is_byte_before = version < 4,
    };
    read_optional_slots(bits, encoding, flags, &header);
    if (flags & HAS_FRAME_REGISTER)
        header.frame_register = fat ? gc_bits_number(bits, encoding->frame_register) : 0;
    if (flags & HAS_EDIT_AND_CONTINUE) {
        gc_bits_number(bits, encoding->preserved_area);
        if (encoding->fixed_frame)
            gc_bits_number(bits, encoding->fixed_frame);
    }
    if (flags & HAS_REVERSE_PINVOKE)
        gc_bits_signed(bits, encoding->slot);
    if (fat && encoding->stack_area)
        header.stack_area = gc_bits_number(bits, encoding->stack_area);
    header.point_count = gc_bits_number(bits, encoding->points);
    header.range_count = fat ? gc_bits_number(bits, encoding->ranges) : 0;
    if (units > CODE_LENGTH_MAX || header.point_count > header.code_length || header.range_count > header.code_length)
        gc_bits_corrupt(bits);
    *ret = header;
    return !reader_failed(bits->reader);
}

/* The points are sorted. */
static uint32_t find_point(struct gc_bits *bits, const struct gc_header *header, uint32_t offset)
{
    unsigned width = gc_bits_width(header->code_length >> header->shift);
    uint64_t begin = bits->position;
    uint32_t low = 0, high = header->point_count, found = header->point_count;
    uint32_t wanted = (offset - header->is_byte_before) >> header->shift;
    bool exists =
        offset != GC_NO_POINT && offset >= header->is_byte_before && !(offset & ((UINT32_C(1) << header->shift) - 1));
    while (exists && low < high && found == header->point_count && gc_bits_step(bits)) {
        uint32_t middle = low + (high - low) / 2;
        bits->position = begin + (uint64_t)middle * width;
        uint32_t point = gc_bits_take(bits, width);
        if (point == wanted)
            found = middle;
        else if (point < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    bits->position = begin + (uint64_t)header->point_count * width;
    return found;
}

bool gc_header_locate(struct gc_bits *bits, const struct gc_encoding *encoding, const struct gc_header *header,
                      uint32_t offset, uint32_t range_offset, struct gc_place *ret)
{
    uint64_t stop = 0;
    *ret = (struct gc_place){.point = find_point(bits, header, offset)};
    range_offset >>= header->shift;
    for (uint32_t i = 0; i < header->range_count && gc_bits_step(bits); i++) {
        uint64_t start = stop + gc_bits_number(bits, encoding->to_start);
        stop = start + gc_bits_number(bits, encoding->to_end) + 1;
        if (stop > header->code_length)
            return gc_bits_corrupt(bits);
        if (range_offset >= start && range_offset < stop) {
            ret->in_range = true;
            ret->range_position = ret->range_total + (uint32_t)(range_offset - start);
        }
        ret->range_total += (uint32_t)(stop - start);
    }
    return !reader_failed(bits->reader);
}
