#include "util/sha256.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <stdatomic.h>
#endif

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static inline uint32_t rotate(uint32_t x, unsigned bits)
{
    return x >> bits | x << (32 - bits);
}

static void add_block(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64], a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (unsigned i = 0; i < 16; i++)
        w[i] = load_u32(block + 4 * i, true);
    for (unsigned i = 16; i < 64; i++) {
        uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    for (unsigned i = 0; i < 64; i++) {
        uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
        uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + constants[i] + w[i];
        uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
        uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + t1;
        d = c, c = b, b = a, a = t1 + t2;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

static void add_blocks_portable(uint32_t state[8], const uint8_t *blocks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        add_block(state, blocks + i * SHA256_BLOCK_SIZE);
}

#if defined(__x86_64__)
/* ---- With the SHA extensions: some 20 times faster. Source: Intel SDM volume 2, SHA256RNDS2 and SHA256MSG1/2. ---- */

#define WITH_SHA __attribute__((target("sha,sse4.1")))

/* The eight words of the state in the order of the instructions. */
struct vector_state {
    __m128i abef, cdgh;
};

/* 4 rounds. */
static inline WITH_SHA void add_words(struct vector_state *state, __m128i words, const uint32_t *k)
{
    __m128i sum = _mm_add_epi32(words, _mm_loadu_si128((const __m128i *)(const void *)k));
    state->cdgh = _mm_sha256rnds2_epu32(state->cdgh, state->abef, sum);
    state->abef = _mm_sha256rnds2_epu32(state->abef, state->cdgh, _mm_shuffle_epi32(sum, 0x0e));
}

/* The four words of the schedule after 16 others. */
static inline WITH_SHA __m128i next_words(__m128i w0, __m128i w1, __m128i w2, __m128i w3)
{
    return _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), _mm_alignr_epi8(w3, w2, 4)), w3);
}

static inline WITH_SHA __m128i load_words(const uint8_t *bytes)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)bytes), swap);
}

static WITH_SHA void add_blocks_sha(uint32_t words[8], const uint8_t *block, size_t count)
{
    struct vector_state state = {
        .abef = _mm_set_epi32((int)words[0], (int)words[1], (int)words[4], (int)words[5]),
        .cdgh = _mm_set_epi32((int)words[2], (int)words[3], (int)words[6], (int)words[7]),
    };
    for (size_t i = 0; i < count; i++, block += SHA256_BLOCK_SIZE) {
        const struct vector_state before = state;
        __m128i w0 = load_words(block), w1 = load_words(block + 16);
        __m128i w2 = load_words(block + 32), w3 = load_words(block + 48);
        for (unsigned round = 0;; round += 16) {
            add_words(&state, w0, constants + round);
            add_words(&state, w1, constants + round + 4);
            add_words(&state, w2, constants + round + 8);
            add_words(&state, w3, constants + round + 12);
            if (round == 48)
                break;
            w0 = next_words(w0, w1, w2, w3);
            w1 = next_words(w1, w2, w3, w0);
            w2 = next_words(w2, w3, w0, w1);
            w3 = next_words(w3, w0, w1, w2);
        }
        state.abef = _mm_add_epi32(state.abef, before.abef);
        state.cdgh = _mm_add_epi32(state.cdgh, before.cdgh);
    }
    uint32_t abef[4], cdgh[4];
    _mm_storeu_si128((__m128i *)(void *)abef, state.abef);
    _mm_storeu_si128((__m128i *)(void *)cdgh, state.cdgh);
    const uint32_t ret[8] = {abef[3], abef[2], cdgh[3], cdgh[2], abef[1], abef[0], cdgh[1], cdgh[0]};
    memcpy(words, ret, sizeof ret);
}

/* Asked of the processor, because older compilers have no name for "sha" in __builtin_cpu_supports(). */
static bool processor_has_sha(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & (unsigned)bit_SSSE3) && (c & (unsigned)bit_SSE4_1) &&
           __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (unsigned)bit_SHA);
}

static void add_blocks(uint32_t state[8], const uint8_t *blocks, size_t count)
{
    static _Atomic int known; /* 1: without the extensions, 2: with them */
    int has = atomic_load_explicit(&known, memory_order_relaxed);
    if (!has) {
        has = processor_has_sha() ? 2 : 1;
        atomic_store_explicit(&known, has, memory_order_relaxed);
    }
    if (has == 2)
        add_blocks_sha(state, blocks, count);
    else
        add_blocks_portable(state, blocks, count);
}
#else
static void add_blocks(uint32_t state[8], const uint8_t *blocks, size_t count)
{
    add_blocks_portable(state, blocks, count);
}
#endif

void sha256_begin(struct sha256 *hash)
{
    *hash = (struct sha256){
        .state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_begin_portable(struct sha256 *hash)
{
    sha256_begin(hash);
    hash->portable = true;
}

static void add(struct sha256 *hash, const uint8_t *blocks, size_t count)
{
    if (hash->portable)
        add_blocks_portable(hash->state, blocks, count);
    else if (count)
        add_blocks(hash->state, blocks, count);
}

void sha256_add(struct sha256 *hash, const void *bytes, size_t size)
{
    const uint8_t *p = bytes;
    size_t used = hash->length % sizeof hash->block;
    hash->length += size;
    if (used) {
        size_t n = MIN(size, sizeof hash->block - used);
        memcpy(hash->block + used, p, n);
        p += n;
        size -= n;
        if (used + n < sizeof hash->block)
            return;
        add(hash, hash->block, 1);
    }
    size_t whole = size / SHA256_BLOCK_SIZE, rest = size % SHA256_BLOCK_SIZE;
    add(hash, p, whole);
    if (rest)
        memcpy(hash->block, p + whole * SHA256_BLOCK_SIZE, rest);
}

void sha256_end(struct sha256 *hash, uint8_t ret[SHA256_SIZE])
{
    uint64_t bits = hash->length * 8;
    uint8_t padding[72] = {0x80};
    size_t used = hash->length % sizeof hash->block, count = used < 56 ? 56 - used : 120 - used;
    store_u64(padding + count, bits, true);
    sha256_add(hash, padding, count + 8);
    for (unsigned i = 0; i < 8; i++)
        store_u32(ret + 4 * i, hash->state[i], true);
}
