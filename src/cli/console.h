/*
 * console.h: messages and progress on standard error. Messages may quote a hostile core, so they are escaped.
 */
#ifndef CDACQ_CLI_CONSOLE_H
#define CDACQ_CLI_CONSOLE_H

#include <stdbool.h>
#include <stdint.h>

/* Prints "cdacq: MESSAGE" as one line with control bytes escaped. Longer messages than 4 KB are cut. */
void message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* From now on, messages begin with this text, unless they have it anyway; NULL: nothing. Kept until the next call. */
void message_set_subject(const char *subject);

/* Whether one of the last messages has this text in it. */
bool message_was_shown(const char *text);

/* The width of a terminal in columns; 0 if the file descriptor is not a terminal. */
int terminal_width(int fd);

/*
 * A counter with its rate, updated in place. It is shown after half a second, if standard error is a terminal and the
 * results do not go to a terminal.
 */
struct progress {
    const char *what; /* "addresses" */
    uint64_t total;   /* of all elements; 0: not known */
    uint64_t began;   /* the count, in nanoseconds of monotonic_ns */
    uint64_t shown;   /* likewise: the last update, at first the start */
    bool wanted;
};

/* `results` is the file descriptor that the results are written to; -1 where no results are written meanwhile. */
void progress_begin(struct progress *progress, const char *what, int results);
/* Call it for every few hundred elements; it is too slow for each. */
void progress_step(struct progress *progress, uint64_t done);
void progress_end(struct progress *progress);

#endif
