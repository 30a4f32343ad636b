/*
 * cmd_info.c: what the target is and whether questions about it can be answered: the first thing to look at when they
 * cannot. As text it is for people; as JSON it is one object.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/cli/commands.h"
#include "src/cli/console.h"
#include "src/cli/next_steps.h"
#include "src/cli/output.h"
#include "util/base.h"

enum {
    KINDS_MAX = 16,
    ADDRESSES_MAX = 256,
    UNCONFIRMED_MAX = 5, /* they are seldom the reason of anything */
};

/* The code ranges of one kind. */
struct kind {
    char name[32];
    uint64_t count, size, collectible;
    uint64_t unreadable;
    char problem[CDACQ_ERROR_MESSAGE_SIZE]; /* of the last range that cannot be read */
};

struct work {
    const char *target_name;
    const struct cdacq_options *options;
    struct cdacq_target *target;
    struct cdacq_session *session; /* NULL where no method can be found */
    struct output out;
    struct cdacq_target_info info;
    struct kind kinds[KINDS_MAX];
    size_t kind_count;
    struct {
        uint64_t all, missing, filled, unverified, problems;
    } modules;
    uint64_t unreadable[ADDRESSES_MAX]; /* what could not be read of code ranges, one address each; 0: a file has it */
    size_t unreadable_count;
    uint64_t listed; /* elements of the list that is being written */
    int status;
};

/* ---- Collecting ---------------------------------------------------------------------------------------------- */

static int count_range(const struct cdacq_code_range_info *range, void *context)
{
    struct work *work = context;
    const char *name = range->kind ? range->kind : "unknown";
    struct kind *kind = work->kinds;
    while (kind < work->kinds + work->kind_count && strcmp(kind->name, name))
        kind++;
    if (kind == work->kinds + KINDS_MAX)
        return 0; /* there are four */
    if (kind == work->kinds + work->kind_count) {
        snprintf(kind->name, sizeof kind->name, "%s", name);
        work->kind_count++;
    }
    kind->count++;
    kind->size += range->end - range->begin;
    kind->collectible += range->collectible;
    struct cdacq_error error;
    if (cdacq_session_check_code_range(work->session, range->begin, &error) < 0) {
        kind->unreadable++;
        snprintf(kind->problem, sizeof kind->problem, "%s", error.message);
        if (error.status == CDACQ_ERR_MEMORY && work->unreadable_count < ADDRESSES_MAX)
            work->unreadable[work->unreadable_count++] = error.address;
    }
    return 0;
}

static int count_module(const struct cdacq_module_info *module, void *context)
{
    struct work *work = context;
    work->modules.all++;
    work->modules.missing += module->missing_size > 0;
    work->modules.filled += module->local_path && module->verified;
    work->modules.unverified += module->local_path && !module->verified;
    work->modules.problems += module->problem != NULL;
    for (size_t i = 0; module->problem && i < work->unreadable_count; i++)
        if (work->unreadable[i] >= module->begin && work->unreadable[i] < module->end)
            work->unreadable[i] = 0;
    return 0;
}

static void keep_status(struct work *work, enum cdacq_status status, const struct cdacq_error *error)
{
    if (status >= 0)
        return;
    message("%s", error->message);
    work->status = EXIT_PARTLY;
}

static void collect(struct work *work)
{
    struct cdacq_error error;
    work->info.size = sizeof work->info;
    cdacq_target_get_info(work->target, &work->info, NULL);
    if (work->session)
        keep_status(work, cdacq_session_visit_code_ranges(work->session, count_range, work, &error), &error);
    keep_status(work, cdacq_target_visit_modules(work->target, count_module, work, &error), &error);
}

/* ---- Text ---------------------------------------------------------------------------------------------------- */

static void label(struct output *out, const char *text)
{
    output_printf(out, "%-12s", text);
}

static void print_size(struct output *out, const char *format, uint64_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)size;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < ARRAY_SIZE(units); unit++)
        value /= 1024;
    char text[32];
    snprintf(text, sizeof text, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    output_printf(out, format, text);
}

static const char *or_unknown(const char *text)
{
    return text ? text : "unknown";
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static const char *target_kind(const struct cdacq_target_info *info)
{
    static const char *const texts[] = {[CDACQ_TARGET_CORE] = "core",
                                        [CDACQ_TARGET_PROCESS] = "process",
                                        [CDACQ_TARGET_MEMORY] = "memory",
                                        [CDACQ_TARGET_IMAGE] = "image"};
    return texts[info->kind];
}

static void print_target(struct work *work)
{
    struct output *out = &work->out;
    const struct cdacq_target_info *info = &work->info;
    label(out, "target");
    output_printf(out, "%s ", target_kind(info));
    output_text(out, work->target_name);
    if (info->kind == CDACQ_TARGET_CORE && info->pid)
        output_printf(out, ", of process %d", info->pid);
    if (info->writer)
        output_printf(out, ", written by %s", info->writer);
    output_literal(out, "\n");

    label(out, "machine");
    output_text(out, or_unknown(info->elf_machine));
    if (info->architecture) {
        output_literal(out, " (");
        output_text(out, info->architecture);
        output_literal(out, ")");
    }
    if (info->pointer_size)
        output_printf(out, ", %u-bit, %s-endian", info->pointer_size * 8, info->big_endian ? "big" : "little");
    output_literal(out, "\n");

    label(out, "memory");
    if (info->kind == CDACQ_TARGET_CORE) {
        output_printf(out, "%" PRIu64 " segment%s, ", info->segment_count, plural(info->segment_count));
        print_size(out, "%s dumped", info->dumped_size);
        if (info->missing_size)
            print_size(out, ", %s of mapped files not dumped", info->missing_size);
    } else {
        output_literal(out, "read as it is asked for");
    }
    output_literal(out, "\n");
    if (info->truncated) {
        label(out, "");
        output_literal(out, "TRUNCATED: the file ends before its last segment does\n");
    }
}

static int print_other_runtime(const struct cdacq_runtime_info *runtime, void *context)
{
    struct work *work = context;
    struct output *out = &work->out;
    label(out, work->listed ? "" : "runtimes");
    output_printf(out, "%" PRIu64 ": .NET ", work->listed++);
    output_text(out, or_unknown(runtime->version));
    output_literal(out, ", ");
    output_text(out, or_unknown(runtime->path));
    output_printf(out, " at 0x%" PRIx64 ", build-id ", runtime->base);
    output_text(out, or_unknown(runtime->build_id));
    output_literal(out, runtime->in_use ? " (in use)\n" : "\n");
    return 0;
}

static void print_runtime(struct work *work)
{
    struct output *out = &work->out;
    const struct cdacq_target_info *info = &work->info;
    const char *version = info->runtime_version ? info->runtime_version : info->runtime_release;
    label(out, "runtime");
    if (!info->runtime_count) {
        output_literal(out, "none\n");
        return;
    }
    output_literal(out, info->native_aot ? ".NET NativeAOT " : ".NET ");
    output_text(out, or_unknown(version));
    if (info->runtime_file_version)
        output_printf(out, " (%s)", info->runtime_file_version);
    output_literal(out, "\n");
    label(out, "");
    output_text(out, or_unknown(info->runtime_path));
    output_literal(out, "\n");
    label(out, "");
    output_printf(out, "at 0x%" PRIx64 ", build-id ", info->runtime_base);
    output_text(out, or_unknown(info->runtime_build_id));
    if (info->runtime_count > 1)
        output_printf(out, "; runtime %u of 0 to %u, see --runtime", info->runtime, info->runtime_count - 1);
    output_literal(out, "\n");

    if (info->runtime_count > 1) {
        work->listed = 0;
        cdacq_target_visit_runtimes(work->target, print_other_runtime, work, NULL);
    }
    label(out, "descriptor");
    if (info->descriptor_address && !info->descriptor_origin) {
        output_printf(out, "at 0x%" PRIx64 ", cannot be read\n", info->descriptor_address);
        return;
    }
    if (info->descriptor_address) {
        output_literal(out, "from ");
        output_note(out, info->descriptor_origin);
        output_printf(out, ", at 0x%" PRIx64, info->descriptor_address);
    } else {
        output_literal(out, "the runtime publishes none");
    }
    output_printf(out, ", schema %u\n", info->schema);
    if (info->supplement) {
        label(out, "");
        output_literal(out, "supplemented by ");
        output_text(out, info->supplement);
        output_literal(out, "\n");
    }
}

static void print_contract_name(struct output *out, const struct cdacq_contract_info *contract)
{
    output_text(out, contract->name);
    output_literal(out, " ");
    output_text(out, or_unknown(contract->version));
}

/* Those that this build knows, in this version or in another: a line each. */
static int print_known_contract(const struct cdacq_contract_info *contract, void *context)
{
    struct work *work = context;
    struct output *out = &work->out;
    if (!contract->supported && !contract->known[0])
        return 0;
    label(out, work->listed++ ? "" : "contracts");
    print_contract_name(out, contract);
    if (!contract->supported) {
        output_literal(out, ": NOT SUPPORTED, this build reads ");
        output_literal(out, contract->known);
    }
    output_literal(out, "\n");
    return 0;
}

/* The others are of no use for any question that can be asked: a few lines for all. */
static int print_unused_contract(const struct cdacq_contract_info *contract, void *context)
{
    enum { A_LINE = 6 };
    struct work *work = context;
    if (contract->supported || contract->known[0])
        return 0;
    if (work->listed % A_LINE == 0) {
        output_literal(&work->out, work->listed ? ",\n" : "");
        label(&work->out, "");
        output_literal(&work->out, work->listed ? "  " : "not used: ");
    } else {
        output_literal(&work->out, ", ");
    }
    work->listed++;
    print_contract_name(&work->out, contract);
    return 0;
}

static void print_contracts(struct work *work)
{
    work->listed = 0;
    cdacq_target_visit_contracts(work->target, print_known_contract, work, NULL);
    work->listed = 0;
    cdacq_target_visit_contracts(work->target, print_unused_contract, work, NULL);
    if (work->listed)
        output_literal(&work->out, "\n");
}

static void print_code(struct work *work)
{
    struct output *out = &work->out;
    for (size_t i = 0; i < work->kind_count; i++) {
        const struct kind *kind = &work->kinds[i];
        label(out, i ? "" : "code");
        output_text(out, kind->name);
        output_printf(out, ": %" PRIu64 " range%s, ", kind->count, plural(kind->count));
        print_size(out, "%s", kind->size);
        if (kind->collectible)
            output_printf(out, ", %" PRIu64 " collectible", kind->collectible);
        if (kind->unreadable) {
            output_printf(out, "; %" PRIu64 " cannot be told in full, one because\n", kind->unreadable);
            label(out, "");
            output_literal(out, "  ");
            output_note(out, kind->problem);
        }
        output_literal(out, "\n");
    }
    if (!work->kind_count) {
        label(out, "code");
        output_literal(out, "no range is known\n");
    }
}

static int print_problem(const struct cdacq_module_info *module, void *context)
{
    struct work *work = context;
    struct output *out = &work->out;
    if (!module->problem)
        return 0;
    label(out, "");
    print_size(out, "missing %s: ", module->missing_size);
    output_note(out, module->problem);
    output_literal(out, "\n");
    return 0;
}

static int print_unconfirmed(const struct cdacq_module_info *module, void *context)
{
    struct work *work = context;
    struct output *out = &work->out;
    if (!module->local_path || module->verified || work->listed++ >= UNCONFIRMED_MAX)
        return 0;
    label(out, "");
    output_literal(out, "unconfirmed: ");
    output_text(out, module->local_path);
    output_literal(out, "\n");
    return 0;
}

static void print_modules(struct work *work)
{
    struct output *out = &work->out;
    struct cdacq_error error;
    label(out, "modules");
    output_printf(out, "%" PRIu64 " mapped file%s", work->modules.all, plural(work->modules.all));
    if (!work->modules.missing) {
        output_literal(out, ", nothing missing\n");
        return;
    }
    output_printf(out, ", %" PRIu64 " of them incomplete in the core\n", work->modules.missing);
    label(out, "");
    output_printf(out, "found the files of %" PRIu64 ", unconfirmed %" PRIu64 ", not found %" PRIu64 "\n",
                  work->modules.filled, work->modules.unverified, work->modules.problems);
    work->listed = 0; /* failures to visit were told the first time */
    (void)cdacq_target_visit_modules(work->target, print_problem, work, &error);
    (void)cdacq_target_visit_modules(work->target, print_unconfirmed, work, &error);
    if (work->listed > UNCONFIRMED_MAX) {
        label(out, "");
        output_printf(out, "and %" PRIu64 " more unconfirmed; --json lists all\n", work->listed - UNCONFIRMED_MAX);
    }
}

static void print_step(const struct next_step *step, void *context)
{
    struct work *work = context;
    if (step->path)
        return; /* told with its module */
    label(&work->out, work->listed++ ? "" : "next");
    output_note(&work->out, step->text);
    output_literal(&work->out, "\n");
}

static void visit_steps(struct work *work, void (*visit)(const struct next_step *step, void *context))
{
    struct next_steps_facts facts = {0};
    for (size_t i = 0; i < work->unreadable_count; i++)
        facts.memory_ranges += work->unreadable[i] != 0;
    work->listed = 0;
    next_steps_visit(work->target, work->options, &facts, visit, work);
}

static void print_text(struct work *work)
{
    print_target(work);
    print_runtime(work);
    print_contracts(work);
    if (work->session)
        print_code(work);
    print_modules(work);
    if (work->info.problem) {
        label(&work->out, "problem");
        output_note(&work->out, work->info.problem);
        output_literal(&work->out, "\n");
    }
    visit_steps(work, print_step);
}

/* ---- JSON ---------------------------------------------------------------------------------------------------- */

/* `prefix` is what stands before the value: `,"key":` */
static void string_value(struct output *out, const char *prefix, const char *value)
{
    output_literal(out, prefix);
    output_json(out, value);
}

static void hex_value(struct output *out, const char *prefix, uint64_t value)
{
    output_literal(out, prefix);
    output_json_hex(out, value);
}

static void number_value(struct output *out, const char *prefix, uint64_t value)
{
    output_literal(out, prefix);
    output_printf(out, "%" PRIu64, value);
}

static void bool_value(struct output *out, const char *prefix, bool value)
{
    output_literal(out, prefix);
    output_literal(out, value ? "true" : "false");
}

static void begin_element(struct work *work)
{
    if (work->listed++)
        output_literal(&work->out, ",");
}

static int write_contract(const struct cdacq_contract_info *contract, void *context)
{
    struct work *work = context;
    struct output *out = &work->out;
    begin_element(work);
    string_value(out, "{\"name\":", contract->name);
    string_value(out, ",\"version\":", contract->version);
    bool_value(out, ",\"supported\":", contract->supported);
    string_value(out, ",\"known\":", contract->known);
    string_value(out, ",\"origin\":", contract->origin);
    output_literal(out, "}");
    return 0;
}

static int write_module(const struct cdacq_module_info *module, void *context)
{
    struct work *work = context;
    struct output *out = &work->out;
    begin_element(work);
    string_value(out, "{\"path\":", module->path);
    hex_value(out, ",\"begin\":", module->begin);
    hex_value(out, ",\"end\":", module->end);
    string_value(out, ",\"build_id\":", module->build_id);
    string_value(out, ",\"symbol_key\":", module->symbol_key);
    number_value(out, ",\"missing_size\":", module->missing_size);
    string_value(out, ",\"local_path\":", module->local_path);
    bool_value(out, ",\"verified\":", module->verified);
    output_literal(out, ",\"problem\":");
    output_json_note(out, module->problem);
    output_literal(out, "}");
    return 0;
}

static int write_one_runtime(const struct cdacq_runtime_info *runtime, void *context)
{
    struct work *work = context;
    struct output *out = &work->out;
    begin_element(work);
    string_value(out, "{\"path\":", runtime->path);
    hex_value(out, ",\"base\":", runtime->base);
    string_value(out, ",\"build_id\":", runtime->build_id);
    string_value(out, ",\"version\":", runtime->version);
    hex_value(out, ",\"descriptor_address\":", runtime->descriptor_address);
    bool_value(out, ",\"in_use\":", runtime->in_use);
    output_literal(out, "}");
    return 0;
}

static void write_step(const struct next_step *step, void *context)
{
    struct work *work = context;
    struct output *out = &work->out;
    begin_element(work);
    string_value(out, "{\"need\":", step->need);
    output_literal(out, ",\"text\":");
    output_json_note(out, step->text);
    string_value(out, ",\"path\":", step->path);
    string_value(out, ",\"build_id\":", step->build_id);
    string_value(out, ",\"symbol_key\":", step->symbol_key);
    output_literal(out, ",\"options\":[");
    for (size_t i = 0; i < ARRAY_SIZE(step->options) && step->options[i]; i++)
        string_value(out, i ? "," : "", step->options[i]);
    output_literal(out, "]}");
}

static void write_runtime(struct work *work)
{
    struct output *out = &work->out;
    const struct cdacq_target_info *info = &work->info;
    output_literal(out, ",\"runtimes\":[");
    work->listed = 0;
    cdacq_target_visit_runtimes(work->target, write_one_runtime, work, NULL);
    output_literal(out, "]");
    bool_value(out, ",\"native_aot\":", info->native_aot);
    number_value(out, ",\"runtime_count\":", info->runtime_count);
    number_value(out, ",\"runtime\":", info->runtime);
    string_value(out, ",\"runtime_version\":", info->runtime_version ? info->runtime_version : info->runtime_release);
    string_value(out, ",\"runtime_file_version\":", info->runtime_file_version);
    string_value(out, ",\"runtime_path\":", info->runtime_path);
    hex_value(out, ",\"runtime_base\":", info->runtime_base);
    string_value(out, ",\"runtime_build_id\":", info->runtime_build_id);
    hex_value(out, ",\"descriptor_address\":", info->descriptor_address);
    output_literal(out, ",\"descriptor_origin\":");
    output_json_note(out, info->descriptor_origin);
    string_value(out, ",\"supplement\":", info->supplement);
    number_value(out, ",\"schema\":", info->schema);
}

static void write_memory(struct work *work)
{
    struct output *out = &work->out;
    const struct cdacq_target_info *info = &work->info;
    string_value(out, ",\"writer\":", info->writer);
    number_value(out, ",\"segment_count\":", info->segment_count);
    number_value(out, ",\"dumped_size\":", info->dumped_size);
    number_value(out, ",\"missing_size\":", info->missing_size);
    bool_value(out, ",\"truncated\":", info->truncated);
}

static void write_code(struct work *work)
{
    struct output *out = &work->out;
    output_literal(out, ",\"code_ranges\":[");
    for (size_t i = 0; i < work->kind_count; i++) {
        const struct kind *kind = &work->kinds[i];
        string_value(out, i ? ",{\"kind\":" : "{\"kind\":", kind->name);
        number_value(out, ",\"count\":", kind->count);
        number_value(out, ",\"size\":", kind->size);
        number_value(out, ",\"collectible\":", kind->collectible);
        number_value(out, ",\"unreadable\":", kind->unreadable);
        output_literal(out, ",\"problem\":");
        output_json_note(out, kind->unreadable ? kind->problem : NULL);
        output_literal(out, "}");
    }
    output_literal(out, "]");
}

static void write_json(struct work *work)
{
    struct output *out = &work->out;
    const struct cdacq_target_info *info = &work->info;
    struct cdacq_error error;
    string_value(out, "{\"target\":", work->target_name);
    string_value(out, ",\"kind\":", target_kind(info));
    output_literal(out, ",\"pid\":");
    if (info->pid)
        output_printf(out, "%d", info->pid);
    else
        output_literal(out, "null");
    string_value(out, ",\"elf_machine\":", info->elf_machine);
    string_value(out, ",\"architecture\":", info->architecture);
    if (info->pointer_size)
        number_value(out, ",\"pointer_size\":", info->pointer_size);
    else
        output_literal(out, ",\"pointer_size\":null");
    bool_value(out, ",\"big_endian\":", info->big_endian);
    write_runtime(work);
    write_memory(work);
    output_literal(out, ",\"contracts\":[");
    work->listed = 0;
    cdacq_target_visit_contracts(work->target, write_contract, work, NULL);
    output_literal(out, "]");
    write_code(work);
    output_literal(out, ",\"modules\":[");
    work->listed = 0;
    (void)cdacq_target_visit_modules(work->target, write_module, work, &error);
    output_literal(out, "],\"problem\":");
    output_json_note(out, work->info.problem);
    output_literal(out, ",\"next_steps\":[");
    visit_steps(work, write_step);
    output_literal(out, "]}\n");
}

static int show_info(const struct invocation *invocation, struct cdacq_target *target, struct cdacq_session *session)
{
    struct work work = {.target_name = invocation->targets[0],
                        .options = &invocation->options,
                        .target = target,
                        .session = session,
                        .status = session ? EXIT_ANSWERED : EXIT_FAILED};
    collect(&work);
    if (!output_open(&work.out, invocation->output))
        return EXIT_FAILED;
    if (invocation->json)
        write_json(&work);
    else
        print_text(&work);
    return output_close(&work.out) ? work.status : EXIT_FAILED;
}

int cmd_info(const struct invocation *invocation)
{
    return target_run(invocation, CDACQ_OPEN_PARTIAL, show_info);
}
