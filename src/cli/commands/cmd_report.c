/*
 * cmd_report.c: why a process died, hangs or is slow: what it is, the signal, the thread that died, its exception in
 * the words of the runtime, and all stacks.
 */
#include <stdio.h>

#include "src/cli/base/commands.h"
#include "src/cli/base/console.h"
#include "src/cli/base/memory.h"
#include "src/cli/base/next_steps.h"
#include "src/cli/report/report.h"
#include "src/cli/report/report_runtimes.h"
#include "src/cli/report/report_samples.h"
#include "src/cli/report/report_verdict.h"
#include "src/cli/base/stack_writer.h"
#include "src/cli/commands/exceptions.h"
#include "src/cli/commands/heap_holders.h"

struct report_options {
    struct common_options common;
    bool brief, signature, exceptions;
};

enum { NESTED_SHOWN = 64 }; /* exceptions that the thread handled */

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
    enum cdacq_status status =
        cdacq_session_visit_frames(report->session, thread, NULL, CDACQ_FRAMES_ASYNC, visit_frame, work, &error);
    report->doubts.ended += status < 0;
    if (thread->died && !report->dead) {
        report->dead = work->stack;
        report->thread = *thread;
        report->thread.name = NULL;
        report->thread.registers = NULL;
    }
    struct cdacq_thread known = report_known_thread(report, thread);
    stacks_add(&report->stacks, work->stack, &known, status < 0 ? error.message : NULL, thread->died);
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

/* Who holds a lock that is not known may wait for the thread: a deadlock that is not found. */
static int note_unknown_lock(const struct cdacq_wait *wait, void *context)
{
    struct report *report = context;
    if (wait->kind != CDACQ_WAIT_ENTER || wait->object || wait->blocker_tid || wait->blocker_id || wait->readers)
        return 0;
    snprintf(report->waits_error.message, sizeof report->waits_error.message,
             "which lock TID %d waits for is not known", wait->tid);
    report->waits_problem = report->waits_error.message;
    return 1;
}

/* Runtimes whose locks this build cannot read have a report without. */
static void find_waits(struct report *report)
{
    if (!report->graph || cdacq_wait_graph_complete(report->graph, &report->waits_error) < 0)
        report->waits_problem = report->waits_error.message;
    else
        (void)cdacq_wait_graph_visit_waits(report->graph, note_unknown_lock, report, NULL);
    (void)cdacq_wait_graph_visit_deadlocks(report->graph, add_deadlock, report, NULL);
    report_list_deadlocked(report);
    (void)cdacq_wait_graph_get_thread_pool(report->graph, &report->pool, NULL);
}

/* How the runtime of a report ended the process. */
static void find_end(struct report *report)
{
    struct cdacq_error error;
    if (cdacq_session_get_end(report->session, &report->end, &error) < 0)
        report_fail(report, error.message);
}

static void find_cause(struct report *report)
{
    report->cause = report->process.signal ? REPORT_SIGNAL : REPORT_ALIVE;
    if (!report->dead)
        return;
    report_choose_runtime(report, find_end);
    if (!report_has_last_words(report)) /* the process died of a signal, as far as the runtime knows */
        return;
    report->exception = report->end.exception;
    if (report->end.kind == CDACQ_END_UNHANDLED || report->end.kind == CDACQ_END_OUT_OF_MEMORY)
        report->cause = REPORT_UNHANDLED;
    else
        report->cause = REPORT_FATAL;
}

/* What holds the heap of a process that is short of memory. */
static void find_holders(struct report *report)
{
    struct heap_graph graph;
    if (!report->heap.objects || report->heap.has_no_room)
        return;
    if (heap_graph_read(&graph, report->session, -1))
        heap_holders_find(&graph, NULL, -1, &report->heap.holders);
    report->heap.is_partial |= graph.failure || graph.is_under_way;
    heap_graph_deinit(&graph);
}

static void write_signature_line(struct report *report, bool is_one_of_several)
{
    if (is_one_of_several)
        output_text_between(report->answers.out, "", report->target_name, ": ");
    report_write_signature(report);
    output_literal(report->answers.out, "\n");
}

/* Whether `object` is an inner exception of `outer`. */
static bool is_inner(const struct report *report, uint64_t outer, uint64_t object)
{
    struct report_chain chain = {.exception.inner = outer};
    while (chain.exception.inner != object && report_next_inner(report, &chain))
        continue;
    return chain.exception.inner == object;
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

/* The same of the other runtimes: the thread may have called one from a handler of another. */
static void find_nested_of_others(struct report *report)
{
    for (size_t i = 0; i < report->other_count; i++) {
        struct report *other = &report->others[i];
        struct cdacq_error error;
        other->dead = report->dead;
        other->cause = report->cause;
        find_nested(other, &error);
        other->nested_problem = NULL; /* a message has said so */
        report->incomplete += other->incomplete;
        other->dead = NULL;
    }
}

/* What makes the process hang gives the signature where nothing has ended it. */
static bool has_signature(const struct report *report, const struct stack *stack)
{
    return stack == report->dead || (report_may_hang(report) && report_hangs(report, stack));
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
static void tell_doubts(const struct report_options *options, const struct report *report)
{
    const char *mark = options->common.json ? "\"by\":\"guess\"" : "'?'";
    bool has_all_frames = !options->signature && !options->brief;
    stack_doubts_tell(&report->doubts, has_all_frames ? mark : NULL, report->answers.errors);
    if (report->flaws & CDACQ_EXCEPTION_MISSING)
        message("parts of the last words or of an exception's text cannot be read");
    answers_tell_unread(report->answers.unread.count ? &report->answers.unread : &report->unread);
    if (options->signature && report_misses_waits(report)) {
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

static bool any_hangs(const struct report *report)
{
    const struct report *one;
    bool any = false;
    for (size_t next = 0; (one = report_next_runtime(report, &next));)
        any |= one->deadlocks.count || one->pool.starves;
    return any;
}

static int write_report(const struct report_options *options, const struct opened_target *opened, struct report *report)
{
    struct output out;
    if (!output_open_private(&out, options->common.output)) /* texts of exceptions */
        return EXIT_FAILED;
    answers_init(&report->answers, &out, options->common.json);
    report->answers.tells_runtime = opened->tells_runtime;
    out.is_held = target_is_pid(opened->name); /* a process is stopped */
    if (options->signature)
        read_for_signature(report);
    if (options->signature && options->common.json)
        report_write_signature_json(report);
    else if (options->signature)
        write_signature_line(report, opened->is_one_of_several);
    else if (options->common.json)
        report_write_json(report);
    else
        report_write_text(report, options->brief);
    bool says_nothing = options->brief && !options->common.json && !options->signature && !report->dead &&
                        report->cause == REPORT_ALIVE && !any_hangs(report) && !report->process.is_stopped &&
                        !report->process.is_frozen;
    answers_deinit(&report->answers);
    target_let_go(report->target);
    if (!output_close(&out))
        return EXIT_FAILED;
    tell_doubts(options, report);
    if (says_nothing)
        tell_nothing(report);
    bool complete = report_is_complete(report) && !(options->signature && report_misses_waits(report));
    return complete ? EXIT_ANSWERED : EXIT_PARTLY;
}

/* Whether the report has more than why the process ended. */
static bool has_all(const struct report_options *options)
{
    return !options->signature && (options->common.json || !options->brief);
}

/* Searches for async operations if what threads do leaves the question why the process hangs. */
static void find_async(struct report *report)
{
    struct report_verdict verdict;
    if (!report_may_hang(report))
        return;
    report_verdict_form(report, &verdict);
    bool is_open = !strcmp(verdict.kind, "waits") || !strcmp(verdict.kind, "nothing") ||
                   !strcmp(verdict.kind, "signal"); /* by which somebody ended a process that hangs */
    report_verdict_release(&verdict);
    if (is_open)
        report_find_async(report);
}

static int make_report(const void *given, const struct opened_target *opened)
{
    const struct report_options *options = given;
    struct report report = {
        .target_name = target_display_name(opened->name),
        .options = &options->common.open,
        .target = opened->target,
        .session = opened->session,
        .busy = opened->busy,
        .tells_runtime = opened->tells_runtime,
        .facts = {.size = sizeof report.facts},
        .process = {.size = sizeof report.process},
        .end = {.size = sizeof report.end},
        .pool = {.size = sizeof report.pool},
    };
    struct work work = {.report = &report};
    struct cdacq_error error, nested_error, layout;
    bool is_known = cdacq_session_check_layout(opened->session, &layout) >= 0;
    cdacq_target_get_info(cdacq_session_target(opened->session), &report.facts, NULL);
    cdacq_target_get_process_info(opened->target, &report.process, NULL);
    (void)cdacq_wait_graph_create(opened->session, &report.graph, &report.waits_error);
    report.all_stacks = &report.stacks;
    if (report.tells_runtime)
        report_add_runtimes(&report);
    progress_begin(&work.progress, "threads", -1);
    expect_threads(&work.progress, opened->session);
    enum cdacq_status status = cdacq_session_visit_threads(opened->session, visit_thread, &work, &error);
    progress_end(&work.progress);
    if (status < 0)
        report_fail(&report, error.message);
    report_list_stacks(&report);
    report_drop_idle(&report);
    find_waits(&report);
    for (size_t i = 0; i < report.other_count; i++)
        find_waits(&report.others[i]);
    find_cause(&report);
    find_nested(&report, &nested_error);
    find_nested_of_others(&report);
    if (!options->signature)
        report_find_heap(&report);
    find_holders(&report);
    if (has_all(options))
        find_async(&report);
    count_unread(&report);
    int code = write_report(options, opened, &report);
    if (!is_known)
        message("%s", layout.message);
    const char *filter = next_steps_of_filter(&report.facts);
    if (filter)
        message("%s", filter);
    stacks_deinit(&report.stacks);
    report_nested_list_deinit(&report.nested);
    report_deadlocks_deinit(&report.deadlocks);
    report_tids_deinit(&report.deadlocked);
    thread_stacks_deinit(&report.by_tid);
    cdacq_wait_graph_destroy(report.graph);
    heap_holders_deinit(&report.heap.holders);
    report_release_async(&report);
    report_release_runtimes(&report);
    return code == EXIT_ANSWERED && (status < 0 || !is_known) ? EXIT_PARTLY : code;
}

static int run(const void *given)
{
    struct busy_threads busy = {0};
    const struct report_options *options = given;
    const struct target_use use = {.run = make_report,
                                   .flags = CDACQ_OPEN_ALL_RUNTIMES | CDACQ_OPEN_STOP | CDACQ_OPEN_NATIVE,
                                   .no_heading = options->signature,
                                   .busy = has_all(options) ? &busy : NULL,
                                   .watch = report_watch};
    if (options->exceptions ? options->brief || options->signature : options->common.all) {
        message(options->exceptions ? "report: --exceptions shows the exceptions alone: give no --brief or --signature"
                                    : "report: --all is about --exceptions: give both");
        return EXIT_USAGE;
    }
    if (options->exceptions)
        return target_run(&options->common,
                          &(const struct target_use){.run = exceptions_show, .flags = CDACQ_OPEN_STOP});
    int code = target_run(&options->common, &use);
    busy_threads_release(&busy);
    return code;
}

const struct option_row report_rows[] = {
    {"brief", NULL, "report only the signal, the exception and the thread that died",
     TO_FLAG(struct report_options, brief)},
    {"signature", NULL, "print one line that is the same for the same defect",
     TO_FLAG(struct report_options, signature)},
    {"exceptions", NULL, "show the exceptions of all threads and of the heap instead, equal ones together",
     TO_FLAG(struct report_options, exceptions)},
    {0},
};

const struct command command_report = {
    .name = "report",
    .section = SECTION_PROCESS,
    RUNS(run, struct report_options),
    .operands = OPERANDS({TARGET_OPERAND, .repeats = true}),
    .options = OPTIONS(json_rows, output_rows, target_rows, names_rows, whole_rows, report_rows),
    .summary = "show why a process died, hangs or is slow",
    .details = "Shows the program, the signal that ended it, the exception as the runtime prints it, the stack of the\n"
               "thread that died, and the stacks of the others; then what would make the report more complete. Of a\n"
               "running process, it shows who waits for whom, deadlocks, and the threads that use the processors.\n"
               "--signature prints one line: the cause, the type of the exception and the first methods, without what\n"
               "differs from build to build:\n"
               "  unhandled System.NullReferenceException: Demo.Cart.Add < Demo.Program.Main\n"
               "With --json it is an object that also says what the target is: a row for a table of many cores.\n",
    .exit_partly = "a stack is incomplete or a guess, or something could not be read (waits: only with --signature)",
};
