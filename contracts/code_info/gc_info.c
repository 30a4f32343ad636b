#include "contracts/code_info/gc_info.h"

#include "contracts/code_info/gc_header.h"

enum {
    FAT_FLAGS_BITS = 10,       /* after the first bit of a fat header */
    SLIM_FLAGS_BITS = 1,       /* after that of a slim one: the stack base register */
    RETURN_KIND_BITS_SLIM = 2, /* up to version 3, as in fat headers */
};

unsigned gc_info_version_of_jit(const struct layout *layout)
{
    return (unsigned)layout->globals[G_GCInfoVersion];
}

unsigned gc_info_version_of_r2r(const struct layout *layout, unsigned major, unsigned minor)
{
    enum { KNOWN_MAX = 26 }; /* of .NET 11 */
    if (major < 9)
        return 0;
    if (major == 9 && minor < 2)
        return 2;
    if (major < 11)
        return 3;
    if (major < 21)
        return 4;
    return major <= KNOWN_MAX ? 5 : gc_info_version_of_jit(layout);
}

/* A number of seven bits a byte, the highest first; bit 7 means that more follow. 0 if it has no end. */
static uint32_t length_x86(struct reader *reader, uint64_t gc_info)
{
    uint64_t length = 0;
    uint8_t byte;
    for (unsigned i = 0; i < 5 && reader_try_copy(reader, gc_info + i, &byte, 1); i++) {
        length = length << 7 | (byte & 0x7f);
        if (!(byte & 0x80))
            return length <= UINT32_MAX ? (uint32_t)length : 0;
    }
    return 0;
}

static uint32_t length_of(struct reader *reader, const struct gc_encoding *encoding, uint64_t gc_info, unsigned version)
{
    uint8_t bytes[8];
    if (!encoding || version < GC_VERSION_MIN || version > GC_VERSION_MAX ||
        !reader_try_copy(reader, gc_info, bytes, sizeof bytes))
        return 0;
    uint64_t head = load_u64(bytes, false); /* no length reaches further */
    bool fat = head & 1;
    unsigned at = 1 + (fat ? FAT_FLAGS_BITS : SLIM_FLAGS_BITS);
    if (version < 4)
        at += fat ? encoding->return_kind : RETURN_KIND_BITS_SLIM;
    uint64_t length = 0, mask = (UINT64_C(1) << encoding->length) - 1;
    for (unsigned shift = 0; shift < 32; shift += encoding->length, at += encoding->length + 1) {
        length |= (head >> at & mask) << shift;
        if (!(head >> (at + encoding->length) & 1)) {
            length <<= encoding->length_shift;
            return length <= UINT32_MAX ? (uint32_t)length : 0;
        }
    }
    return 0;
}

uint32_t gc_info_code_length(struct reader *reader, uint64_t gc_info, unsigned version)
{
    enum architecture architecture = reader->layout->architecture;
    return architecture == ARCHITECTURE_X86 ? length_x86(reader, gc_info)
                                            : length_of(reader, gc_encoding_of(architecture), gc_info, version);
}

uint32_t gc_info_code_length_interpreter(struct reader *reader, uint64_t gc_info, unsigned version)
{
    return length_of(reader, &gc_encoding_interpreter, gc_info, version);
}
