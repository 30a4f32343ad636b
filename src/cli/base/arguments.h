/*
 * arguments.h: parses the command line.
 */
#ifndef CDACQ_CLI_BASE_ARGUMENTS_H
#define CDACQ_CLI_BASE_ARGUMENTS_H

#include "src/cli/base/commands.h"

enum arguments_result {
    ARGUMENTS_RUN,  /* run `command` with `options` */
    ARGUMENTS_HELP, /* of `command`; general help if that is NULL */
    ARGUMENTS_VERSION,
    ARGUMENTS_WRONG, /* a message says why */
};

/* The command line, parsed and checked. */
struct command_line {
    const struct command *command;
    struct common_options *options; /* the command's own struct; only for ARGUMENTS_RUN */
    const char **words;             /* of the lists in `options` */
};

/* Parses the command line into *ret. Call arguments_deinit for every result. */
enum arguments_result arguments_parse(int argc, char **argv, struct command_line *ret);
void arguments_deinit(struct command_line *line);

#endif
