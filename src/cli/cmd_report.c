/*
 * cmd_report.c: why a process died, hangs or is slow: what it is, the signal, the thread that died, its exception in
 * the words of the runtime, and all stacks.
 */
#include "src/cli/commands.h"
#include "src/cli/console.h"
#include "src/cli/memory.h"
#include "src/cli/report.h"
#include "src/cli/stack_writer.h"

enum {
    INNER_MAX = 64,
    NESTED_SHOWN = 64, /* exceptions that the thread handled */
};

struct work {
    struct report *report;
    struct progress progress;
    struct stack *stack; /* the one that is being visited */
};

static int visit_frame(const struct cdacq_frame *frame, void *context)
{
    struct work *work = context;
    stack_doubts_add(&work->report->doubts, frame);
    stack_add_frame(&work->report->stacks, work->stack, frame); /* first: the next call ends the life of its texts */
    cdacq_wait_graph_add_frame(work->report->graph, frame);
    return 0;
}

static int visit_thread(const struct cdacq_thread *thread, void *context)
{
    struct work *work = context;
    struct report *report = work->report;
    struct cdacq_error error;
    work->stack = stack_new();
    cdacq_wait_graph_add_thread(report->graph, thread);
    enum cdacq_status status = cdacq_session_visit_frames(report->session, thread, NULL, 0, visit_frame, work, &error);
    report->doubts.ended += status < 0;
    if (thread->died && !report->dead) {
        report->dead = work->stack;
        report->thread = *thread;
        report->thread.name = NULL;
        report->thread.registers = NULL;
    }
    stacks_add(&report->stacks, work->stack, thread, status < 0 ? error.message : NULL, thread->died);
    progress_step(&work->progress, ++report->doubts.stacks);
    return 0;
}

static int add_deadlock(const struct cdacq_deadlock *deadlock, void *context)
{
    struct report *report = context;
    if (!report_deadlocks_append(&report->deadlocks, deadlock))
        out_of_memory();
    return 0;
}

/* Runtimes whose locks this build cannot read have a report without. `error`: of creating the graph, if that failed. */
static void find_waits(struct report *report, struct cdacq_error *error)
{
    if (!report->graph || cdacq_wait_graph_complete(report->graph, error) < 0)
        report->waits_problem = error->message;
    (void)cdacq_wait_graph_visit_deadlocks(report->graph, add_deadlock, report, NULL);
    report_list_deadlocked(report);
    (void)cdacq_wait_graph_get_thread_pool(report->graph, &report->pool, NULL);
}

static void find_cause(struct report *report)
{
    struct cdacq_error error;
    report->cause = report->process.signal ? REPORT_SIGNAL : REPORT_ALIVE;
    if (!report->dead)
        return;
    if (cdacq_session_get_end(report->session, &report->end, &error) < 0)
        report_fail(report, error.message);
    if (!report_has_last_words(report)) /* the process died of a signal, as far as the runtime knows */
        return;
    report->exception = report->end.exception;
    if (report->end.kind == CDACQ_END_UNHANDLED || report->end.kind == CDACQ_END_OUT_OF_MEMORY)
        report->cause = REPORT_UNHANDLED;
    else
        report->cause = REPORT_FATAL;
}

static void write_signature_line(const struct invocation *invocation, struct report *report)
{
    if (invocation->is_one_of_several)
        output_text_between(report->answers.out, "", report->target_name, ": ");
    report_write_signature(report);
    output_literal(report->answers.out, "\n");
}

/* Whether `object` is an inner exception of `outer`. */
static bool is_inner(const struct report *report, uint64_t outer, uint64_t object)
{
    struct cdacq_exception exception = {.size = sizeof exception, .inner = outer};
    for (unsigned i = 0; i < INNER_MAX && exception.inner && exception.inner != object; i++)
        if (cdacq_session_get_exception(report->session, exception.inner, &exception, NULL) < 0)
            return false;
    return exception.inner == object;
}

/* Adds an exception that the report does not have yet: one that was thrown again is the same. */
static void add_exception(struct report *report, struct report_nested nested)
{
    bool known = !nested.object || nested.object == report->exception;
    for (size_t i = 0; i < report->nested.count && !known; i++)
        known = report->nested.items[i].object == nested.object;
    if (!known && !report_nested_list_append(&report->nested, nested))
        out_of_memory();
}

static int add_nested(const struct cdacq_nested_exception *nested, void *context)
{
    struct report *report = context;
    bool overflow = report->end.kind == CDACQ_END_STACK_OVERFLOW && nested->object == report->thread.last_thrown;
    if (!overflow) /* which nothing handles */
        add_exception(report, (struct report_nested){.object = nested->object});
    return report->nested.count == NESTED_SHOWN;
}

/* The exceptions that the thread handled as it died. */
static void find_nested(struct report *report, struct cdacq_error *error)
{
    if (!report->dead || !report->thread.thread)
        return;
    enum cdacq_status status =
        cdacq_session_visit_nested_exceptions(report->session, report->thread.thread, add_nested, report, error);
    if (status < 0 && status != CDACQ_ERR_CONTRACT) {
        report->nested_problem = error->message;
        report_fail(report, error->message);
    }
    if (report->end.kind == CDACQ_END_TERMINATED)
        add_exception(report, (struct report_nested){.object = report->end.exception, .is_last = true});
    for (size_t i = 0; i < report->nested.count; i++) {
        struct report_nested *nested = &report->nested.items[i];
        nested->shown = is_inner(report, report->exception, nested->object);
        for (size_t j = 0; j < i && !nested->shown; j++)
            nested->shown = is_inner(report, report->nested.items[j].object, nested->object);
    }
}

/* What makes the process hang gives the signature where nothing has ended it. */
static bool has_signature(const struct report *report, const struct stack *stack)
{
    return stack == report->dead || (report->cause == REPORT_ALIVE && report_hangs(report, stack));
}

/* A name that is missing makes another signature of the same defect. Recursion counts once, as in the text. */
static void count_unread(struct report *report)
{
    for (size_t i = 0; i < report->stacks.list.count; i++) {
        const struct stack *stack = report->stacks.list.items[i];
        size_t count = has_signature(report, stack) ? stack->frames.count : 0;
        struct stack_run run;
        for (size_t first = 0; first < count; first += run.period * run.count) {
            run = stack_run_at(stack, first);
            for (size_t k = 0; k < run.period; k++)
                answers_count_unread(&report->unread, &stack->frames.items[first + k].shared->method);
        }
    }
}

/* The signature alone shows neither frames nor texts: finds what cannot be read of them. */
static void read_for_signature(struct report *report)
{
    struct cdacq_error error;
    unsigned flaws = 0;
    for (size_t i = 0; report->dead && i < report->dead->frames.count; i++)
        report->answers.errors += report->dead->frames.items[i].shared->method.answer == CDACQ_ANSWER_ERROR;
    if (!report_has_last_words(report))
        return;
    if (cdacq_session_write_last_words(report->session, output_ignore_text, NULL, &flaws, &error) < 0)
        report_fail(report, error.message);
    report->flaws |= flaws;
}

/* Why the exit status is not 0. Who reads the output alone may miss it, and a signature has no room for it. */
static void tell_doubts(const struct invocation *invocation, const struct report *report)
{
    const char *mark = invocation->json ? "\"by\":\"guess\"" : "'?'";
    bool has_all_frames = !invocation->signature && !invocation->brief;
    stack_doubts_tell(&report->doubts, has_all_frames ? mark : NULL, report->answers.errors);
    if (report->flaws & CDACQ_EXCEPTION_MISSING)
        message("parts of the last words or of an exception's text cannot be read");
    answers_tell_unread(report->answers.unread.count ? &report->answers.unread : &report->unread);
    if (invocation->signature && report_misses_waits(report)) {
        bool why = !message_was_shown(report->waits_problem);
        message("a deadlock may have been missed%s%s", why ? ": " : "", why ? report->waits_problem : "");
    }
}

/* A brief report of a process that lives, and in which no deadlock was found. */
static void tell_nothing(const struct report *report)
{
    const char *problem = report->waits_problem;
    bool why = problem && !message_was_shown(problem);
    notice("%s: nothing says that the process died%s%s%s%s; without --brief, there is more", report->target_name,
           problem ? "; a deadlock may have been missed" : ", and no deadlock of locks, tasks and threads was found",
           why ? " (" : "", why ? problem : "", why ? ")" : "");
}

static int write_report(const struct invocation *invocation, struct report *report)
{
    struct output out;
    if (!output_open(&out, invocation->output))
        return EXIT_FAILED;
    answers_init(&report->answers, &out, invocation->json);
    out.is_held = target_is_pid(invocation->targets[0]); /* a process is stopped */
    if (invocation->signature)
        read_for_signature(report);
    if (invocation->signature && invocation->json)
        report_write_signature_json(report);
    else if (invocation->signature)
        write_signature_line(invocation, report);
    else if (invocation->json)
        report_write_json(report);
    else
        report_write_text(report, invocation->brief);
    bool says_nothing = invocation->brief && !invocation->json && !invocation->signature && !report->dead &&
                        report->cause == REPORT_ALIVE && !report->deadlocks.count && !report->pool.starves &&
                        !report->process.is_stopped && !report->process.is_frozen;
    answers_deinit(&report->answers);
    cdacq_target_resume(report->target);
    if (!output_close(&out))
        return EXIT_FAILED;
    tell_doubts(invocation, report);
    if (says_nothing)
        tell_nothing(report);
    bool complete = report_is_complete(report) && !(invocation->signature && report_misses_waits(report));
    return complete ? EXIT_ANSWERED : EXIT_PARTLY;
}

static int make_report(const struct invocation *invocation, struct cdacq_target *target, struct cdacq_session *session)
{
    struct report report = {
        .target_name = target_display_name(invocation->targets[0]),
        .options = &invocation->options,
        .target = target,
        .session = session,
        .busy = invocation->busy,
        .facts = {.size = sizeof report.facts},
        .process = {.size = sizeof report.process},
        .end = {.size = sizeof report.end},
        .pool = {.size = sizeof report.pool},
    };
    struct work work = {.report = &report};
    struct cdacq_error error, waits_error, nested_error;
    cdacq_target_get_info(target, &report.facts, NULL);
    cdacq_target_get_process_info(target, &report.process, NULL);
    (void)cdacq_wait_graph_create(session, &report.graph, &waits_error);
    progress_begin(&work.progress, "threads", -1);
    expect_threads(&work.progress, session);
    enum cdacq_status status = cdacq_session_visit_threads(session, visit_thread, &work, &error);
    progress_end(&work.progress);
    if (status < 0)
        report_fail(&report, error.message);
    find_waits(&report, &waits_error);
    find_cause(&report);
    find_nested(&report, &nested_error);
    count_unread(&report);
    int code = write_report(invocation, &report);
    stacks_deinit(&report.stacks);
    report_nested_list_deinit(&report.nested);
    report_deadlocks_deinit(&report.deadlocks);
    report_tids_deinit(&report.deadlocked);
    cdacq_wait_graph_destroy(report.graph);
    return code == EXIT_ANSWERED && status < 0 ? EXIT_PARTLY : code;
}

int cmd_report(const struct invocation *invocation)
{
    struct busy_threads busy = {0};
    struct invocation measured = *invocation;
    bool has_all = !invocation->signature && (invocation->json || !invocation->brief);
    measured.busy = has_all ? &busy : NULL;
    int code = target_run(&measured, CDACQ_OPEN_STOP, make_report);
    busy_threads_release(&busy);
    return code;
}
