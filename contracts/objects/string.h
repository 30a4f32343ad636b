/*
 * string.h: System.String objects, as UTF-8. The text is any text: whoever prints it escapes it.
 */
#ifndef CDACQ_CONTRACTS_OBJECTS_STRING_H
#define CDACQ_CONTRACTS_OBJECTS_STRING_H

#include "descriptors/fields.h"
#include "util/text.h"

enum { STRING_LENGTH_MAX = 0x3fffffdf }; /* the runtime's own cap, in UTF-16 units */

/* The number of UTF-16 units. The reader fails if the object is no string, or has an impossible length. */
uint32_t string_length(struct reader *reader, uint64_t object);

/*
 * Passes at most `max` units to `put`, in pieces. False if it ends early: at `max`, because `put` returns false, or
 * because the reader fails.
 */
bool string_each(struct reader *reader, uint64_t object, uint32_t max,
                 bool (*put)(void *context, const char *utf8, size_t length), void *context);

/* Appends a whole string of at most `max` units. False if it is longer, or if the reader fails. */
bool string_append(struct reader *reader, uint64_t object, uint32_t max, struct text *ret);

/* Appends `count` UTF-16 units that are no string. False if the reader fails. */
bool string_append_units(struct reader *reader, uint64_t address, uint32_t count, struct text *ret);

#endif
