#include "util/sha1.h"

enum { BLOCK_SIZE = 64, LENGTH_SIZE = 8 };

static inline uint32_t rotate(uint32_t x, unsigned bits)
{
    return x << bits | x >> (32 - bits);
}

static void add_block(uint32_t state[5], const uint8_t *block)
{
    static const uint32_t constants[4] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
    uint32_t w[80], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    for (unsigned i = 0; i < 80; i++)
        w[i] = i < 16 ? load_u32(block + 4 * i, true) : rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (unsigned i = 0; i < 80; i++) {
        uint32_t f = i < 20 ? (b & c) | (~b & d) : i < 40 || i >= 60 ? b ^ c ^ d : (b & c) | (b & d) | (c & d);
        uint32_t next = rotate(a, 5) + f + e + constants[i / 20] + w[i];
        e = d, d = c, c = rotate(b, 30), b = a, a = next;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e;
}

void sha1(const void *bytes, size_t size, uint8_t ret[SHA1_SIZE])
{
    uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    uint8_t last[2 * BLOCK_SIZE] = {0};
    const uint8_t *p = bytes;
    uint64_t bits = (uint64_t)size * 8;
    for (size_t left = size / BLOCK_SIZE; left; left--, p += BLOCK_SIZE)
        add_block(state, p);
    size_t rest = size % BLOCK_SIZE, end = rest < BLOCK_SIZE - LENGTH_SIZE ? BLOCK_SIZE : 2 * BLOCK_SIZE;
    if (rest)
        memcpy(last, p, rest);
    last[rest] = 0x80;
    for (unsigned i = 0; i < LENGTH_SIZE; i++)
        last[end - 1 - i] = (uint8_t)(bits >> 8 * i);
    for (size_t at = 0; at < end; at += BLOCK_SIZE)
        add_block(state, last + at);
    for (unsigned i = 0; i < SHA1_SIZE; i++)
        ret[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}
