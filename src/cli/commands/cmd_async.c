/*
 * cmd_async.c: shows every pending async operation: chains of async methods, where each awaits the one above it, and
 * what the innermost waits for; then the failed tasks that nobody has observed. The process is stopped while its heap
 * is read.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/base/answers.h"
#include "src/cli/base/commands.h"
#include "src/cli/base/console.h"
#include "src/cli/base/heap_messages.h"
#include "src/cli/base/json_writer.h"
#include "src/cli/base/memory.h"
#include "src/cli/base/output.h"
#include "src/cli/commands/async_holders.h"
#include "src/cli/commands/call_profile.h"
#include "util/base.h"

enum {
    CHAINS_SHOWN = 16, /* without --all, as in the next two */
    METHODS_SHOWN = 32,
    FAILED_SHOWN = 8,
};

struct async_options {
    struct common_options common;
    bool failed;  /* JSON has the failed tasks instead of the chains */
    bool holders; /* what holds the objects that they wait for */
};

struct work {
    const struct async_options *options;
    struct output out;
    struct answers answers;
    struct cdacq_async_info info;
    uint64_t groups, failed_groups;            /* that were visited */
    uint64_t chains_left_out, failed_left_out; /* in those that text does not show */
    struct heap_problem_teller problems;
    struct call_paths paths; /* of folded stacks */
    struct async_holders holders;
};

/* ---- Text ---- */

static void write_chain_text(struct work *work, const struct cdacq_async_chain *chain)
{
    struct output *out = &work->out;
    const char *holder = async_holders_text(&work->holders, chain->first_object);
    size_t shown = work->options->common.all ? chain->method_count : MIN(chain->method_count, (size_t)METHODS_SHOWN);
    output_printf(out, "%s%" PRIu64 " pending%s, waiting for: ", work->groups == 1 ? "" : "\n", chain->count,
                  chain->is_cycle ? " in a deadlock" : "");
    output_note(out, chain->waits_for);
    output_literal(out, "\n");
    for (size_t i = 0; i < shown; i++) {
        output_literal(out, "    ");
        answers_write_async(&work->answers, &chain->methods[i]);
    }
    if (shown < chain->method_count)
        output_printf(out, "    ... %zu more (--all)\n", chain->method_count - shown);
    if (holder)
        output_note_between(out, chain->object ? "    it is held by " : "    the first is held by ", holder, "\n");
}

static void write_failed_text(struct work *work, const struct cdacq_failed_task *task)
{
    struct output *out = &work->out;
    if (work->failed_groups == 1)
        output_styled(out, STYLE_HEADING, "\nfailed tasks that nobody has observed\n");
    output_printf(out, "%6" PRIu64 "  ", task->count);
    output_note(out, task->type ? task->type : "?");
    output_literal(out, " in ");
    output_note(out, task->method ? task->method : "a task");
    if (task->exception)
        output_printf(out, ", exception 0x%" PRIx64, task->exception);
    output_literal(out, "\n");
}

/* ---- JSON ---- */

static void write_method_json(struct json_writer *w, const struct cdacq_method *method)
{
    json_begin_object(w, NULL);
    json_note(w, "method", method->name);
    json_string(w, "file", method->file);
    json_known_number(w, "line", method->line != 0, method->line);
    json_string(w, "module", method->module);
    if (method->error)
        json_note(w, "error", method->error);
    json_end_object(w);
}

static void write_chain_json(struct work *work, const struct cdacq_async_chain *chain)
{
    struct json_writer writer = json_begin_line(&work->out), *w = &writer;
    json_begin_array(w, "frames");
    for (size_t i = 0; i < chain->method_count && !output_failed(&work->out); i++)
        write_method_json(w, &chain->methods[i]);
    json_end_array(w);
    json_note(w, "waits_for", chain->waits_for);
    json_number(w, "count", chain->count);
    json_bool(w, "deadlock", chain->is_cycle);
    json_address(w, "object", chain->object);
    json_address(w, "operation", chain->operation);
    if (work->options->holders)
        json_note(w, "held_by", async_holders_text(&work->holders, chain->first_object));
    json_end_line(w);
}

static void write_failed_json(struct work *work, const struct cdacq_failed_task *task)
{
    struct json_writer writer = json_begin_line(&work->out), *w = &writer;
    json_note(w, "method", task->method);
    json_note(w, "type", task->type);
    json_number(w, "count", task->count);
    json_address(w, "task", task->address);
    json_address(w, "exception", task->exception);
    json_end_line(w);
}

/* ---- The command ---- */

static int visit_chain(const struct cdacq_async_chain *chain, void *context)
{
    struct work *work = context;
    const struct common_options *common = &work->options->common;
    work->groups++;
    for (size_t i = 0; i < chain->method_count; i++)
        work->answers.errors += common->json && chain->methods[i].answer == CDACQ_ANSWER_ERROR;
    if (work->options->failed)
        return 0;
    if (call_profile_is_wanted(common))
        call_paths_add_chain(&work->paths, &work->answers, chain);
    else if (common->json)
        write_chain_json(work, chain);
    else if (common->all || work->groups <= CHAINS_SHOWN)
        write_chain_text(work, chain);
    else
        work->chains_left_out += chain->count;
    return output_failed(&work->out);
}

static void tell_left_out(struct work *work)
{
    if (work->chains_left_out)
        output_printf(&work->out, "\n... %" PRIu64 " more pending, in other places (--all)\n", work->chains_left_out);
    work->chains_left_out = 0;
}

static int visit_failed(const struct cdacq_failed_task *task, void *context)
{
    struct work *work = context;
    const struct common_options *common = &work->options->common;
    work->failed_groups++;
    if (call_profile_is_wanted(common))
        return 0;
    tell_left_out(work);
    if (common->json && work->options->failed)
        write_failed_json(work, task);
    else if (!common->json && (common->all || work->failed_groups <= FAILED_SHOWN))
        write_failed_text(work, task);
    else
        work->failed_left_out += task->count;
    return output_failed(&work->out);
}

static int visit_problem(const char *text, void *context)
{
    struct work *work = context;
    return heap_tell_problem(text, &work->problems);
}

static int note_object(const struct cdacq_async_chain *chain, void *context)
{
    struct work *work = context;
    async_holders_add(&work->holders, chain->first_object, chain->operation);
    return 0;
}

/* Before the chains are visited, as a visitor may not use the session. False: some are not known. */
static bool find_holders(struct work *work, const struct opened_target *opened)
{
    const struct cdacq_async_visitor visitor = {.size = sizeof visitor, .chain = note_object, .context = work};
    return !work->options->holders ||
           cdacq_session_visit_async(opened->session, &visitor, NULL, NULL) < 0 || /* which is told below */
           async_holders_find(&work->holders, opened->session, work->out.fd);
}

static bool read_operations(struct work *work, const struct opened_target *opened)
{
    const struct cdacq_async_visitor visitor = {.size = sizeof visitor,
                                                .chain = visit_chain,
                                                .failed = visit_failed,
                                                .problem = visit_problem,
                                                .context = work};
    struct cdacq_error error;
    work->info.size = sizeof work->info;
    enum cdacq_status status = cdacq_session_visit_async(opened->session, &visitor, &work->info, &error);
    target_let_go(opened->target);
    work->out.is_held = false;
    heap_tell_failure(status, "the async operations", &error);
    return status >= 0;
}

/* Returns false if something was left out that should not be. */
static bool write_end(struct work *work, const char *name)
{
    if (call_profile_is_wanted(&work->options->common))
        return call_profile_write(&work->out, &work->paths, &work->options->common, name, "operations");
    if (work->options->common.json)
        return true;
    tell_left_out(work);
    if (work->failed_left_out)
        output_printf(&work->out, "... %" PRIu64 " more failed (--all)\n", work->failed_left_out);
    if (!work->groups && !work->options->failed)
        output_literal(&work->out, "no async operation is pending\n");
    if (!work->failed_groups && work->options->failed)
        output_literal(&work->out, "no task has failed without being observed\n");
    return true;
}

static int show_async(const void *given, const struct opened_target *opened)
{
    struct work *work = allocate(sizeof *work);
    *work = (struct work){.options = given};
    int code = EXIT_FAILED;
    if (!output_open_private(&work->out, work->options->common.output)) { /* texts of exceptions */
        free(work);
        return EXIT_FAILED;
    }
    work->out.is_held = target_is_pid(opened->name); /* a process is stopped */
    answers_init(&work->answers, &work->out, work->options->common.json);
    work->answers.tells_runtime = opened->tells_runtime;
    bool has_holders = find_holders(work, opened);
    bool is_read = read_operations(work, opened);
    bool is_whole = is_read && write_end(work, target_display_name(opened->name));
    heap_tell_more_problems(work->info.problem_count);
    answers_tell_unconfirmed(work->answers.unconfirmed, "method");
    if (output_close_if(&work->out, is_read) && is_read)
        code =
            !is_whole || !has_holders || work->info.problem_count || work->answers.errors ? EXIT_PARTLY : EXIT_ANSWERED;
    call_paths_deinit(&work->paths);
    async_holders_deinit(&work->holders);
    answers_deinit(&work->answers);
    free(work);
    return code;
}

static int run(const void *given)
{
    const struct async_options *options = given;
    const struct common_options *common = &options->common;
    if (common->folded + common->speedscope + common->pprof + (common->json || options->failed || options->holders) >
        1) {
        message("async: give only one of --folded, --speedscope and --pprof, and with it no other of --json, --failed "
                "and --holders");
        return EXIT_USAGE;
    }
    return target_run(&options->common, &(const struct target_use){.run = show_async, .flags = CDACQ_OPEN_STOP});
}

const struct option_row async_rows[] = {
    {"failed", NULL, "show only the failed tasks that nobody has observed; JSON has them only so",
     TO_FLAG(struct async_options, failed)},
    {"holders", NULL, "show what holds the task, semaphore or other object that each innermost method waits for",
     TO_FLAG(struct async_options, holders)},
    {0},
};

const struct command command_async = {
    .name = "async",
    .section = SECTION_PROCESS,
    RUNS(run, struct async_options),
    .operands = OPERANDS({TARGET_OPERAND}),
    .options =
        OPTIONS(whole_rows, json_rows, output_rows, target_rows, names_rows, folded_rows, profile_rows, async_rows),
    .summary = "show every pending async operation, and what it waits for",
    .details = "A process is stopped while it is read. Shows the async methods that have suspended, whether a thread\n"
               "waits for them or not: chains in which each method awaits the one above it, and what the innermost\n"
               "waits for. Equal chains are counted; the most frequent come first. JSON has one object for each.\n",
    .exit_partly = "a part of the heap cannot be read, or a method has no answer",
};
