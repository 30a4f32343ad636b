#include "src/cli/base/json_writer.h"

#include <string.h>

#include "src/cli/base/put.h"
#include "util/base.h"

enum {
    DEPTH_MAX = 16,                      /* deeper values are indented no further */
    SEPARATOR_ROOM = 2 * DEPTH_MAX + 10, /* comma, line break, indentation, and the quotes and colon of a key */
};

static char *put_separator(const struct json_writer *w, char *p)
{
    if (w->position == JSON_NEXT)
        *p++ = ',';
    if (!w->pretty || w->position == JSON_AFTER_KEY)
        return p;
    if (!w->wrap) {
        *p = ' ';
        return p + (w->position == JSON_NEXT);
    }
    size_t indent = 2 * (size_t)MIN(w->depth, DEPTH_MAX);
    *p++ = '\n';
    memset(p, ' ', indent);
    return p + indent;
}

/* Inlined into the functions below: a line of JSON is mostly separators and keys. */
__attribute__((always_inline)) static inline char *begin_value(struct json_writer *w, const char *key, size_t size)
{
    size_t length = key ? strlen(key) : 0;
    char *p = output_reserve(w->out, SEPARATOR_ROOM + length + size);
    if (w->pretty)
        p = put_separator(w, p);
    else if (w->position == JSON_NEXT)
        *p++ = ',';
    w->position = JSON_NEXT;
    if (!key)
        return p;
    *p++ = '"';
    p = put_bytes(p, key, length);
    p = PUT_LITERAL(p, "\":");
    if (w->pretty)
        *p++ = ' ';
    return p;
}

char *json_begin_value(struct json_writer *w, const char *key, size_t size)
{
    return begin_value(w, key, size);
}

/* `text` needs no escaping. */
static void write_value(struct json_writer *w, const char *key, const char *text, size_t length)
{
    output_commit(w->out, put_bytes(json_begin_value(w, key, length), text, length));
}

/* ---- Containers ------------------------------------------------------------------------------------------------ */

static void begin_container(struct json_writer *w, const char *key, const char *bracket)
{
    write_value(w, key, bracket, 1);
    w->depth++;
    w->position = JSON_FIRST;
}

static void end_container(struct json_writer *w, char bracket)
{
    char *p = output_reserve(w->out, SEPARATOR_ROOM);
    w->depth--;
    if (w->wrap && w->position == JSON_NEXT) {
        w->position = JSON_FIRST;
        p = put_separator(w, p);
    }
    *p++ = bracket;
    output_commit(w->out, p);
    w->position = JSON_NEXT;
}

void json_begin_object(struct json_writer *w, const char *key)
{
    begin_container(w, key, "{");
}

void json_end_object(struct json_writer *w)
{
    end_container(w, '}');
}

void json_begin_array(struct json_writer *w, const char *key)
{
    begin_container(w, key, "[");
}

void json_end_array(struct json_writer *w)
{
    end_container(w, ']');
}

struct json_writer json_begin_line(struct output *out)
{
    struct json_writer w = {.out = out};
    json_begin_object(&w, NULL);
    return w;
}

void json_end_line(struct json_writer *w)
{
    json_end_object(w);
    output_literal(w->out, "\n");
}

/* ---- Scalars --------------------------------------------------------------------------------------------------- */

void json_null(struct json_writer *w, const char *key)
{
    write_value(w, key, "null", 4);
}

void json_known_number(struct json_writer *w, const char *key, bool known, uint64_t value)
{
    char *p = begin_value(w, key, PUT_NUMBER_ROOM);
    output_commit(w->out, known ? put_decimal(p, value) : PUT_LITERAL(p, "null"));
}

void json_number(struct json_writer *w, const char *key, uint64_t value)
{
    json_known_number(w, key, true, value);
}

void json_known_bool(struct json_writer *w, const char *key, bool known, bool value)
{
    const char *text = !known ? "null" : value ? "true" : "false";
    write_value(w, key, text, strlen(text));
}

void json_bool(struct json_writer *w, const char *key, bool value)
{
    json_known_bool(w, key, true, value);
}

void json_known_address(struct json_writer *w, const char *key, bool known, uint64_t value)
{
    char *p = begin_value(w, key, PUT_NUMBER_ROOM + PUT_SLACK + 2);
    output_commit(w->out, known ? put_quoted_hex(p, value) : PUT_LITERAL(p, "null"));
}

void json_address(struct json_writer *w, const char *key, uint64_t value)
{
    json_known_address(w, key, value != 0, value);
}

void json_token(struct json_writer *w, const char *key, uint32_t token)
{
    output_commit(w->out, put_token(json_begin_value(w, key, PUT_NUMBER_ROOM), token));
}

/* ---- Strings --------------------------------------------------------------------------------------------------- */

/* The output may be flushed within a long string, so one of any length needs no more memory. */
static void write_escaped(struct json_writer *w, const char *key, const char *text, size_t length,
                          enum escape_form form)
{
    if (!text) {
        json_null(w, key);
        return;
    }
    if (length < 1024) {
        char *p = begin_value(w, key, ESCAPED_SIZE(length) + 2);
        *p++ = '"';
        p = escape(p, text, length, form);
        *p++ = '"';
        output_commit(w->out, p);
        return;
    }
    write_value(w, key, "\"", 1);
    output_escaped(w->out, text, length, form);
    output_literal(w->out, "\"");
}

void json_string_bytes(struct json_writer *w, const char *key, const char *text, size_t length)
{
    write_escaped(w, key, text, length, ESCAPE_JSON_DATA);
}

void json_string(struct json_writer *w, const char *key, const char *text)
{
    json_string_bytes(w, key, text, text ? strlen(text) : 0);
}

void json_note(struct json_writer *w, const char *key, const char *text)
{
    write_escaped(w, key, text, text ? strlen(text) : 0, ESCAPE_JSON_MESSAGE);
}

void json_string_key(struct json_writer *w, const char *key)
{
    json_string(w, NULL, key);
    output_literal(w->out, w->pretty ? ": " : ":");
    w->position = JSON_AFTER_KEY;
}

void json_lines(struct json_writer *w, const char *key, const char *text, size_t length)
{
    write_value(w, key, "\"", 1);
    output_escaped(w->out, text, length, ESCAPE_JSON_TEXT);
    output_literal(w->out, "\"");
}
