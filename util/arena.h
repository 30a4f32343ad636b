/*
 * arena.h: memory that is freed all at once. A zeroed struct is an empty arena. One thread at a time may use an arena.
 */
#ifndef CDACQ_UTIL_ARENA_H
#define CDACQ_UTIL_ARENA_H

#include "util/base.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks;
    size_t size; /* bytes of all chunks */
};

void arena_deinit(struct arena *arena);

/* `size` bytes, aligned for pointers and 64-bit integers, not initialised. NULL when out of memory. */
void *arena_allocate(struct arena *arena, size_t size);

/* A copy of `length` bytes, NUL-terminated. NULL when out of memory. */
char *arena_string(struct arena *arena, const char *string, size_t length);

#endif
