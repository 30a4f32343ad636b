/*
 * utf16.h: UTF-16 code units to UTF-8. A surrogate without its pair becomes U+FFFD, as when .NET encodes text. Pure.
 */
#ifndef CDACQ_UTIL_UTF16_H
#define CDACQ_UTIL_UTF16_H

#include "util/base.h"

enum { UTF8_PER_UTF16 = 3 }; /* bytes at most for one unit */

/*
 * Converts `count` units to at most UTF8_PER_UTF16 * count bytes at `to`; returns the new end. A high surrogate at the
 * end is left for the next call if `more` units follow: *ret_taken is the number of units that were read.
 */
char *utf16_to_utf8(char *to, const void *units, size_t count, bool big_endian, bool more, size_t *ret_taken);

#endif
