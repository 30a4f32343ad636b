#include "descriptors/json.h"

#include <errno.h>
#include <cjson/cJSON.h>

/* struct json is never defined: it is a cJSON. */
static const cJSON *node(const struct json *value)
{
    return (const cJSON *)(const void *)value;
}

static const struct json *value_of(const cJSON *item)
{
    return (const struct json *)(const void *)item;
}

/*
 * Numbers pass through cJSON as strings that start with this byte. A valid text cannot have it unescaped in a string,
 * and copy_string() refuses it escaped.
 */
#define NUMBER_MARK '\x01'

/* Rewrites a text for cJSON. Each number grows by three bytes. */
struct rewriter {
    const char *at, *end;
    char *out;
    const char *problem;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_blanks(struct rewriter *r)
{
    while (r->at < r->end) {
        if (is_space(*r->at)) {
            r->at++;
        } else if (r->end - r->at >= 2 && r->at[0] == '/' && r->at[1] == '/') {
            while (r->at < r->end && *r->at != '\n')
                r->at++;
        } else if (r->end - r->at >= 2 && r->at[0] == '/' && r->at[1] == '*') {
            const char *close = memmem(r->at + 2, (size_t)(r->end - r->at - 2), "*/", 2);
            if (!close) {
                r->problem = "an unterminated comment";
                r->at = r->end;
                return;
            }
            r->at = close + 2;
        } else {
            return;
        }
    }
}

/* Most of a text has neither blanks nor comments. */
static inline void skip_blank(struct rewriter *r)
{
    if (r->at == r->end || *r->at <= ' ' || *r->at == '/')
        skip_blanks(r);
}

/* Bytes of a string that are copied as they are. */
static void copy_plain(struct rewriter *r)
{
    const char *at = r->at, *end = r->end;
    char *out = r->out;
    while (at < end && *at != '"' && *at != '\\' && (unsigned char)*at >= 0x20)
        *out++ = *at++;
    r->at = at;
    r->out = out;
}

static void copy_string(struct rewriter *r)
{
    *r->out++ = *r->at++;
    for (copy_plain(r); r->at < r->end && *r->at != '"'; copy_plain(r)) {
        if ((unsigned char)*r->at < 0x20) {
            r->problem = "a control character in a string";
            return;
        }
        if (*r->at == '\\') {
            if (r->end - r->at >= 6 && (strncmp(r->at, "\\u0000", 6) == 0 || strncmp(r->at, "\\u0001", 6) == 0)) {
                r->problem = "an escaped NUL or mark in a string";
                return;
            }
            if (r->end - r->at < 2)
                break;
            *r->out++ = *r->at++;
        }
        *r->out++ = *r->at++;
    }
    if (r->at == r->end)
        r->problem = "an unterminated string";
    else
        *r->out++ = *r->at++;
}

static bool is_digit(const struct rewriter *r)
{
    return r->at < r->end && *r->at >= '0' && *r->at <= '9';
}

static void copy_digits(struct rewriter *r)
{
    if (!is_digit(r))
        r->problem = "a malformed number";
    while (is_digit(r))
        *r->out++ = *r->at++;
}

/* An optional minus sign, digits without a leading zero, an optional fraction, an optional exponent. */
static void copy_number(struct rewriter *r)
{
    *r->out++ = '"';
    *r->out++ = NUMBER_MARK;
    if (*r->at == '-')
        *r->out++ = *r->at++;
    bool zero = is_digit(r) && *r->at == '0';
    if (zero)
        *r->out++ = *r->at++;
    else
        copy_digits(r);
    if (zero && is_digit(r))
        r->problem = "a malformed number";
    if (r->at < r->end && *r->at == '.') {
        *r->out++ = *r->at++;
        copy_digits(r);
    }
    if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
        *r->out++ = *r->at++;
        if (r->at < r->end && (*r->at == '+' || *r->at == '-'))
            *r->out++ = *r->at++;
        copy_digits(r);
    }
    *r->out++ = '"';
    skip_blank(r);
    if (!r->problem && r->at < r->end && *r->at == ':')
        r->problem = "a number as a key";
}

/* true, false, null. Removing a comment must not join two words into one of these. */
static void copy_word(struct rewriter *r)
{
    static const char *const words[] = {"true", "false", "null"};
    size_t length = 0;
    while (r->at + length < r->end && r->at[length] >= 'a' && r->at[length] <= 'z')
        length++;
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (length == strlen(words[i]) && memcmp(r->at, words[i], length) == 0) {
            memcpy(r->out, r->at, length);
            r->out += length;
            r->at += length;
            return;
        }
    r->problem = "a byte that is no JSON";
}

/* Drops a comma after a value and before the end of an array or object; cJSON refuses any other surplus comma. */
static void copy_comma(struct rewriter *r, const char *begin)
{
    char before = r->out > begin ? r->out[-1] : '\0';
    r->at++;
    skip_blank(r);
    bool trailing = r->at < r->end && (*r->at == '}' || *r->at == ']') && before && !strchr("[{,:", before);
    if (!trailing)
        *r->out++ = ',';
}

static void rewrite(struct rewriter *r)
{
    const char *begin = r->out;
    for (skip_blank(r); r->at < r->end && !r->problem; skip_blank(r)) {
        char c = *r->at;
        if (c == '"')
            copy_string(r);
        else if (c == '-' || (c >= '0' && c <= '9'))
            copy_number(r);
        else if (c == ',')
            copy_comma(r, begin);
        else if (c == '{' || c == '}' || c == '[' || c == ']' || c == ':')
            *r->out++ = *r->at++;
        else
            copy_word(r);
    }
}

enum cdacq_status json_parse(const char *text, size_t size, const char *origin, struct json **ret,
                             struct cdacq_error *err)
{
    if (size > JSON_TEXT_MAX)
        return error_set(err, CDACQ_ERR_DESCRIPTOR, 0, "%s: %zu bytes of JSON are more than the %d that are read",
                         origin, size, JSON_TEXT_MAX);
    CLEANUP_FREE char *clean = malloc(size * 4 + 1); /* at worst "1,1,1": 4 bytes for each digit */
    if (!clean)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    struct rewriter rewriter = {.at = text, .end = text + size, .out = clean};
    /* A terminator, or padding up to a page, may follow the text. */
    while (rewriter.end > text && rewriter.end[-1] == '\0')
        rewriter.end--;
    rewrite(&rewriter);
    if (rewriter.problem)
        return error_set(err, CDACQ_ERR_DESCRIPTOR, 0, "%s: malformed JSON at byte %td: %s", origin, rewriter.at - text,
                         rewriter.problem);
    *rewriter.out = '\0';
    const char *stop = NULL;
    errno = 0; /* cJSON does not say why it fails; malloc() does */
    cJSON *root = cJSON_ParseWithLengthOpts(clean, (size_t)(rewriter.out - clean) + 1, &stop, true);
    if (!root && errno == ENOMEM)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "%s: out of memory", origin);
    if (!root)
        return error_set(err, CDACQ_ERR_DESCRIPTOR, 0, "%s: malformed JSON near \"%.20s\"", origin,
                         stop && stop >= clean && stop <= rewriter.out ? stop : "");
    *ret = (struct json *)(void *)root;
    return CDACQ_OK;
}

void json_free(struct json *root)
{
    cJSON_Delete((cJSON *)(void *)root);
}

enum json_kind json_kind(const struct json *value)
{
    const cJSON *item = node(value);
    if (cJSON_IsObject(item))
        return JSON_OBJECT;
    if (cJSON_IsArray(item))
        return JSON_ARRAY;
    if (cJSON_IsString(item))
        return item->valuestring[0] == NUMBER_MARK ? JSON_NUMBER : JSON_STRING;
    return cJSON_IsBool(item) ? JSON_BOOL : JSON_NULL;
}

const struct json *json_first(const struct json *container)
{
    const cJSON *item = node(container);
    return cJSON_IsObject(item) || cJSON_IsArray(item) ? value_of(item->child) : NULL;
}

const struct json *json_next(const struct json *value)
{
    return value_of(node(value)->next);
}

size_t json_count(const struct json *container)
{
    size_t count = 0;
    for (const struct json *item = json_first(container); item; item = json_next(item))
        count++;
    return count;
}

const char *json_key(const struct json *value)
{
    return node(value)->string ? node(value)->string : "";
}

const struct json *json_get(const struct json *object, const char *key)
{
    const struct json *found = NULL;
    if (json_kind(object) != JSON_OBJECT)
        return NULL;
    for (const struct json *item = json_first(object); item; item = json_next(item))
        if (strcmp(json_key(item), key) == 0)
            found = item;
    return found;
}

const char *json_text(const struct json *value)
{
    switch (json_kind(value)) {
    case JSON_STRING:
        return node(value)->valuestring;
    case JSON_NUMBER:
        return node(value)->valuestring + 1;
    default:
        return NULL;
    }
}

bool json_integer(const struct json *value, uint64_t *ret)
{
    const char *p = json_text(value);
    if (!p)
        return false;
    bool negative = *p == '-';
    p += negative;
    unsigned base = 10;
    if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
        base = 16;
        p += 2;
    }
    uint64_t number = 0;
    if (!*p)
        return false;
    for (; *p; p++) {
        unsigned digit = *p >= '0' && *p <= '9'   ? (unsigned)(*p - '0')
                         : *p >= 'a' && *p <= 'f' ? (unsigned)(*p - 'a') + 10
                         : *p >= 'A' && *p <= 'F' ? (unsigned)(*p - 'A') + 10
                                                  : 16;
        if (digit >= base || __builtin_mul_overflow(number, (uint64_t)base, &number) ||
            __builtin_add_overflow(number, (uint64_t)digit, &number))
            return false;
    }
    if (negative && number > UINT64_C(1) << 63)
        return false;
    *ret = negative ? -number : number;
    return true;
}
