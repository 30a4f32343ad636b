/*
 * main.c: the commands of the tool, their help, and the choice of one.
 */
#include <stdio.h>
#include <string.h>

#include "src/cli/commands.h"
#include "src/cli/output.h"

static const struct command commands[] = {
    {
        .name = "ip2method",
        .run = cmd_ip2method,
        .usage = "TARGET [IP...]",
        .summary = "name the method that owns each IP",
        .details = "An IP is up to 16 hex digits, 0x optional. Without IPs they are read from standard input, one a\n"
                   "line. Every IP gives one line, in order:\n"
                   "  0x7f.. Demo.Program.Fib(int) +0x2f [jit Tier1] (Demo.dll)   a method owns it\n"
                   "  0x7f.. - [stub FixupPrecode]                                code of the runtime's own\n"
                   "  0x7f.. - [none]                                             anything else\n"
                   "  0x7f.. ? [error] MESSAGE                                    it could not be told\n",
        .options = OPTIONS_TARGET | OPTIONS_RESULT | OPTIONS_NAMES,
        .targets_max = 1,
        .takes_ips = true,
    },
    {
        .name = "info",
        .run = cmd_info,
        .usage = "TARGET",
        .summary = "show what the target is and what is missing in it",
        .details = "Shows the runtime, where its descriptor came from, the contracts it publishes, the code it has,\n"
                   "and the mapped files whose missing parts could not be found.\n",
        .options = OPTIONS_TARGET | OPTIONS_RESULT,
        .targets_max = 1,
    },
    {
        .name = "inspect",
        .run = cmd_inspect,
        .usage = "TARGET [IP...]",
        .summary = "show everything that the ExecutionManager contract says of each IP",
        .details = "IPs as for ip2method. Shows the method's start, its hot and cold parts, the funclet, the entry of\n"
                   "the unwind table, where debug info and GC info are, and the exception clauses. What cannot be\n"
                   "told has its reason; the rest is shown all the same.\n",
        .options = OPTIONS_TARGET | OPTIONS_RESULT | OPTIONS_NAMES,
        .targets_max = 1,
        .takes_ips = true,
    },
    {
        .name = "methods",
        .run = cmd_methods,
        .usage = "TARGET",
        .summary = "list the code of every method",
        .details = "One line for each, by start address; without --r2r those of ReadyToRun that are prepared:\n"
                   "  0x7f.. +0x123 Demo.Program.Fib(int) [jit Tier1] (Demo.dll)   start, size, name, kind\n",
        .options = OPTIONS_TARGET | OPTIONS_RESULT | OPTIONS_NAMES | OPTIONS_METHODS,
        .targets_max = 1,
    },
    {
        .name = "perfmap",
        .run = cmd_perfmap,
        .usage = "TARGET",
        .summary = "write a perf map",
        .details =
            "As the runtime writes /tmp/perf-PID.map (DOTNET_PerfMapEnabled=1), also where it did not: one line\n"
            "for each method that was compiled at run time; with --r2r for ReadyToRun methods, too, which the\n"
            "runtime leaves out. Names are --names il, the runtime's own, without other choice.\n"
            "  0x7f.. 1a int32 [Demo] Demo.Program::Fib(int32)   start, size, name\n",
        .options = OPTIONS_TARGET | OPTIONS_FILE | OPTIONS_NAMES | OPTIONS_METHODS,
        .names = CDACQ_NAMES_IL,
        .targets_max = 1,
    },
    {
        .name = "jitdump",
        .run = cmd_jitdump,
        .usage = "TARGET",
        .summary = "write a jitdump: code with its bytes",
        .details =
            "As the runtime writes /tmp/jit-PID.dump (DOTNET_PerfMapEnabled=1), also where it did not: a record\n"
            "for each method that was compiled at run time, and with --r2r for ReadyToRun methods. Code of which\n"
            "a byte is missing is left out. Names are --names il, the runtime's own, without other choice.\n",
        .options = OPTIONS_TARGET | OPTIONS_FILE | OPTIONS_NAMES | OPTIONS_METHODS,
        .names = CDACQ_NAMES_IL,
        .targets_max = 1,
    },
    {
        .name = "descriptor",
        .run = cmd_descriptor,
        .usage = "TARGET [OTHER]",
        .summary = "print the merged data descriptor, or how two of them differ",
        .details =
            "Prints one JSON object, each value with the document it came from. TARGET may also be a runtime's\n"
            "file, libcoreclr.so or a single-file application. With OTHER, a second target, one line for each\n"
            "difference: '-' only in TARGET, '+' only in OTHER, '~' in both. Origins and the values of addresses\n"
            "are not compared.\n",
        .exit_partly = "the two descriptors differ",
        .options = OPTIONS_TARGET | OPTIONS_RESULT,
        .targets_max = 2,
    },
    {
        .name = "snapshot",
        .run = cmd_snapshot,
        .usage = "TARGET -o FILE [IP...]",
        .summary = "write a small core that answers for these IPs on any machine",
        .details =
            "FILE becomes an ELF core of just the pages that answering for these IPs reads (default: all methods\n"
            "and stubs). It needs no other file and holds nothing else of the process's memory.\n",
        .options = OPTIONS_TARGET | OPTIONS_RESULT,
        .targets_max = 1,
        .takes_ips = true,
    },
    {
        .name = "records",
        .run = cmd_records,
        .usage = "FILE",
        .summary = "decode a jitdump file",
        .details = "FILE is what a runtime writes as /tmp/jit-PID.dump (DOTNET_PerfMapEnabled=1). One line for each\n"
                   "record: offset, time, kind, and what it says. With --follow a file that grows is read on until\n"
                   "its runtime closes it, or SIGINT; one that is truncated or replaced is begun again.\n",
        .exit_partly = "a record is damaged, or the last one cut",
        .options = OPTIONS_RESULT | OPTIONS_RECORDS,
        .targets_max = 1,
    },
    {
        .name = "stack",
        .run = cmd_stack,
        .usage = "TARGET",
        .summary = "show every thread's frames, managed and native named",
        .details = "libdwfl unwinds; a process is stopped meanwhile. Frames are numbered from the innermost; their\n"
                   "addresses are where execution goes on.\n",
        .options = OPTIONS_TARGET | OPTIONS_RESULT | OPTIONS_NAMES,
        .targets_max = 1,
    },
    {
        .name = "verify",
        .run = cmd_verify,
        .usage = "TARGET FILE",
        .summary = "compare a jitdump or perf map with the target",
        .details =
            "FILE is what the target's runtime wrote as jit-PID.dump or perf-PID.map (DOTNET_PerfMapEnabled=1).\n"
            "Counts what became of its records, and shows those that contradict the target:\n"
            "  unknown-to-target  no method is there, and none can have been released there\n"
            "  name-differs, range-differs, bytes-differ\n"
            "With --json every record that does not match has its line, and the last one has the counts.\n",
        .exit_partly = "a record contradicts the target",
        .options = OPTIONS_TARGET | OPTIONS_RESULT,
        .targets_max = 1,
        .takes_file = true,
    },
};

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
        if (!strcmp(commands[i].name, name))
            return &commands[i];
    return NULL;
}

/* ---- Help ------------------------------------------------------------------------------------------------------ */

static void print_exit_codes(struct output *out, const char *exit_partly)
{
    output_literal(out, "\nExit status:\n"
                        "   0  everything asked was answered\n"
                        "   1  ");
    output_literal(out, exit_partly ? exit_partly : "some of it was not");
    output_literal(out, "\n"
                        "   2  nothing could be answered, or the results not be written; a message says why\n"
                        "  64  the command line is wrong\n");
}

static void print_command_help(struct output *out, const struct command *command)
{
    output_literal(out, "Usage: cdacq [OPTION...] ");
    output_literal(out, command->name);
    output_literal(out, " ");
    output_literal(out, command->usage);
    output_literal(out, "\n\n");
    output_literal(out, command->details);
    if (command->options & OPTIONS_TARGET)
        output_literal(out, "\nTARGET is the path of an ELF core, or the decimal pid of a running process.\n");
    output_literal(out, "\nOptions:\n");
    arguments_print_options(out, command->options);
    print_exit_codes(out, command->exit_partly);
}

static void print_help(struct output *out)
{
    unsigned all = 0;
    output_literal(out, "Usage: cdacq [OPTION...] COMMAND TARGET [ARGUMENT...]\n"
                        "Reads a .NET process from outside and names the methods that own instruction pointers.\n"
                        "\nTARGET is the path of an ELF core, or the decimal pid of a running process.\n"
                        "Options may stand before or after the command.\n"
                        "\nCommands:\n");
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        char usage[64];
        snprintf(usage, sizeof usage, "%s %s", commands[i].name, commands[i].usage);
        output_printf(out, "  %-32s %s\n", usage, commands[i].summary);
        all |= commands[i].options;
    }
    output_literal(out, "\nOptions:\n");
    arguments_print_options(out, all);
    print_exit_codes(out, NULL);
    output_literal(out, "\nExamples:\n"
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

int main(int argc, char **argv)
{
    struct invocation invocation;
    enum arguments_result what = arguments_parse(argc, argv, &invocation);
    int status = what == ARGUMENTS_WRONG ? EXIT_USAGE
                 : what == ARGUMENTS_RUN ? invocation.command->run(&invocation)
                                         : print_texts(what, invocation.command);
    arguments_deinit(&invocation);
    return status;
}
