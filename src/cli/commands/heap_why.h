/*
 * heap_why.h: cdacq heap --why and --retained: what keeps objects, and what would be freed with them.
 */
#ifndef CDACQ_CLI_COMMANDS_HEAP_WHY_H
#define CDACQ_CLI_COMMANDS_HEAP_WHY_H

#include "src/cli/base/target.h"

struct heap_question {
    const struct opened_target *opened;
    const char *output; /* a file; NULL: standard output */
    bool json, all;
};

/* Each of `what` is the address of an object, in hex, or the name of a type with wildcards. */
int heap_why_show(const struct heap_question *question, const struct word_list *what);

int heap_retained_show(const struct heap_question *question);

#endif
