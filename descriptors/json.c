#include "descriptors/json.h"

enum { DEPTH_MAX = 1000 };

/* All values of a document are in one allocation, the root first; their texts follow them. */
struct json {
    enum json_kind kind;
    const char *key, *text;
    struct json *next, *first;
};

struct parser {
    const char *at, *end;
    struct json *values; /* the next free one */
    char *texts;         /* the next free byte */
    const char *problem;
};

static bool fail(struct parser *p, const char *problem)
{
    if (!p->problem)
        p->problem = problem;
    return false;
}

static bool is_at(const struct parser *p, char c)
{
    return p->at < p->end && *p->at == c;
}

static bool skip_blank(struct parser *p)
{
    while (p->at < p->end) {
        char c = *p->at;
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
            p->at++;
        } else if (p->end - p->at >= 2 && c == '/' && p->at[1] == '/') {
            const char *line = memchr(p->at, '\n', (size_t)(p->end - p->at));
            p->at = line ? line : p->end;
        } else if (p->end - p->at >= 2 && c == '/' && p->at[1] == '*') {
            const char *close = memmem(p->at + 2, (size_t)(p->end - p->at - 2), "*/", 2);
            if (!close)
                return fail(p, "an unterminated comment");
            p->at = close + 2;
        } else {
            break;
        }
    }
    return true;
}

/* Four hexadecimal digits. */
static bool parse_unit(struct parser *p, uint32_t *ret)
{
    uint32_t value = 0;
    if (p->end - p->at < 4)
        return fail(p, "an unterminated string");
    for (int i = 0; i < 4; i++, p->at++) {
        char c = *p->at;
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a') + 10
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A') + 10
                                                : 16;
        if (digit == 16)
            return fail(p, "a malformed escape");
        value = value << 4 | digit;
    }
    *ret = value;
    return true;
}

/* What follows \u, written as UTF-8: not longer than the escape. */
static bool parse_code_point(struct parser *p)
{
    uint32_t code, low;
    if (!parse_unit(p, &code))
        return false;
    if (!code)
        return fail(p, "an escaped NUL in a string");
    if (code >= 0xdc00 && code <= 0xdfff)
        return fail(p, "half of a surrogate pair");
    if (code >= 0xd800 && code <= 0xdbff) {
        if (p->end - p->at < 2 || p->at[0] != '\\' || p->at[1] != 'u')
            return fail(p, "half of a surrogate pair");
        p->at += 2;
        if (!parse_unit(p, &low))
            return false;
        if (low < 0xdc00 || low > 0xdfff)
            return fail(p, "half of a surrogate pair");
        code = 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
    }
    if (code < 0x80) {
        *p->texts++ = (char)code;
        return true;
    }
    unsigned more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const uint8_t first[] = {0, 0xc0, 0xe0, 0xf0};
    *p->texts++ = (char)(first[more] | code >> 6 * more);
    while (more--)
        *p->texts++ = (char)(0x80 | (code >> 6 * more & 0x3f));
    return true;
}

static bool parse_escape(struct parser *p)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    p->at++;
    if (p->at == p->end)
        return fail(p, "an unterminated string");
    const char *known = *p->at ? strchr(from, *p->at) : NULL;
    char kind = *p->at++;
    if (kind == 'u')
        return parse_code_point(p);
    if (!known)
        return fail(p, "a malformed escape");
    *p->texts++ = to[known - from];
    return true;
}

/* The text has room: a string's quotes leave a byte for its NUL. */
static bool parse_string(struct parser *p, const char **ret)
{
    *ret = p->texts;
    for (p->at++; p->at < p->end && *p->at != '"';) {
        if ((unsigned char)*p->at < 0x20)
            return fail(p, "a control character in a string");
        if (*p->at != '\\')
            *p->texts++ = *p->at++;
        else if (!parse_escape(p))
            return false;
    }
    if (p->at == p->end)
        return fail(p, "an unterminated string");
    p->at++;
    *p->texts++ = '\0';
    return true;
}

static bool is_digit(const struct parser *p)
{
    return p->at < p->end && *p->at >= '0' && *p->at <= '9';
}

static bool skip_digits(struct parser *p)
{
    if (!is_digit(p))
        return fail(p, "a malformed number");
    while (is_digit(p))
        p->at++;
    return true;
}

/* An optional minus sign, digits without a leading zero, an optional fraction, an optional exponent. */
static bool skip_number(struct parser *p)
{
    p->at += is_at(p, '-');
    const char *digits = p->at;
    if (!skip_digits(p))
        return false;
    if (*digits == '0' && p->at - digits > 1)
        return fail(p, "a malformed number");
    if (is_at(p, '.') && (p->at++, !skip_digits(p)))
        return false;
    if (is_at(p, 'e') || is_at(p, 'E')) {
        p->at++;
        p->at += is_at(p, '+') || is_at(p, '-');
        return skip_digits(p);
    }
    return true;
}

/* The text has room: what separates two numbers leaves a byte for the NUL. */
static bool parse_number(struct parser *p, const char **ret)
{
    const char *begin = p->at;
    if (!skip_number(p))
        return false;
    *ret = memcpy(p->texts, begin, (size_t)(p->at - begin));
    p->texts += p->at - begin;
    *p->texts++ = '\0';
    return true;
}

static bool parse_word(struct parser *p, enum json_kind *ret)
{
    static const char *const words[] = {"true", "false", "null"};
    size_t length = 0;
    while (p->at + length < p->end && p->at[length] >= 'a' && p->at[length] <= 'z')
        length++;
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (length == strlen(words[i]) && memcmp(p->at, words[i], length) == 0) {
            p->at += length;
            *ret = i == 2 ? JSON_NULL : JSON_BOOL;
            return true;
        }
    return fail(p, "a byte that is no JSON");
}

static bool parse_value(struct parser *p, unsigned depth, struct json *value);

/* One element of a container, with its key in an object. */
static bool parse_element(struct parser *p, unsigned depth, bool is_object, struct json **ret)
{
    const char *key = "";
    if (is_object) {
        if (!is_at(p, '"'))
            return fail(p, p->at == p->end ? "an unterminated object" : "no key");
        if (!parse_string(p, &key) || !skip_blank(p))
            return false;
        if (!is_at(p, ':'))
            return fail(p, "no colon after a key");
        p->at++;
        if (!skip_blank(p))
            return false;
    }
    struct json *element = *ret = p->values++;
    *element = (struct json){.key = key};
    return parse_value(p, depth, element) && skip_blank(p);
}

/* A comma may follow the last element. */
static bool parse_container(struct parser *p, unsigned depth, struct json *value)
{
    char close = *p->at++ == '{' ? '}' : ']';
    struct json **last = &value->first;
    value->kind = close == '}' ? JSON_OBJECT : JSON_ARRAY;
    if (depth == DEPTH_MAX)
        return fail(p, "too many containers in each other");
    if (!skip_blank(p))
        return false;
    while (!is_at(p, close)) {
        if (!parse_element(p, depth + 1, close == '}', last))
            return false;
        last = &(*last)->next;
        if (is_at(p, ',')) {
            p->at++;
            if (!skip_blank(p))
                return false;
        } else if (!is_at(p, close)) {
            return fail(p, "neither a comma nor an end after a value");
        }
    }
    p->at++;
    return true;
}

static bool parse_value(struct parser *p, unsigned depth, struct json *value)
{
    char c = p->at < p->end ? *p->at : '\0';
    if (p->at == p->end)
        return fail(p, "no value");
    if (c == '{' || c == '[')
        return parse_container(p, depth, value);
    if (c == '"') {
        value->kind = JSON_STRING;
        return parse_string(p, &value->text);
    }
    if (c == '-' || (c >= '0' && c <= '9')) {
        value->kind = JSON_NUMBER;
        return parse_number(p, &value->text);
    }
    return parse_word(p, &value->kind);
}

/* The most values that a text can have: each but the root follows one of these bytes. */
static size_t count_values(const char *text, size_t size)
{
    size_t count = 1;
    for (size_t i = 0; i < size; i++)
        count += text[i] == ',' || text[i] == '[' || text[i] == '{';
    return count;
}

enum cdacq_status json_parse(const char *text, size_t size, const char *origin, struct json **ret,
                             struct cdacq_error *err)
{
    if (size > JSON_TEXT_MAX)
        return error_set(err, CDACQ_ERR_DESCRIPTOR, 0, "%s: %zu bytes of JSON are more than the %d that are read",
                         origin, size, JSON_TEXT_MAX);
    while (size && !text[size - 1]) /* a terminator, or padding up to a page, may follow the text */
        size--;
    size_t count = count_values(text, size);
    CLEANUP_FREE struct json *root = malloc(count * sizeof *root + size + 1);
    if (!root)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "%s: out of memory", origin);
    struct parser parser = {.at = text, .end = text + size, .values = root + 1, .texts = (char *)(root + count)};
    *root = (struct json){.key = ""};
    bool good = skip_blank(&parser) && parse_value(&parser, 0, root) && skip_blank(&parser);
    if (good && parser.at < parser.end)
        good = fail(&parser, "more than one value");
    if (!good)
        return error_set(err, CDACQ_ERR_DESCRIPTOR, 0, "%s: malformed JSON at byte %td: %s", origin, parser.at - text,
                         parser.problem);
    *ret = take_ptr(root);
    return CDACQ_OK;
}

void json_free(struct json *root)
{
    free(root);
}

enum json_kind json_kind(const struct json *value)
{
    return value->kind;
}

const struct json *json_first(const struct json *container)
{
    return container->first;
}

const struct json *json_next(const struct json *value)
{
    return value->next;
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
    return value->key;
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
    return value->text;
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
