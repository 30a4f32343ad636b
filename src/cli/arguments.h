/*
 * arguments.h: parses the command line.
 */
#ifndef CDACQ_CLI_ARGUMENTS_H
#define CDACQ_CLI_ARGUMENTS_H

#include "src/cli/cli.h"

enum arguments_result {
    ARGUMENTS_RUN,  /* run invocation->command */
    ARGUMENTS_HELP, /* of invocation->command; general help if that is NULL */
    ARGUMENTS_VERSION,
    ARGUMENTS_WRONG, /* a message says why */
};

/* Parses the command line into *ret. Call arguments_deinit for every result. */
enum arguments_result arguments_parse(int argc, char **argv, struct invocation *ret);
void arguments_deinit(struct invocation *invocation);

#endif
