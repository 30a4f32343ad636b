/*
 * text.h: a growing text buffer for names and messages. A failed allocation, or a text that would exceed TEXT_CAP, sets
 * `broken`; later appends do nothing, and the caller checks once, at the end.
 */
#ifndef CDACQ_UTIL_TEXT_H
#define CDACQ_UTIL_TEXT_H

#include <string.h>

#include "util/base.h"

enum { TEXT_CAP = 64 * 1024 }; /* far above any real name; a hostile one must not exhaust memory */

struct text {
    char *data; /* NUL-terminated; NULL before the first append */
    size_t length, capacity;
    bool broken;
};

void text_deinit(struct text *text);
void text_clear(struct text *text);
void text_append(struct text *text, const void *data, size_t length);
void text_puts(struct text *text, const char *string);
void text_putc(struct text *text, char c);
void text_printf(struct text *text, const char *format, ...) PRINTF_LIKE(2, 3);

/* Appends bytes of a target or a file, escaped as ESCAPE_DATA (util/escape.h). */
void text_escape(struct text *text, const void *data, size_t length);

/* Removes what comes after the first `length` bytes. */
void text_cut(struct text *text, size_t length);

/* Whether the text is that string. */
bool text_equals(const struct text *text, const char *string);

/* Whether a string begins with another one; NULL begins with none. */
static inline bool string_begins_with(const char *string, const char *start)
{
    return string && strncmp(string, start, strlen(start)) == 0;
}

/* "s" after a noun, unless there is one. */
static inline const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* Writes a number of bytes exactly, in the largest unit that allows it: "8 MiB". */
void text_bytes(char *ret, size_t size, uint64_t bytes);

/* Writes a number of bytes in the largest unit that they fill, rounded: "8.3 MiB". */
void text_rounded_bytes(char *ret, size_t size, uint64_t bytes);

/* Writes `size` bytes as 2 * size lower-case digits and a NUL. */
void text_hex(char *ret, const uint8_t *bytes, size_t size);

#endif
