#include "src/cli/json_writer.h"

char *json_make_room(struct output *out, char *p, size_t size)
{
    output_commit(out, p);
    return output_make_room(out, size);
}

char *json_separate(char *p, enum json_position position, unsigned depth, bool wrap)
{
    if (position == JSON_NEXT)
        *p++ = ',';
    if (position == JSON_AFTER_KEY)
        return p;
    if (!wrap) {
        *p = ' ';
        return p + (position == JSON_NEXT);
    }
    size_t indent = 2 * (size_t)MIN(depth, JSON_DEPTH_MAX);
    *p++ = '\n';
    memset(p, ' ', indent);
    return p + indent;
}

/* The output may be flushed between its parts: a string of any length needs no more memory. */
static void json_escaped(struct json_writer *w, const char *key, const char *text, size_t length, enum escape_form form)
{
    if (!text) {
        json_null(w, key);
        return;
    }
    struct output *out = w->out;
    output_commit(out, PUT_LITERAL(json_begin_value(w, key, 0), "\""));
    output_escaped(out, text, length, form);
    output_literal(out, "\"");
    w->next = out->data + out->length;
    w->end = out->data + out->capacity;
}

void json_string_bytes(struct json_writer *w, const char *key, const char *text, size_t length)
{
    json_escaped(w, key, text, length, ESCAPE_JSON_DATA);
}

void json_string(struct json_writer *w, const char *key, const char *text)
{
    json_escaped(w, key, text, text ? strlen(text) : 0, ESCAPE_JSON_DATA);
}

void json_note(struct json_writer *w, const char *key, const char *text)
{
    json_escaped(w, key, text, text ? strlen(text) : 0, ESCAPE_JSON_MESSAGE);
}

void json_string_key(struct json_writer *w, const char *key)
{
    json_string(w, NULL, key);
    json_reserve(w, 2);
    w->next = PUT_LITERAL(w->next, ": ") - !w->pretty;
    w->position = JSON_AFTER_KEY;
}
