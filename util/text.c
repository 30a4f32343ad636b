#include "util/text.h"

#include <stdarg.h>
#include <stdio.h>

void text_deinit(struct text *text)
{
    free(text->data);
    *text = (struct text){0};
}

void text_clear(struct text *text)
{
    text->length = 0;
    text->broken = false;
    if (text->data)
        text->data[0] = '\0';
}

static bool text_reserve(struct text *text, size_t more)
{
    if (text->broken || more > TEXT_CAP || text->length + more > TEXT_CAP) {
        text->broken = true;
        return false;
    }
    size_t needed = text->length + more + 1;
    if (needed <= text->capacity)
        return true;
    size_t capacity = MAX(text->capacity * 2, (size_t)128);
    while (capacity < needed)
        capacity *= 2;
    char *data = realloc(text->data, capacity);
    if (!data) {
        text->broken = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void text_append(struct text *text, const void *data, size_t length)
{
    if (!text_reserve(text, length))
        return;
    if (length)
        memcpy(text->data + text->length, data, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void text_puts(struct text *text, const char *string)
{
    text_append(text, string, strlen(string));
}

void text_putc(struct text *text, char c)
{
    text_append(text, &c, 1);
}

void text_printf(struct text *text, const char *format, ...)
{
    char buffer[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(buffer, sizeof buffer, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof buffer)
        text->broken = true;
    else
        text_append(text, buffer, (size_t)n);
}

/* Decodes one UTF-8 sequence (RFC 3629: no surrogates, no overlong forms). Returns its length, 0 when it is none. */
static size_t utf8_decode(const uint8_t *p, size_t n, uint32_t *ret)
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

size_t text_escape_next(const void *data, size_t length, char *ret, size_t *ret_length)
{
    const uint8_t *p = data;
    uint32_t code;
    size_t n = utf8_decode(p, length, &code);
    int out = 0;
    if (*p == '\\')
        out = snprintf(ret, TEXT_ESCAPE_MAX, "\\\\");
    else if (n && code >= 0x20 && code != 0x7f && !(code >= 0x80 && code < 0xa0) && !rearranges_line(code))
        memcpy(ret, p, (size_t)(out = (int)n));
    else if (n && rearranges_line(code))
        out = snprintf(ret, TEXT_ESCAPE_MAX, "\\u{%04x}", code);
    else /* a control character, of which C1 ones have two bytes, or a byte that is no UTF-8 */
        for (size_t i = 0; i < MAX(n, (size_t)1); i++)
            out += snprintf(ret + out, (size_t)(TEXT_ESCAPE_MAX - out), "\\x%02x", p[i]);
    *ret_length = (size_t)out;
    return MAX(n, (size_t)1);
}

void text_escape(struct text *text, const void *data, size_t length)
{
    const uint8_t *p = data, *end = p + length;
    while (p < end) {
        const uint8_t *plain = p;
        while (p < end && *p >= 0x20 && *p < 0x7f && *p != '\\')
            p++;
        text_append(text, plain, (size_t)(p - plain));
        if (p == end)
            break;
        char escaped[TEXT_ESCAPE_MAX];
        size_t n;
        p += text_escape_next(p, (size_t)(end - p), escaped, &n);
        text_append(text, escaped, n);
    }
}

void text_hex(char *ret, const uint8_t *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        *ret++ = digits[bytes[i] >> 4];
        *ret++ = digits[bytes[i] & 15];
    }
    *ret = '\0';
}
