/*
 * line_reader.h: reads text from a stream, line by line, or as much as there is.
 */
#ifndef CDACQ_CLI_BASE_LINE_READER_H
#define CDACQ_CLI_BASE_LINE_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "src/cli/base/console.h"

struct line_reader {
    int fd;
    char *data;
    const char *next; /* the bytes up to `end` are not yet taken */
    char *end;        /* holds a NUL, which ends a scan for digits */
    bool at_end;      /* of the stream */
    bool skipping;    /* within a line that is too long */
    uint64_t taken;   /* bytes that were read so far */
    uint64_t size;    /* of a file; 0 for other streams */
    struct progress progress;
};

/* If `fd` is a terminal, a message says what is read from it. */
void line_reader_init(struct line_reader *reader, int fd, const char *what);
void line_reader_deinit(struct line_reader *reader);

/* Shows how much was read, where nothing else is counted; `results` as for progress_begin. */
void line_reader_show(struct line_reader *reader, int results);

/* Whether line_reader_fill would wait for the writer. */
bool line_reader_would_block(const struct line_reader *reader);

/* A line of any text, valid until line_reader_fill. */
struct text_line {
    const char *text;
    const char *end; /* of the line, without its newline */
    bool is_cut;     /* only the start of a line of 256 KiB or more; the rest is skipped */
};

/* Takes the next line. False if none is complete: call line_reader_fill, unless the reader is at the end. */
bool line_reader_take(struct line_reader *reader, struct text_line *ret);

/* Reads more; what was not taken must leave room for it. Returns false with errno on failure. */
bool line_reader_fill(struct line_reader *reader);

#endif
