/*
 * escape.h: escapes untrusted bytes as printable UTF-8, on one line except for ESCAPE_TEXT. Control characters (C0,
 * DEL, C1) and bytes that are not UTF-8 become \xNN; line separators and direction controls become \u{NNNN}. So do, in
 * all but text, characters that nothing is shown for: with them, two names could look alike that are not the same.
 * Text, such as the message of an exception, keeps them: some scripts and emoji are not written without. Pure
 * functions.
 */
#ifndef CDACQ_UTIL_ESCAPE_H
#define CDACQ_UTIL_ESCAPE_H

#include "util/base.h"

/* Room for `n` bytes in any form: at worst, in JSON, each becomes \u00NN. */
#define ESCAPED_SIZE(n) (6 * (n))

enum { ESCAPED_CHARACTER_SIZE = ESCAPED_SIZE(4) }; /* room for one character */

enum escape_form {
    ESCAPE_DATA,         /* a backslash is doubled, so that escapes are unambiguous */
    ESCAPE_MESSAGE,      /* a backslash stays: a message may quote escaped data */
    ESCAPE_JSON_DATA,    /* ESCAPE_DATA, as the contents of a JSON string */
    ESCAPE_JSON_MESSAGE, /* ESCAPE_MESSAGE, as the contents of a JSON string */
    ESCAPE_TEXT,         /* ESCAPE_MESSAGE for text of several lines: tabs and line feeds stay */
    ESCAPE_JSON_TEXT,    /* text as the contents of a JSON string, whose reader gets every character as it was */
    ESCAPE_FORMS,
};

/* Whether a byte is printable ASCII that no form escapes. */
static inline bool escape_keeps(uint8_t byte)
{
    return byte >= 0x20 && byte < 0x7f && byte != '\\' && byte != '"';
}

/* Writes to `to`, which has room for ESCAPED_SIZE(length) bytes. Returns the new end. */
char *escape(char *to, const void *bytes, size_t length, enum escape_form form);

/* Decodes one UTF-8 sequence (RFC 3629: no surrogates, no overlong forms). Returns its length, 0 if invalid. */
size_t utf8_decode(const uint8_t *p, size_t n, uint32_t *ret);

/* How many of the first bytes are plain: printable ASCII that no form escapes. */
size_t escape_plain_length(const void *bytes, size_t length);

/*
 * Writes the first character of `bytes`, which has at least one byte, to `to`, which has room for
 * ESCAPED_CHARACTER_SIZE. Returns the new end; *ret_taken is the number of bytes read.
 */
char *escape_character(char *to, const void *bytes, size_t length, enum escape_form form, size_t *ret_taken);

#endif
