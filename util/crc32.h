/* crc32.h: CRC-32, as gzip and .gnu_debuglink have it; not for security. Pure. Source: RFC 1952. */
#ifndef CDACQ_UTIL_CRC32_H
#define CDACQ_UTIL_CRC32_H

#include "util/base.h"

uint32_t crc32_of(const void *bytes, size_t size);

#endif
