/*
 * cmd_work.c: shows what a process has yet to do besides its async methods: the work items in the queues of the thread
 * pool, timers, and HTTP requests in flight. The process is stopped while its heap is read.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/cli/base/commands.h"
#include "src/cli/base/console.h"
#include "src/cli/base/heap_messages.h"
#include "src/cli/base/json_writer.h"
#include "src/cli/base/memory.h"
#include "src/cli/base/output.h"
#include "util/base.h"

enum {
    ROWS_SHOWN = 16, /* of each kind, without --all */
};

/* The rows of one kind, of which the text shows the first. */
struct section {
    uint64_t rows;
    uint64_t left_out; /* what the rows that are not shown stand for */
};

struct work {
    const struct common_options *options;
    struct output out;
    struct cdacq_work_info info;
    struct section items, timers, sent, served;
    struct section *open; /* the one that is being written */
    struct heap_problem_teller problems;
};

/* ---- Text ---- */

static void end_section(struct work *work)
{
    if (work->open && work->open->left_out)
        output_printf(&work->out, "  ... %" PRIu64 " more (--all)\n", work->open->left_out);
    work->open = NULL;
}

/* Begins the row of a section, which stands for `count`. False if it is not shown. */
static bool begin_row(struct work *work, struct section *section, const char *heading, uint64_t count)
{
    bool is_shown = work->options->all || section->rows < ROWS_SHOWN;
    if (work->open != section) {
        end_section(work);
        if (work->out.length)
            output_literal(&work->out, "\n");
        output_styled(&work->out, STYLE_HEADING, heading);
        output_literal(&work->out, "\n");
        work->open = section;
    }
    section->rows++;
    section->left_out += is_shown ? 0 : count;
    return is_shown;
}

static void put_seconds(struct output *out, int64_t ms)
{
    output_printf(out, "%.1f", (double)ms / 1000);
}

static void write_item_text(struct work *work, const struct cdacq_work_item *item)
{
    struct output *out = &work->out;
    if (!begin_row(work, &work->items, "work items in the queues of the thread pool", item->count))
        return;
    output_printf(out, "%6" PRIu64 "  %s", item->count, cdacq_work_kind_text(item->kind));
    if (item->method)
        output_note_between(out, " ", item->method, "");
    if (!item->method || item->kind == CDACQ_WORK_OTHER)
        output_note_between(out, " ", item->type ? item->type : "?", "");
    output_literal(out, "\n");
}

/* Of a core, a timer can be later than that. */
static void put_due(struct output *out, const struct cdacq_timer *timer)
{
    bool is_late = timer->first_due_ms < 0;
    output_literal(out, is_late ? ", " : timer->is_exact ? ", due in " : ", due in at most ");
    put_seconds(out, is_late ? -timer->first_due_ms : timer->first_due_ms);
    if (is_late) {
        output_literal(out, timer->is_exact ? " s late" : " s late, or more");
        return;
    }
    if (timer->last_due_ms != timer->first_due_ms) {
        output_literal(out, " to ");
        put_seconds(out, timer->last_due_ms);
    }
    output_literal(out, " s");
}

static void write_timer_text(struct work *work, const struct cdacq_timer *timer)
{
    struct output *out = &work->out;
    if (!begin_row(work, &work->timers, "timers", timer->count))
        return;
    output_printf(out, "%6" PRIu64 "  ", timer->count);
    output_note(out, timer->callback ? timer->callback : "?");
    put_due(out, timer);
    if (timer->period_ms >= 0) {
        output_literal(out, ", then every ");
        put_seconds(out, timer->period_ms);
        output_literal(out, " s");
    }
    output_literal(out, "\n");
}

static void write_request_text(struct work *work, const struct cdacq_http_request *request)
{
    struct output *out = &work->out;
    if (!begin_row(work, request->is_served ? &work->served : &work->sent,
                   request->is_served ? "HTTP requests that the process serves"
                                      : "HTTP requests that the process has sent",
                   1))
        return;
    output_literal(out, "  ");
    output_note(out, request->request ? request->request : "?");
    if (request->has_elapsed) {
        output_literal(out, request->is_exact ? ", for " : ", for at least ");
        put_seconds(out, request->elapsed_ms);
        output_literal(out, " s");
    }
    output_printf(out, " (0x%" PRIx64 ")\n", request->object);
}

/* ---- JSON ---- */

static void write_item_json(struct work *work, const struct cdacq_work_item *item)
{
    struct json_writer writer = json_begin_line(&work->out), *w = &writer;
    json_string(w, "kind", "work_item");
    json_string(w, "item", cdacq_work_kind_text(item->kind));
    json_note(w, "method", item->method);
    json_note(w, "type", item->type);
    json_number(w, "count", item->count);
    json_address(w, "object", item->object);
    json_end_line(w);
}

static void write_signed(struct json_writer *w, const char *key, int64_t value)
{
    enum { SIZE = 24 };
    char *at = json_begin_value(w, key, SIZE);
    output_commit(w->out, at + snprintf(at, SIZE, "%" PRId64, value));
}

static void write_timer_json(struct work *work, const struct cdacq_timer *timer)
{
    struct json_writer writer = json_begin_line(&work->out), *w = &writer;
    json_string(w, "kind", "timer");
    json_note(w, "callback", timer->callback);
    json_known_number(w, "period_ms", timer->period_ms >= 0, (uint64_t)timer->period_ms);
    json_number(w, "count", timer->count);
    write_signed(w, "first_due_ms", timer->first_due_ms);
    write_signed(w, "last_due_ms", timer->last_due_ms);
    json_bool(w, "exact", timer->is_exact);
    json_address(w, "object", timer->object);
    json_end_line(w);
}

static void write_request_json(struct work *work, const struct cdacq_http_request *request)
{
    struct json_writer writer = json_begin_line(&work->out), *w = &writer;
    json_string(w, "kind", "http_request");
    json_bool(w, "served", request->is_served);
    json_note(w, "request", request->request);
    json_known_number(w, "elapsed_ms", request->has_elapsed, (uint64_t)request->elapsed_ms);
    json_bool(w, "exact", request->is_exact);
    json_address(w, "object", request->object);
    json_end_line(w);
}

/* ---- The command ---- */

static int visit_item(const struct cdacq_work_item *item, void *context)
{
    struct work *work = context;
    (work->options->json ? write_item_json : write_item_text)(work, item);
    return output_failed(&work->out);
}

static int visit_timer(const struct cdacq_timer *timer, void *context)
{
    struct work *work = context;
    (work->options->json ? write_timer_json : write_timer_text)(work, timer);
    return output_failed(&work->out);
}

static int visit_request(const struct cdacq_http_request *request, void *context)
{
    struct work *work = context;
    (work->options->json ? write_request_json : write_request_text)(work, request);
    return output_failed(&work->out);
}

static int visit_problem(const char *text, void *context)
{
    struct work *work = context;
    return heap_tell_problem(text, &work->problems);
}

static bool read_work(struct work *work, const struct opened_target *opened)
{
    const struct cdacq_work_visitor visitor = {.size = sizeof visitor,
                                               .item = visit_item,
                                               .timer = visit_timer,
                                               .request = visit_request,
                                               .problem = visit_problem,
                                               .context = work};
    struct cdacq_error error;
    work->info.size = sizeof work->info;
    enum cdacq_status status = cdacq_session_visit_work(opened->session, &visitor, &work->info, &error);
    target_let_go(opened->target);
    work->out.is_held = false;
    heap_tell_failure(status, "the work of the process", &error);
    return status >= 0;
}

static void write_end(struct work *work)
{
    if (work->options->json)
        return;
    end_section(work);
    if (!work->info.item_count && !work->info.timer_count && !work->info.request_count)
        output_literal(&work->out, work->info.problem_count
                                       ? "no work item, timer or HTTP request was found\n"
                                       : "no work item is queued, no timer runs, and no HTTP request is in flight\n");
}

static int show_work(const void *given, const struct opened_target *opened)
{
    struct work *work = allocate(sizeof *work);
    *work = (struct work){.options = given};
    int code = EXIT_FAILED;
    if (!output_open_private(&work->out, work->options->output)) { /* addresses of requests */
        free(work);
        return EXIT_FAILED;
    }
    work->out.is_held = target_is_pid(opened->name); /* a process is stopped */
    bool is_read = read_work(work, opened);
    if (is_read)
        write_end(work);
    heap_tell_more_problems(work->info.problem_count);
    if (output_close_if(&work->out, is_read) && is_read)
        code = work->info.problem_count ? EXIT_PARTLY : EXIT_ANSWERED;
    free(work);
    return code;
}

static int run(const void *given)
{
    const struct common_options *options = given;
    return target_run(options, &(const struct target_use){.run = show_work, .flags = CDACQ_OPEN_STOP});
}

const struct command command_work = {
    .name = "work",
    .section = SECTION_PROCESS,
    RUNS(run, struct common_options),
    .operands = OPERANDS({TARGET_OPERAND}),
    .options = OPTIONS(whole_rows, json_rows, output_rows, target_rows),
    .summary = "show queued work items, timers and HTTP requests in flight",
    .details =
        "A process is stopped while it is read. Shows the work items in the queues of the thread pool by what they\n"
        "run, the timers with callback, time and period, and the HTTP requests that HttpClient has sent or that\n"
        "Kestrel serves. JSON has one object for each row.\n",
    .exit_partly = "a part of the heap cannot be read, or a library is of an unknown version",
};
