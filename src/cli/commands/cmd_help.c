/* cmd_help.c: `help` and `version`, which do what the options of these names do. */
#include "src/cli/base/commands.h"
#include "src/cli/base/help.h"

struct help_options {
    struct common_options common;
    const char *topic; /* NULL: all commands */
};

static int run_help(const void *given)
{
    const struct help_options *options = given;
    const struct command *command = options->topic ? command_named(options->topic) : NULL;
    return options->topic && !command ? EXIT_USAGE : help_print(command);
}

static int run_version(const void *options)
{
    (void)options;
    return help_print_version();
}

const struct command command_help = {
    .name = "help",
    .section = SECTION_TOOL,
    RUNS(run_help, struct help_options),
    .operands = OPERANDS({"COMMAND", OPERAND_COMMAND, OPTIONAL, TO_WORD(struct help_options, topic)}),
    .summary = "show the help of a command",
    .details = "The same as 'cdacq COMMAND --help'. 'man cdacq-COMMAND' has more.\n",
};

const struct command command_version = {
    .name = "version",
    .section = SECTION_TOOL,
    RUNS(run_version, struct common_options),
    .summary = "show the version",
    .details = "The same as 'cdacq --version'.\n",
};
