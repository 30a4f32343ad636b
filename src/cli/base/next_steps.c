#include "src/cli/base/runtimes.h"
#include "src/cli/base/next_steps.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/cli/base/target.h"
#include "util/base.h"

struct steps {
    const struct cdacq_options *options;
    void (*visit)(const struct next_step *step, void *context);
    void *context;
    unsigned readable; /* of names_contracts, a bit each */
    const char *runtime_path;
    bool runtime_is_missing; /* its file */
    uint64_t beside_it;      /* missing files in the same folder */
};

static void report(const struct steps *steps, const struct next_step *step)
{
    steps->visit(step, steps->context);
}

static void write_ways(char *text, size_t size, bool by_build_id, bool by_key)
{
    const char *ways[] = {"--sysroot", "--module-path", by_build_id ? "--debuginfod" : NULL,
                          by_key ? "--symbol-server" : NULL};
    size_t count = 0, length = 0;
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
        if (ways[i])
            ways[count++] = ways[i];
    for (size_t i = 0; i < count && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%s",
                                   i == 0          ? ": give "
                                   : i + 1 < count ? ", "
                                                   : " or ",
                                   ways[i]);
}

void next_steps_describe(const struct cdacq_need *need, char *text, size_t size, void *context)
{
    const struct cdacq_options *options = context;
    switch (need->kind) {
    case CDACQ_NEED_FILE:
        write_ways(text, size, need->build_id && !(options->flags & CDACQ_OPEN_DEBUGINFOD),
                   need->symbol_key && !options->symbol_server_count);
        break;
    case CDACQ_NEED_PDB:
        snprintf(text, size, ": give --module-path%s",
                 need->symbol_key && !options->symbol_server_count ? " or --symbol-server" : "");
        break;
    case CDACQ_NEED_DESCRIPTOR:
        snprintf(text, size, "; --descriptor FILE can supply it");
        break;
    case CDACQ_NEED_DESCRIPTOR_ADDRESS:
        snprintf(text, size, "; give --descriptor-address");
        break;
    }
}

/* ---- The runtime --------------------------------------------------------------------------------------------- */

static const char native_aot[] =
    "name addresses by a native debugger (gdb, lldb, eu-addr2line) with the application's .dbg file";

static void report_problem(const struct steps *steps, const struct cdacq_target_info *info)
{
    struct next_step step = {.need = "runtime"};
    switch (info->problem_status) {
    case CDACQ_ERR_NO_RUNTIME:
        if (info->native_aot) {
            step.text = native_aot;
            break;
        }
        step.text = info->runtime_count
                        ? "take the core once the process runs managed code"
                        : "name another process or core; where the address of DotNetRuntimeContractDescriptor is "
                          "known, give it with --descriptor-address";
        step.options[0] = info->runtime_count ? NULL : "--descriptor-address";
        break;
    case CDACQ_ERR_CONTRACT:
    case CDACQ_ERR_FIELD:
        if (info->native_aot) {
            step.text = native_aot;
            break;
        }
        step.need = "descriptor";
        step.text = "a version of cdacq that reads these contracts; or --descriptor FILE, a JSON data descriptor with "
                    "what is missing";
        step.options[0] = "--descriptor";
        break;
    case CDACQ_ERR_NO_DESCRIPTOR:
        if (steps->runtime_is_missing)
            return;
        step.need = "descriptor";
        step.text = "--descriptor FILE, a JSON data descriptor of this build of the runtime, together with "
                    "--descriptor-address ADDR where the runtime has one";
        step.options[0] = "--descriptor";
        step.options[1] = "--descriptor-address";
        break;
    default: /* other steps supply the files, or nothing helps */
        return;
    }
    report(steps, &step);
}

/* ---- Names --------------------------------------------------------------------------------------------------- */

static const char *const names_contracts[] = {"RuntimeTypeSystem", "Loader", "EcmaMetadata"};

static int note_contract(const struct cdacq_contract_info *contract, void *context)
{
    struct steps *steps = context;
    for (unsigned i = 0; i < ARRAY_SIZE(names_contracts); i++)
        if (contract->supported && !strcmp(contract->name, names_contracts[i]))
            steps->readable |= 1u << i;
    return 0;
}

static void report_names(struct steps *steps, struct cdacq_target *target)
{
    char text[200];
    size_t length = 0;
    cdacq_target_visit_contracts(target, note_contract, steps, NULL);
    for (unsigned i = 0; i < ARRAY_SIZE(names_contracts); i++)
        if (!(steps->readable >> i & 1))
            length +=
                (size_t)snprintf(text + length, sizeof text - length, "%s%s", length ? ", " : "", names_contracts[i]);
    if (!length)
        return;
    snprintf(text + length, sizeof text - length,
             ": not published in a version that names can be formed by; --descriptor FILE can supply it");
    report(steps, &(struct next_step){.need = "names", .text = text, .options = {"--descriptor"}});
}

/* ---- Memory -------------------------------------------------------------------------------------------------- */

const char *next_steps_of_filter(const struct cdacq_target_info *info)
{
    static const char *const texts[] = {
        [CDACQ_FILTER_PRIVATE] = "set bit 0 of /proc/PID/coredump_filter before a core is written: this one lacks the "
                                 "anonymous private memory, where the stacks and heaps are",
        [CDACQ_FILTER_SHARED] = "set bit 1 of /proc/PID/coredump_filter before a core is written: this one lacks the "
                                "anonymous shared memory, where the runtime keeps its data about methods",
        [CDACQ_FILTER_PRIVATE | CDACQ_FILTER_SHARED] = "set bits 0 and 1 of /proc/PID/coredump_filter before a core is "
                                                       "written: this one lacks anonymous memory",
    };
    return info->missing_filter < ARRAY_SIZE(texts) ? texts[info->missing_filter] : NULL;
}

static void report_memory(const struct steps *steps, const struct cdacq_target_info *info, uint64_t ranges)
{
    char text[300];
    if (info->truncation)
        report(steps,
               &(struct next_step){.need = "core",
                                   .text = "give the whole core, or room for all of it (--store-max, TMPDIR): only "
                                           "a part of this one was read",
                                   .options = {"--store-max"}});
    else if (info->truncated)
        report(steps, &(struct next_step){.need = "core",
                                          .text = "copy the core again, or take it again with enough room (df, ulimit "
                                                  "-c): this one ends early"});
    const char *filter = next_steps_of_filter(info);
    if (filter)
        report(steps, &(struct next_step){.need = "memory", .text = filter});
    if (!ranges || filter)
        return;
    snprintf(text, sizeof text,
             "take a core with more of the process's memory (createdump --withheap or --full, gcore): %" PRIu64
             " code range%s described by what this one lacks and no file has",
             ranges, ranges == 1 ? " is" : "s are");
    report(steps, &(struct next_step){.need = "memory", .text = text});
}

/* ---- Files --------------------------------------------------------------------------------------------------- */

static int note_file(const struct cdacq_mapped_file *module, void *context)
{
    struct steps *steps = context;
    const char *slash = steps->runtime_path ? strrchr(steps->runtime_path, '/') : NULL;
    if (!module->problem || !slash)
        return 0;
    size_t folder = (size_t)(slash - steps->runtime_path) + 1;
    steps->runtime_is_missing |= !strcmp(module->path, steps->runtime_path);
    steps->beside_it += !strncmp(module->path, steps->runtime_path, folder) && !strchr(module->path + folder, '/');
    return 0;
}

/* If many files are missing, one folder supplies them all. */
static void report_runtime_folder(const struct steps *steps, const struct cdacq_target_info *info)
{
    char text[300];
    const char *version = runtime_version_of(info);
    if (steps->beside_it < 2)
        return;
    snprintf(text, sizeof text,
             "give a folder with the same build of the runtime (.NET %.40s) by --module-path: %" PRIu64
             " of the missing files are from it",
             version ? version : "of unknown version", steps->beside_it);
    report(steps, &(struct next_step){.need = "files", .text = text, .options = {"--module-path", "--sysroot"}});
}

static int report_file(const struct cdacq_mapped_file *module, void *context)
{
    const struct steps *steps = context;
    if (!module->problem)
        return 0;
    struct next_step step = {.need = "file",
                             .text = module->problem,
                             .path = module->path,
                             .build_id = module->build_id,
                             .symbol_key = module->symbol_key,
                             .options = {"--sysroot", "--module-path"}};
    size_t count = 2;
    if (module->build_id && !(steps->options->flags & CDACQ_OPEN_DEBUGINFOD))
        step.options[count++] = "--debuginfod";
    if (module->symbol_key && !steps->options->symbol_server_count)
        step.options[count++] = "--symbol-server";
    report(steps, &step);
    return 0;
}

void next_steps_visit(struct cdacq_target *target, const struct cdacq_options *options, uint64_t memory_ranges,
                      void (*visit)(const struct next_step *step, void *context), void *context)
{
    struct cdacq_target_info info = {.size = sizeof info};
    cdacq_target_get_info(target, &info, NULL);
    if (info.kind == CDACQ_TARGET_IMAGE) /* read only for its descriptor */
        return;
    struct steps steps = {.options = options, .visit = visit, .context = context, .runtime_path = info.runtime_path};
    (void)cdacq_target_visit_mapped_files(target, note_file, &steps, NULL);
    if (info.problem)
        report_problem(&steps, &info);
    else if (!info.native_aot) /* its image names its methods */
        report_names(&steps, target);
    report_memory(&steps, &info, memory_ranges);
    report_runtime_folder(&steps, &info);
    (void)cdacq_target_visit_mapped_files(target, report_file, &steps, NULL);
}
