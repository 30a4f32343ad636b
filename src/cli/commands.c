/*
 * commands.c: the commands of the tool. A new one takes three steps: write cmd_NAME.c with `int cmd_NAME(const struct
 * invocation *invocation)`, declare that in commands.h, and add its row here. The options that it takes, its arguments
 * and its help come from the row. A new option is a row in options.c and a case in arguments.c.
 */
#include "src/cli/commands.h"

#include <string.h>

#include "src/cli/console.h"
#include "util/base.h"
#include "util/similar.h"

const struct command commands[] = {
    {
        .name = "ip2method",
        .section = SECTION_ADDRESSES,
        .run = cmd_ip2method,
        .usage = "TARGET [IP...]",
        .summary = "name the method that owns each IP",
        .details = "An IP is up to 16 hex digits, 0x optional; METHOD+0x10, where METHOD may lack its parameters; or\n"
                   "FILE!0x1234 in a mapped file. Without IPs they are read from standard input, one a line. Every IP\n"
                   "gives one line, in order:\n"
                   "  0x7f.. Demo.Program.Fib(int) +0x2f [jit Tier1] IL_0012 Program.cs:14 (Demo.dll)   a method\n"
                   "  0x7f.. - [stub FixupPrecode]   the runtime's own code\n"
                   "  0x7f.. - [none]                anything else\n"
                   "  0x7f.. ? [error] MESSAGE       the answer could not be found\n",
        .options = OPTIONS_TARGET | OPTIONS_RESULT | OPTIONS_NAMES,
        .targets_max = 1,
        .stops_itself = true,
        .takes_ips = true,
        .reads_ips = true,
    },
    {
        .name = "info",
        .section = SECTION_PROCESS,
        .run = cmd_info,
        .usage = "TARGET...",
        .summary = "show what the target is and what is missing in it",
        .details = "Shows the runtime, where its descriptor came from, the contracts it publishes, the code it has,\n"
                   "the mapped files whose missing parts could not be found, and the PDBs that are in use.\n",
        .options = OPTIONS_TARGET | OPTIONS_RESULT,
        .targets_max = SIZE_MAX,
        .takes_targets = true,
    },
    {
        .name = "ps",
        .section = SECTION_PROCESS,
        .run = cmd_ps,
        .usage = "",
        .summary = "list the .NET processes of this machine",
        .details =
            "One line for each process that is visible here, also in containers: pid, runtime, number of threads,\n"
            "container, and command line. If a process cannot be read, the next line says what is needed.\n",
        .exit_partly = "some process cannot be read",
        .options = OPTIONS_RESULT,
        .target_is_optional = true,
    },
    {
        .name = "inspect",
        .section = SECTION_ADDRESSES,
        .run = cmd_inspect,
        .usage = "TARGET [IP...]",
        .summary = "show all that the ExecutionManager contract provides for each IP",
        .details = "IPs as for ip2method. Shows the method's start, its hot and cold parts, the funclet, the entry of\n"
                   "the unwind table, where debug info and GC info are, the exception clauses, and the source line.\n"
                   "If a value cannot be read, the reason is shown in its place.\n",
        .options = OPTIONS_TARGET | OPTIONS_RESULT | OPTIONS_NAMES,
        .targets_max = 1,
        .stops_itself = true,
        .takes_ips = true,
        .reads_ips = true,
    },
    {
        .name = "methods",
        .section = SECTION_ADDRESSES,
        .run = cmd_methods,
        .usage = "TARGET [NAME...]",
        .summary = "list the code of every method",
        .details =
            "One line for each, by start address. Without --r2r, only prepared ReadyToRun methods are listed. With\n"
            "NAME, only methods of that name, which need not have its parameters; '*' is any text, '?' any one\n"
            "character. If names cannot be read, one message says so.\n"
            "  0x7f.. +0x123 Demo.Program.Fib(int) [jit Tier1] (Demo.dll)   start, size, name, kind\n"
            "With --follow, lines for methods that a process compiles later follow until it ends or SIGINT\n"
            "arrives. A method that is freed gets no line.\n",
        .options = OPTIONS_TARGET | OPTIONS_RESULT | OPTIONS_NAMES | OPTIONS_METHODS | OPTIONS_FOLLOW,
        .targets_max = 1,
        .takes_names = true,
    },
    {
        .name = "perfmap",
        .section = SECTION_FILES,
        .run = cmd_perfmap,
        .usage = "TARGET",
        .summary = "write a perf map",
        .details =
            "The file has the form of the runtime's /tmp/perf-PID.map (DOTNET_PerfMapEnabled=1), which need not\n"
            "exist: one line for each method that was compiled at run time. --r2r adds ReadyToRun methods, which\n"
            "the runtime leaves out. Without --names, names have the runtime's own form, --names il.\n"
            "  0x7f.. 1a int32 [Demo] Demo.Program::Fib(int32)   start, size, name\n",
        .options = OPTIONS_TARGET | OPTIONS_FILE | OPTIONS_NAMES | OPTIONS_METHODS,
        .names = CDACQ_NAMES_IL,
        .targets_max = 1,
    },
    {
        .name = "jitdump",
        .section = SECTION_FILES,
        .run = cmd_jitdump,
        .usage = "TARGET",
        .summary = "write a jitdump: code with its bytes",
        .details =
            "The file has the form of the runtime's /tmp/jit-PID.dump (DOTNET_PerfMapEnabled=1), which need not\n"
            "exist: one record for each method that was compiled at run time. --r2r adds ReadyToRun methods.\n"
            "Incomplete code is left out. Without --names, names have the runtime's own form, --names il.\n"
            "With --follow, records of code that a process compiles later follow, until it ends or SIGINT arrives.\n"
            "--samply adds samply's own records of lines and columns.\n",
        .options = OPTIONS_TARGET | OPTIONS_FILE | OPTIONS_NAMES | OPTIONS_METHODS | OPTIONS_FOLLOW | OPTIONS_JITDUMP,
        .names = CDACQ_NAMES_IL,
        .targets_max = 1,
    },
    {
        .name = "elf",
        .section = SECTION_FILES,
        .run = cmd_elf,
        .usage = "TARGET -o FILE",
        .summary = "write an ELF file of the managed code, for gdb and other tools",
        .details =
            "The file has symbols and call-frame information of every method, at the addresses that the code has in\n"
            "the process: JIT-compiled and prepared ReadyToRun methods, unless --r2r is given. --code adds the bytes\n"
            "of the code. For example:\n"
            "  gdb -p PID -ex 'add-symbol-file FILE' -ex bt\n"
            "  cdacq elf PID --code -o FILE && objdump -d FILE\n",
        .options = OPTIONS_TARGET | OPTIONS_FILE | OPTIONS_NAMES | OPTIONS_METHODS | OPTIONS_ELF,
        .targets_max = 1,
    },
    {
        .name = "filter",
        .section = SECTION_ADDRESSES,
        .run = cmd_filter,
        .usage = "[TARGET]",
        .summary = "copy text and name the methods at the addresses in it",
        .details =
            "Reads any text from standard input: a log, the output of gdb, eu-stack, perf script or bpftrace. After\n"
            "each hex address of managed code it adds the method, and nothing else changes:\n"
            "  #3  0x7f.. <Demo.Program.Fib(int)+0x2f Program.cs:14> in ?? ()\n"
            "--folded reads the output of perf script and writes one line for each different stack, with its count,\n"
            "as flame graphs need it; without TARGET, only perf's own names are used:\n"
            "  cdacq symfs PID DIR\n"
            "  perf script --symfs DIR --kallsyms /proc/kallsyms | cdacq filter --folded -o FILE\n"
            "  cdacq flame FILE -o flame.svg\n",
        .exit_partly = "the method at some address could not be found",
        .options = OPTIONS_TARGET | OPTIONS_FILE | OPTIONS_NAMES | OPTIONS_FILTER,
        .targets_max = 1,
        .stops_itself = true,
        .reads_text = true,
    },
    {
        .name = "flame",
        .section = SECTION_FILES,
        .run = cmd_flame,
        .usage = "FILE [-o FILE]",
        .summary = "draw folded stacks as a flame graph",
        .details =
            "FILE has the lines that 'cdacq filter --folded' writes; '-' is standard input. The result is an SVG\n"
            "image that needs no other file: a browser shows each frame's share, zooms into a frame that is\n"
            "clicked, and searches names (Ctrl-F).\n",
        .options = OPTIONS_FILE,
        .targets_max = 1,
    },
    {
        .name = "bundle",
        .section = SECTION_CORES,
        .run = cmd_bundle,
        .usage = "TARGET DIR",
        .summary = "copy the files that a core needs, for another machine",
        .details =
            "Copies into DIR, under the keys of symbol servers (NAME/KEY/NAME), the mapped files whose bytes the\n"
            "core lacks and the PDBs. Another machine then needs the core and DIR alone:\n"
            "  cdacq report CORE --module-path DIR\n"
            "A file that is there already is not copied again, so that many cores can share a folder. One line for\n"
            "each file: copied, present, missing, or skipped because it is neither a program nor an assembly.\n",
        .exit_partly = "files other than PDBs are missing, or not all are known: the core is cut off, or has no .NET",
        .options = OPTIONS_TARGET | OPTIONS_RESULT,
        .targets_max = 1,
        .takes_file = true,
    },
    {
        .name = "symfs",
        .section = SECTION_FILES,
        .run = cmd_symfs,
        .usage = "TARGET DIR",
        .summary = "write a folder in which perf finds the names of the managed code",
        .details =
            "DIR gets an ELF file for each mapped file that has managed code, and links to the other mapped files.\n"
            "The process needs no settings:\n"
            "  perf record -g -p PID -- sleep 10\n"
            "  cdacq symfs PID DIR\n"
            "  perf report --symfs DIR --kallsyms /proc/kallsyms\n",
        .exit_partly = "a method has no name, or code could not be read",
        .options = OPTIONS_TARGET | OPTIONS_NAMES | OPTIONS_R2R,
        .targets_max = 1,
        .takes_file = true,
    },
    {
        .name = "descriptor",
        .section = SECTION_CORES,
        .run = cmd_descriptor,
        .usage = "TARGET [OTHER]",
        .summary = "print the merged data descriptor, or how two of them differ",
        .details =
            "Prints one JSON object, each value with the document it came from. TARGET may also be a runtime's\n"
            "file, libcoreclr.so or a single-file application. With OTHER, a second target, prints one line for\n"
            "each difference: '-' only in TARGET, '+' only in OTHER, '~' in both. Origins and the values of addresses\n"
            "are not compared.\n",
        .exit_partly = "the two descriptors differ",
        .options = OPTIONS_TARGET | OPTIONS_RESULT,
        .targets_max = 2,
    },
    {
        .name = "snapshot",
        .section = SECTION_CORES,
        .run = cmd_snapshot,
        .usage = "TARGET -o FILE [IP...]",
        .summary = "write a small core that answers for these IPs on any machine",
        .details =
            "Writes an ELF core with only the memory that is read to answer for these IPs (default: all methods\n"
            "and stubs), and the PDBs that lines came from. It needs no other file. With --stacks, it also has the\n"
            "registers and the stack of every thread, the exceptions and the command line, which hold values that\n"
            "the program worked with; a process is stopped while it is read. FILE cannot be standard output.\n",
        .options = OPTIONS_TARGET | OPTIONS_RESULT | OPTIONS_SNAPSHOT,
        .targets_max = 1,
        .takes_ips = true,
    },
    {
        .name = "records",
        .section = SECTION_RECORDS,
        .run = cmd_records,
        .usage = "FILE|PID",
        .summary = "decode a jitdump file",
        .details =
            "FILE is what a runtime writes as /tmp/jit-PID.dump (DOTNET_PerfMapEnabled=1); PID is a process that\n"
            "writes one. With --at, the function that has an address is shown. Otherwise, one line for each\n"
            "record: offset, time, kind and contents. With --follow, a growing file is read until its runtime\n"
            "closes it, the process of PID ends, or SIGINT arrives; a file that is truncated or replaced is read\n"
            "again from its start.\n",
        .exit_partly = "a record is damaged, or the last one is incomplete",
        .options = OPTIONS_RESULT | OPTIONS_RECORDS | OPTIONS_FOLLOW,
        .targets_max = 1,
    },
    {
        .name = "stack",
        .section = SECTION_PROCESS,
        .run = cmd_stack,
        .usage = "TARGET...",
        .summary = "show every thread's frames, managed and native",
        .details =
            "A process is stopped while it is read. Frames are numbered from the innermost; a frame's address is\n"
            "where execution continues. Threads with the same stack are shown together, and frames that repeat\n"
            "are shown once, with their count; JSON has all frames of all threads. A '?' after a frame's number\n"
            "means that the frame rests on a guess:\n"
            "  #3   0x7f.. Demo.Program.Fib(int) +0x2f [jit Tier1] IL_0012 Program.cs:14 (Demo.dll)\n"
            "  #4   [catch] 0x7f.. Demo.Program.Run() +0x5c [jit Tier0] IL_0020 (Demo.dll)   in a catch block\n"
            "  #5   0x7f.. __poll +0x4f (libc.so.6)\n"
            "  #6?  0x7f.. libcoreclr.so+0x6315b5                                            no symbol is known\n",
        .exit_partly = "a stack is incomplete or rests on a guess, or a frame has no answer",
        .options = OPTIONS_TARGET | OPTIONS_RESULT | OPTIONS_NAMES | OPTIONS_STACK,
        .targets_max = SIZE_MAX,
        .takes_targets = true,
    },
    {
        .name = "report",
        .section = SECTION_PROCESS,
        .run = cmd_report,
        .usage = "TARGET...",
        .summary = "show why a process died, hangs or is slow",
        .details =
            "Shows the program, the signal that ended it, the exception as the runtime prints it, the stack of the\n"
            "thread that died, and the stacks of the others; then what would make the report more complete. Of a\n"
            "running process, it shows who waits for whom, deadlocks, and the threads that use the processors.\n"
            "--signature prints one line: the cause, the type of the exception and the first methods, without what\n"
            "differs from build to build:\n"
            "  unhandled System.NullReferenceException: Demo.Cart.Add < Demo.Program.Main\n"
            "With --json it is an object that also says what the target is: a row for a table of many cores.\n",
        .exit_partly =
            "a stack is incomplete or a guess, or something could not be read (waits: only with --signature)",
        .options = OPTIONS_TARGET | OPTIONS_RESULT | OPTIONS_NAMES | OPTIONS_REPORT,
        .targets_max = SIZE_MAX,
        .takes_targets = true,
    },
    {
        .name = "verify",
        .section = SECTION_RECORDS,
        .run = cmd_verify,
        .usage = "TARGET [FILE]",
        .summary = "compare a jitdump or perf map with the target",
        .details =
            "FILE is what the target's runtime wrote as jit-PID.dump or perf-PID.map (DOTNET_PerfMapEnabled=1).\n"
            "Without it, the target is a process. Its jitdump is found or, if that has no methods, its perf map.\n"
            "Counts its records by result and shows those that contradict the target:\n"
            "  unknown-to-target  no method is at the address, and none can have been released there\n"
            "  name-differs, range-differs, bytes-differ\n"
            "With --json, each record that does not match is one line, and the last line has the counts.\n",
        .exit_partly = "a record contradicts the target",
        .options = OPTIONS_TARGET | OPTIONS_RESULT,
        .targets_max = 1,
        .takes_file = true,
        .finds_file = true,
    },
    {
        .name = "help",
        .section = SECTION_TOOL,
        .usage = "[COMMAND]",
        .summary = "show the help of a command",
        .details = "The same as 'cdacq COMMAND --help'. 'man cdacq-COMMAND' has more.\n",
        .targets_max = 1,
        .target_is_optional = true,
    },
    {
        .name = "version",
        .section = SECTION_TOOL,
        .usage = "",
        .summary = "show the version",
        .details = "The same as 'cdacq --version'.\n",
        .target_is_optional = true,
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

const struct command *command_named(const char *name)
{
    const struct command *command = command_find(name);
    struct similar similar;
    if (command)
        return command;
    similar_begin(&similar, name);
    for (size_t i = 0; i < command_count; i++)
        similar_consider(&similar, commands[i].name);
    if (similar.best)
        message("unknown command '%s'; did you mean '%s'?", name, similar.best);
    else
        message("unknown command '%s'; 'cdacq --help' lists all", name);
    return NULL;
}
