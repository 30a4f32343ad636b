#include "src/cli/base/common_options.h"

#include <limits.h>

#define COMMON struct common_options
#define BYTES  .unit = 1024, .wrong = "expected a number of bytes, such as 500M or 8G"
#define STEPS  .unit = 1000, .wrong = "expected a number of steps, such as 500M or 8G"

const struct option_row json_rows[] = {
    {"json", NULL, "print JSON, one object a line", TO_FLAG(COMMON, json)},
    {0},
};

const struct option_row output_rows[] = {
    {"output", "FILE", "write to FILE; '-' is standard output, the default", 'o', TO_OUTPUT(COMMON, output)},
    {0},
};

const struct option_row target_rows[] = {
    {"sysroot", "DIR", "look for the target's files by their paths below DIR (repeatable)",
     TO_LIST(COMMON, open.sysroots, open.sysroot_count)},
    {"module-path", "DIR", "look for the target's files anywhere below DIR (repeatable)",
     TO_LIST(COMMON, open.module_paths, open.module_path_count)},
    {"debuginfod", NULL, "ask the servers in DEBUGINFOD_URLS for missing ELF files",
     TO_BITS(COMMON, open.flags, CDACQ_OPEN_DEBUGINFOD)},
    {"symbol-server", "URL", "fetch missing files and PDBs from a symbol server (repeatable)",
     TO_LIST(COMMON, open.symbol_servers, open.symbol_server_count)},
    {"symbol-cache", "DIR", "keep what symbol servers give in DIR (~/.cache/cdacq)",
     TO_OUTPUT(COMMON, open.symbol_cache)},
    {"stop", NULL, "stop a running process only while it is being read", TO_BITS(COMMON, open.flags, CDACQ_OPEN_STOP)},
    {"verbose", NULL, "say for how long a process was stopped", 'v', TO_FLAG(COMMON, verbose)},
    {"runtime", "N", "ask only runtime N of several in one process, counted from 0", TO_NUMBER(COMMON, open.runtime),
     AND_GIVEN(COMMON, has_runtime), .max = UINT_MAX, .wrong = "not a number"},
    {"store-max", "SIZE", "store at most SIZE (8G) of a compressed core, standard input, or copies",
     TO_NUMBER(COMMON, open.store_max), .min = 1, .max = UINT64_MAX, BYTES},
    {"work-max", "STEPS", "stop after STEPS of work; 0: never (for a core, by its size: 2 s)",
     TO_NUMBER(COMMON, open.work_max), .max = UINT64_MAX, STEPS},
    {"memory-max", "SIZE", "keep at most SIZE in memory; 0: any (for a core, by its size: 256M)",
     TO_NUMBER(COMMON, open.memory_max), .max = UINT64_MAX, BYTES},
    {"descriptor", "FILE", "read JSON that overrides the runtime's descriptor (repeatable)",
     TO_LIST(COMMON, open.descriptors, open.descriptor_count)},
    {"descriptor-address", "ADDR", "address of DotNetRuntimeContractDescriptor, in hex",
     TO_ADDRESS(COMMON, open.descriptor_address), .min = 1, .wrong = "nothing can be at address 0"},
    {0},
};

const struct option_row names_rows[] = {
    {"names", "STYLE", "write names as csharp, sos, il or source",
     TO_CHOICE(COMMON, open.names, "csharp sos il source")},
    {0},
};

const struct option_row stubs_rows[] = {
    {"stubs", NULL, "include the runtime's own stubs", TO_FLAG(struct method_options, stubs)},
    {0},
};

const struct option_row r2r_rows[] = {
    {"r2r", "WHICH", "include ReadyToRun methods: 'prepared' or 'all'",
     TO_CHOICE(struct method_options, r2r, "prepared all"), AND_GIVEN(struct method_options, has_r2r)},
    {0},
};

const struct option_row follow_rows[] = {
    {"follow", NULL, "continue with new records or methods until the file or process ends", TO_FLAG(COMMON, follow)},
    {0},
};

const struct option_row whole_rows[] = {
    {"all", NULL,
     "all elements of arrays and collections, and longer strings; of the heap, all types; all exceptions; all rows",
     TO_FLAG(COMMON, all)},
    {0},
};

const struct option_row folded_rows[] = {
    {"folded", NULL, "write folded stacks, for flame graphs; of 'filter', those of 'perf script'",
     TO_FLAG(COMMON, folded)},
    {0},
};

const struct option_row profile_rows[] = {
    {"speedscope", NULL, "write the JSON that speedscope reads", TO_FLAG(COMMON, speedscope)},
    {"pprof", NULL, "write a profile.proto, compressed by gzip, which pprof reads", TO_FLAG(COMMON, pprof)},
    {0},
};

const struct option_row general_rows[] = {
    {"color", "WHEN", "use colour: auto (on a terminal), always or never",
     TO_CHOICE(struct general_options, colour, "auto always never")},
    {"help", NULL, "show help and exit", 'h', TO_FLAG(struct general_options, help)},
    {"version", NULL, "show the version and exit", 'V', TO_FLAG(struct general_options, version)},
    {0},
};

unsigned method_flags(const struct method_options *options, enum r2r_methods by_default)
{
    static const unsigned r2r[] = {
        [R2R_PREPARED] = 0, [R2R_ALL] = CDACQ_VISIT_R2R_ALL, [R2R_NONE] = CDACQ_VISIT_R2R_NONE};
    return r2r[options->has_r2r ? options->r2r : by_default] | (options->stubs ? CDACQ_VISIT_STUBS : 0u);
}
