/*
 * console.h: everything that goes to standard error: messages, one line each, and the progress of long work. What a
 * message quotes may come from a hostile core, so nothing reaches the terminal unescaped.
 */
#ifndef CDACQ_CLI_CONSOLE_H
#define CDACQ_CLI_CONSOLE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Prints "cdacq: MESSAGE" as one line with control bytes escaped. Cut at some 4 KB. */
void message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * A counter that is rewritten in place, shown only once the work takes longer than a second, only when standard error
 * is a terminal and the results do not go to that terminal too.
 */
struct progress {
    const char *what;      /* "addresses" */
    struct timespec shown; /* when it was last drawn; at first: when the work began */
    bool wanted;
};

/* `results` is the file descriptor that the results are written to. */
void progress_begin(struct progress *progress, const char *what, int results);
/* Cheap enough for every few hundred elements, too dear for each. */
void progress_step(struct progress *progress, uint64_t done);
void progress_end(struct progress *progress);

#endif
