/*
 * report_verdict.c: what a report says first: what is wrong, where, who has to go on first, how sure that is, and which
 * command shows more. It is formed from what the report has already. Of a process that has not ended by itself, the
 * worst comes first: what stops it from outside, a deadlock, a lock whose owner has ended, a thread that delays a
 * suspension, a thread pool that starves, a lock that threads wait for, or a thread that is busy.
 */
#include <inttypes.h>
#include <signal.h>

#include "src/cli/report/report_verdict.h"
#include "src/cli/report/report_waiting.h"
#include "src/cli/report/signature_names.h"
#include "src/cli/report/wait_lines.h"
#include "util/base.h"

enum {
    INNER_SHOWN = 16, /* exceptions in each other */
    IPS_MAX = 64,     /* of one stack trace */
    CYCLE_SHOWN = 4,  /* threads that wait for each other */
    BUSY_PERCENT = 50 /* of a processor; less is usual in a process that works */
};

/* ---- Texts ---- */

/* A thread and where it is in the program. */
static void put_thread_in_place(const struct report *report, struct output *out, int tid, const char *name)
{
    const struct report_place place = report_place_of(report, tid);
    report_put_thread(out, tid, name);
    report_put_in_place(out, &place);
}

/* A command for the stack of a thread; `tid` 0: of all. */
static void put_command(struct report_verdict *verdict, const struct report *report, const char *command, int tid)
{
    output_printf(&verdict->next, "cdacq %s", command);
    output_text_between(&verdict->next, " ", report->target_name, "");
    if (tid)
        output_printf(&verdict->next, " --thread %d", tid);
}

static void say_of_one_moment(struct report_verdict *verdict)
{
    verdict->certainty = "moment";
    output_literal(&verdict->sure, "true at this moment; a second report shows whether it lasts");
}

/* ---- The end of the process ---- */

struct ips {
    uint64_t items[IPS_MAX];
    size_t count;
};

static int add_ip(const struct cdacq_exception_frame *frame, void *context)
{
    struct ips *ips = context;
    ips->items[ips->count++] = frame->ip;
    return ips->count == IPS_MAX;
}

/* Finds the innermost method of the program in the stack trace of an exception. */
static bool find_throwing(const struct report *report, uint64_t exception, struct report_place *ret)
{
    struct ips ips = {.count = 0};
    (void)cdacq_session_visit_exception_frames(report->session, exception, add_ip, &ips, NULL);
    for (size_t i = 0; i < ips.count; i++) {
        struct cdacq_method method = {.size = sizeof method};
        if (cdacq_session_method_at(report->session, ips.items[i], &method, NULL) != CDACQ_OK || !method.name_length ||
            signature_is_of_framework(method.name, method.name_length))
            continue;
        *ret = report_place_of_method(&method);
        return true;
    }
    return false;
}

/* The types of an exception and of its inner ones. Where: of the innermost one that the program threw. */
static void put_exception(struct report_verdict *verdict, const struct report *report)
{
    struct report_chain chain = {.exception.inner = report->exception};
    const struct cdacq_exception *exception = &chain.exception;
    struct report_place place;
    while (chain.count < INNER_SHOWN && report_next_inner(report, &chain)) {
        output_note_between(&verdict->what, chain.count > 1 ? ", caused by " : ": ",
                            exception->type ? exception->type : "?", "");
        if (find_throwing(report, exception->address, &place))
            verdict->place = place;
    }
}

static const char *end_text(enum cdacq_end_kind kind)
{
    static const char *const texts[] = {
        [CDACQ_END_FAIL_FAST] = "the program ended itself with Environment.FailFast, or an assertion failed",
        [CDACQ_END_STACK_OVERFLOW] = "the stack of a thread overflowed, as it does by endless recursion",
        [CDACQ_END_FATAL] =
            "the runtime ended the process: managed code accessed invalid memory, or the runtime failed",
    };
    const char *text = (size_t)kind < ARRAY_SIZE(texts) ? texts[kind] : NULL;
    return text ? text : "the runtime ended the process";
}

const char *report_signal_reason(const struct report *report)
{
    int code = report->process.signal_code;
    if (report->process.signal == SIGSEGV && code == SEGV_MAPERR)
        return "nothing is mapped there";
    if (report->process.signal == SIGSEGV && code == SEGV_ACCERR)
        return "the access is not permitted";
    if (report->process.signal == SIGSEGV && code == SI_KERNEL)
        return "of an address that no memory can have: a wild pointer or a damaged heap";
    if (report->process.signal == SIGBUS && code == BUS_ADRERR)
        return "beyond the end of a file that is mapped";
    if (report->process.signal == SIGFPE && code == FPE_INTDIV)
        return "integer division by zero";
    return NULL;
}

static void judge_signal(struct report_verdict *verdict, const struct report *report)
{
    const struct cdacq_process_info *process = &report->process;
    bool by_another = process->sender_pid && process->sender_pid != process->pid;
    char text[SIGNAL_TEXT_SIZE];
    verdict->kind = "signal";
    output_printf(&verdict->what, "%s ended the process", signal_text(process->signal, text));
    if (process->has_signal_address)
        output_printf(&verdict->what, " at address 0x%" PRIx64, process->signal_address);
    if (report_signal_reason(report))
        output_printf(&verdict->what, ": %s", report_signal_reason(report));
    if (by_another)
        output_printf(&verdict->by, "process %d of user %u, which sent the signal", process->sender_pid,
                      process->sender_uid);
    else if (process->abort_message)
        output_text(&verdict->by, process->abort_message);
}

/* The code in which a thread died, where that is native. */
static void put_native_code(struct report_verdict *verdict, const struct stack *stack)
{
    const struct cdacq_frame *frame = stack->frames.count ? &stack->frames.items[0].shared->frame : NULL;
    if (!frame || frame->method || verdict->by.length || (!frame->symbol && !frame->module))
        return;
    output_text_between(&verdict->by, "native code: ", frame->symbol ? frame->symbol : "a function without a name", "");
    if (frame->module)
        output_text_between(&verdict->by, " (", path_basename(frame->module), ")");
}

static void judge_end(struct report_verdict *verdict, const struct report *report)
{
    bool is_signal = report->cause == REPORT_SIGNAL;
    verdict->tid = report->dead ? report->thread.tid : 0;
    if (report->cause == REPORT_UNHANDLED) {
        verdict->kind = "unhandled";
        output_literal(&verdict->what, report->end.kind == CDACQ_END_OUT_OF_MEMORY
                                           ? "the process ended because it had no memory"
                                           : "an unhandled exception ended the process");
        put_exception(verdict, report);
    } else if (is_signal) {
        judge_signal(verdict, report);
    } else {
        verdict->kind = report->end.kind == CDACQ_END_STACK_OVERFLOW ? "stack_overflow" : "fatal";
        output_literal(&verdict->what, end_text(report->end.kind));
        put_exception(verdict, report);
    }
    if (!verdict->place.method)
        verdict->place = report_place_on_stack(report->dead);
    if (is_signal && report->dead)
        put_native_code(verdict, report->dead);
    bool is_inferred = report->end.flaws & CDACQ_EXCEPTION_INFERRED;
    verdict->certainty = is_inferred ? "likely" : "certain";
    output_literal(&verdict->sure, is_inferred ? "a part was found by a search of the stack and can be wrong"
                                   : is_signal ? "the kernel recorded the signal"
                                               : "the runtime recorded it");
    put_command(verdict, report, "stack --managed", verdict->tid);
}

/* ---- What stops the process from outside ---- */

static bool judge_outside(struct report_verdict *verdict, const struct report *report)
{
    const struct cdacq_process_info *process = &report->process;
    if (!process->is_stopped && !process->is_frozen)
        return false;
    verdict->kind = process->is_stopped ? "stopped" : "frozen";
    verdict->certainty = "certain";
    output_literal(&verdict->what, process->is_stopped ? "a signal such as SIGSTOP has stopped the process"
                                                       : "the freezer of its control group holds the process");
    output_literal(&verdict->sure, "the kernel says so");
    if (process->is_stopped)
        output_printf(&verdict->next, "kill -CONT %d", process->pid);
    else
        output_literal(&verdict->next, "docker unpause, or write 0 to cgroup.freeze of the control group");
    return true;
}

/* ---- Deadlocks ---- */

/* The first thread of the cycle that has a place: the main thread has none if it has left Main. */
static size_t first_with_place(const struct report *report, const struct cdacq_deadlock *deadlock)
{
    for (size_t i = 0; i < deadlock->count; i++)
        if (report_place_of(report, deadlock->waits[i]->tid).method)
            return i;
    return 0;
}

static bool judge_deadlock(struct report_verdict *verdict, const struct report *report)
{
    if (!report->deadlocks.count)
        return false;
    const struct cdacq_deadlock *deadlock = report->deadlocks.items[0];
    verdict->kind = "deadlock";
    output_printf(&verdict->what, "deadlock: %zu thread%s for each other", deadlock->count,
                  deadlock->count == 1 ? " waits for itself and not" : "s wait");
    if (report->deadlocks.count > 1)
        output_printf(&verdict->what, "; %zu more deadlock%s below", report->deadlocks.count - 1,
                      report->deadlocks.count == 2 ? " is" : "s are");
    size_t first = first_with_place(report, deadlock);
    verdict->tid = deadlock->count ? deadlock->waits[first]->tid : 0;
    verdict->place = report_place_of(report, verdict->tid);
    verdict->by_label = "waits for";
    for (size_t i = 1; i < MIN(deadlock->count, (size_t)CYCLE_SHOWN + 1); i++) {
        output_literal(&verdict->by, i > 1 ? ", which waits for " : "");
        const struct cdacq_wait *wait = deadlock->waits[(first + i) % deadlock->count];
        put_thread_in_place(report, &verdict->by, wait->tid, wait->name);
    }
    if (deadlock->count > CYCLE_SHOWN + 1)
        output_printf(&verdict->by, " and %zu more", deadlock->count - CYCLE_SHOWN - 1);
    else if (deadlock->count > 1)
        output_printf(&verdict->by, ", which waits for TID %d", verdict->tid);
    bool is_certain = report_deadlock_is_certain(deadlock);
    verdict->certainty = is_certain ? "certain" : "likely";
    output_literal(&verdict->sure,
                   is_certain ? "no wait of the cycle has a timeout or can be cancelled"
                              : "unless one of the waits has a timeout or can be cancelled, which is not known");
    put_command(verdict, report, "stack --managed", 0);
    return true;
}

/* ---- Locks ---- */

/* What is known of the owner of a lock that threads wait for; the worst is last. */
enum lock_state {
    LOCK_PASSES,    /* from one thread to the next, or that is not known */
    LOCK_HELD,      /* for long */
    LOCK_LOST,      /* no thread that is known holds it, but no thread can enter it either */
    LOCK_ABANDONED, /* its owner has ended */
};

/* The wait to enter a lock that most threads wait for, of those in the worst state, and the number of these. */
struct most_waited {
    const struct cdacq_wait *wait;
    size_t count;
    enum lock_state state;
};

/* The owner of a lock and, if that waits for another thread, that one, and so on. */
static void put_owners(struct report_verdict *verdict, const struct report *report, const struct shown_waits *waits,
                       const struct cdacq_wait *wait)
{
    struct output *out = &verdict->by;
    verdict->by_label = "held by";
    put_thread_in_place(report, out, wait->blocker_tid, wait->blocker_name);
    if (report->busy && busy_wanted(report->busy, wait->blocker_tid) >= BUSY_PERCENT)
        output_literal(out, ", which runs");
    int owner = wait->blocker_tid;
    for (unsigned i = 0; i < CYCLE_SHOWN && (wait = wait_lines_of(waits, owner)); i++) {
        output_literal(out, ", which waits");
        report_put_wait(out, report, wait);
        owner = wait->blocker_tid;
    }
    struct report_waiting waiting;
    if (owner && !wait && report_describe_waiting(report, waits, owner, &waiting)) { /* in the kernel */
        output_literal(out, ", which");
        report_put_waiting(out, report, &waiting);
    }
}

/* Whether no thread that waits for a lock ran while the process was measured. */
static bool all_are_still(const struct report *report, const struct shown_waits *waits, uint64_t lock)
{
    for (size_t i = 0; i < waits->count; i++) {
        const struct cdacq_wait *wait = waits->items[i];
        if (wait->kind == CDACQ_WAIT_ENTER && wait->object == lock && !busy_is_still(report->busy, wait->tid))
            return false;
    }
    return true;
}

static bool any_is_delayed(const struct busy_threads *busy)
{
    for (size_t i = 0; i < busy->list.count; i++)
        if (busy->list.items[i].delayed >= BUSY_LEAST)
            return true;
    return false;
}

/*
 * A lock is held for long if no thread that waits for it ran while the process was measured, though whoever leaves a
 * lock wakes one, and if its owner either did not run or did nothing else. Of a core, if its owner waits itself:
 * threads that only contend for a lock hold it while they run.
 */
static enum lock_state state_of_lock(const struct report *report, const struct shown_waits *waits,
                                     const struct cdacq_wait *wait)
{
    const struct busy_threads *busy = report->busy;
    struct stacks_cursor owner;
    bool is_measured = busy && busy->counts_runs, has_owner = wait->blocker_tid && wait->blocker_id;
    if (wait->kind != CDACQ_WAIT_ENTER || !wait->object)
        return LOCK_PASSES;
    if (!has_owner && (wait->blocker_tid || wait->blocker_id))
        return LOCK_ABANDONED;
    if (!is_measured)
        return stacks_find_thread(report->all_stacks, wait->blocker_tid, &owner) &&
                       owner.thread->mode != CDACQ_MODE_USER
                   ? LOCK_HELD
                   : LOCK_PASSES;
    if ((!has_owner && wait->readers) || !all_are_still(report, waits, wait->object))
        return LOCK_PASSES;
    if (!has_owner) /* one that waited for a processor may have left the lock just now */
        return any_is_delayed(busy) ? LOCK_PASSES : LOCK_LOST;
    return busy_is_still(busy, wait->blocker_tid) || busy_wanted(busy, wait->blocker_tid) >= BUSY_PERCENT ? LOCK_HELD
                                                                                                          : LOCK_PASSES;
}

/* The waits are in the order of their lines: those to enter one lock are next to each other. */
static struct most_waited find_most_waited(const struct report *report, const struct shown_waits *waits)
{
    struct most_waited most = {.state = LOCK_PASSES};
    for (size_t i = 0, count; i < waits->count; i += count) {
        enum lock_state state = state_of_lock(report, waits, waits->items[i]);
        count = wait_lines_count(waits, i);
        if (state > most.state || (state == most.state && state != LOCK_PASSES && count > most.count))
            most = (struct most_waited){waits->items[i], count, state};
    }
    return most;
}

static bool judge_lock(struct report_verdict *verdict, const struct report *report, bool abandoned)
{
    struct shown_waits waits;
    wait_lines_collect(report->graph, &waits);
    const struct most_waited most = find_most_waited(report, &waits);
    bool is_found = most.wait && (most.state == LOCK_ABANDONED || !abandoned);
    if (is_found) {
        verdict->kind = most.state == LOCK_HELD ? "lock" : "abandoned_lock";
        verdict->tid = most.wait->tid;
        verdict->place = report_place_of(report, verdict->tid);
        output_printf(&verdict->what, "%zu thread%s for the lock ", most.count, most.count == 1 ? " waits" : "s wait");
        output_note(&verdict->what, most.wait->type ? most.wait->type : "of a type that is not known");
        output_printf(&verdict->what, " 0x%" PRIx64, most.wait->object);
        if (most.state == LOCK_LOST) {
            output_literal(&verdict->what, ", which no thread holds that is known: its owner has ended, it seems");
            verdict->certainty = "likely";
            output_literal(&verdict->sure, "none of them ran while the process was measured");
        } else if (most.state == LOCK_ABANDONED) {
            output_literal(&verdict->what, ", whose owner has ended without leaving it");
            verdict->certainty = "certain";
            output_literal(&verdict->sure, "the lock names a thread that the process no longer has");
        } else {
            output_literal(&verdict->what, ", which one thread holds; no deadlock was found");
            put_owners(verdict, report, &waits, most.wait);
            verdict->holder = most.wait->blocker_tid;
            say_of_one_moment(verdict);
        }
        put_command(verdict, report, "stack --managed", most.wait->blocker_tid);
    }
    wait_lines_release(&waits);
    return is_found;
}

/* ---- Suspension, starvation, busy threads ---- */

static bool judge_suspension(struct report_verdict *verdict, const struct report *report)
{
    for (struct stacks_cursor at = {0}; stacks_next_thread(&report->stacks, &at);) {
        if (!at.thread->delays_suspension)
            continue;
        verdict->kind = "suspension";
        verdict->tid = at.thread->tid;
        verdict->place = report_place_of(report, verdict->tid);
        report_put_thread(&verdict->what, at.thread->tid, at.thread->name);
        output_literal(&verdict->what, " delays the suspension of all managed threads, as for a garbage collection");
        say_of_one_moment(verdict);
        put_command(verdict, report, "stack --native", verdict->tid);
        return true;
    }
    return false;
}

/* The stack that most workers have which run a work item. */
static const struct stack *stack_of_most_workers(const struct report *report)
{
    const struct stack *found = NULL;
    size_t most = 0;
    for (size_t i = 0; i < report->all_stacks->list.count; i++) {
        const struct stack *stack = report->all_stacks->list.items[i];
        size_t count = 0;
        for (size_t k = 0; k < stack->threads.count; k++)
            count += stack->threads.items[k].is_of_pool;
        if (count > most && report_program_method(stack)) {
            most = count;
            found = stack;
        }
    }
    return found;
}

/* Whether a worker that runs a work item went on while the process was measured. */
static bool any_worker_runs(const struct report *report)
{
    for (struct stacks_cursor at = {0}; stacks_next_thread(report->all_stacks, &at);)
        if (at.thread->is_of_pool && report_runs_program(at.stack) && !report_may_wait(report, at.thread))
            return true;
    return false;
}

/* What the worker that the verdict names waits for, as most of them do. */
static void put_wait_of_worker(struct report_verdict *verdict, const struct report *report)
{
    struct shown_waits waits;
    wait_lines_collect(report->graph, &waits);
    const struct report_waiting waiting = {.wait = wait_lines_of(&waits, verdict->tid)};
    if (waiting.wait) {
        output_printf(&verdict->what, "; for example, TID %d", verdict->tid);
        report_put_waiting(&verdict->what, report, &waiting);
    }
    wait_lines_release(&waits);
}

static bool judge_starvation(struct report_verdict *verdict, const struct report *report)
{
    const struct cdacq_thread_pool *pool = &report->pool;
    if (!pool->starves || any_worker_runs(report))
        return false;
    const struct stack *stack = stack_of_most_workers(report);
    verdict->kind = "starvation";
    verdict->tid = stack ? stack->threads.items[0].tid : 0;
    verdict->place = report_place_on_stack(stack);
    output_printf(&verdict->what,
                  "the thread pool starves: %" PRIu64 " work item%s while all %" PRIu32 " of its workers wait",
                  pool->queued, pool->queued == 1 ? " is queued" : "s are queued", pool->busy);
    if (pool->workers >= pool->max_workers)
        output_literal(&verdict->what, ", and it may not start more");
    put_wait_of_worker(verdict, report);
    say_of_one_moment(verdict);
    put_command(verdict, report, "stack --managed", verdict->tid);
    return true;
}

/* How many threads used a processor for most of the time, or would have. */
static size_t count_busy(const struct busy_threads *busy)
{
    size_t count = 0;
    for (size_t i = 0; i < busy->list.count; i++)
        count += busy_wanted_by(&busy->list.items[i]) >= BUSY_PERCENT;
    return count;
}

static const char *name_of(const struct report *report, int tid)
{
    struct stacks_cursor at;
    return stacks_find_thread(report->all_stacks, tid, &at) ? at.thread->name : NULL;
}

/* In how many samples the thread was in the place of the verdict. */
static void put_samples(struct report_verdict *verdict, const struct busy_threads *busy,
                        const struct busy_thread *thread)
{
    if (busy->samples && verdict->place.method)
        output_printf(&verdict->what, "; %u of %u samples found it in the method below",
                      busy_samples_in(thread, verdict->place.method), busy->samples + 1);
}

static bool judge_busy(struct report_verdict *verdict, const struct report *report)
{
    const struct busy_threads *busy = report->busy;
    const struct busy_thread *busiest = busy && busy->list.count ? busy->list.items : NULL;
    size_t count = busy ? count_busy(busy) : 0;
    struct busy_causes causes = busy ? busy_find_causes(busy) : (struct busy_causes){0};
    if (!count && !causes.throttled_periods)
        return false;
    verdict->kind = causes.throttled_periods ? "throttled" : "busy";
    verdict->slowed_by = busy_cause_word(&causes);
    verdict->tid = busiest ? busiest->tid : 0;
    verdict->place = report_place_of(report, verdict->tid);
    output_literal(&verdict->what, "nothing blocks the process");
    const char *name = busiest ? name_of(report, busiest->tid) : NULL;
    if (causes.throttled_periods) {
        report_put_causes(&verdict->what, busy, &(struct busy_causes){.throttled_periods = causes.throttled_periods},
                          ", but it is slow: ", "");
        causes.throttled_periods = 0; /* is said now */
    }
    if (busiest) {
        bool is_delayed = busiest->delayed >= BUSY_LEAST && busiest->delayed > busiest->percent;
        output_literal(&verdict->what, "; ");
        report_put_thread(&verdict->what, busiest->tid, name);
        output_printf(&verdict->what,
                      is_delayed ? " has work to do, but used only %u %% of a processor"
                                 : " is busy: it used %u %% of a processor",
                      busiest->percent);
    }
    if (busiest && busiest->delayed >= BUSY_LEAST)
        output_printf(&verdict->what, ", and waited for one for %u %% of the time", busiest->delayed);
    if (count > 1)
        output_printf(&verdict->what, "; %zu more did so for at least %u %%", count - 1, BUSY_PERCENT);
    if (busiest)
        put_samples(verdict, busy, busiest);
    causes.overload_percent = 0; /* is said by the delay */
    verdict->by_label = "because of";
    report_put_causes(&verdict->by, busy, &causes, verdict->by.length ? "; " : "", "");
    say_of_one_moment(verdict);
    put_command(verdict, report, "stack --managed", verdict->tid);
    return true;
}

/* The first thread of a core that ran code of the program; NULL: there is none, or that is not known. */
static const struct stack_thread *find_running(const struct report *report, const struct stack **ret_stack)
{
    for (struct stacks_cursor at = {0}; stacks_next_thread(&report->stacks, &at);)
        if (at.thread->mode == CDACQ_MODE_USER && report_program_method(at.stack)) {
            *ret_stack = at.stack;
            return at.thread;
        }
    return NULL;
}

static bool judge_running(struct report_verdict *verdict, const struct report *report)
{
    const struct stack *stack;
    const struct stack_thread *thread = report->facts.kind == CDACQ_TARGET_CORE ? find_running(report, &stack) : NULL;
    if (!thread)
        return false;
    verdict->kind = "busy";
    verdict->tid = thread->tid;
    verdict->place = report_place_on_stack(stack);
    output_literal(&verdict->what, "nothing blocks the process; ");
    report_put_thread(&verdict->what, thread->tid, thread->name);
    output_literal(&verdict->what, " ran when the core was taken");
    verdict->certainty = "moment";
    output_literal(&verdict->sure, "one moment does not show whether it ran for long: a second core does");
    put_command(verdict, report, "stack --managed", verdict->tid);
    return true;
}

static bool add_running_at_end(struct report_verdict *verdict, const struct report *report)
{
    const struct stack *stack;
    const struct stack_thread *thread = find_running(report, &stack);
    if (!thread)
        return false;
    verdict->tid = thread->tid;
    verdict->place = report_place_on_stack(stack);
    output_literal(&verdict->what, "; in the core, ");
    report_put_thread(&verdict->what, thread->tid, thread->name);
    output_literal(&verdict->what, " runs");
    return true;
}

/* ---- Waits that may be as they should ---- */

/* Tasks that await each other block no thread but those that wait for them. */
static bool judge_async_cycle(struct report_verdict *verdict, const struct report *report)
{
    struct shown_waits waits;
    const struct cdacq_wait *found = NULL;
    wait_lines_collect(report->graph, &waits);
    for (size_t i = 0; i < waits.count && !found; i++)
        found = waits.items[i]->is_cycle ? waits.items[i] : NULL;
    if (found) {
        const struct cdacq_task *last = &found->tasks[found->task_count - 1];
        verdict->kind = "async_cycle";
        verdict->certainty = "certain";
        verdict->tid = found->tid;
        verdict->place = (struct report_place){.method = last->method, .file = last->file, .line = last->line};
        output_printf(&verdict->what,
                      "deadlock of tasks: %zu async method%s each other, and no thread can complete them",
                      found->task_count, found->task_count == 1 ? " awaits itself, not" : "s await");
        output_literal(&verdict->sure, "the last task of the chain awaits one before it, and none can be cancelled");
        put_command(verdict, report, "stack --managed", found->tid);
    }
    wait_lines_release(&waits);
    return found != NULL;
}

/* The same where no thread waits for them: it was found in the heap. */
static bool judge_async_cycle_of_heap(struct report_verdict *verdict, const struct report *report)
{
    const struct report_async_group *group = report->async.groups;
    if (!report->async.cycles)
        return false;
    verdict->kind = "async_cycle";
    verdict->certainty = "likely"; /* a ring that nothing needs any more is in the heap until a garbage collection */
    verdict->place = report_place_of_group(group);
    output_literal(&verdict->what,
                   "deadlock of tasks: async methods await each other, and no thread can complete them");
    output_literal(&verdict->sure, "a method waits for itself through the others, unless nobody needs them any more");
    put_command(verdict, report, "async", 0);
    return true;
}

/* Beside what threads do: the async methods that are pending in one place. */
static void add_pending(struct report_verdict *verdict, const struct report *report)
{
    const struct report_async *async = &report->async;
    bool is_awaited = verdict->waits_for && !strcmp(verdict->waits_for, "task"); /* then it may be the same */
    if (verdict->by.length || !async->count || async->groups[0].count <= (is_awaited ? 1 : 0))
        return;
    verdict->tells_pending = true;
    verdict->by_label = "pending";
    report_put_group(&verdict->by, async->groups);
    verdict->next.length = 0;
    put_command(verdict, report, "async", 0);
}

/* Takes what a thread waits for, and says it. */
static void put_waiting(struct report_verdict *verdict, const struct report *report,
                        const struct report_waiting *waiting)
{
    verdict->waits_for = waiting->word;
    verdict->tid = waiting->thread->tid;
    verdict->place = waiting->place;
    verdict->blocked = waiting->blocked;
    verdict->called = waiting->called;
    report_put_thread(&verdict->what, waiting->thread->tid, waiting->thread->name);
    report_put_waiting(&verdict->what, report, waiting);
}

static bool find_waiting(const struct report *report, bool of_finalizer, struct shown_waits *waits,
                         struct report_waiting *ret)
{
    wait_lines_collect(report->graph, waits);
    return report_find_waiting(report, waits, of_finalizer, ret);
}

static bool judge_waiting(struct report_verdict *verdict, const struct report *report, bool of_finalizer)
{
    struct shown_waits waits;
    struct report_waiting waiting;
    bool is_found = find_waiting(report, of_finalizer, &waits, &waiting);
    if (is_found) {
        verdict->kind = of_finalizer ? "finalizer" : "waits";
        if (of_finalizer)
            output_literal(&verdict->what, "a finalizer does not return, so no other can run: ");
        put_waiting(verdict, report, &waiting);
        if (of_finalizer)
            say_of_one_moment(verdict);
        else
            output_literal(
                &verdict->sure,
                "this wait may be normal, as nothing shows whether it ends; a second report shows whether it lasts");
        if (!of_finalizer)
            verdict->certainty = "moment";
        if (waiting.wait && waiting.wait->kind == CDACQ_WAIT_TASK)
            put_command(verdict, report, "async", 0);
        else
            put_command(verdict, report, "stack --managed", verdict->tid);
    }
    wait_lines_release(&waits);
    return is_found;
}

/* What the process did when somebody ended it by a signal, as those do who want a core of one that hangs. */
static bool add_waiting_at_end(struct report_verdict *verdict, const struct report *report)
{
    struct shown_waits waits;
    struct report_waiting waiting;
    bool is_found = find_waiting(report, false, &waits, &waiting);
    if (is_found) {
        output_literal(&verdict->what, "; in the core, ");
        put_waiting(verdict, report, &waiting);
    }
    wait_lines_release(&waits);
    return is_found;
}

static bool judge_finalizer(struct report_verdict *verdict, const struct report *report)
{
    return judge_waiting(verdict, report, true);
}

static bool judge_any_wait(struct report_verdict *verdict, const struct report *report)
{
    return judge_waiting(verdict, report, false);
}

static void judge_nothing(struct report_verdict *verdict, const struct report *report)
{
    const char *problem = report_any_waits_problem(report);
    bool has_stacks = report->stacks.list.count;
    verdict->kind = has_stacks ? "nothing" : "unknown";
    verdict->certainty = problem || !has_stacks ? "unknown" : "moment";
    if (!has_stacks) {
        output_literal(&verdict->what, "not known: there are no threads to look at");
        return;
    }
    output_literal(&verdict->what, "nothing wrong was found");
    output_literal(&verdict->sure, "deadlocks, waits for locks and a thread pool that starves were looked for");
    if (report->busy && report->busy->measured)
        output_literal(&verdict->sure, ", and busy threads, for a moment");
    output_literal(&verdict->sure,
                   report->async.is_known && !report->async.is_partial ? ", and tasks that await each other" : "");
    output_literal(&verdict->sure, "; leaks of memory were not");
    if (problem)
        output_note_between(&verdict->sure, "; some waits may be missing: ", problem, "");
    put_command(verdict, report, "stack --managed", 0);
}

/* ---- All ---- */

/* What can make a process hang, in each of its runtimes. */
static bool judge_runtimes(struct report_verdict *verdict, const struct report *report,
                           bool (*judge)(struct report_verdict *verdict, const struct report *report))
{
    const struct report *one;
    for (size_t next = 0; (one = report_next_runtime(report, &next));)
        if (judge(verdict, one))
            return true;
    return false;
}

static bool judge_abandoned_lock(struct report_verdict *verdict, const struct report *report)
{
    return judge_lock(verdict, report, true);
}

static bool judge_any_lock(struct report_verdict *verdict, const struct report *report)
{
    return judge_lock(verdict, report, false);
}

static bool judge_hang(struct report_verdict *verdict, const struct report *report)
{
    return judge_outside(verdict, report) || judge_runtimes(verdict, report, judge_deadlock) ||
           judge_runtimes(verdict, report, judge_abandoned_lock) || judge_suspension(verdict, report) ||
           judge_runtimes(verdict, report, judge_starvation) || judge_runtimes(verdict, report, judge_any_lock) ||
           judge_runtimes(verdict, report, judge_async_cycle) || judge_async_cycle_of_heap(verdict, report) ||
           judge_runtimes(verdict, report, judge_finalizer);
}

void report_verdict_form(const struct report *report, struct report_verdict *ret)
{
    *ret = (struct report_verdict){.tid = 0};
    output_open_memory(&ret->what);
    output_open_memory(&ret->by);
    output_open_memory(&ret->sure);
    output_open_memory(&ret->next);
    if (report_may_hang(report) && judge_hang(ret, report))
        return;
    if (report->cause != REPORT_ALIVE) {
        judge_end(ret, report);
        if (report_may_hang(report) && !add_running_at_end(ret, report))
            (void)judge_runtimes(ret, report, add_waiting_at_end);
    } else if (!judge_busy(ret, report) && !judge_running(ret, report) && !judge_runtimes(ret, report, judge_any_wait))
        judge_nothing(ret, report);
    add_pending(ret, report);
}

void report_verdict_release(struct report_verdict *verdict)
{
    output_abandon(&verdict->what);
    output_abandon(&verdict->by);
    output_abandon(&verdict->sure);
    output_abandon(&verdict->next);
}

/* ---- Text and JSON ---- */

/* The lines are escaped already. */
static void write_line(struct output *out, const char *label, const struct output *line, enum style style)
{
    if (!line->length)
        return;
    output_label(out, label);
    if (style != STYLE_NONE)
        output_style(out, style);
    output_escaped(out, line->data, line->length, ESCAPE_MESSAGE);
    if (style != STYLE_NONE)
        output_style(out, STYLE_NONE);
    output_literal(out, "\n");
}

void report_verdict_write_text(const struct report_verdict *verdict, const struct report *report, struct output *out)
{
    bool is_wrong = strcmp(verdict->certainty, "certain") == 0 || strcmp(verdict->certainty, "likely") == 0;
    write_line(out, "verdict", &verdict->what, is_wrong ? STYLE_ERROR : STYLE_NONE);
    if (verdict->place.method || verdict->tid)
        output_label(out, "where");
    if (verdict->place.method)
        report_put_place(out, &verdict->place);
    if (verdict->place.method && verdict->blocked.method) {
        output_printf(out, ", awaited by TID %d", verdict->tid);
        report_put_in_place(out, &verdict->blocked);
    } else if (verdict->tid) {
        output_literal(out, verdict->place.method ? " (" : "");
        report_put_thread(out, verdict->tid, name_of(report, verdict->tid));
        output_literal(out, verdict->place.method ? ")" : "");
    }
    if (verdict->place.method || verdict->tid)
        output_literal(out, "\n");
    write_line(out, verdict->by_label ? verdict->by_label : "by", &verdict->by, STYLE_NONE);
    write_line(out, "certainty", &verdict->sure, STYLE_NONE);
    write_line(out, "next", &verdict->next, STYLE_NONE);
    output_literal(out, "\n");
}

static void write_member(struct json_writer *w, const char *key, struct output *line)
{
    *output_reserve(line, 1) = '\0';
    json_note(w, key, line->length ? line->data : NULL);
}

/* The member "stack": where in the list of stacks that of the verdict's thread is. */
static void write_stack_index(const struct report_verdict *verdict, const struct report *report, struct json_writer *w)
{
    struct stacks_cursor at;
    bool has_stack = verdict->tid && stacks_find_thread(&report->stacks, verdict->tid, &at);
    json_known_number(w, "stack", has_stack, has_stack ? at.stack_index : 0);
}

void report_verdict_write_json(struct report_verdict *verdict, const struct report *report, struct json_writer *w)
{
    json_begin_object(w, "verdict");
    json_string(w, "kind", verdict->kind);
    write_member(w, "what", &verdict->what);
    json_string(w, "waits_for", verdict->waits_for);
    json_note(w, "called", verdict->called ? verdict->called->name : NULL);
    json_known_number(w, "tid", verdict->tid > 0, (uint64_t)verdict->tid);
    write_stack_index(verdict, report, w);
    report_write_place_members(w, &verdict->place);
    write_member(w, "by", &verdict->by);
    json_string(w, "slowed_by", verdict->slowed_by);
    json_string(w, "certainty", verdict->certainty);
    write_member(w, "reason", &verdict->sure);
    write_member(w, "next", &verdict->next);
    json_end_object(w);
}
