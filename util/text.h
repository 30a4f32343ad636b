/*
 * text.h: a growing text buffer for names and messages. An allocation that fails or a text that reaches its
 * cap makes it `broken`; later appends do nothing, and the caller asks once, at the end.
 */
#ifndef CDACQ_UTIL_TEXT_H
#define CDACQ_UTIL_TEXT_H

#include "util/base.h"

enum { TEXT_CAP = 64 * 1024 }; /* no name of a runtime comes near; a hostile one must not eat the memory */

struct text {
    char *data; /* NUL-terminated once anything was appended; NULL before */
    size_t length, capacity;
    bool broken;
};

void text_deinit(struct text *text);
void text_clear(struct text *text);
void text_append(struct text *text, const void *data, size_t length);
void text_puts(struct text *text, const char *string);
void text_putc(struct text *text, char c);
void text_printf(struct text *text, const char *format, ...) PRINTF_LIKE(2, 3);

/* Appends bytes that came from a target or a file in the form of ESCAPE_DATA (util/escape.h). */
void text_escape(struct text *text, const void *data, size_t length);

/* `size` bytes as 2 * size lower-case digits and a NUL. */
void text_hex(char *ret, const uint8_t *bytes, size_t size);

#endif
