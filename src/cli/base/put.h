/*
 * put.h: formatting without printf, which would be most of the cost of an answer. Each function writes at `p`, where
 * the caller has reserved room, and returns the new end. Those that write hex may write up to PUT_SLACK bytes beyond
 * it.
 */
#ifndef CDACQ_CLI_BASE_PUT_H
#define CDACQ_CLI_BASE_PUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    PUT_NUMBER_ROOM = 20, /* the longest number: 2^64 in decimal; "0x" and 16 hex digits */
    PUT_SLACK = 16,
};

/* The length is a constant, so the compiler generates moves instead of a call. */
#define PUT_LITERAL(p, literal) ((char *)memcpy((p), "" literal, sizeof(literal) - 1) + sizeof(literal) - 1)

static inline char *put_bytes(char *p, const char *bytes, size_t length)
{
    memcpy(p, bytes, length);
    return p + length;
}

/* Writes the eight hex digits of `v`: spreads its nibbles over eight bytes, then converts all of them at once. */
static inline void put_hex8(char *p, uint32_t v)
{
    uint64_t x = v;
    x = (x << 16 | x) & 0x0000ffff0000ffff;
    x = (x << 8 | x) & 0x00ff00ff00ff00ff;
    x = (x << 4 | x) & 0x0f0f0f0f0f0f0f0f;
    uint64_t letters = (x + 0x0606060606060606) >> 4 & 0x0101010101010101; /* 1 where the digit is a to f */
    x += 0x3030303030303030 + letters * ('a' - '0' - 10);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    x = __builtin_bswap64(x); /* the highest digit comes first */
#endif
    memcpy(p, &x, sizeof x);
}

/* 0x7f21c8a31b47: no leading zeros */
static inline char *put_hex(char *p, uint64_t v)
{
    unsigned digits = (67 - (unsigned)__builtin_clzll(v | 1)) / 4;
    v <<= 64 - 4 * digits; /* all sixteen digits are written, the significant ones first */
    p[0] = '0';
    p[1] = 'x';
    put_hex8(p + 2, (uint32_t)(v >> 32));
    put_hex8(p + 10, (uint32_t)v);
    return p + 2 + digits;
}

/* The same as a JSON string. */
static inline char *put_quoted_hex(char *p, uint64_t v)
{
    *p++ = '"';
    p = put_hex(p, v);
    *p++ = '"';
    return p;
}

/* "0x06000003" as a JSON string; null for 0. */
static inline char *put_token(char *p, uint32_t token)
{
    if (!token)
        return PUT_LITERAL(p, "null");
    p = PUT_LITERAL(p, "\"0x");
    put_hex8(p, token);
    p[8] = '"';
    return p + 9;
}

static inline char *put_decimal(char *p, uint64_t v)
{
    static const char pairs[] =
        "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
        "5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";
    char digits[PUT_NUMBER_ROOM], *first = digits + sizeof digits;
    for (; v >= 10; v /= 100)
        memcpy(first -= 2, pairs + 2 * (v % 100), 2);
    if (v || first == digits + sizeof digits) /* an odd digit, or 0 */
        *--first = (char)('0' + v);
    return put_bytes(p, first, (size_t)(digits + sizeof digits - first));
}

#endif
