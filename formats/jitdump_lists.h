/*
 * jitdump_lists.h: what the decoders of jitdump records share: the fields of a record, and the lists that follow them.
 * Pure functions; thread-safe.
 */
#ifndef CDACQ_FORMATS_JITDUMP_LISTS_H
#define CDACQ_FORMATS_JITDUMP_LISTS_H

#include "cdacq/jitdump.h"
#include "util/sized.h"

/*
 * A cursor over elements without a fixed size: the number of elements so far (upper half) and of their bytes (lower
 * half; a record has less than 4 GiB).
 */
static inline uint32_t jitdump_cursor_count(uint64_t cursor)
{
    return (uint32_t)(cursor >> 32);
}

static inline uint32_t jitdump_cursor_bytes(uint64_t cursor)
{
    return (uint32_t)cursor;
}

static inline void jitdump_cursor_advance(uint64_t *cursor, size_t bytes)
{
    *cursor += (UINT64_C(1) << 32) + bytes;
}

/* The string at `at`. NULL if it does not end before `end`. */
static inline const char *jitdump_string_at(const struct cdacq_jitdump_record *record, uint64_t at, uint64_t end,
                                            size_t *ret_length)
{
    if (at >= end)
        return NULL;
    const char *string = (const char *)record->opaque.bytes + at;
    const char *nul = memchr(string, '\0', (size_t)(end - at));
    if (!nul)
        return NULL;
    *ret_length = (size_t)(nul - string);
    return string;
}

/* Copies `narrow` 32-bit fields, then `wide` 64-bit ones, to `ret`, a struct that has them in the same order. */
static inline void jitdump_load_fields(const uint8_t *p, size_t narrow, size_t wide, bool big, void *ret)
{
    uint8_t *to = ret;
    memcpy(to, p, 4 * narrow + 8 * wide);
    if (big == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__))
        return;
    for (; narrow--; to += 4)
        store_u32(to, load_u32(to, false), true);
    for (; wide--; to += 8)
        store_u64(to, load_u64(to, false), true);
}

/* The public functions: `get` fills `own`, which is copied to the caller's struct. */
#define JITDUMP_LIST_FUNCTION(name, where, item, get)                                                        \
    enum cdacq_status cdacq_jitdump_record_##name(const struct cdacq_jitdump_record *record, where,          \
                                                  struct cdacq_jitdump_##item *ret, struct cdacq_error *err) \
    {                                                                                                        \
        struct cdacq_jitdump_##item own = {0};                                                               \
        enum cdacq_status status = sized_check(ret, "struct cdacq_jitdump_" #item, err);                     \
        if (status < 0)                                                                                      \
            return status;                                                                                   \
        if (!get)                                                                                            \
            return CDACQ_DONE;                                                                               \
        sized_copy(ret, &own, sizeof own);                                                                   \
        return CDACQ_OK;                                                                                     \
    }

#endif
