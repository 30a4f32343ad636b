/* sha256.h: SHA-256 over bytes in one or more pieces. Pure; a state belongs to one thread. Source: FIPS 180-4. */
#ifndef CDACQ_UTIL_SHA256_H
#define CDACQ_UTIL_SHA256_H

#include "util/base.h"

enum { SHA256_SIZE = 32, SHA256_BLOCK_SIZE = 64 };

struct sha256 {
    uint32_t state[8];
    uint64_t length; /* of all bytes so far */
    uint8_t block[SHA256_BLOCK_SIZE];
    bool portable; /* no instructions that only some processors have */
};

void sha256_begin(struct sha256 *hash);

/* Begins a hash that uses plain C even if the processor has instructions for SHA. For tests. */
void sha256_begin_portable(struct sha256 *hash);

void sha256_add(struct sha256 *hash, const void *bytes, size_t size);
void sha256_end(struct sha256 *hash, uint8_t ret[SHA256_SIZE]);

#endif
