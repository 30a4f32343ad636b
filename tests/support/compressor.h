/*
 * compressor.h: compresses bytes with the libraries that also unpack them, so that a test needs no other program.
 */
#ifndef CDACQ_TESTS_SUPPORT_COMPRESSOR_H
#define CDACQ_TESTS_SUPPORT_COMPRESSOR_H

#include "util/base.h"

/* One member of "zstd", "gzip", "xz" or "lz4", to be freed. Ends the program where the library is missing. */
uint8_t *compress_bytes(const char *format, const void *bytes, size_t size, size_t *ret_size);

#endif
