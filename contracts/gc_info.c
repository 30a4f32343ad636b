#include "contracts/gc_info.h"

enum {
    FAT_FLAGS_BITS = 10,       /* what a fat header has behind its first bit */
    RETURN_KIND_BITS_SLIM = 2, /* up to version 3 */
    RETURN_KIND_BITS_FAT = 4,
    CODE_LENGTH_BASE = 8, /* bits at a time of the length on x64, each with a bit that says whether more follow */
    HEAD_SIZE = 16,
};

unsigned gc_info_version_of_r2r(unsigned major, unsigned minor)
{
    if (major < 9 || major > 16)
        return 0;
    if (major >= 11)
        return 4;
    return major == 9 && minor < 2 ? 2 : 3;
}

/* Bits [at, at + count) of the head; count is at most 32. */
static uint32_t bits_at(const uint8_t *head, unsigned at, unsigned count)
{
    uint64_t word = load_u64(head + at / 8, false);
    return (uint32_t)(word >> at % 8 & ((UINT64_C(1) << count) - 1));
}

uint32_t gc_info_code_length(struct reader *reader, uint64_t gc_info, unsigned version)
{
    uint8_t head[HEAD_SIZE];
    if ((version != 4 && version != 3 && version != 2) || !reader_try_copy(reader, gc_info, head, sizeof head))
        return 0;
    bool fat = head[0] & 1;
    unsigned at = fat ? 1 + FAT_FLAGS_BITS : 2; /* a slim header: one more bit, on the stack base register */
    if (version < 4)
        at += fat ? RETURN_KIND_BITS_FAT : RETURN_KIND_BITS_SLIM;
    uint64_t length = 0;
    for (unsigned shift = 0; shift < 32; shift += CODE_LENGTH_BASE, at += CODE_LENGTH_BASE + 1) {
        uint32_t chunk = bits_at(head, at, CODE_LENGTH_BASE + 1);
        length |= (uint64_t)(chunk & 0xff) << shift;
        if (!(chunk >> CODE_LENGTH_BASE))
            return length <= UINT32_MAX ? (uint32_t)length : 0;
    }
    return 0;
}
