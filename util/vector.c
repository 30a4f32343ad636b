#include "util/vector.h"

enum { BYTES_FIRST = 128, ITEMS_FIRST = 4 };

void *vector_grow(void *items, size_t *capacity, size_t needed, size_t item_size)
{
    size_t most = (size_t)PTRDIFF_MAX / item_size;
    if (needed > most)
        return NULL;
    size_t larger = *capacity ? MIN(*capacity * 2, most) : MAX(BYTES_FIRST / item_size, (size_t)ITEMS_FIRST);
    larger = MAX(larger, needed);
    void *grown = realloc(items, larger * item_size);
    if (grown)
        *capacity = larger;
    return grown;
}

void *vector_shrink(void *items, size_t *capacity, size_t count, size_t item_size)
{
    if (!count) {
        free(items);
        *capacity = 0;
        return NULL;
    }
    void *smaller = count < *capacity ? realloc(items, count * item_size) : NULL;
    if (!smaller)
        return items;
    *capacity = count;
    return smaller;
}
