/*
 * shown_strings.h: caches the escaped forms of a session's strings, in text and in JSON: many answers have the same.
 */
#ifndef CDACQ_CLI_BASE_SHOWN_STRINGS_H
#define CDACQ_CLI_BASE_SHOWN_STRINGS_H

#include <string.h>

#include "src/cli/base/put.h"
#include "util/base.h"

/* The escaped forms of a string. */
struct shown {
    struct shown *next;       /* in the list of slots in use */
    const char *string;       /* its address is the key */
    char *text;               /* both forms, one allocation */
    size_t base, text_length; /* of the text's last path component, and of the whole text */
    size_t json_length;       /* the JSON string follows the text */
};

/* Each kind of string has its own slots, so the strings of one answer do not evict each other. */
enum shown_role { SHOWN_MODULE, SHOWN_TIER, SHOWN_FILE, SHOWN_URL, SHOWN_ROLES };
enum { SHOWN_SLOTS = 2048 };

struct shown_strings {
    struct shown (*slots)[SHOWN_SLOTS]; /* per role; a string may evict another one: memory is constant */
    struct shown *in_use;               /* the other slots are never touched, which saves page faults */
};

/* The forms of a string that is NULL: no text, and null. */
extern const struct shown shown_nothing;

void shown_strings_init(struct shown_strings *strings);
void shown_strings_deinit(struct shown_strings *strings);

/* To be called when a session drops its strings: others may be at the same addresses (struct cdacq_method). */
void shown_strings_forget(struct shown_strings *strings);

/* Forms what a slot shows. */
void shown_strings_fill(struct shown_strings *strings, struct shown *slot, enum shown_role role, const char *string);

/* The forms of a string, or of NULL. Until the session drops it, the address identifies a string. */
static inline const struct shown *shown_string(struct shown_strings *strings, enum shown_role role, const char *string)
{
    if (!string)
        return &shown_nothing;
    uint64_t hash = (uint64_t)(uintptr_t)string * UINT64_C(0x9e3779b97f4a7c15);
    struct shown *slot = &strings->slots[role][hash >> 53];
    _Static_assert(SHOWN_SLOTS == 1 << (64 - 53), "the hash's upper bits choose the slot");
    if (__builtin_expect(slot->string != string, 0))
        shown_strings_fill(strings, slot, role, string);
    return slot;
}

/* Writes the last component of a path. */
static inline char *shown_put_base(char *p, const struct shown *shown)
{
    return put_bytes(p, shown->text + shown->base, shown->text_length - shown->base);
}

/* Writes the JSON string. */
static inline char *shown_put_json(char *p, const struct shown *shown)
{
    return put_bytes(p, shown->text + shown->text_length, shown->json_length);
}

#endif
