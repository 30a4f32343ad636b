/*
 * hash_table.h: a typed hash table, defined where it is used. Open addressing over a power of two of slots; a byte per
 * slot holds 7 bits of the hash, so that few unequal keys are compared.
 *
 *     DEFINE_HASH_TABLE(pages, struct page, uint64_t, page_address, hash_u64, equal_u64);
 *     DEFINE_U64_TABLE(pages, struct page, address);                           the same: the key is a member
 *     DEFINE_U64_SET(numbers);                                                 an entry is a uint64_t, its own key
 *
 * defines struct pages. `page_address` gives the key of a const struct page *, `hash_u64` hashes a key with a seed and
 * `equal_u64` compares two. A zeroed struct is an empty table. Entries are never removed.
 *
 *     void pages_deinit(struct pages *);
 *     struct page *pages_find(const struct pages *, uint64_t key);             NULL if there is none
 *     struct page *pages_insert(struct pages *, struct page, bool *ret_added); the entry with that key, added if new
 *     bool pages_reserve(struct pages *, size_t count);                        room for at least that many entries
 *     struct page *pages_next(const struct pages *, const struct page *);      the entry after that one, or after NULL
 *     struct page *pages_sorted(const struct pages *, compare);                all, sorted, for the caller to free
 *                                                                              the first; NULL at the end; no order
 *
 * pages_insert() returns NULL when out of memory, with the table unchanged; `ret_added` may be NULL. Pointers to
 * entries are valid until the next insertion. An attacker who chooses the keys cannot make all collide: the seed is a
 * random number.
 */
#ifndef CDACQ_UTIL_HASH_TABLE_H
#define CDACQ_UTIL_HASH_TABLE_H

#include "util/base.h"

static inline uint64_t hash_u64(uint64_t key, uint64_t seed)
{
    uint64_t hash = key ^ seed;
    hash = (hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return hash ^ hash >> 32;
}

static inline bool equal_u64(uint64_t a, uint64_t b)
{
    return a == b;
}

static inline uint64_t hash_string(const char *key, uint64_t seed)
{
    size_t length = strlen(key), i = 0;
    uint64_t hash = hash_u64(length, seed), word = 0;
    for (; i + 8 <= length; i += 8) {
        memcpy(&word, key + i, 8);
        hash = hash_u64(word, hash);
    }
    word = 0;
    memcpy(&word, key + i, length - i);
    return hash_u64(word, hash);
}

/* Goes on with a hash that begins as any number: however the bytes are divided among calls, the result is the same. */
static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static inline bool equal_strings(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* A random number that is the same throughout the process. Thread-safe. */
uint64_t hash_table_seed(void);

enum { HASH_TABLE_FIRST = 64 }; /* slots */

/* The struct, for a header, and its functions, for the file that uses them. */
#define DEFINE_HASH_TABLE_TYPE(table, entry_type)                                       \
    struct table {                                                                      \
        entry_type *slots;                                                              \
        uint8_t *tags; /* a byte for each slot, 0 where it is free, else 128 or more */ \
        size_t count, capacity;                                                         \
        uint64_t seed;                                                                  \
    }

#define DEFINE_HASH_TABLE_FUNCTIONS(table, entry_type, key_type, key_of, hash_of, equal)                               \
    __attribute__((unused)) static inline void table##_deinit(struct table *t)                                         \
    {                                                                                                                  \
        free(t->slots);                                                                                                \
        *t = (struct table){0};                                                                                        \
    }                                                                                                                  \
    /* The slot with the key, or the free slot for it. *ret_tag is the tag of an entry with that key. */               \
    static inline size_t table##_slot_(const struct table *t, key_type key, uint8_t *ret_tag)                          \
    {                                                                                                                  \
        uint64_t hash = hash_of(key, t->seed);                                                                         \
        uint8_t tag = *ret_tag = (uint8_t)(hash >> 57 | 0x80);                                                         \
        size_t mask = t->capacity - 1, i = (size_t)hash & mask;                                                        \
        while (t->tags[i] && !(t->tags[i] == tag && equal(key_of(&t->slots[i]), key)))                                 \
            i = (i + 1) & mask;                                                                                        \
        return i;                                                                                                      \
    }                                                                                                                  \
    __attribute__((unused)) static inline entry_type *table##_find(const struct table *t, key_type key)                \
    {                                                                                                                  \
        uint8_t tag;                                                                                                   \
        if (!t->capacity)                                                                                              \
            return NULL;                                                                                               \
        size_t i = table##_slot_(t, key, &tag);                                                                        \
        return t->tags[i] ? &t->slots[i] : NULL;                                                                       \
    }                                                                                                                  \
    __attribute__((unused)) static inline entry_type *table##_next(const struct table *t,                              \
                                                                   __typeof__(entry_type) const *entry)                \
    {                                                                                                                  \
        for (size_t i = entry ? (size_t)(entry - t->slots) + 1 : 0; i < t->capacity; i++)                              \
            if (t->tags[i])                                                                                            \
                return &t->slots[i];                                                                                   \
        return NULL;                                                                                                   \
    }                                                                                                                  \
    /* A sorted copy of the entries, which the caller frees; NULL when out of memory. */                               \
    __attribute__((unused)) static entry_type *table##_sorted(const struct table *t,                                   \
                                                              int (*compare)(const void *, const void *))              \
    {                                                                                                                  \
        entry_type *entries = malloc((t->count + 1) * sizeof(entry_type));                                             \
        size_t count = 0;                                                                                              \
        for (__typeof__(entry_type) const *entry = NULL; entries && (entry = table##_next(t, entry));)                 \
            entries[count++] = *entry;                                                                                 \
        if (entries)                                                                                                   \
            qsort(entries, count, sizeof(entry_type), compare);                                                        \
        return entries;                                                                                                \
    }                                                                                                                  \
    static bool table##_grow_to_(struct table *t, size_t capacity)                                                     \
    {                                                                                                                  \
        struct table larger = {.count = t->count, .capacity = capacity, .seed = hash_table_seed()};                    \
        larger.slots = larger.capacity > t->capacity ? calloc(larger.capacity, sizeof(entry_type) + 1) : NULL;         \
        if (!larger.slots)                                                                                             \
            return false;                                                                                              \
        larger.tags = (uint8_t *)(larger.slots + larger.capacity);                                                     \
        for (__typeof__(entry_type) const *entry = NULL; (entry = table##_next(t, entry));) {                          \
            uint8_t tag;                                                                                               \
            size_t i = table##_slot_(&larger, key_of(entry), &tag);                                                    \
            larger.slots[i] = *entry;                                                                                  \
            larger.tags[i] = tag;                                                                                      \
        }                                                                                                              \
        free(t->slots);                                                                                                \
        *t = larger;                                                                                                   \
        return true;                                                                                                   \
    }                                                                                                                  \
    __attribute__((unused)) static inline bool table##_reserve(struct table *t, size_t count)                          \
    {                                                                                                                  \
        size_t capacity = t->capacity ? t->capacity : HASH_TABLE_FIRST;                                                \
        while (count > capacity / 4 * 3 && capacity <= SIZE_MAX / 2)                                                   \
            capacity *= 2;                                                                                             \
        return capacity <= t->capacity || table##_grow_to_(t, capacity);                                               \
    }                                                                                                                  \
    __attribute__((unused)) static inline entry_type *table##_insert(struct table *t, entry_type entry,                \
                                                                     bool *ret_added)                                  \
    {                                                                                                                  \
        uint8_t tag;                                                                                                   \
        if (t->count >= t->capacity / 4 * 3 && !table##_grow_to_(t, t->capacity ? t->capacity * 2 : HASH_TABLE_FIRST)) \
            return NULL;                                                                                               \
        size_t i = table##_slot_(t, key_of(&entry), &tag);                                                             \
        bool added = !t->tags[i];                                                                                      \
        if (added) {                                                                                                   \
            t->slots[i] = entry;                                                                                       \
            t->tags[i] = tag;                                                                                          \
            t->count++;                                                                                                \
        }                                                                                                              \
        if (ret_added)                                                                                                 \
            *ret_added = added;                                                                                        \
        return &t->slots[i];                                                                                           \
    }                                                                                                                  \
    _Static_assert(sizeof(entry_type) > 0, "a type")

#define DEFINE_HASH_TABLE(table, entry_type, key_type, key_of, hash_of, equal) \
    DEFINE_HASH_TABLE_TYPE(table, entry_type);                                 \
    DEFINE_HASH_TABLE_FUNCTIONS(table, entry_type, key_type, key_of, hash_of, equal)

#define DEFINE_U64_TABLE_FUNCTIONS(table, entry_type, member)    \
    static inline uint64_t table##_key_(const entry_type *entry) \
    {                                                            \
        return (uint64_t)entry->member;                          \
    }                                                            \
    DEFINE_HASH_TABLE_FUNCTIONS(table, entry_type, uint64_t, table##_key_, hash_u64, equal_u64)

#define DEFINE_U64_TABLE(table, entry_type, member) \
    DEFINE_HASH_TABLE_TYPE(table, entry_type);      \
    DEFINE_U64_TABLE_FUNCTIONS(table, entry_type, member)

#define DEFINE_U64_SET_FUNCTIONS(table)                        \
    static inline uint64_t table##_key_(const uint64_t *entry) \
    {                                                          \
        return *entry;                                         \
    }                                                          \
    DEFINE_HASH_TABLE_FUNCTIONS(table, uint64_t, uint64_t, table##_key_, hash_u64, equal_u64)

#define DEFINE_U64_SET(table)                \
    DEFINE_HASH_TABLE_TYPE(table, uint64_t); \
    DEFINE_U64_SET_FUNCTIONS(table)

#endif
