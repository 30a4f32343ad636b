/*
 * main.c: reads the command line and runs the command or prints help.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "src/cli/arguments.h"
#include "src/cli/commands.h"
#include "src/cli/output.h"

#define TARGET_TEXT                                                                                              \
    "\nTARGET is the path of an ELF core, which may be compressed by zstd, gzip, xz or lz4; '-' for a core on\n" \
    "standard input; or the decimal pid of a running process.\n"

static void print_exit_codes(struct output *out, const char *exit_partly)
{
    output_literal(out, "\nExit status:\n"
                        "   0  everything was answered\n"
                        "   1  ");
    output_literal(out, exit_partly ? exit_partly : "some of it was not answered");
    output_literal(out, "\n"
                        "   2  nothing could be answered, or the results could not be written; a message says why\n"
                        "  64  the command line is wrong\n");
}

static void print_command_help(struct output *out, const struct command *command)
{
    output_printf(out, "Usage: cdacq [OPTION...] %s %s\n\n", command->name, command->usage);
    output_literal(out, command->details);
    if (command->options & OPTIONS_TARGET)
        output_literal(out, TARGET_TEXT);
    output_literal(out, "\nOptions:\n");
    arguments_print_options(out, command->options);
    print_exit_codes(out, command->exit_partly);
}

static void print_help(struct output *out)
{
    unsigned all = 0;
    output_literal(out,
                   "Usage: cdacq [OPTION...] COMMAND TARGET [ARGUMENT...]\n"
                   "Reads a .NET process from outside: its stacks, and the methods that own addresses.\n" TARGET_TEXT
                   "Options may precede or follow the command.\n"
                   "\nCommands:\n");
    for (size_t i = 0; i < command_count; i++) {
        char usage[64];
        snprintf(usage, sizeof usage, "%s %s", commands[i].name, commands[i].usage);
        output_printf(out, "  %-32s %s\n", usage, commands[i].summary);
        all |= commands[i].options;
    }
    output_literal(out, "\nOptions:\n");
    arguments_print_options(out, all);
    print_exit_codes(out, NULL);
    output_literal(out, "\nExamples:\n"
                        "  cdacq stack core.1234\n"
                        "  cdacq ip2method core.1234 7f21c8a31b47\n"
                        "  cdacq ip2method --json 1234 < addresses\n"
                        "  cdacq snapshot core.1234 -o small.core\n");
}

static int print_texts(enum arguments_result what, const struct command *command)
{
    struct output out;
    output_open(&out, NULL);
    if (what == ARGUMENTS_VERSION)
        output_printf(&out, "cdacq %s\n", cdacq_version());
    else if (command)
        print_command_help(&out, command);
    else
        print_help(&out);
    return output_close(&out) ? EXIT_ANSWERED : EXIT_FAILED;
}

/*
 * The kernel starts the program of a core_pattern pipe without standard output and error. A file that is opened later
 * must not take their numbers.
 */
static void open_standard_streams(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    open_standard_streams();
    struct invocation invocation;
    enum arguments_result what = arguments_parse(argc, argv, &invocation);
    int status = what == ARGUMENTS_WRONG ? EXIT_USAGE
                 : what == ARGUMENTS_RUN ? invocation.command->run(&invocation)
                                         : print_texts(what, invocation.command);
    arguments_deinit(&invocation);
    return status;
}
