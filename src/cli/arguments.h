/*
 * arguments.h: the command line: which command, with which options, about what.
 */
#ifndef CDACQ_CLI_ARGUMENTS_H
#define CDACQ_CLI_ARGUMENTS_H

#include "src/cli/cli.h"

struct output;

enum arguments_result {
    ARGUMENTS_RUN,  /* invocation->command is to be run */
    ARGUMENTS_HELP, /* of invocation->command, or of everything where that is NULL */
    ARGUMENTS_VERSION,
    ARGUMENTS_WRONG, /* a message has said why */
};

/* Parses the command line into *ret. Free with arguments_deinit whatever the result. */
enum arguments_result arguments_parse(int argc, char **argv, struct invocation *ret);
void arguments_deinit(struct invocation *invocation);

/* The lines of help on the options of these groups. */
void arguments_print_options(struct output *out, unsigned groups);

#endif
