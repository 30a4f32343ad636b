#include "util/escape.h"

static const char hex_digits[] = "0123456789abcdef";

size_t utf8_decode(const uint8_t *p, size_t n, uint32_t *ret)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = p[0] < 0x80 ? 1 : p[0] >> 5 == 6 ? 2 : p[0] >> 4 == 14 ? 3 : p[0] >> 3 == 30 ? 4 : 0;
    if (!length || length > n)
        return 0;
    uint32_t code = length == 1 ? p[0] : p[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (p[i] & 0x3f);
    }
    if (code < smallest[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    *ret = code;
    return length;
}

static bool rearranges_line(uint32_t code)
{
    return code == 0x2028 || code == 0x2029 || (code >= 0x202a && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069) || code == 0x200e || code == 0x200f || code == 0x061c || code == 0xfeff;
}

/*
 * What Unicode lets a font show nothing for (Default_Ignorable_Code_Point): zero-width spaces and joiners, soft
 * hyphens, variation selectors, tags. Also the marks of annotations, and the blank of Braille.
 */
static bool is_invisible(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0xad, 0xad},       {0x34f, 0x34f},     {0x61c, 0x61c},     {0x115f, 0x1160}, {0x17b4, 0x17b5},
        {0x180b, 0x180f},   {0x200b, 0x200f},   {0x202a, 0x202e},   {0x2060, 0x206f}, {0x2800, 0x2800},
        {0x3164, 0x3164},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0}, {0xfff0, 0xfffb},
        {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
    };
    for (size_t i = 0; i < ARRAY_SIZE(ranges) && code >= ranges[i].first; i++)
        if (code <= ranges[i].last)
            return true;
    return false;
}

static char *put_backslash(char *to, bool json)
{
    *to++ = '\\';
    if (json)
        *to++ = '\\';
    return to;
}

static char *put_byte(char *to, uint8_t byte, bool json)
{
    to = put_backslash(to, json);
    *to++ = 'x';
    *to++ = hex_digits[byte >> 4];
    *to++ = hex_digits[byte & 15];
    return to;
}

static char *put_code(char *to, uint32_t code, bool json)
{
    to = put_backslash(to, json);
    *to++ = 'u';
    *to++ = '{';
    for (int shift = code > 0xffff ? 16 : 12; shift >= 0; shift -= 4)
        *to++ = hex_digits[code >> shift & 15];
    *to++ = '}';
    return to;
}

/* As JSON has it: the reader of the string gets the character, which is below U+10000. */
static char *put_json_code(char *to, uint32_t code)
{
    *to++ = '\\';
    if (code == '\t' || code == '\n') {
        *to++ = code == '\t' ? 't' : 'n';
        return to;
    }
    *to++ = 'u';
    for (int shift = 12; shift >= 0; shift -= 4)
        *to++ = hex_digits[code >> shift & 15];
    return to;
}

static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

/* A character that text keeps and the other forms escape: to the terminal, or as JSON has it. NULL: it is another. */
static char *put_text_character(char *to, uint32_t code, enum escape_form form)
{
    if (form == ESCAPE_JSON_TEXT && (is_control(code) || rearranges_line(code)))
        return put_json_code(to, code);
    if (form != ESCAPE_TEXT || (code != '\t' && code != '\n'))
        return NULL;
    *to++ = (char)code;
    return to;
}

/* Writes one character and moves *p past it. */
static inline char *put_character(char *to, const uint8_t **p, const uint8_t *end, enum escape_form form, bool json,
                                  bool twice)
{
    uint32_t code = 0;
    size_t n = utf8_decode(*p, (size_t)(end - *p), &code);
    const uint8_t *bytes = *p;
    *p += MAX(n, (size_t)1);
    if (!n)
        return put_byte(to, *bytes, json);
    if (code == '\\') {
        to = put_backslash(to, json);
        return twice ? put_backslash(to, json) : to;
    }
    char *after = put_text_character(to, code, form);
    if (after)
        return after;
    if (is_control(code)) {
        for (size_t i = 0; i < n; i++)
            to = put_byte(to, bytes[i], json);
        return to;
    }
    bool text = form == ESCAPE_TEXT || form == ESCAPE_JSON_TEXT;
    if (rearranges_line(code) || (!text && is_invisible(code)))
        return put_code(to, code, json);
    if (code == '"' && json)
        *to++ = '\\';
    memcpy(to, bytes, n);
    return to + n;
}

static bool is_json(enum escape_form form)
{
    return form == ESCAPE_JSON_DATA || form == ESCAPE_JSON_MESSAGE || form == ESCAPE_JSON_TEXT;
}

static bool doubles_backslash(enum escape_form form)
{
    return form == ESCAPE_DATA || form == ESCAPE_JSON_DATA;
}

/* Bit 7 is set in the first of eight bytes that equals `byte`, and maybe in later ones. */
static uint64_t bytes_equal(uint64_t eight, uint8_t byte)
{
    uint64_t difference = eight ^ UINT64_C(0x0101010101010101) * byte;
    return (difference - UINT64_C(0x0101010101010101)) & ~difference;
}

/* escape_keeps() of eight bytes. */
static bool all_plain(uint64_t eight)
{
    uint64_t controls = (eight - UINT64_C(0x2020202020202020)) & ~eight;
    uint64_t escaped = bytes_equal(eight, '\\') | bytes_equal(eight, '"') | bytes_equal(eight, 0x7f);
    return !((eight | controls | escaped) & UINT64_C(0x8080808080808080));
}

size_t escape_plain_length(const void *bytes, size_t length)
{
    const uint8_t *p = bytes;
    size_t i = 0;
    for (uint64_t eight; length - i >= 8 && (memcpy(&eight, p + i, 8), all_plain(eight));)
        i += 8;
    while (i < length && escape_keeps(p[i]))
        i++;
    return i;
}

char *escape(char *to, const void *bytes, size_t length, enum escape_form form)
{
    bool json = is_json(form), twice = doubles_backslash(form);
    const uint8_t *p = bytes, *end = p + length;
    while (p < end) {
        uint64_t eight;
        if (end - p >= 8 && (memcpy(&eight, p, 8), all_plain(eight))) {
            memcpy(to, &eight, 8);
            p += 8;
            to += 8;
        } else if (escape_keeps(*p)) {
            *to++ = (char)*p++;
        } else {
            const uint8_t *next = p; /* not `p`, which is to stay in a register */
            to = put_character(to, &next, end, form, json, twice);
            p = next;
        }
    }
    return to;
}

char *escape_character(char *to, const void *bytes, size_t length, enum escape_form form, size_t *ret_taken)
{
    const uint8_t *p = bytes;
    to = put_character(to, &p, p + length, form, is_json(form), doubles_backslash(form));
    *ret_taken = (size_t)(p - (const uint8_t *)bytes);
    return to;
}
