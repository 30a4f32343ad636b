/*
 * json.h: JSON as data descriptors use it, and the one place that knows cJSON, with its traps:
 *
 * - cJSON holds numbers as doubles: integers beyond 2^53 would be rounded. Numbers are therefore kept as their text.
 * - Its look-ups ignore case and take the first of duplicate keys; here values are walked in order, keys compare
 *   exactly.
 * - It ends strings at an escaped NUL; a text that holds one is refused.
 * - It knows neither comments nor trailing commas, which descriptors may have; they are taken out first.
 *
 * A text is at most JSON_TEXT_MAX bytes. A parsed document is immutable.
 * Source: dotnet/runtime docs/design/datacontracts/data_descriptor.md ("JSON with comments"); RFC 8259.
 */
#ifndef CDACQ_DESCRIPTORS_JSON_H
#define CDACQ_DESCRIPTORS_JSON_H

#include "util/error.h"

enum { JSON_TEXT_MAX = 1024 * 1024 };

struct json; /* one value */

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* `origin` names the text in messages. *ret is the root; free it with json_free. DESCRIPTOR on malformed text. */
enum cdacq_status json_parse(const char *text, size_t size, const char *origin, struct json **ret,
                             struct cdacq_error *err);
void json_free(struct json *root);

enum json_kind json_kind(const struct json *value);

/* The first element of an array or object, NULL when empty or neither; then its siblings. */
const struct json *json_first(const struct json *container);
const struct json *json_next(const struct json *value);
size_t json_count(const struct json *container);

/* The key under which a value stands in an object, "" elsewhere. */
const char *json_key(const struct json *value);

/* The value under `key`, exactly; the last one where the key stands more than once. NULL where it does not. */
const struct json *json_get(const struct json *object, const char *key);

/* The text of a string or of a number as written; NULL for anything else. */
const char *json_text(const struct json *value);

/*
 * The value of an integer: a number, or a string that is one, decimal or 0x hexadecimal, with an optional minus sign
 * (stored as two's complement). False when it is none, or does not fit 64 bits.
 */
bool json_integer(const struct json *value, uint64_t *ret);

#endif
