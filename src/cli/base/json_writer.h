/*
 * json_writer.h: writes JSON to an output and separates values by itself. A value with a key is a member of an object;
 * with a key of NULL it is an element of an array. Keys are literals and are not escaped.
 */
#ifndef CDACQ_CLI_BASE_JSON_WRITER_H
#define CDACQ_CLI_BASE_JSON_WRITER_H

#include "src/cli/base/output.h"

/* What precedes the next value and determines its separator. */
enum json_position {
    JSON_AFTER_KEY, /* a key, or nothing before the document */
    JSON_FIRST,     /* the opening bracket of the container */
    JSON_NEXT,      /* another value */
};

struct json_writer {
    struct output *out;
    enum json_position position;
    unsigned depth; /* number of open containers */
    bool pretty;    /* a space follows each colon and comma */
    bool wrap;      /* pretty: each value is on its own indented line; may change at any time */
};

/* Begins a document: an object on a line of its own. */
struct json_writer json_begin_line(struct output *out);

/* Ends the object and its line. */
void json_end_line(struct json_writer *w);

void json_begin_object(struct json_writer *w, const char *key);
void json_end_object(struct json_writer *w);
void json_begin_array(struct json_writer *w, const char *key);
void json_end_array(struct json_writer *w);

/*
 * Writes the separator and the key and returns where the caller puts a value of at most `size` bytes. output_commit
 * ends the value.
 */
char *json_begin_value(struct json_writer *w, const char *key, size_t size);

/* The functions with `known` write null if it is false. */
void json_null(struct json_writer *w, const char *key);
void json_number(struct json_writer *w, const char *key, uint64_t value);
void json_known_number(struct json_writer *w, const char *key, bool known, uint64_t value);
void json_bool(struct json_writer *w, const char *key, bool value);
void json_known_bool(struct json_writer *w, const char *key, bool known, bool value);
void json_address(struct json_writer *w, const char *key, uint64_t value); /* "0x7f..", null for 0 */
void json_known_address(struct json_writer *w, const char *key, bool known, uint64_t value);
void json_token(struct json_writer *w, const char *key, uint32_t token); /* "0x06000003", null for 0 */

/* Strings; NULL becomes null. */
void json_string(struct json_writer *w, const char *key, const char *text); /* from the target: escaped */
void json_string_bytes(struct json_writer *w, const char *key, const char *text, size_t length);
/* Text: its reader gets every character as it was. */
void json_lines(struct json_writer *w, const char *key, const char *text, size_t length);
/* A message, or text that the library has escaped: its backslashes are not doubled. */
void json_note(struct json_writer *w, const char *key, const char *text);
/* Writes a key from the target. Its value follows with a key of NULL. */
void json_string_key(struct json_writer *w, const char *key);

#endif
