/*
 * escape.h: text that anyone may read, made of bytes that anyone may have written. The result is printable UTF-8 on one
 * line: control characters (C0, DEL, C1) and bytes that are not UTF-8 become \xNN, separators and controls that
 * rearrange a line become \u{NNNN}. Pure functions.
 */
#ifndef CDACQ_UTIL_ESCAPE_H
#define CDACQ_UTIL_ESCAPE_H

#include "util/base.h"

/* Room for any text of `n` bytes in any form: at worst a byte becomes \\xNN within JSON. */
#define ESCAPED_SIZE(n) (5 * (n))

enum { ESCAPED_CHARACTER_SIZE = ESCAPED_SIZE(4) }; /* room for the form of one character */

enum escape_form {
    ESCAPE_DATA,         /* a backslash is doubled, so that an escape can be told from a path that holds one */
    ESCAPE_MESSAGE,      /* a backslash stays: it is for people, and may quote what is escaped already */
    ESCAPE_JSON_DATA,    /* the inside of a JSON string that holds what ESCAPE_DATA gives */
    ESCAPE_JSON_MESSAGE, /* the same of ESCAPE_MESSAGE */
};

/* Appends to `to`, which has ESCAPED_SIZE(length) bytes; returns the new end. */
char *escape(char *to, const void *bytes, size_t length, enum escape_form form);

/*
 * The same of the next character of `bytes`, which has at least a byte: appended to `to`, which has
 * ESCAPED_CHARACTER_SIZE. Returns the new end; *ret_taken is how many bytes it took.
 */
char *escape_character(char *to, const void *bytes, size_t length, enum escape_form form, size_t *ret_taken);

#endif
