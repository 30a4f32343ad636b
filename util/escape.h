/*
 * escape.h: escapes untrusted bytes as printable UTF-8 on one line. Control characters (C0, DEL, C1) and bytes that are
 * not UTF-8 become \xNN; line separators and direction controls become \u{NNNN}. Pure functions.
 */
#ifndef CDACQ_UTIL_ESCAPE_H
#define CDACQ_UTIL_ESCAPE_H

#include "util/base.h"

/* Room for `n` bytes in any form: at worst, in JSON, each becomes \\xNN. */
#define ESCAPED_SIZE(n) (5 * (n))

enum { ESCAPED_CHARACTER_SIZE = ESCAPED_SIZE(4) }; /* room for one character */

enum escape_form {
    ESCAPE_DATA,         /* a backslash is doubled, so that escapes are unambiguous */
    ESCAPE_MESSAGE,      /* a backslash stays: a message may quote escaped data */
    ESCAPE_JSON_DATA,    /* ESCAPE_DATA, as the contents of a JSON string */
    ESCAPE_JSON_MESSAGE, /* ESCAPE_MESSAGE, as the contents of a JSON string */
};

/* Whether a byte is printable ASCII that no form escapes. */
static inline bool escape_keeps(uint8_t byte)
{
    return byte >= 0x20 && byte < 0x7f && byte != '\\' && byte != '"';
}

/* Writes to `to`, which has room for ESCAPED_SIZE(length) bytes. Returns the new end. */
char *escape(char *to, const void *bytes, size_t length, enum escape_form form);

/* How many of the first bytes are plain: printable ASCII that no form escapes. */
size_t escape_plain_length(const void *bytes, size_t length);

/*
 * Writes the first character of `bytes`, which has at least one byte, to `to`, which has room for
 * ESCAPED_CHARACTER_SIZE. Returns the new end; *ret_taken is the number of bytes read.
 */
char *escape_character(char *to, const void *bytes, size_t length, enum escape_form form, size_t *ret_taken);

#endif
