/*
 * output.h: buffers results for a file descriptor. After a failed write, output is dropped; output_close reports the
 * error. Long loops should check output_failed.
 */
#ifndef CDACQ_CLI_BASE_OUTPUT_H
#define CDACQ_CLI_BASE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "src/cli/base/console.h"
#include "util/escape.h"
#include "util/file.h"

struct output {
    int fd;               /* -1: kept in `data`, which grows */
    struct new_file file; /* unless it is standard output */
    const char *name;     /* for messages; NULL: standard output */
    char *data;
    size_t length, capacity;
    bool is_terminal; /* columns are aligned */
    bool colour;      /* output_style has an effect */
    bool is_held;     /* nothing is written until it is false again: a process is stopped meanwhile */
    bool has_records; /* output_end_record is in use */
    int error;        /* errno of the write that failed */
};

/*
 * A `path` of NULL is standard output. A file appears, or replaces the one that is there, when the output is closed and
 * complete. Returns false, with a message, if it cannot be created.
 */
bool output_open(struct output *out, const char *path);

/* The same for results that others may wait for: the file is written to directly. */
bool output_open_stream(struct output *out, const char *path);

/* The same for results that hold memory of the target: only the user may read the file. */
bool output_open_private(struct output *out, const char *path);
bool output_open_private_stream(struct output *out, const char *path);

/* For an open file, which output_close closes; `name` is what messages call it. */
void output_open_fd(struct output *out, int fd, const char *name);

/* Nothing is written: what is put is `length` bytes in `data` until output_abandon frees it. */
void output_open_memory(struct output *out);

/* Writes the rest, closes and frees. Returns false, with a message, if not all was written. */
bool output_close(struct output *out);
/* The same. A result that is not wanted leaves a file as it was; standard output has it. False if it is not wanted. */
bool output_close_if(struct output *out, bool wanted);

/* Frees, and leaves the file as it was. */
void output_abandon(struct output *out);

void output_flush(struct output *out);

/*
 * For results that others read as they grow: what was committed so far ends a record. Only whole records are written
 * with one call, unless one has more than some 100 KB, and if a file has no room for them, it ends with a whole one.
 */
void output_end_record(struct output *out);
char *output_make_room(struct output *out, size_t size);

static inline bool output_failed(const struct output *out)
{
    return out->error != 0;
}

/* Returns at least `size` writable bytes. Call output_commit with the end of what was written. */
static inline char *output_reserve(struct output *out, size_t size)
{
    return size <= out->capacity - out->length ? out->data + out->length : output_make_room(out, size);
}

static inline void output_commit(struct output *out, const char *end)
{
    out->length = (size_t)(end - out->data);
}

static inline void output_bytes(struct output *out, const void *bytes, size_t size)
{
    char *to = output_reserve(out, size);
    memcpy(to, bytes, size);
    output_commit(out, to + size);
}

/* The result of output_printf must fit 1 KB; texts of unknown length need the other functions. */
void output_printf(struct output *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void output_literal(struct output *out, const char *text); /* not escaped */
void output_text(struct output *out, const char *text);    /* from the target: escaped */
void output_note(struct output *out, const char *text);    /* a message or text from the library: keeps backslashes */
/* The same, between two literals. */
void output_text_between(struct output *out, const char *before, const char *text, const char *after);
void output_note_between(struct output *out, const char *before, const char *text, const char *after);

/* What follows is shown in this style; STYLE_NONE ends any. Writes nothing where there is no colour. */
void output_style(struct output *out, enum style style);
enum { OUTPUT_TIME_SIZE = 64 };
/* Forms a time in seconds since 1970: "2026-11-27 14:05:09 UTC". False if it is out of range. */
bool output_form_time(int64_t seconds, char ret[static OUTPUT_TIME_SIZE]);
/* What a line is about, in its first column. */
void output_label(struct output *out, const char *text);
/* A text without style around it, not escaped. */
void output_styled(struct output *out, enum style style, const char *text);

/* For what writes a text piece by piece, where only its side effects are wanted. */
int output_ignore_text(const char *bytes, size_t length, void *context);

/* Any bytes of any length. */
void output_escaped(struct output *out, const char *text, size_t length, enum escape_form form);

#endif
