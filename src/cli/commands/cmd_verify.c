/*
 * cmd_verify.c: compares a jitdump or perf map with the target. Prints the contradictions, a table of counts and a
 * summary line; with --json, an object for each record that does not match.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/cli/base/commands.h"
#include "src/cli/base/console.h"
#include "src/cli/base/json_writer.h"
#include "src/cli/commands/native_aot.h"
#include "src/cli/base/output.h"
#include "util/base.h"

struct verify_options {
    struct common_options common;
    const char *file; /* NULL: that of the process */
};

enum {
    SHOWN_MAX = 20,        /* contradictions as text */
    NAME_MAX_SIZE = 65536, /* longer names of the file are cut */
    PATH_SIZE = 4096,
};

struct work {
    struct output out;
    bool json;
    uint64_t shown;
};

static size_t shown_length(const struct cdacq_comparison *comparison)
{
    return MIN(comparison->name_length, NAME_MAX_SIZE);
}

static void write_json(struct output *out, const struct cdacq_comparison *comparison)
{
    const struct cdacq_method *method = comparison->method;
    bool in_file = comparison->verdict != CDACQ_VERDICT_MISSING_FROM_FILE, is_symbol = in_file && comparison->name;
    bool managed = method && method->answer == CDACQ_ANSWER_MANAGED;
    struct json_writer writer = json_begin_line(out), *w = &writer;
    json_note(w, "class", cdacq_verdict_text(comparison->verdict));
    json_known_number(w, "offset", in_file, comparison->offset);
    json_known_number(w, "line", comparison->line, comparison->line);
    json_known_number(w, "timestamp", comparison->timestamp, comparison->timestamp);
    json_known_address(w, "address", is_symbol, comparison->address);
    json_known_number(w, "size", is_symbol, comparison->code_size);
    json_string_bytes(w, "name", is_symbol ? comparison->name : NULL, shown_length(comparison));
    json_note(w, "kind", method ? cdacq_code_kind_text(method->kind) : NULL);
    json_note(w, "method", method ? method->name : NULL);
    json_known_address(w, "code_start", managed, managed ? method->code_start : 0);
    json_known_number(w, "code_size", managed, managed ? method->code_size : 0);
    json_note(w, "detail", comparison->detail);
    json_end_line(w);
}

static void write_text(struct output *out, const struct cdacq_comparison *comparison)
{
    output_printf(out, "%s 0x%" PRIx64 " +0x%" PRIx64 " ", cdacq_verdict_text(comparison->verdict), comparison->address,
                  comparison->code_size);
    if (comparison->name)
        output_escaped(out, comparison->name, shown_length(comparison), ESCAPE_DATA);
    if (comparison->line)
        output_printf(out, " [line %" PRIu64 "]", comparison->line);
    else
        output_printf(out, " [offset %" PRIu64 "]", comparison->offset);
    output_literal(out, ": ");
    output_note(out, comparison->detail);
    if (comparison->verdict == CDACQ_VERDICT_NAME_DIFFERS && comparison->method && comparison->method->name) {
        output_literal(out, ": ");
        output_note(out, comparison->method->name);
    }
    output_literal(out, "\n");
}

static int take(const struct cdacq_comparison *comparison, void *context)
{
    struct work *work = context;
    if (work->json && comparison->verdict != CDACQ_VERDICT_MATCH)
        write_json(&work->out, comparison);
    else if (!work->json && cdacq_verdict_is_contradiction(comparison->verdict) && work->shown++ < SHOWN_MAX)
        write_text(&work->out, comparison);
    return output_failed(&work->out);
}

/* ---- Summary ----------------------------------------------------------------------------------------------------- */

static void write_json_sum(struct output *out, const struct cdacq_verification *sum)
{
    struct json_writer writer = json_begin_line(out), *w = &writer;
    json_note(w, "class", "totals");
    for (int i = 0; i < CDACQ_VERDICT_COUNT; i++)
        json_number(w, cdacq_verdict_text((enum cdacq_verdict)i), sum->counts[i]);
    json_number(w, "records", sum->records);
    json_number(w, "names_not_compared", sum->names_not_compared);
    json_number(w, "code_not_compared", sum->code_not_compared);
    json_note(w, "file", sum->perf_map ? "perf map" : "jitdump");
    json_note(w, "advice", sum->advice);
    json_note(w, "cut", sum->cut[0] ? sum->cut : NULL);
    json_note(w, "methods_problem", sum->methods_problem[0] ? sum->methods_problem : NULL);
    json_end_line(w);
}

static void write_text_sum(struct output *out, const struct cdacq_verification *sum, uint64_t shown)
{
    if (shown > SHOWN_MAX)
        output_printf(out, "... and %" PRIu64 " more; --json has them all\n", shown - SHOWN_MAX);
    if (shown)
        output_literal(out, "\n");
    for (int i = 0; i < CDACQ_VERDICT_COUNT; i++) {
        enum cdacq_verdict verdict = (enum cdacq_verdict)i;
        bool always = i < CDACQ_VERDICT_DAMAGED;
        const char *meaning = verdict == CDACQ_VERDICT_MATCH && sum->perf_map ? "start, size and name are the same"
                                                                              : cdacq_verdict_meaning(verdict);
        if (always || sum->counts[i])
            output_printf(out, "%10" PRIu64 "  %-18s %s\n", sum->counts[i], cdacq_verdict_text(verdict), meaning);
    }
    if (sum->names_not_compared)
        output_printf(out, "%10" PRIu64 "  of those that match: the target does not have the name\n",
                      sum->names_not_compared);
    if (sum->code_not_compared)
        output_printf(out, "%10" PRIu64 "  of those that match: code that could not be compared\n",
                      sum->code_not_compared);
    output_printf(out, "%s, records: %" PRIu64 "; ", sum->perf_map ? "perf map" : "jitdump", sum->records);
    if (sum->contradictions)
        output_printf(out, "contradictions: %" PRIu64 "\n", sum->contradictions);
    else
        output_literal(out, sum->counts[CDACQ_VERDICT_MATCH] ? "no contradiction\n" : "no record matches\n");
}

/* Without a comparison, the absence of contradictions means nothing. */
static bool nothing_compared(const struct cdacq_verification *sum)
{
    return sum->records == sum->counts[CDACQ_VERDICT_DAMAGED] + sum->counts[CDACQ_VERDICT_NOT_COMPARED];
}

static void complain(const char *file, const struct cdacq_verification *sum)
{
    if (sum->cut[0] && !sum->advice)
        message("'%s': %s", file, sum->cut);
    if (sum->methods_problem[0])
        message("not all methods could be compared with the file: %s", sum->methods_problem);
    if (sum->advice)
        message("'%s': %s", file, sum->advice);
    else if (nothing_compared(sum) && !sum->cut[0])
        message("'%s': it has no record that could be compared", file);
}

static int stop_at_once(const struct cdacq_comparison *comparison, void *context)
{
    (void)comparison;
    (void)context;
    return 1;
}

/* Whether a jitdump is one that the runtime stopped writing before any method. */
static bool holds_no_methods(struct cdacq_target *target, const char *jitdump)
{
    struct cdacq_verification sum = {.size = sizeof sum};
    return cdacq_target_verify(target, jitdump, stop_at_once, NULL, &sum, NULL) >= 0 && sum.advice;
}

/* Finds the jitdump of a process or, if it has none that is of use, its perf map. */
static bool find_file(int pid, struct cdacq_target *target, char *ret, size_t size)
{
    char map[PATH_SIZE];
    struct cdacq_error error;
    bool has_map = cdacq_perf_map_find_file(pid, map, sizeof map, NULL) == CDACQ_OK;
    bool found = cdacq_jitdump_find_file(pid, ret, size, &error) == CDACQ_OK;
    if (!has_map && !found)
        message("%s", error.message);
    bool is_useless = has_map && found && holds_no_methods(target, ret);
    if (is_useless)
        message("'%s' holds no methods; '%s' is compared", ret, map);
    if (has_map && (!found || is_useless))
        snprintf(ret, size, "%s", map);
    return has_map || found;
}

static int verify(const void *given, const struct opened_target *opened)
{
    const struct verify_options *options = given;
    struct work work = {.json = options->common.json};
    struct cdacq_verification sum = {.size = sizeof sum};
    struct cdacq_error error;
    char found[PATH_SIZE];
    const char *file = options->file ? options->file : found;
    if (native_aot_refused(opened->target))
        return EXIT_FAILED;
    if (!options->file && !find_file(target_pid(opened->name), opened->target, found, sizeof found))
        return EXIT_FAILED;
    if (output_is_input(&options->common, file) || !output_open(&work.out, options->common.output))
        return EXIT_FAILED;
    bytes_begin(file, work.out.fd);
    enum cdacq_status status = cdacq_target_verify(opened->target, file, take, &work, &sum, &error);
    bytes_end();
    if (status == CDACQ_OK) {
        if (work.json)
            write_json_sum(&work.out, &sum);
        else
            write_text_sum(&work.out, &sum, work.shown);
        complain(file, &sum);
    } else if (status < 0 && strstr(error.message, file)) {
        message("%s", error.message);
    } else if (status < 0) {
        message("'%s': %s", file, error.message);
    }
    if (!output_close_if(&work.out, status == CDACQ_OK))
        return EXIT_FAILED;
    /* With a contradiction, or if the records are of other code than the target's. */
    if (sum.contradictions || (sum.advice && sum.counts[CDACQ_VERDICT_NOT_COMPARED]))
        return EXIT_PARTLY;
    bool none_compared = !sum.counts[CDACQ_VERDICT_MATCH] && sum.counts[CDACQ_VERDICT_NOT_COMPARED];
    return sum.advice || none_compared || nothing_compared(&sum) ? EXIT_FAILED : EXIT_ANSWERED;
}

static int run(const void *given)
{
    const struct verify_options *options = given;
    return target_run(&options->common, &(const struct target_use){.run = verify, .file = options->file});
}

const struct command command_verify = {
    .name = "verify",
    .section = SECTION_RECORDS,
    RUNS(run, struct verify_options),
    .operands =
        OPERANDS({TARGET_OPERAND}, {"FILE", OPERAND_FILE, OPTIONAL_FOR_PID, TO_WORD(struct verify_options, file)}),
    .options = OPTIONS(json_rows, output_rows, target_rows),
    .summary = "compare a jitdump or perf map with the target",
    .details = "FILE is what the target's runtime wrote as jit-PID.dump or perf-PID.map (DOTNET_PerfMapEnabled=1).\n"
               "Without it, the target is a process. Its jitdump is found or, if that has no methods, its perf map.\n"
               "Counts its records by result and shows those that contradict the target:\n"
               "  unknown-to-target  no method is at the address, and none can have been released there\n"
               "  name-differs, range-differs, bytes-differ\n"
               "With --json, each record that does not match is one line, and the last line has the counts.\n",
    .exit_partly = "a record contradicts the target",
};
