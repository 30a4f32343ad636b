/* options.c: the table of options. A new one is a row here, an id in options.h and a case in arguments.c. */
#include "src/cli/options.h"

#include <stdio.h>
#include <string.h>

#include "src/cli/commands.h"
#include "util/base.h"

const struct option_row option_rows[] = {
    {"json", NULL, NULL, "print JSON, one object a line", OPTIONS_RESULT, OPTION_JSON},
    {"output", "FILE", NULL, "write to FILE; '-' is standard output, the default", OPTIONS_RESULT | OPTIONS_FILE,
     OPTION_OUTPUT},
    {"sysroot", "DIR", NULL, "look for the target's files by their paths below DIR (repeatable)", OPTIONS_TARGET,
     OPTION_SYSROOT},
    {"module-path", "DIR", NULL, "look for the target's files anywhere below DIR (repeatable)", OPTIONS_TARGET,
     OPTION_MODULE_PATH},
    {"debuginfod", NULL, NULL, "ask the servers in DEBUGINFOD_URLS for missing ELF files", OPTIONS_TARGET,
     OPTION_DEBUGINFOD},
    {"stop", NULL, NULL, "stop a running process only while it is being read", OPTIONS_TARGET, OPTION_STOP},
    {"verbose", NULL, NULL, "say for how long a process was stopped", OPTIONS_TARGET, OPTION_VERBOSE},
    {"runtime", "N", NULL, "use runtime N, counted from 0, of several in one process", OPTIONS_TARGET, OPTION_RUNTIME},
    {"store-max", "SIZE", NULL, "store at most SIZE (8G) of a compressed core, standard input, or copies",
     OPTIONS_TARGET, OPTION_STORE_MAX},
    {"work-max", "STEPS", NULL, "stop after STEPS of work; 0: never (for a core, by its size: 2 s)", OPTIONS_TARGET,
     OPTION_WORK_MAX},
    {"memory-max", "SIZE", NULL, "keep at most SIZE in memory; 0: any (for a core, by its size: 256M)", OPTIONS_TARGET,
     OPTION_MEMORY_MAX},
    {"descriptor", "FILE", NULL, "read JSON that overrides the runtime's descriptor (repeatable)", OPTIONS_TARGET,
     OPTION_DESCRIPTOR},
    {"descriptor-address", "ADDR", NULL, "address of DotNetRuntimeContractDescriptor, in hex", OPTIONS_TARGET,
     OPTION_DESCRIPTOR_ADDRESS},
    {"names", "STYLE", "csharp sos il source", "write names as csharp, sos, il or source", OPTIONS_NAMES, OPTION_NAMES},
    {"stubs", NULL, NULL, "include the runtime's own stubs", OPTIONS_METHODS, OPTION_STUBS},
    {"r2r", "WHICH", "prepared all", "include ReadyToRun methods: 'prepared' or 'all'", OPTIONS_METHODS | OPTIONS_R2R,
     OPTION_R2R},
    {"code", NULL, NULL, "include the bytes of the code", OPTIONS_ELF, OPTION_CODE},
    {"samply", NULL, NULL, "add the records in which samply finds lines and columns", OPTIONS_JITDUMP, OPTION_SAMPLY},
    {"follow", NULL, NULL, "continue with new records or methods until the file or process ends", OPTIONS_FOLLOW,
     OPTION_FOLLOW},
    {"folded", NULL, NULL, "fold the stacks of 'perf script', for flame graphs", OPTIONS_FILTER, OPTION_FOLDED},
    {"at", "ADDR", NULL, "show the function that has this address, after moves", OPTIONS_RECORDS, OPTION_AT},
    {"time", "T", NULL, "with --at: after the records up to this time of the file", OPTIONS_RECORDS, OPTION_TIME},
    {"stacks", NULL, NULL, "include the registers and the stack of every thread", OPTIONS_SNAPSHOT, OPTION_STACKS},
    {"brief", NULL, NULL, "report only the signal, the exception and the thread that died", OPTIONS_REPORT,
     OPTION_BRIEF},
    {"signature", NULL, NULL, "print one line that is the same for the same defect", OPTIONS_REPORT, OPTION_SIGNATURE},
    {"thread", "TID", NULL, "show only the thread with this thread id", OPTIONS_STACK, OPTION_THREAD},
    {"managed", NULL, NULL, "show only managed frames", OPTIONS_STACK, OPTION_MANAGED},
    {"each", NULL, NULL, "show the stack of each thread, also if several have the same", OPTIONS_STACK, OPTION_EACH},
    {"color", "WHEN", "auto always never", "use colour: auto (on a terminal), always or never", 0, OPTION_COLOR},
    {"help", NULL, NULL, "show help and exit", 0, OPTION_HELP},
    {"version", NULL, NULL, "show the version and exit", 0, OPTION_VERSION},
};

const size_t option_count = ARRAY_SIZE(option_rows);
_Static_assert(ARRAY_SIZE(option_rows) <= OPTIONS_MAX, "too many options");

const struct option_row *option_row(int id)
{
    const struct option_row *row = option_rows;
    while (row->id != id)
        row++;
    return row;
}

bool option_has_letter(const struct option_row *row)
{
    return row->id < OPTION_JSON;
}

bool option_is_of(const struct option_row *row, unsigned groups)
{
    return !row->groups || row->groups & groups;
}

bool option_value(const char *words, size_t index, char *ret, size_t size)
{
    while (index-- && words)
        words = strchr(words, ' ') ? strchr(words, ' ') + 1 : NULL;
    if (!words)
        return false;
    snprintf(ret, size, "%.*s", (int)strcspn(words, " "), words);
    return true;
}
