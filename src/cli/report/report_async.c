/*
 * report_async.c: the async operations that are pending, where threads do not show why a process hangs: how many, and
 * the most frequent ones in methods of the program. `cdacq async` shows all.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "src/cli/base/json_writer.h"
#include "src/cli/base/memory.h"
#include "src/cli/report/report.h"
#include "src/cli/report/signature_names.h"
#include "util/base.h"

#define SEARCHED_MAX (UINT64_C(4) << 30) /* bytes of the heap: a process is stopped while it is searched */

static int add_committed(const struct cdacq_heap_segment *segment, void *context)
{
    uint64_t *committed = context;
    *committed += segment->committed - segment->begin;
    return 0;
}

/* The innermost method of the program, which may have called one of the framework; NULL: there is none. */
static const struct cdacq_method *find_program_method(const struct cdacq_async_chain *chain,
                                                      const struct cdacq_method **ret_called)
{
    *ret_called = NULL;
    for (size_t i = 0; i < chain->method_count; i++) {
        if (chain->methods[i].name_length && report_is_of_program(&chain->methods[i]))
            return &chain->methods[i];
        *ret_called = &chain->methods[i];
    }
    return NULL;
}

static void release_group(struct report_async_group *group)
{
    free(group->waits_for);
    free(group->method);
    free(group->file);
    free(group->called);
}

/* The name of a method without its parameters. */
static char *short_name(const struct cdacq_method *method)
{
    struct text name = {0};
    if (method && method->name_length)
        signature_form_name(&name, method->name, method->name_length);
    char *copy = copy_text(name.data);
    text_deinit(&name);
    return copy;
}

/* The most frequent come first; of a deadlock, one more than there is room for takes the place of another. */
static void add_group(struct report_async *async, const struct cdacq_async_chain *chain,
                      const struct cdacq_method *method, const struct cdacq_method *called)
{
    unsigned at = chain->is_cycle ? async->cycles : async->count;
    if (at == REPORT_ASYNC_GROUPS)
        return;
    if (async->count == REPORT_ASYNC_GROUPS)
        release_group(&async->groups[--async->count]);
    for (unsigned i = async->count++; i > at; i--)
        async->groups[i] = async->groups[i - 1];
    async->cycles += chain->is_cycle;
    async->groups[at] = (struct report_async_group){.count = chain->count,
                                                    .waits_for = copy_text(chain->waits_for),
                                                    .method = copy_text(method->name),
                                                    .file = copy_text(method->file),
                                                    .line = method->line,
                                                    .called = short_name(called),
                                                    .is_cycle = chain->is_cycle};
}

/* Keeps where a chain waits that completes what a thread waits for. */
static void add_awaited(struct report_async *async, const struct cdacq_async_chain *chain,
                        const struct cdacq_method *method)
{
    for (unsigned i = 0; i < async->awaited_count; i++) {
        struct report_async_group *group = &async->awaited[i];
        if (group->completes == chain->completes && !group->method) {
            group->method = copy_text(method->name);
            group->file = copy_text(method->file);
            group->line = method->line;
        }
    }
}

/* Notes the tasks that threads wait for. */
static int add_wait(const struct cdacq_wait *wait, void *context)
{
    struct report_async *async = context;
    if (async->awaited_count < REPORT_AWAITED && wait->kind == CDACQ_WAIT_TASK && wait->task_count)
        async->awaited[async->awaited_count++].completes = wait->tasks[wait->task_count - 1].object;
    return 0;
}

struct report_place report_place_of_awaited(const struct report *report, uint64_t object)
{
    const struct report_async *async = &report->async;
    for (unsigned i = 0; object && i < async->awaited_count; i++)
        if (async->awaited[i].completes == object && async->awaited[i].method)
            return report_place_of_group(&async->awaited[i]);
    return (struct report_place){.method = NULL};
}

static int add_chain(const struct cdacq_async_chain *chain, void *context)
{
    struct report_async *async = context;
    const struct cdacq_method *called, *method = find_program_method(chain, &called);
    if (method)
        add_group(async, chain, method, called);
    if (method && chain->completes)
        add_awaited(async, chain, method);
    *(method ? &async->of_program : &async->of_framework) += chain->count;
    return 0;
}

static int add_failed(const struct cdacq_failed_task *task, void *context)
{
    struct report_async *async = context;
    async->failed += task->count;
    return 0;
}

void report_find_async(struct report *report)
{
    struct report_async *async = &report->async;
    uint64_t committed = 0;
    const struct cdacq_heap_visitor segments = {
        .size = sizeof segments, .segment = add_committed, .context = &committed};
    const struct cdacq_async_visitor visitor = {
        .size = sizeof visitor, .chain = add_chain, .failed = add_failed, .context = async};
    struct cdacq_async_info info = {.size = sizeof info};
    if (cdacq_session_visit_heap(report->session, &segments, NULL, NULL) < 0)
        return;
    async->is_too_large = committed > SEARCHED_MAX;
    if (async->is_too_large)
        return;
    (void)cdacq_wait_graph_visit_waits(report->graph, add_wait, async, NULL);
    if (cdacq_session_visit_async(report->session, &visitor, &info, NULL) < 0)
        return;
    async->is_known = true;
    async->is_partial = info.problem_count;
}

void report_release_async(struct report *report)
{
    for (unsigned i = 0; i < report->async.count; i++)
        release_group(&report->async.groups[i]);
    for (unsigned i = 0; i < report->async.awaited_count; i++)
        release_group(&report->async.awaited[i]);
    report->async = (struct report_async){.count = 0};
}

struct report_place report_place_of_group(const struct report_async_group *group)
{
    return (struct report_place){.method = group->method, .file = group->file, .line = group->line};
}

void report_put_group(struct output *out, const struct report_async_group *group)
{
    const struct report_place place = report_place_of_group(group);
    output_printf(out, "%" PRIu64, group->count);
    report_put_in_place(out, &place);
    if (group->called)
        output_note_between(out, ", in a call of ", group->called, "");
    output_note_between(out, ", waiting for: ", group->waits_for, "");
}

void report_write_async_text(const struct report *report, struct output *out)
{
    const struct report_async *async = &report->async;
    uint64_t shown = 0;
    if (async->is_too_large)
        output_literal(out, "\npending async operations were not looked for: the heap is large ('cdacq async')\n");
    bool is_told = report->tells_pending && async->groups[0].count == async->of_program && !async->is_partial;
    if ((!async->of_program || is_told) && !async->failed && !async->is_partial)
        return;
    output_literal(out, "\n");
    output_style(out, STYLE_HEADING);
    output_printf(out, "pending async operations of the program: %" PRIu64 "%s\n", async->of_program,
                  async->is_partial ? " (a part of the heap cannot be read)" : "");
    output_style(out, STYLE_NONE);
    for (unsigned i = 0; i < async->count; i++) {
        output_literal(out, "  ");
        report_put_group(out, &async->groups[i]);
        output_literal(out, "\n");
        shown += async->groups[i].count;
    }
    if (shown < async->of_program)
        output_printf(out, "  %" PRIu64 " more in other places ('cdacq async')\n", async->of_program - shown);
    if (async->failed)
        output_printf(out, "  %" PRIu64 " task%s failed, and nobody has observed %s ('cdacq async --failed')\n",
                      async->failed, async->failed == 1 ? " has" : "s have",
                      async->failed == 1 ? "its exception" : "their exceptions");
}

void report_write_async_json(const struct report *report, struct json_writer *w)
{
    const struct report_async *async = &report->async;
    if (!async->is_known && !async->is_too_large) {
        json_null(w, "async");
        return;
    }
    json_begin_object(w, "async");
    json_bool(w, "heap_too_large", async->is_too_large);
    json_number(w, "of_program", async->of_program);
    json_number(w, "of_framework", async->of_framework);
    json_number(w, "failed", async->failed);
    json_bool(w, "partial", async->is_partial);
    json_begin_array(w, "groups");
    for (unsigned i = 0; i < async->count; i++) {
        const struct report_place place = report_place_of_group(&async->groups[i]);
        json_begin_object(w, NULL);
        json_number(w, "count", async->groups[i].count);
        json_note(w, "waits_for", async->groups[i].waits_for);
        json_note(w, "called", async->groups[i].called);
        json_bool(w, "deadlock", async->groups[i].is_cycle);
        report_write_place_members(w, &place);
        json_end_object(w);
    }
    json_end_array(w);
    json_end_object(w);
}
