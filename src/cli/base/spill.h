/*
 * spill.h: memory for arrays that may become larger than RAM. Beyond a bound for all of them, an array is a mapping of
 * a file without a name, in TMPDIR, or else in /var/tmp or /tmp, to which the kernel moves its pages. Its blocks are
 * there before it is used, so a full disk is an error like another. One thread at a time.
 */
#ifndef CDACQ_CLI_BASE_SPILL_H
#define CDACQ_CLI_BASE_SPILL_H

#include "util/vector.h"

/* How much of all arrays is kept out of files from now on, in bytes. At first: half of the RAM, and at most 2 GiB. */
void spill_set_bound(uint64_t bytes);

/*
 * Like realloc() of `old_size` bytes; NULL is an array of 0 bytes. What is added is zero. NULL: spill_failure() says
 * why, and the array stays.
 */
void *spill_resize(void *items, uint64_t old_size, uint64_t size);
void spill_free(void *items);

/* One line: why spill_resize() failed; "out of memory" if it did not. */
const char *spill_failure(void);

/* How many bytes of arrays are in files. */
uint64_t spill_size(void);

/* As vector_grow(). */
void *spill_grow(void *items, size_t *capacity, size_t needed, size_t item_size);

/* A vector (util/vector.h) of such memory. */
#define DEFINE_SPILLING_VECTOR(vector, type) \
    DEFINE_VECTOR_TYPE(vector, type);        \
    DEFINE_VECTOR_FUNCTIONS_WITH(vector, type, spill_grow, spill_free)

#endif
