#include "util/utf16.h"

static bool is_surrogate(uint32_t unit, uint32_t first)
{
    return unit >= first && unit < first + 0x400;
}

static char *put_scalar(char *to, uint32_t scalar)
{
    if (scalar < 0x80) {
        *to++ = (char)scalar;
        return to;
    }
    if (scalar < 0x800) {
        *to++ = (char)(0xc0 | scalar >> 6);
    } else {
        if (scalar < 0x10000) {
            *to++ = (char)(0xe0 | scalar >> 12);
        } else {
            *to++ = (char)(0xf0 | scalar >> 18);
            *to++ = (char)(0x80 | (scalar >> 12 & 0x3f));
        }
        *to++ = (char)(0x80 | (scalar >> 6 & 0x3f));
    }
    *to++ = (char)(0x80 | (scalar & 0x3f));
    return to;
}

char *utf16_to_utf8(char *to, const void *units, size_t count, bool big_endian, bool more, size_t *ret_taken)
{
    const uint8_t *bytes = units;
    size_t i = 0;
    while (i < count) {
        uint32_t scalar = load_u16(bytes + 2 * i, big_endian);
        if (is_surrogate(scalar, 0xd800)) {
            uint32_t low = i + 1 < count ? load_u16(bytes + 2 * (i + 1), big_endian) : 0;
            if (i + 1 == count && more)
                break;
            if (is_surrogate(low, 0xdc00)) {
                scalar = 0x10000 + ((scalar - 0xd800) << 10) + (low - 0xdc00);
                i++;
            } else {
                scalar = 0xfffd;
            }
        } else if (is_surrogate(scalar, 0xdc00)) {
            scalar = 0xfffd;
        }
        to = put_scalar(to, scalar);
        i++;
    }
    *ret_taken = i;
    return to;
}
