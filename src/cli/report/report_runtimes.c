#include "src/cli/report/report_runtimes.h"

#include <stdlib.h>

#include "src/cli/base/memory.h"
#include "src/cli/base/runtimes.h"

static int visit_frame(const struct cdacq_frame *frame, void *context)
{
    const struct report *report = context;
    cdacq_wait_graph_add_frame(report->graph, frame);
    return 0;
}

/* Only the runtime's own threads have frames that matter to it. */
static int visit_thread(const struct cdacq_thread *thread, void *context)
{
    struct report *report = context;
    struct cdacq_thread copy = *thread;
    if (!thread->thread)
        return 0;
    cdacq_wait_graph_add_thread(report->graph, thread);
    (void)cdacq_session_visit_frames(report->session, thread, NULL, CDACQ_FRAMES_ASYNC, visit_frame, report, NULL);
    copy.name = NULL;
    copy.registers = NULL;
    if (thread->died && !report->thread.tid)
        report->thread = copy;
    if (!report_thread_list_append(&report->threads, copy))
        out_of_memory();
    return 0;
}

static void add_runtime(struct report *report, struct report *other, struct cdacq_session *session)
{
    struct cdacq_error error;
    *other = (struct report){
        .target_name = report->target_name,
        .options = report->options,
        .target = cdacq_session_target(session),
        .session = session,
        .tells_runtime = true,
        .all_stacks = &report->stacks,
        .process = report->process,
        .facts = {.size = sizeof other->facts},
        .end = {.size = sizeof other->end},
        .pool = {.size = sizeof other->pool},
    };
    cdacq_target_get_info(other->target, &other->facts, NULL);
    if (cdacq_session_check_layout(session, &error) < 0)
        report_fail(report, error.message);
    (void)cdacq_wait_graph_create(session, &other->graph, &other->waits_error);
    if (cdacq_session_visit_threads(session, visit_thread, other, &error) < 0)
        report_fail(report, error.message);
}

void report_add_runtimes(struct report *report)
{
    struct cdacq_session *session;
    unsigned count = cdacq_target_runtime_count(report->target);
    report->others = allocate(count * sizeof *report->others);
    for (unsigned next = 0; (session = runtimes_next(report->session, &next));)
        if (session != report->session)
            add_runtime(report, &report->others[report->other_count++], session);
}

struct cdacq_thread report_known_thread(const struct report *report, const struct cdacq_thread *thread)
{
    struct cdacq_thread known = *thread;
    for (size_t i = 0; i < report->other_count && !known.thread; i++) {
        const struct report_thread_list *threads = &report->others[i].threads;
        for (size_t k = 0; k < threads->count && !known.thread; k++)
            if (threads->items[k].tid == thread->tid) {
                known = threads->items[k];
                known.name = thread->name;
                known.registers = thread->registers;
            }
    }
    return known;
}

/* Moves what a report has for its runtime alone. */
static void move_runtime(struct report *to, const struct report *from)
{
    to->target = from->target;
    to->session = from->session;
    to->facts = from->facts;
    to->thread = from->thread;
    to->end = from->end;
    to->graph = from->graph;
    to->deadlocks = from->deadlocks;
    to->deadlocked = from->deadlocked;
    to->pool = from->pool;
    to->waits_error = from->waits_error;
    to->waits_problem = from->waits_problem ? to->waits_error.message : NULL;
    to->threads = from->threads;
}

/* How well it is known that the runtime ended the process. */
static unsigned certainty(const struct report *report)
{
    if (report->end.kind == CDACQ_END_NONE)
        return 0;
    return report->end.kind == CDACQ_END_TERMINATED || report->end.flaws & CDACQ_EXCEPTION_INFERRED ? 1 : 2;
}

void report_choose_runtime(struct report *report, void (*find)(struct report *report))
{
    struct report *found = report;
    find(report);
    for (size_t i = 0; i < report->other_count; i++) {
        find(&report->others[i]);
        if (certainty(&report->others[i]) > certainty(found))
            found = &report->others[i];
    }
    if (found != report) {
        const struct report both = *report;
        move_runtime(report, found);
        move_runtime(found, &both);
    }
}

void report_release_runtimes(struct report *report)
{
    for (size_t i = 0; i < report->other_count; i++) {
        struct report *other = &report->others[i];
        report_nested_list_deinit(&other->nested);
        report_deadlocks_deinit(&other->deadlocks);
        report_tids_deinit(&other->deadlocked);
        report_thread_list_deinit(&other->threads);
        cdacq_wait_graph_destroy(other->graph);
    }
    report_thread_list_deinit(&report->threads);
    free(report->others);
}
