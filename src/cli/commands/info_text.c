/* info_text.c: writes the facts of `info` as text. */
#include <inttypes.h>
#include <stdio.h>

#include "src/cli/base/runtimes.h"
#include "src/cli/base/target.h"
#include "src/cli/base/console.h"
#include "src/cli/commands/info.h"
#include "util/base.h"

enum {
    UNCONFIRMED_MAX = 5, /* they seldom cause a problem */
    REFUSED_MAX = 20,    /* PDBs; a real process has few that do not match */
};

struct work {
    const struct info *info;
    struct output *out;
    uint64_t listed; /* elements of the current list */
};

static void print_size(struct output *out, const char *format, uint64_t size)
{
    char text[32];
    text_rounded_bytes(text, sizeof text, size);
    output_printf(out, format, text);
}

static const char *or_unknown(const char *text)
{
    return text ? text : "unknown";
}

static void print_target(struct work *work)
{
    struct output *out = work->out;
    const struct cdacq_target_info *facts = &work->info->facts;
    output_label(out, "target");
    output_printf(out, "%s ", info_target_kind(work->info));
    output_text(out, work->info->target_name);
    if (facts->kind == CDACQ_TARGET_CORE && facts->pid)
        output_printf(out, ", of process %d", facts->pid);
    if (facts->writer)
        output_printf(out, ", written by %s", facts->writer);
    output_literal(out, "\n");

    output_label(out, "machine");
    output_text(out, or_unknown(facts->elf_machine));
    if (facts->architecture)
        output_text_between(out, " (", facts->architecture, facts->operating_system ? ", " : ")");
    if (facts->architecture && facts->operating_system)
        output_text_between(out, "", facts->operating_system, ")");
    if (facts->pointer_size)
        output_printf(out, ", %u-bit, %s-endian", facts->pointer_size * 8, facts->big_endian ? "big" : "little");
    output_literal(out, "\n");

    output_label(out, "memory");
    if (facts->kind == CDACQ_TARGET_CORE) {
        output_printf(out, "%" PRIu64 " segment%s, ", facts->segment_count, plural(facts->segment_count));
        print_size(out, "%s dumped", facts->dumped_size);
        if (facts->missing_size)
            print_size(out, ", %s of mapped files not dumped", facts->missing_size);
    } else {
        output_literal(out, "read on demand");
    }
    output_literal(out, "\n");
    if (facts->truncated) {
        output_label(out, "");
        output_styled(out, STYLE_ERROR, "TRUNCATED: ");
        output_text(out, target_truncation(facts));
        output_literal(out, "\n");
    }
}

static int print_other_runtime(const struct cdacq_runtime_info *runtime, void *context)
{
    struct work *work = context;
    struct output *out = work->out;
    output_label(out, work->listed ? "" : "runtimes");
    output_printf(out, "%" PRIu64 ": .NET ", work->listed++);
    output_text_between(out, "", or_unknown(runtime->version), ", ");
    output_text(out, or_unknown(runtime->path));
    output_printf(out, " at 0x%" PRIx64 ", build-id ", runtime->base);
    output_text(out, or_unknown(runtime->build_id));
    output_literal(out, runtime->in_use ? " (in use)\n" : "\n");
    return 0;
}

static void print_descriptor(struct output *out, const struct cdacq_target_info *facts)
{
    output_label(out, "descriptor");
    if (facts->descriptor_address && !facts->descriptor_origin) {
        output_printf(out, "at 0x%" PRIx64 ", cannot be read\n", facts->descriptor_address);
        return;
    }
    if (facts->descriptor_address) {
        output_literal(out, "from ");
        output_note(out, facts->descriptor_origin);
        output_printf(out, ", at 0x%" PRIx64, facts->descriptor_address);
    } else {
        output_literal(out, "the runtime publishes none");
    }
    output_printf(out, ", schema %u\n", facts->schema);
    if (facts->descriptor_missing) {
        output_label(out, "");
        output_styled(out, STYLE_DOUBT, "incomplete: ");
        output_note_between(out, "", facts->descriptor_missing, "\n");
    }
    if (facts->supplement) {
        output_label(out, "");
        output_text_between(out, "supplemented by ", facts->supplement, "\n");
    }
}

static void print_runtime(struct work *work)
{
    struct output *out = work->out;
    const struct cdacq_target_info *facts = &work->info->facts;
    const char *version = runtime_version_of(facts);
    output_label(out, "runtime");
    if (!facts->runtime_count) {
        output_literal(out, facts->native_aot ? ".NET NativeAOT unknown\n" : "none\n");
        return;
    }
    output_literal(out, facts->native_aot ? ".NET NativeAOT " : ".NET ");
    output_text(out, or_unknown(version));
    if (facts->runtime_file_version)
        output_printf(out, " (%s)", facts->runtime_file_version);
    output_literal(out, "\n");
    output_label(out, "");
    output_text_between(out, "", or_unknown(facts->runtime_path), "\n");
    output_label(out, "");
    output_printf(out, "at 0x%" PRIx64 ", build-id ", facts->runtime_base);
    output_text(out, or_unknown(facts->runtime_build_id));
    if (facts->runtime_count > 1)
        output_printf(out, "; runtime %u of 0 to %u, see --runtime", facts->runtime, facts->runtime_count - 1);
    output_literal(out, "\n");
    if (facts->runtime_count > 1) {
        work->listed = 0;
        cdacq_target_visit_runtimes(work->info->target, print_other_runtime, work, NULL);
    }
    print_descriptor(out, facts);
}

static void print_contract_name(struct output *out, const struct cdacq_contract_info *contract)
{
    output_text_between(out, "", contract->name, " ");
    output_text(out, or_unknown(contract->version));
}

/* A line for each contract that this build reads in some version. */
static int print_known_contract(const struct cdacq_contract_info *contract, void *context)
{
    struct work *work = context;
    struct output *out = work->out;
    if (!contract->supported && !contract->known[0])
        return 0;
    output_label(out, work->listed++ ? "" : "contracts");
    print_contract_name(out, contract);
    if (!contract->supported) {
        output_styled(out, STYLE_ERROR, ": NOT SUPPORTED");
        output_printf(out, ", this build reads %s", contract->known);
    }
    output_literal(out, "\n");
    return 0;
}

/* A few lines for all contracts that no command needs. */
static int print_unused_contract(const struct cdacq_contract_info *contract, void *context)
{
    enum { A_LINE = 6 };
    struct work *work = context;
    if (contract->supported || contract->known[0])
        return 0;
    if (work->listed % A_LINE == 0) {
        output_literal(work->out, work->listed ? ",\n" : "");
        output_label(work->out, "");
        output_literal(work->out, work->listed ? "  " : "not used: ");
    } else {
        output_literal(work->out, ", ");
    }
    work->listed++;
    print_contract_name(work->out, contract);
    return 0;
}

static void print_contracts(struct work *work)
{
    work->listed = 0;
    cdacq_target_visit_contracts(work->info->target, print_known_contract, work, NULL);
    work->listed = 0;
    cdacq_target_visit_contracts(work->info->target, print_unused_contract, work, NULL);
    if (work->listed)
        output_literal(work->out, "\n");
}

static void print_code(struct work *work)
{
    struct output *out = work->out;
    for (size_t i = 0; i < work->info->kind_count; i++) {
        const struct info_kind *kind = &work->info->kinds[i];
        output_label(out, i ? "" : "code");
        output_text(out, kind->name);
        output_printf(out, ": %" PRIu64 " range%s, ", kind->count, plural(kind->count));
        print_size(out, "%s", kind->size);
        if (kind->collectible)
            output_printf(out, ", %" PRIu64 " collectible", kind->collectible);
        if (kind->unreadable) {
            output_printf(out, "; %" PRIu64 " known only in part, because\n", kind->unreadable);
            output_label(out, "");
            output_literal(out, "  ");
            output_note(out, kind->problem);
        }
        output_literal(out, "\n");
    }
    if (!work->info->kind_count) {
        output_label(out, "code");
        output_literal(out, "no range is known\n");
    }
}

static int print_problem(const struct cdacq_mapped_file *module, void *context)
{
    struct work *work = context;
    struct output *out = work->out;
    if (!module->problem)
        return 0;
    output_label(out, "");
    output_style(out, STYLE_DOUBT);
    print_size(out, "missing %s: ", module->missing_size);
    output_style(out, STYLE_NONE);
    output_note_between(out, "", module->problem, "\n");
    return 0;
}

static int print_unconfirmed(const struct cdacq_mapped_file *module, void *context)
{
    struct work *work = context;
    struct output *out = work->out;
    if (!module->local_path || module->verified || work->listed++ >= UNCONFIRMED_MAX)
        return 0;
    output_label(out, "");
    output_styled(out, STYLE_DOUBT, "unconfirmed: ");
    output_text_between(out, "", module->local_path, "\n");
    return 0;
}

static void print_modules(struct work *work)
{
    struct output *out = work->out;
    struct cdacq_error error;
    output_label(out, "modules");
    output_printf(out, "%" PRIu64 " mapped file%s", work->info->modules.all, plural(work->info->modules.all));
    if (!work->info->modules.missing) {
        output_literal(out, ", nothing missing\n");
        return;
    }
    output_printf(out, ", %" PRIu64 " of them incomplete in the core\n", work->info->modules.missing);
    output_label(out, "");
    output_printf(out, "found the files of %" PRIu64 ", unconfirmed %" PRIu64 ", not found %" PRIu64 "\n",
                  work->info->modules.filled, work->info->modules.unverified, work->info->modules.problems);
    work->listed = 0; /* a failure to visit was reported the first time */
    (void)cdacq_target_visit_mapped_files(work->info->target, print_problem, work, &error);
    (void)cdacq_target_visit_mapped_files(work->info->target, print_unconfirmed, work, &error);
    if (work->listed > UNCONFIRMED_MAX) {
        output_label(out, "");
        output_printf(out, "and %" PRIu64 " more unconfirmed; --json lists all\n", work->listed - UNCONFIRMED_MAX);
    }
}

static int print_refused_pdb(const struct cdacq_pdb_info *pdb, void *context)
{
    struct work *work = context;
    if (!pdb->refused || work->listed++ >= REFUSED_MAX)
        return 0;
    output_label(work->out, "");
    output_note_between(work->out, "", pdb->problem, "\n");
    return 0;
}

/* Most assemblies of the runtime come without a PDB, so only those are named that were found and do not match. */
static void print_pdbs(struct work *work)
{
    uint64_t files = work->info->pdbs.files, embedded = work->info->pdbs.embedded, missing = work->info->pdbs.missing;
    struct cdacq_error error;
    output_label(work->out, "PDBs");
    output_printf(work->out, "%" PRIu64 " in use, %" PRIu64 " of them embedded; %" PRIu64 " assembl%s without one\n",
                  files + embedded, embedded, missing, missing == 1 ? "y" : "ies");
    work->listed = 0;
    (void)cdacq_session_visit_pdbs(work->info->session, print_refused_pdb, work, &error);
    if (work->listed > REFUSED_MAX) {
        output_label(work->out, "");
        output_printf(work->out, "and %" PRIu64 " more that do not match; --json lists all\n",
                      work->listed - REFUSED_MAX);
    }
}

static void print_step(const struct next_step *step, void *context)
{
    struct work *work = context;
    if (step->path)
        return; /* shown with its module */
    output_label(work->out, work->listed++ ? "" : "next");
    output_note_between(work->out, "", step->text, "\n");
}

void info_write_text(const struct info *info, struct output *out)
{
    struct work context = {.info = info, .out = out}, *work = &context;
    print_target(work);
    print_runtime(work);
    print_contracts(work);
    if (info->session)
        print_code(work);
    print_modules(work);
    if (info->pdbs.known)
        print_pdbs(work);
    if (info->facts.problem) {
        output_label(work->out, "problem");
        output_note_between(work->out, "", info->facts.problem, "\n");
    }
    work->listed = 0;
    info_visit_next_steps(info, print_step, work);
}
