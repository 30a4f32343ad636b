#include "util/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "util/escape.h"
#include "util/vector.h"

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
    char *data = vector_grow(text->data, &text->capacity, needed, 1);
    if (data)
        text->data = data;
    text->broken = !data;
    return data != NULL;
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

void text_cut(struct text *text, size_t length)
{
    if (text->data && length <= text->length)
        text->data[text->length = length] = '\0';
}

bool text_equals(const struct text *text, const char *string)
{
    size_t length = strlen(string);
    return text->length == length && (!length || memcmp(text->data, string, length) == 0);
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

void text_escape(struct text *text, const void *data, size_t length)
{
    const uint8_t *p = data, *end = p + length;
    while (p < end) {
        size_t plain = escape_plain_length(p, (size_t)(end - p));
        text_append(text, p, plain);
        p += plain;
        if (p == end)
            break;
        char escaped[ESCAPED_CHARACTER_SIZE];
        size_t taken;
        const char *after = escape_character(escaped, p, (size_t)(end - p), ESCAPE_DATA, &taken);
        text_append(text, escaped, (size_t)(after - escaped));
        p += taken;
    }
}

static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};

void text_rounded_bytes(char *ret, size_t size, uint64_t bytes)
{
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < ARRAY_SIZE(units); unit++)
        value /= 1024;
    snprintf(ret, size, unit ? "%.1f %s" : "%.0f %s", value, unit ? units[unit] : "B");
}

void text_bytes(char *ret, size_t size, uint64_t bytes)
{
    size_t unit = 0;
    for (; unit + 1 < ARRAY_SIZE(units) && bytes >= 1024 && bytes % 1024 == 0; unit++)
        bytes /= 1024;
    snprintf(ret, size, "%" PRIu64 " %s", bytes, !unit && bytes == 1 ? "byte" : units[unit]);
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
