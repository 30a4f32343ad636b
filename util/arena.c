#include "util/arena.h"

enum { CHUNK_SIZE = 64 * 1024 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t used, size;
    _Alignas(max_align_t) uint8_t data[];
};

void arena_deinit(struct arena *arena)
{
    while (arena->chunks) {
        struct arena_chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        free(chunk);
    }
    arena->size = 0;
}

void *arena_allocate(struct arena *arena, size_t size)
{
    struct arena_chunk *chunk = arena->chunks;
    if (size > PTRDIFF_MAX - sizeof *chunk - CHUNK_SIZE) /* no allocation is as large */
        return NULL;
    size = (size_t)align_up(size, _Alignof(uint64_t));
    if (!chunk || chunk->size - chunk->used < size) {
        size_t room = MAX(size, (size_t)CHUNK_SIZE);
        chunk = malloc(sizeof *chunk + room);
        if (!chunk)
            return NULL;
        *chunk = (struct arena_chunk){.next = arena->chunks, .size = room};
        arena->chunks = chunk;
        arena->size += sizeof *chunk + room;
    }
    void *memory = chunk->data + chunk->used;
    chunk->used += size;
    return memory;
}

char *arena_string(struct arena *arena, const char *string, size_t length)
{
    char *copy = length < SIZE_MAX ? arena_allocate(arena, length + 1) : NULL;
    if (!copy)
        return NULL;
    memcpy(copy, string, length);
    copy[length] = '\0';
    return copy;
}
