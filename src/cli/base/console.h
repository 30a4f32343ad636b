/*
 * console.h: messages and progress on standard error, and what a terminal shows in colour. Messages may quote a hostile
 * core, so they are escaped.
 */
#ifndef CDACQ_CLI_BASE_CONSOLE_H
#define CDACQ_CLI_BASE_CONSOLE_H

#include <stdbool.h>
#include <stdint.h>

#include "util/text.h"

/* What a part of a text is. A terminal shows each in its own way. */
enum style {
    STYLE_NONE,
    STYLE_HEADING, /* bold */
    STYLE_MINOR,   /* dim: native frames, stubs, what has no answer */
    STYLE_DOUBT,   /* yellow: a guess, or something missing */
    STYLE_ERROR,   /* red */
};

/* --color, in the order of its values. */
enum colour { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };

/* The default is COLOUR_AUTO: colour on a terminal that is not "dumb", unless NO_COLOR is set and not empty. */
void console_set_colour(enum colour colour);

/* Whether what is written to the file descriptor is coloured. */
bool console_has_colour(int fd);

/* The bytes that begin a style; those of STYLE_NONE end any. */
const char *console_style(enum style style);

/*
 * Prints "cdacq: MESSAGE" as one line with control bytes escaped: an error, or what makes an answer incomplete. Longer
 * messages than 4 KB are cut.
 */
void message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for what is neither. */
void notice(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* From now on, messages begin with this text, unless they have it anyway; NULL: nothing. Kept until the next call. */
void message_set_subject(const char *subject);

/* Whether one of the last messages has this text in it. */
bool message_was_shown(const char *text);

/* The width of a terminal in columns; 0 if the file descriptor is not a terminal. */
int terminal_width(int fd);

/*
 * What is being done, shown in place: "reading core.1, 2 s", or a counter with its rate and, if the total is known or
 * estimated ("~"), the time that is left. It is shown once half a second has passed, if standard error is a terminal
 * and the results do not go to a terminal. Several can be nested: the innermost one that has counted something is
 * shown. A thread shows them, so that one is shown also while a single call takes long.
 */
struct progress {
    struct progress *outer;
    const char *what; /* "addresses"; "reading core.1" */
    uint64_t total;   /* of all elements; 0: not known */
    uint64_t done;
    bool is_estimate; /* the total is */
    uint64_t began;   /* in nanoseconds of monotonic_ns */
    bool counts;
    bool wanted; /* it is the innermost, or around that */
};

/* `results` is the file descriptor that the results are written to; -1 where no results are written meanwhile. */
void progress_begin(struct progress *progress, const char *what, int results);
/* For what does not count. */
void progress_begin_activity(struct progress *progress, const char *what);
/* Sets what is done. Costs next to nothing. */
void progress_step(struct progress *progress, uint64_t done);
/* Sets the total. */
void progress_expect(struct progress *progress, uint64_t total);
/* Sets what is done, and estimates the total: what is done is `part` of `whole`, which have a unit of their own. */
void progress_estimate(struct progress *progress, uint64_t done, uint64_t part, uint64_t whole);
/* Does nothing if it was ended, or never begun. */
void progress_end(struct progress *progress);

/* While the tool waits for input, nothing is shown. */
void progress_wait(bool waits);

/* Ends all: what follows is written to the terminal. */
void progress_end_all(void);

#endif
