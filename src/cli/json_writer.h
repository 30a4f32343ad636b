/*
 * json_writer.h: JSON into an output. Commas come by themselves. A value is a member where it has a key, an element of
 * an array or the whole document where its key is NULL. Keys are ours and need no escaping. The writer holds the end of
 * the output's buffer: between json_begin and json_end_line nothing else may be written to that output.
 *
 * `ip2method --json` spends much of its time here. What it needs is inline, no address of a writer leaves these
 * functions, and a writer that is a local variable therefore stays in registers.
 */
#ifndef CDACQ_CLI_JSON_WRITER_H
#define CDACQ_CLI_JSON_WRITER_H

#include <string.h>

#include "src/cli/output.h"
#include "src/cli/put.h"
#include "util/base.h"

#define JSON_INLINE static inline __attribute__((always_inline))

/* What is before the next value, on which its separator depends. */
enum json_position {
    JSON_AFTER_KEY, /* its key, or nothing at all: it is the document */
    JSON_FIRST,     /* the bracket that begins its container */
    JSON_NEXT,      /* another value */
};

enum {
    JSON_DEPTH_MAX = 16,
    JSON_ROOM = 2 * JSON_DEPTH_MAX + 8 + PUT_NUMBER_ROOM + PUT_SLACK, /* a number, its separators and indentation */
};

struct json_writer {
    struct output *out;
    char *next, *end; /* the free part of out's buffer */
    enum json_position position;
    unsigned depth; /* of containers that are open */
    bool pretty;    /* a space after each colon and comma; for people */
    bool has_room;  /* between json_begin_room and json_end_room */
    bool wrap;      /* pretty: each value of a container on its own line, indented; may change at any time */
};

/* Begins a document. */
JSON_INLINE struct json_writer json_begin(struct output *out)
{
    return (struct json_writer){
        .out = out, .next = out->data + out->length, .end = out->data + out->capacity, .position = JSON_AFTER_KEY};
}

/* For the inline functions below; all return the new end of what is written. */
char *json_make_room(struct output *out, char *p, size_t size);
char *json_separate(char *p, enum json_position position, unsigned depth, bool wrap);

JSON_INLINE void json_reserve(struct json_writer *w, size_t size)
{
    if (!w->has_room && UNLIKELY((size_t)(w->end - w->next) < size)) {
        w->next = json_make_room(w->out, w->next, size);
        w->end = w->out->data + w->out->capacity;
    }
}

/*
 * What is written from here to json_end_room takes no more than `size` bytes and has no strings to escape: room for it
 * is made at once.
 */
JSON_INLINE void json_begin_room(struct json_writer *w, size_t size)
{
    json_reserve(w, size);
    w->has_room = true;
}

JSON_INLINE void json_end_room(struct json_writer *w)
{
    w->has_room = false;
}

/* Writes separator and key. Returns where the value goes, with `size` bytes and those of JSON_ROOM reserved. */
JSON_INLINE char *json_begin_value(struct json_writer *w, const char *key, size_t size)
{
    size_t length = key ? strlen(key) : 0;
    json_reserve(w, length + size + JSON_ROOM);
    char *p = w->next;
    if (w->pretty) {
        p = json_separate(p, w->position, w->depth, w->wrap);
    } else if (w->position == JSON_NEXT) {
        *p++ = ',';
    }
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

/* Ends the document and its line. */
JSON_INLINE void json_end_line(struct json_writer *w)
{
    json_reserve(w, 1);
    *w->next++ = '\n';
    output_commit(w->out, w->next);
}

/* ---- Containers ------------------------------------------------------------------------------------------------ */

JSON_INLINE void json_begin_container(struct json_writer *w, const char *key, char bracket)
{
    char *p = json_begin_value(w, key, 0);
    *p++ = bracket;
    w->next = p;
    w->depth++;
    w->position = JSON_FIRST;
}

JSON_INLINE void json_end_container(struct json_writer *w, char bracket)
{
    json_reserve(w, JSON_ROOM);
    w->depth--;
    if (w->wrap && w->position != JSON_FIRST)
        w->next = json_separate(w->next, JSON_FIRST, w->depth, true);
    *w->next++ = bracket;
    w->position = JSON_NEXT;
}

JSON_INLINE void json_begin_object(struct json_writer *w, const char *key)
{
    json_begin_container(w, key, '{');
}

JSON_INLINE void json_end_object(struct json_writer *w)
{
    json_end_container(w, '}');
}

JSON_INLINE void json_begin_array(struct json_writer *w, const char *key)
{
    json_begin_container(w, key, '[');
}

JSON_INLINE void json_end_array(struct json_writer *w)
{
    json_end_container(w, ']');
}

/* ---- Numbers and the like: the forms with `known` write null where it is false ---------------------------------- */

JSON_INLINE void json_null(struct json_writer *w, const char *key)
{
    char *p = json_begin_value(w, key, 0);
    w->next = PUT_LITERAL(p, "null");
}

JSON_INLINE void json_known_number(struct json_writer *w, const char *key, bool known, uint64_t value)
{
    char *p = json_begin_value(w, key, 0);
    w->next = known ? put_decimal(p, value) : PUT_LITERAL(p, "null");
}

JSON_INLINE void json_known_signed(struct json_writer *w, const char *key, bool known, int64_t value)
{
    char *p = json_begin_value(w, key, 0);
    if (known && value < 0)
        *p++ = '-';
    w->next = known ? put_decimal(p, value < 0 ? 0 - (uint64_t)value : (uint64_t)value) : PUT_LITERAL(p, "null");
}

JSON_INLINE void json_number(struct json_writer *w, const char *key, uint64_t value)
{
    json_known_number(w, key, true, value);
}

JSON_INLINE void json_known_bool(struct json_writer *w, const char *key, bool known, bool value)
{
    char *p = json_begin_value(w, key, 0);
    w->next = !known ? PUT_LITERAL(p, "null") : value ? PUT_LITERAL(p, "true") : PUT_LITERAL(p, "false");
}

JSON_INLINE void json_bool(struct json_writer *w, const char *key, bool value)
{
    json_known_bool(w, key, true, value);
}

/* "0x7f.." */
JSON_INLINE void json_known_address(struct json_writer *w, const char *key, bool known, uint64_t value)
{
    char *p = json_begin_value(w, key, 0);
    if (known) {
        *p++ = '"';
        p = put_hex(p, value);
        *p++ = '"';
    } else {
        p = PUT_LITERAL(p, "null");
    }
    w->next = p;
}

/* The same; null for 0 */
JSON_INLINE void json_address(struct json_writer *w, const char *key, uint64_t value)
{
    json_known_address(w, key, value != 0, value);
}

/* "0x06000003"; null for 0 */
JSON_INLINE void json_token(struct json_writer *w, const char *key, uint32_t token)
{
    char *p = json_begin_value(w, key, 0);
    if (token) {
        p = PUT_LITERAL(p, "\"0x");
        put_hex8(p, token);
        p += 8;
        *p++ = '"';
    } else {
        p = PUT_LITERAL(p, "null");
    }
    w->next = p;
}

/* ---- Strings: NULL is null -------------------------------------------------------------------------------------- */

/* JSON that is formed already */
JSON_INLINE void json_raw(struct json_writer *w, const char *key, const char *json, size_t length)
{
    char *p = json_begin_value(w, key, length);
    w->next = put_bytes(p, json, length);
}

/* Text with nothing in it to escape. */
JSON_INLINE void json_plain_bytes(struct json_writer *w, const char *key, const char *text, size_t length)
{
    char *p = json_begin_value(w, key, length);
    *p++ = '"';
    p = put_bytes(p, text, length);
    *p++ = '"';
    w->next = p;
}

JSON_INLINE void json_plain(struct json_writer *w, const char *key, const char *text)
{
    if (text)
        json_plain_bytes(w, key, text, strlen(text));
    else
        json_null(w, key);
}

/* The target's bytes, of any length. */
void json_string_bytes(struct json_writer *w, const char *key, const char *text, size_t length);
void json_string(struct json_writer *w, const char *key, const char *text);
/* A message, or text that the library has escaped: its backslashes are not doubled. */
void json_note(struct json_writer *w, const char *key, const char *text);
/* A key that is the target's. The value follows with a key of NULL. */
void json_string_key(struct json_writer *w, const char *key);

#endif
