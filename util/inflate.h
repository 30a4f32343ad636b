/*
 * inflate.h: decompresses deflate streams with zlib, which is loaded when it is first needed. Thread-safe. Source:
 * RFC 1951; zlib.h.
 */
#ifndef CDACQ_UTIL_INFLATE_H
#define CDACQ_UTIL_INFLATE_H

#include "util/base.h"

/*
 * Decompresses a raw stream, which has no zlib header, to exactly `ret_size` bytes. On failure returns false and writes
 * one line to `why`; `ret` may then hold any bytes.
 */
bool inflate_raw(const void *bytes, size_t size, void *ret, size_t ret_size, char *why, size_t why_size);

#endif
