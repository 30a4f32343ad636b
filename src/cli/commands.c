/*
 * commands.c: the commands of the tool. A new one takes three steps: write cmd_NAME.c with `int cmd_NAME(const struct
 * invocation *invocation)`, declare that in commands.h, and add its row here. The options that it takes, its arguments
 * and its help come from the row. A new option is a row and a case in arguments.c.
 */
#include "src/cli/commands.h"

#include <string.h>

#include "util/base.h"

const struct command commands[] = {
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

const size_t command_count = ARRAY_SIZE(commands);

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < command_count; i++)
        if (!strcmp(commands[i].name, name))
            return &commands[i];
    return NULL;
}
