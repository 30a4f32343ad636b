/* sha1.h: SHA-1, by which .NET derives the token of a public key; not for security. Pure. Source: FIPS 180-4. */
#ifndef CDACQ_UTIL_SHA1_H
#define CDACQ_UTIL_SHA1_H

#include "util/base.h"

enum { SHA1_SIZE = 20 };

void sha1(const void *bytes, size_t size, uint8_t ret[SHA1_SIZE]);

#endif
