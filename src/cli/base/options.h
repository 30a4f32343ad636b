/*
 * options.h: an option is a row: its name, how its value is read, and where in the command's struct it goes. The
 * parser, the help, the man pages and the completion read the rows.
 */
#ifndef CDACQ_CLI_BASE_OPTIONS_H
#define CDACQ_CLI_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
    OPTION_FLAG,    /* a bool, which becomes true */
    OPTION_BITS,    /* an unsigned, which gets `bits` */
    OPTION_CHOICE,  /* an enum: the number of the value among the choices */
    OPTION_NUMBER,  /* an integer of any width */
    OPTION_ADDRESS, /* a uint64_t, in hex */
    OPTION_OUTPUT,  /* the name of a file; NULL for '-' */
    OPTION_LIST,    /* an array of strings: each use of the option adds one */
};

struct option_row {
    const char *name;  /* NULL after the last row */
    const char *value; /* NULL: takes none; FILE and DIR are completed as such */
    const char *help;
    char letter; /* '\0': it has no short form */
    enum option_kind kind;
    const char *choices; /* all that the value can be, separated by blanks */
    unsigned bits;
    unsigned unit;     /* of a number: a power of it may follow as K, M, G or T; 0: none may */
    uint64_t min, max; /* of a number; an address has no `max` */
    const char *wrong; /* what a number without unit, or an address below `min`, is */
    size_t width;      /* of the integer */
    size_t offset;     /* of the member of the command's struct */
    size_t given;      /* of a bool of it, which becomes true, or the count of a list; 0: none */
};

/* The offset of a member, which must have this type. */
#define OPTION_MEMBER(TYPE, STRUCT, MEMBER) (offsetof(STRUCT, MEMBER) + _Generic(&((STRUCT *)NULL)->MEMBER, TYPE * : 0))

#define TO_FLAG(STRUCT, MEMBER) .kind = OPTION_FLAG, .offset = OPTION_MEMBER(bool, STRUCT, MEMBER)
#define TO_BITS(STRUCT, MEMBER, BITS) \
    .kind = OPTION_BITS, .bits = (BITS), .offset = OPTION_MEMBER(unsigned, STRUCT, MEMBER)
#define TO_CHOICE(STRUCT, MEMBER, CHOICES) \
    .kind = OPTION_CHOICE, .choices = (CHOICES), .offset = OPTION_MEMBER(unsigned, STRUCT, MEMBER)
#define TO_NUMBER(STRUCT, MEMBER) \
    .kind = OPTION_NUMBER, .width = sizeof((STRUCT *)NULL)->MEMBER, .offset = offsetof(STRUCT, MEMBER)
#define TO_ADDRESS(STRUCT, MEMBER) .kind = OPTION_ADDRESS, .offset = OPTION_MEMBER(uint64_t, STRUCT, MEMBER)
#define TO_OUTPUT(STRUCT, MEMBER)  .kind = OPTION_OUTPUT, .offset = OPTION_MEMBER(const char *, STRUCT, MEMBER)
#define TO_LIST(STRUCT, MEMBER, COUNT)                                                 \
    .kind = OPTION_LIST, .offset = OPTION_MEMBER(const char *const *, STRUCT, MEMBER), \
    .given = OPTION_MEMBER(size_t, STRUCT, COUNT)
#define AND_GIVEN(STRUCT, MEMBER) .given = OPTION_MEMBER(bool, STRUCT, MEMBER)

/*
 * Reads the value of an option that is no list into the command's struct; NULL only checks it. False, with a message,
 * if it is wrong.
 */
bool option_read(const struct option_row *row, const char *value, void *options);

/* Whether the option is one of these rows. */
bool option_is_in(const struct option_row *row, const struct option_row *rows);

/* Copies the choice of this number, cut to `size`. Returns false if there are not so many. */
bool option_choice(const struct option_row *row, size_t number, char *ret, size_t size);

#endif
