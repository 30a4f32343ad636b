#include "util/crc32.h"

uint32_t crc32_of(const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    uint32_t table[256], crc = UINT32_MAX;
    for (uint32_t i = 0; i < ARRAY_SIZE(table); i++) {
        table[i] = i;
        for (unsigned bit = 0; bit < 8; bit++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? UINT32_C(0xedb88320) : 0);
    }
    for (size_t i = 0; i < size; i++)
        crc = crc >> 8 ^ table[(crc ^ at[i]) & 0xff];
    return ~crc;
}
