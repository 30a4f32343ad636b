/*
 * vector.h: a typed growable array, defined where it is used. DEFINE_VECTOR(spans, struct span) defines struct spans,
 * whose `items`, `count` and `capacity` may be read freely, and the functions below. A zeroed struct is an empty
 * vector. If a size does not fit or an allocation fails, a function returns false or NULL and leaves the vector
 * unchanged. Pointers to items are valid until the vector grows.
 *
 *     void spans_deinit(struct spans *);
 *     bool spans_reserve(struct spans *, size_t capacity);         room for at least that many
 *     bool spans_resize(struct spans *, size_t count);             new items are zeroed
 *     bool spans_append(struct spans *, struct span);
 *     struct span *spans_append_items(struct spans *, size_t n);   the first of n new items, not initialised
 *     void spans_shrink(struct spans *);                           releases unused capacity
 */
#ifndef CDACQ_UTIL_VECTOR_H
#define CDACQ_UTIL_VECTOR_H

#include "util/base.h"

/*
 * Reallocates `items` for at least `needed` items and about twice *capacity, and sets *capacity. On failure returns
 * NULL and changes nothing.
 */
void *vector_grow(void *items, size_t *capacity, size_t needed, size_t item_size);

/* Reallocates `items` for exactly `count` items; frees them if that is 0. On failure returns them unchanged. */
void *vector_shrink(void *items, size_t *capacity, size_t count, size_t item_size);

/* The struct is for a header, its functions are for the files that use them. DEFINE_VECTOR defines both. */
#define DEFINE_VECTOR_TYPE(vector, type) \
    struct vector {                      \
        type *items;                     \
        size_t count, capacity;          \
    }

/* `grow` and `release` are the functions for memory, like vector_grow() and free(). */
#define DEFINE_VECTOR_FUNCTIONS_WITH(vector, type, grow, release)                                  \
    __attribute__((unused)) static inline void vector##_deinit(struct vector *v)                   \
    {                                                                                              \
        release(v->items);                                                                         \
        *v = (struct vector){0};                                                                   \
    }                                                                                              \
    __attribute__((unused)) static inline bool vector##_reserve(struct vector *v, size_t capacity) \
    {                                                                                              \
        if (LIKELY(capacity <= v->capacity))                                                       \
            return true;                                                                           \
        type *items = grow(v->items, &v->capacity, capacity, sizeof(type));                        \
        if (!items)                                                                                \
            return false;                                                                          \
        v->items = items;                                                                          \
        return true;                                                                               \
    }                                                                                              \
    __attribute__((unused)) static inline bool vector##_resize(struct vector *v, size_t count)     \
    {                                                                                              \
        if (!vector##_reserve(v, count))                                                           \
            return false;                                                                          \
        if (count > v->count)                                                                      \
            memset(v->items + v->count, 0, (count - v->count) * sizeof(type));                     \
        v->count = count;                                                                          \
        return true;                                                                               \
    }                                                                                              \
    __attribute__((unused)) static inline type *vector##_append_items(struct vector *v, size_t n)  \
    {                                                                                              \
        size_t count;                                                                              \
        if (__builtin_add_overflow(v->count, n, &count) || !vector##_reserve(v, count))            \
            return NULL;                                                                           \
        type *items = v->items + v->count;                                                         \
        v->count = count;                                                                          \
        return items;                                                                              \
    }                                                                                              \
    __attribute__((unused)) static inline bool vector##_append(struct vector *v, type item)        \
    {                                                                                              \
        type *items = vector##_append_items(v, 1);                                                 \
        if (items)                                                                                 \
            *items = item;                                                                         \
        return items != NULL;                                                                      \
    }                                                                                              \
    _Static_assert(sizeof(type) > 0, "a type")

#define DEFINE_VECTOR_FUNCTIONS(vector, type)                                     \
    DEFINE_VECTOR_FUNCTIONS_WITH(vector, type, vector_grow, free);                \
    __attribute__((unused)) static inline void vector##_shrink(struct vector *v)  \
    {                                                                             \
        v->items = vector_shrink(v->items, &v->capacity, v->count, sizeof(type)); \
    }                                                                             \
    _Static_assert(sizeof(type) > 0, "a type")

#define DEFINE_VECTOR(vector, type)   \
    DEFINE_VECTOR_TYPE(vector, type); \
    DEFINE_VECTOR_FUNCTIONS(vector, type)

#endif
