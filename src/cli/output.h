/*
 * output.h: where results go: one large buffer before a file descriptor. A write that fails is remembered, what follows
 * is dropped, and output_close reports it; loops over much work ask output_failed now and then.
 */
#ifndef CDACQ_CLI_OUTPUT_H
#define CDACQ_CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/escape.h"

struct output {
    int fd;
    const char *name; /* for messages */
    char *data;
    size_t length, capacity;
    int error; /* errno of the write that failed */
};

/* `path` NULL is standard output. Says what is wrong and returns false where the file cannot be made. */
bool output_open(struct output *out, const char *path);

/* Writes what is left, closes, and frees. Says what went wrong, if anything did, and returns whether all is written. */
bool output_close(struct output *out);

void output_flush(struct output *out);
char *output_make_room(struct output *out, size_t size);

static inline bool output_failed(const struct output *out)
{
    return out->error != 0;
}

/* At least `size` writable bytes; then output_commit with the end of what was written. */
static inline char *output_reserve(struct output *out, size_t size)
{
    return size <= out->capacity - out->length ? out->data + out->length : output_make_room(out, size);
}

static inline void output_commit(struct output *out, const char *end)
{
    out->length = (size_t)(end - out->data);
}

/* For what is not hot. The result of output_printf must fit 1 KB: texts of unknown length have their own functions. */
void output_printf(struct output *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void output_literal(struct output *out, const char *text); /* ours: as it is */
void output_text(struct output *out, const char *text);    /* the target's: escaped */
void output_note(struct output *out, const char *text);    /* a message, or escaped by the library: backslashes stay */

/* Any bytes of any length. */
void output_escaped(struct output *out, const char *text, size_t length, enum escape_form form);

#endif
