/*
 * commands.h: the table of commands, in main.c, and the command line that chooses one.
 */
#ifndef CDACQ_CLI_COMMANDS_H
#define CDACQ_CLI_COMMANDS_H

#include "src/cli/cli.h"

/* Which options a command takes, besides --help and --version. */
enum option_group {
    OPTIONS_TARGET = 1 << 0, /* how a target is opened */
    OPTIONS_RESULT = 1 << 1, /* --json, --output */
    OPTIONS_NAMES = 1 << 2,
    OPTIONS_METHODS = 1 << 3, /* which methods are listed */
    OPTIONS_RECORDS = 1 << 4,
    OPTIONS_FILE = 1 << 5, /* --output alone: the result has a form of its own */
};

struct command {
    const char *name;
    int (*run)(const struct invocation *invocation);
    const char *usage;           /* what stands behind the name */
    const char *summary;         /* one line, for the list of commands */
    const char *details;         /* lines for the command's own help */
    const char *exit_partly;     /* what exit code 1 means where it is something else than usual; or NULL */
    unsigned options;            /* enum option_group */
    enum cdacq_name_style names; /* without --names */
    size_t targets_max;
    bool takes_ips;
    bool takes_file; /* FILE behind TARGET */
};

/* The row of that name, or NULL. */
const struct command *command_find(const char *name);

enum arguments_result {
    ARGUMENTS_RUN,  /* invocation->command is to be run */
    ARGUMENTS_HELP, /* of invocation->command, or of everything where that is NULL */
    ARGUMENTS_VERSION,
    ARGUMENTS_WRONG, /* has been told */
};

/* Parses the command line into *ret. Free with arguments_deinit whatever the result. */
enum arguments_result arguments_parse(int argc, char **argv, struct invocation *ret);
void arguments_deinit(struct invocation *invocation);

/* The lines of help on the options of these groups. */
struct output;
void arguments_print_options(struct output *out, unsigned groups);

#endif
