/*
 * json.h: JSON as data descriptors use it. Only this module uses cJSON, and it works around these limits of cJSON:
 *
 * - It holds numbers as doubles, which would round integers beyond 2^53. Numbers are kept as their text instead.
 * - Its look-ups ignore case and take the first of duplicate keys. Keys compare exactly here, and the last one wins.
 * - It ends strings at an escaped NUL. A text that has one is refused.
 * - It accepts neither comments nor trailing commas, which descriptors may have. They are removed first.
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

/* The first element of an array or object, and the next one. NULL where there is none. */
const struct json *json_first(const struct json *container);
const struct json *json_next(const struct json *value);
size_t json_count(const struct json *container);

/* The key of a value in an object, "" elsewhere. */
const char *json_key(const struct json *value);

/* The value of `key`, the last one where the key occurs more than once. NULL where there is none. */
const struct json *json_get(const struct json *object, const char *key);

/* A string, or a number as it was written; NULL for anything else. */
const char *json_text(const struct json *value);

/*
 * The value of an integer: a number or string, decimal or 0x hexadecimal, with an optional minus sign (returned as
 * two's complement). False for anything else, and for a number that does not fit 64 bits.
 */
bool json_integer(const struct json *value, uint64_t *ret);

#endif
