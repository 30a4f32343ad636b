/*
 * cmd_info.c: shows what the target is and why questions about it cannot be answered.
 */
#include <stdio.h>
#include <string.h>

#include "src/cli/base/commands.h"
#include "src/cli/base/console.h"
#include "src/cli/commands/environment.h"
#include "src/cli/commands/info.h"
#include "src/cli/commands/stress_log.h"
#include "util/base.h"

struct info_options {
    struct common_options common;
    bool stress_log, environment;
};

static struct info_kind *find_kind(struct info *info, const char *name)
{
    for (size_t i = 0; i < info->kind_count; i++)
        if (!strcmp(info->kinds[i].name, name))
            return &info->kinds[i];
    if (info->kind_count == ARRAY_SIZE(info->kinds))
        return NULL; /* there are four */
    struct info_kind *kind = &info->kinds[info->kind_count++];
    snprintf(kind->name, sizeof kind->name, "%s", name);
    return kind;
}

static int count_range(const struct cdacq_code_range_info *range, void *context)
{
    struct info *info = context;
    struct info_kind *kind = find_kind(info, range->kind ? range->kind : "unknown");
    struct cdacq_error error;
    if (!kind)
        return 0;
    kind->count++;
    kind->size += range->end - range->begin;
    kind->collectible += range->collectible;
    if (cdacq_session_check_code_range(info->session, range->begin, &error) < 0) {
        kind->unreadable++;
        snprintf(kind->problem, sizeof kind->problem, "%s", error.message);
        if (error.status == CDACQ_ERR_MEMORY && info->unreadable_count < ARRAY_SIZE(info->unreadable))
            info->unreadable[info->unreadable_count++] = error.address;
    }
    return 0;
}

static int count_module(const struct cdacq_mapped_file *module, void *context)
{
    struct info *info = context;
    info->modules.all++;
    info->modules.missing += module->missing_size > 0;
    info->modules.filled += module->local_path && module->verified;
    info->modules.unverified += module->local_path && !module->verified;
    info->modules.problems += module->problem != NULL;
    for (size_t i = 0; module->problem && i < info->unreadable_count; i++)
        if (info->unreadable[i] >= module->begin && info->unreadable[i] < module->end)
            info->unreadable[i] = 0;
    return 0;
}

static int count_pdb(const struct cdacq_pdb_info *pdb, void *context)
{
    struct info *info = context;
    info->pdbs.files += pdb->path != NULL;
    info->pdbs.embedded += pdb->embedded;
    info->pdbs.missing += pdb->problem != NULL;
    return 0;
}

static bool succeeded(enum cdacq_status status, const struct cdacq_error *error)
{
    if (status < 0)
        message("%s", error->message);
    return status >= 0;
}

/* Returns whether all facts are known; messages report those that are not. */
static bool collect(struct info *info)
{
    struct cdacq_error error;
    bool complete = true;
    info->facts.size = sizeof info->facts;
    cdacq_target_get_info(info->target, &info->facts, NULL);
    if (info->session && info->facts.kind != CDACQ_TARGET_IMAGE) /* it has no code ranges */
        complete = succeeded(cdacq_session_visit_code_ranges(info->session, count_range, info, &error), &error);
    if (info->session && info->facts.kind != CDACQ_TARGET_IMAGE &&
        !succeeded(cdacq_session_check_layout(info->session, &error), &error))
        complete = false;
    if (!succeeded(cdacq_target_visit_mapped_files(info->target, count_module, info, &error), &error))
        complete = false;
    enum cdacq_status status =
        info->session ? cdacq_session_visit_pdbs(info->session, count_pdb, info, &error) : CDACQ_NOT_MANAGED;
    info->pdbs.known = status >= 0 && info->session;
    return complete && succeeded(status, &error);
}

static int show_info(const void *given, const struct opened_target *opened)
{
    const struct info_options *options = given;
    struct info info = {.target_name = target_display_name(opened->name),
                        .options = &options->common.open,
                        .target = opened->target,
                        .session = opened->session};
    struct output out;
    bool complete = collect(&info);
    if (!output_open(&out, options->common.output))
        return EXIT_FAILED;
    (options->common.json ? info_write_json : info_write_text)(&info, &out);
    if (!output_close(&out))
        return EXIT_FAILED;
    return !complete ? EXIT_PARTLY : opened->session ? EXIT_ANSWERED : EXIT_FAILED;
}

static int run(const void *given)
{
    const struct info_options *options = given;
    if (options->stress_log && options->environment) {
        message("info: give only one of --stress-log and --environment");
        return EXIT_USAGE;
    }
    if (options->environment)
        return target_run(&options->common,
                          &(const struct target_use){.run = environment_show, .flags = CDACQ_OPEN_PARTIAL});
    const struct target_use log = {.run = stress_log_show},
                            info = {.run = show_info, .flags = CDACQ_OPEN_PARTIAL, .shows_runtime = true};
    return target_run(&options->common, options->stress_log ? &log : &info);
}

const struct option_row info_rows[] = {
    {"stress-log", NULL, "show the runtime's stress log instead, the newest message first",
     TO_FLAG(struct info_options, stress_log)},
    {"environment", NULL, "show the environment instead; values of secret names are masked",
     TO_FLAG(struct info_options, environment)},
    {0},
};

const struct command command_info = {
    .name = "info",
    .section = SECTION_PROCESS,
    RUNS(run, struct info_options),
    .operands = OPERANDS({TARGET_OPERAND, .repeats = true}),
    .options = OPTIONS(json_rows, output_rows, target_rows, info_rows),
    .summary = "show what the target is and what is missing in it",
    .details = "Shows the runtime, where its descriptor came from, the contracts it publishes, the code it has,\n"
               "the mapped files whose missing parts could not be found, and the PDBs that are in use. With\n"
               "--environment, it shows instead the environment that the process was started with. With\n"
               "--stress-log, it shows instead what the runtime has logged in memory, if it was started with\n"
               "DOTNET_StressLog=1: seconds since the start of the log, thread, facility and message. A '?' before\n"
               "a message means that a string in it may have changed since:\n"
               "  12.000310775  4711  GC|GCALLOC|GCROOTS    ========== ENDGC 1 (gen = 0, collect_classes = 0) ===\n",
};
