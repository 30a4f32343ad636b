/* mutant_changes.c: changes of a base by its structure. */
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/mutant_bases.h"

enum { UNDO_MAX = 64, CHANGES_MAX = 6, NEAR = 512 };

static struct {
    uint64_t offset;
    uint8_t bytes[256];
    size_t size;
} undo[UNDO_MAX];

static size_t undo_count;
static uint8_t *cut_bytes; /* what truncation took away */
static size_t cut_at;

static void change(struct base *base, uint64_t offset, const void *bytes, size_t size)
{
    if (undo_count == UNDO_MAX || size > sizeof undo[0].bytes || !range_fits(offset, size, base->size))
        return;
    undo[undo_count].offset = offset;
    undo[undo_count].size = size;
    memcpy(undo[undo_count++].bytes, base->bytes + offset, size);
    memmove(base->bytes + offset, bytes, size);
}

void base_restore(struct base *base)
{
    if (cut_bytes && ftruncate(base->fd, (off_t)base->size) == 0) {
        memcpy(base->bytes + cut_at, cut_bytes, base->size - cut_at);
        free(cut_bytes);
        cut_bytes = NULL;
    }
    while (undo_count) {
        undo_count--;
        memcpy(base->bytes + undo[undo_count].offset, undo[undo_count].bytes, undo[undo_count].size);
    }
}

bool base_headers_changed(const struct base *base)
{
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < base->parts.count; i++)
        first = MIN(first, base->parts.items[i].offset);
    for (size_t i = 0; i < undo_count; i++)
        if (undo[i].offset < first)
            return true;
    return false;
}

static void set_word(struct base *base, uint64_t offset, uint64_t value)
{
    uint8_t bytes[8];
    if (base->wide)
        store_u64(bytes, value, base->big);
    else
        store_u32(bytes, (uint32_t)value, base->big);
    change(base, offset, bytes, base->wide ? 8 : 4);
}

static uint64_t any_offset(struct random *random, const struct base *base)
{
    if (base->metadata.count && random_below(random, 6) == 0) {
        uint64_t reach = random_below(random, 2) ? NEAR : 64 * 1024;
        return numbers_any(&base->metadata, random) + random_below(random, reach);
    }
    if (base->kind != BASE_CORE) /* headers come first */
        return random_below(random, random_below(random, 3) ? base->size : MIN(base->size, (size_t)4 * NEAR));
    if (base->pointers.count && random_below(random, 3)) /* structures have pointers; most other bytes are not read */
        return numbers_any(&base->pointers, random) + 4 * random_below(random, 16);
    if (base->parts.count && random_below(random, 4)) {
        const struct part *part = &base->parts.items[random_below(random, base->parts.count)];
        return part->offset + random_below(random, part->size);
    }
    return random_below(random, base->size);
}

static void change_pointer(struct base *base, struct random *random)
{
    if (!base->pointers.count)
        return;
    uint64_t at = numbers_any(&base->pointers, random), other = numbers_any(&base->pointers, random);
    uint64_t old = base_word(base, at);
    switch (random_below(random, 8)) {
    case 0: /* to itself */
        set_word(base, at, base_address(base, at));
        break;
    case 1: /* to what may contain it */
        set_word(base, at, base_address(base, at) - 8 * random_below(random, 12));
        break;
    case 2: /* to another pointer */
        set_word(base, at, base_address(base, other));
        break;
    case 3: /* what another one points to */
        set_word(base, at, base_word(base, other));
        break;
    case 4: /* two are swapped */
        set_word(base, at, base_word(base, other));
        set_word(base, other, old);
        break;
    case 5:
        set_word(base, at, old + random_below(random, 65) - 32);
        break;
    case 6: /* beyond what there is, or at the end of the address space */
        set_word(base, at,
                 random_below(random, 2) ? 0 - random_below(random, 4096) : old + (random_below(random, 4) << 20));
        break;
    default:
        set_word(base, at, random_below(random, 3));
    }
}

static void change_size(struct base *base, struct random *random)
{
    static const uint64_t extremes[] = {
        0,        1,          2,          0x7f,       0x80,       0xff,      0x7fff,     0xffff,           0x10000,
        0xffffff, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff, INT64_MAX, UINT64_MAX, UINT64_MAX - 4095};
    uint64_t value = extremes[random_below(random, ARRAY_SIZE(extremes))];
    uint8_t bytes[8];
    unsigned width = 1u << random_below(random, 4);
    store_u64(bytes, value, base->big);
    change(base, any_offset(random, base) & ~(uint64_t)(width - 1), base->big ? bytes + 8 - width : bytes, width);
}

static void change_text(struct base *base, struct random *random)
{
    static const char *const pieces[] = {"0",       "-1",      "99999999999999999999",
                                         "\"",      "[",       "]",
                                         "{",       "}",       ",",
                                         ":",       "\\u0000", "null",
                                         "\"!\":0", "1e9",     "[0]",
                                         "[65535]", "//",      " "};
    if (!base->texts.count)
        return;
    uint64_t at = numbers_any(&base->texts, random) + random_below(random, 4096);
    const char *piece = pieces[random_below(random, ARRAY_SIZE(pieces))];
    change(base, at, piece, strlen(piece));
}

/* Of texts for people. */
static void change_words(struct base *base, struct random *random)
{
    static const char *const pieces[] = {"\n",           "\n\n",     "\t",       ";",         " ",
                                         "\r\n",         "\x1b[31m", "\xff\xfe", "0x",        "ffffffffffffffff",
                                         "\xe2\x80\xae", "(",        ")",        "(deleted)", "[unknown]",
                                         "+0x",          "<",        "&",        "\"",        "18446744073709551616"};
    if (base->kind != BASE_MAP && base->kind != BASE_TEXT && base->kind != BASE_FOLDED)
        return;
    const char *piece = pieces[random_below(random, ARRAY_SIZE(pieces))];
    change(base, random_below(random, base->size), piece, strlen(piece));
}

static void swap_areas(struct base *base, struct random *random)
{
    uint8_t bytes[256];
    uint64_t a = any_offset(random, base) & ~UINT64_C(7), b = any_offset(random, base) & ~UINT64_C(7);
    size_t size = 8u << random_below(random, 6);
    if (!range_fits(a, size, base->size) || !range_fits(b, size, base->size))
        return;
    memcpy(bytes, base->bytes + b, size);
    uint8_t other[256];
    memcpy(other, base->bytes + a, size);
    change(base, a, bytes, size);
    change(base, b, other, size);
}

static void change_byte(struct base *base, struct random *random)
{
    uint8_t byte = (uint8_t)random_below(random, 256);
    change(base, any_offset(random, base), &byte, 1);
}

/* Small files also end early. */
static void cut(struct base *base, struct random *random)
{
    if (base->size > 1024 * 1024 || random_below(random, 16))
        return;
    cut_at = random_below(random, base->size);
    cut_bytes = malloc(base->size - cut_at);
    if (!cut_bytes)
        return;
    memcpy(cut_bytes, base->bytes + cut_at, base->size - cut_at);
    if (ftruncate(base->fd, (off_t)cut_at) < 0) {
        free(cut_bytes);
        cut_bytes = NULL;
    }
}

void base_mutate(struct base *base, struct random *random)
{
    static void (*const changes[])(struct base *, struct random *) = {change_pointer, change_pointer, change_pointer,
                                                                      change_size,    change_size,    change_text,
                                                                      swap_areas,     change_byte,    change_words};
    for (uint64_t n = 1 + random_below(random, CHANGES_MAX); n > 0; n--)
        changes[random_below(random, ARRAY_SIZE(changes))](base, random);
    if (base->kind != BASE_CORE)
        cut(base, random);
}
