/*
 * options.h: the table of options. getopt's tables, the check whether a command takes an option, the help, the man
 * pages and the completion are made from it.
 */
#ifndef CDACQ_CLI_OPTIONS_H
#define CDACQ_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

enum option_id {
    OPTION_JSON = 256, /* beyond any letter */
    OPTION_SYSROOT,
    OPTION_MODULE_PATH,
    OPTION_STOP,
    OPTION_DEBUGINFOD,
    OPTION_DESCRIPTOR,
    OPTION_DESCRIPTOR_ADDRESS,
    OPTION_RUNTIME,
    OPTION_STORE_MAX,
    OPTION_WORK_MAX,
    OPTION_MEMORY_MAX,
    OPTION_NAMES,
    OPTION_STUBS,
    OPTION_R2R,
    OPTION_CODE,
    OPTION_SAMPLY,
    OPTION_FOLLOW,
    OPTION_AT,
    OPTION_TIME,
    OPTION_FOLDED,
    OPTION_STACKS,
    OPTION_BRIEF,
    OPTION_SIGNATURE,
    OPTION_THREAD,
    OPTION_MANAGED,
    OPTION_EACH,
    OPTION_COLOR,
    OPTION_OUTPUT = 'o',
    OPTION_VERBOSE = 'v',
    OPTION_HELP = 'h',
    OPTION_VERSION = 'V',
};

struct option_row {
    const char *name;
    const char *argument; /* NULL: takes none; FILE and DIR are completed as such */
    const char *values;   /* all that the argument can be, separated by blanks; NULL: anything */
    const char *help;
    unsigned groups; /* enum option_group; 0: every command takes it */
    int id;
};

extern const struct option_row option_rows[];
extern const size_t option_count;

enum { OPTIONS_MAX = 64 }; /* those that were given are a set of bits */

/* The row of an option that exists. */
const struct option_row *option_row(int id);

/* Whether the option has a short form, which is its id. */
bool option_has_letter(const struct option_row *row);

/* Whether a command of these groups takes the option. */
bool option_is_of(const struct option_row *row, unsigned groups);

/*
 * Copies the word of this index from words that are separated by blanks, cut to `size`. Returns false if there are not
 * so many.
 */
bool option_value(const char *words, size_t index, char *ret, size_t size);

#endif
