/*
 * report_threads.c: what the threads do, apart from their waits, and the order of the stacks in the text: what has
 * ended the process or makes it hang first, and what the verdict is about, then what keeps it busy. One thread may have
 * suspended the others, and some may delay that; some use the processors, which makes a process slow. How busy the
 * threads of a running process are is measured; of a core, it is known which ones ran.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "src/cli/base/memory.h"
#include "src/cli/report/report.h"
#include "util/base.h"
#include "util/text.h"

enum { BUSY_SHOWN = 20, DELAYS_SHOWN = 20, IDLE_SHOWN = 20 };

static const char suspension_heading[] = "\nSuspension:\n", busy_heading[] = "\nBusy threads:\n",
                  causes_heading[] = "\nWhat slows the process:\n";

/* The begin of a line about a thread. */
static void begin_line(struct output *out, int tid, const char *name)
{
    output_literal(out, "  ");
    report_put_thread(out, tid, name);
}

bool report_is_doubtful(const struct stack *stack, const struct cdacq_method *method)
{
    for (size_t i = 0; i < stack->frames.count; i++) {
        const struct stack_frame *frame = stack->frames.items[i].shared;
        if (frame->frame.by == CDACQ_FRAME_BY_GUESS || frame->frame.after_gap)
            return true;
        if (&frame->method == method)
            break;
    }
    return false;
}

/* The code of the innermost frame and, if that is none of the program, the method of the program that called it. */
static void put_code(struct output *out, const struct stack *stack)
{
    const struct stack_frame *inner = stack->frames.count ? stack->frames.items[0].shared : NULL;
    const struct cdacq_method *of_program = report_program_method(stack);
    if (!inner)
        output_literal(out, "code that is not known");
    else if (inner->method.answer == CDACQ_ANSWER_MANAGED && inner->method.name_length)
        output_note(out, inner->method.name);
    else if (inner->frame.symbol)
        output_note(out, inner->frame.symbol);
    else if (inner->frame.module)
        output_note(out, path_basename(inner->frame.module));
    else
        output_literal(out, "code without a name");
    if (of_program && of_program != &inner->method) {
        output_note_between(out, ", called by ", of_program->name, "");
        if (report_is_doubtful(stack, of_program))
            output_styled(out, STYLE_DOUBT, " [guess]");
    }
}

/* ---- Suspension ---- */

/* Writes the thread for which the others are suspended. Returns whether one is known. */
static bool write_suspending(const struct report *report, struct output *out)
{
    for (struct stacks_cursor at = {0}; stacks_next_thread(&report->stacks, &at);) {
        if (!at.thread->suspends_others)
            continue;
        output_styled(out, STYLE_HEADING, suspension_heading);
        begin_line(out, at.thread->tid, at.thread->name);
        output_literal(out, " suspends the managed threads, as for a garbage collection\n");
        return true;
    }
    return false;
}

void report_write_suspension_text(const struct report *report)
{
    struct output *out = report->answers.out;
    bool has_heading = write_suspending(report, out);
    size_t count = 0;
    for (struct stacks_cursor at = {0}; stacks_next_thread(&report->stacks, &at);) {
        if (!at.thread->delays_suspension || ++count > DELAYS_SHOWN)
            continue;
        if (!has_heading)
            output_styled(out, STYLE_HEADING, suspension_heading);
        has_heading = true;
        begin_line(out, at.thread->tid, at.thread->name);
        output_literal(out, " delays the suspension: the runtime cannot stop it in ");
        put_code(out, at.stack);
        output_literal(out, "\n");
    }
    if (count > DELAYS_SHOWN)
        output_printf(out, "  and %zu more\n", count - DELAYS_SHOWN);
}

/* ---- Busy threads ---- */

/* In how many samples the thread ran the same method of the program. */
static void put_samples(struct output *out, const struct busy_threads *busy, const struct busy_thread *thread,
                        const struct stack *stack)
{
    const struct cdacq_method *method = report_program_method(stack);
    unsigned count = busy_samples_in(thread, method ? method->name : NULL);
    if (method)
        output_printf(out, " (%u of %u samples were there)", count, busy->samples + 1);
}

void report_put_causes(struct output *out, const struct busy_threads *busy, const struct busy_causes *causes,
                       const char *before, const char *after)
{
    const struct cdacq_processor_limit *limit = &busy->limit;
    if (causes->throttled_periods) {
        output_literal(out, before);
        output_printf(out,
                      "the control group may use %.2f of a processor, and was held back in %" PRIu64 " of %" PRIu64
                      " periods of %.0f ms",
                      (double)limit->quota_ns / (double)limit->period_ns, limit->throttled_periods, limit->periods,
                      (double)limit->period_ns / 1e6);
        output_literal(out, after);
    }
    if (causes->overload_percent) {
        output_literal(out, before);
        output_printf(out, "no processor was free: a thread was ready to run, and waited for %u %% of the time",
                      causes->overload_percent);
        output_literal(out, after);
    }
    if (causes->collection_percent) {
        output_literal(out, before);
        output_printf(out, "garbage collection: it suspended the managed threads for %s%u %% of the time",
                      busy->runtime.suspension_partly ? "at least " : "", causes->collection_percent);
        output_literal(out, after);
    }
    if (causes->exceptions_per_second) {
        output_literal(out, before);
        output_printf(out, "exceptions: at least %" PRIu64 " a second are thrown", causes->exceptions_per_second);
        output_literal(out, after);
    }
}

/* Of a running process. */
static void write_measured(const struct report *report, struct output *out)
{
    const struct busy_threads *busy = report->busy;
    for (size_t i = 0; i < MIN(busy->list.count, (size_t)BUSY_SHOWN); i++) {
        const struct busy_thread *measured = &busy->list.items[i];
        struct stacks_cursor at;
        bool has_stack =
            stacks_find_thread(&report->stacks, measured->tid, &at); /* else it ended after it was measured */
        begin_line(out, measured->tid, has_stack ? at.thread->name : NULL);
        output_printf(out, " used %u %% of a processor for %.1f s", measured->percent, busy->seconds);
        if (measured->delayed >= BUSY_LEAST)
            output_printf(out, ", waited for one for another %u %%", measured->delayed);
        output_literal(out, has_stack ? " and was seen in " : " and has ended");
        if (has_stack)
            put_code(out, at.stack);
        if (has_stack && busy->samples)
            put_samples(out, busy, measured, at.stack);
        output_literal(out, "\n");
    }
}

/*
 * Of a core: whether threads that ran can be why somebody took it. They are not why a process ended that ended by
 * itself, or by a fault.
 */
static bool was_perhaps_busy(const struct report *report)
{
    const struct cdacq_process_info *process = &report->process;
    bool by_another = process->sender_pid && process->sender_pid != process->pid;
    return report->facts.kind == CDACQ_TARGET_CORE &&
           (report->cause == REPORT_ALIVE || (report->cause == REPORT_SIGNAL && by_another));
}

/* Writes the threads of a core that ran, with the heading. Returns their number. */
static size_t write_running(const struct report *report, struct output *out)
{
    size_t count = 0;
    if (!was_perhaps_busy(report))
        return 0;
    for (struct stacks_cursor at = {0}; stacks_next_thread(&report->stacks, &at);) {
        if (at.thread->mode != CDACQ_MODE_USER || ++count > BUSY_SHOWN)
            continue;
        if (count == 1)
            output_styled(out, STYLE_HEADING, busy_heading);
        begin_line(out, at.thread->tid, at.thread->name);
        output_literal(out, " ran ");
        put_code(out, at.stack);
        output_literal(out, "\n");
    }
    return count;
}

void report_write_busy_text(const struct report *report)
{
    struct output *out = report->answers.out;
    size_t count = report->busy ? report->busy->list.count : 0;
    if (count) {
        output_styled(out, STYLE_HEADING, busy_heading);
        write_measured(report, out);
    } else {
        count = write_running(report, out);
    }
    if (count > BUSY_SHOWN)
        output_printf(out, "  and %zu more\n", count - BUSY_SHOWN);
    const struct busy_causes causes = report->busy ? busy_find_causes(report->busy) : (struct busy_causes){0};
    if (busy_cause_word(&causes)) {
        output_styled(out, STYLE_HEADING, causes_heading);
        report_put_causes(out, report->busy, &causes, "  ", "\n");
    }
}

/* ---- The order of the stacks ---- */

static bool begins_with_any(const char *text, const char *const *starts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (string_begins_with(text, starts[i]))
            return true;
    return false;
}

/*
 * Whether a thread of the runtime waits for work: in a method that does nothing else, or in native code of the runtime
 * and the C library alone. None is idle while a thread suspends the others, as each may have a part
 * in that.
 */
static bool is_idle(const struct stack *stack)
{
    static const char *const of_runtime[] = {"libcoreclr", "libclrgc", "libSystem.Native.so"}, *const of_system[] = {
                                                                                                   "libc.", "libc-",
                                                                                                   "ld-", "libpthread",
                                                                                                   "libstdc++"};
    static const char *const methods[] = {"System.Net.Sockets.SocketAsyncEngine.EventLoop(",
                                          "System.Threading.PortableThreadPool.GateThread.GateThreadStart(",
                                          "System.Threading.PortableThreadPool.WaitThread.WaitThreadStart(",
                                          "System.Threading.PortableThreadPool.WorkerThread.WorkerThreadStart(",
                                          "System.Threading.TimerQueue.TimerThread("};
    size_t waiting = stack_waiting_row(stack);
    bool is_of_runtime = false;
    for (size_t i = 0; i < stack->threads.count; i++)
        if (stack->threads.items[i].mode != CDACQ_MODE_KERNEL)
            return false;
    if (waiting && waiting + 1 < stack->frames.count) {
        const struct cdacq_method *method = &stack->frames.items[waiting + 1].shared->method;
        return method->name_length && begins_with_any(method->name, methods, ARRAY_SIZE(methods));
    }
    if (stack->problem || stack_native_row(stack, 0) != stack->frames.count)
        return false;
    for (size_t i = 0; i < stack->frames.count; i++) {
        const char *path = stack->frames.items[i].shared->frame.module, *module = path ? path_basename(path) : "";
        bool is_here = begins_with_any(module, of_runtime, ARRAY_SIZE(of_runtime));
        if (!is_here && !begins_with_any(module, of_system, ARRAY_SIZE(of_system)))
            return false;
        is_of_runtime |= is_here;
    }
    return is_of_runtime;
}

void report_drop_idle(struct report *report)
{
    struct busy_list *list = report->busy ? &report->busy->list : NULL;
    size_t kept = 0;
    for (size_t i = 0; list && i < list->count; i++) {
        struct busy_thread *thread = &list->items[i];
        struct stacks_cursor at;
        if (thread->percent < BUSY_LEAST && stacks_find_thread(&report->stacks, thread->tid, &at) && is_idle(at.stack))
            busy_thread_release(thread);
        else
            list->items[kept++] = *thread;
    }
    if (list)
        list->count = kept;
}

static bool is_suspended(const struct report *report)
{
    for (struct stacks_cursor at = {0}; stacks_next_thread(&report->stacks, &at);)
        if (at.thread->suspends_others || at.thread->delays_suspension)
            return true;
    return false;
}

static struct ordered_stack place_of(const struct report *report, size_t index)
{
    const struct stack *stack = report->stacks.list.items[index];
    struct ordered_stack placed = {.stack = stack, .index = index, .rank = STACK_OTHER};
    bool ran = false, suspends = false, is_of_verdict = false;
    for (size_t i = 0; i < stack->threads.count; i++) {
        unsigned percent = report->busy ? busy_wanted(report->busy, stack->threads.items[i].tid) : 0;
        placed.percent = MAX(placed.percent, percent);
        ran |= stack->threads.items[i].mode == CDACQ_MODE_USER;
        is_of_verdict |=
            stack->threads.items[i].tid == report->verdict_tid || stack->threads.items[i].tid == report->verdict_holder;
        suspends |= stack->threads.items[i].suspends_others || stack->threads.items[i].delays_suspension;
    }
    bool is_busy = placed.percent || (ran && was_perhaps_busy(report));
    if (stack == report->dead)
        placed.rank = STACK_DEAD;
    else if (suspends || report_hangs(report, stack) || is_of_verdict)
        placed.rank = STACK_HANGS;
    else if (is_busy)
        placed.rank = STACK_BUSY;
    else if (is_idle(stack) && !is_suspended(report))
        placed.rank = STACK_IDLE;
    return placed;
}

static int compare_places(const void *left, const void *right)
{
    const struct ordered_stack *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->rank == STACK_BUSY && a->percent != b->percent)
        return a->percent > b->percent ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

struct ordered_stacks report_order_stacks(const struct report *report)
{
    struct ordered_stacks ret = {.count = report->stacks.list.count};
    ret.items = allocate((ret.count + 1) * sizeof *ret.items);
    for (size_t i = 0; i < ret.count; i++)
        ret.items[i] = place_of(report, i);
    qsort(ret.items, ret.count, sizeof *ret.items, compare_places);
    return ret;
}

void report_write_idle_text(const struct report *report, const struct ordered_stacks *ordered)
{
    struct output *out = report->answers.out;
    size_t count = 0, shown = 0;
    for (size_t i = 0; i < ordered->count; i++)
        count += ordered->items[i].rank == STACK_IDLE ? ordered->items[i].stack->threads.count : 0;
    if (!count)
        return;
    output_printf(out, "\n%zu thread%s of the runtime %s idle: ", count, plural(count), count == 1 ? "is" : "are");
    for (size_t i = 0; i < ordered->count; i++) {
        const struct stack_threads *threads = &ordered->items[i].stack->threads;
        for (size_t k = 0; ordered->items[i].rank == STACK_IDLE && k < threads->count && shown < IDLE_SHOWN; k++) {
            output_literal(out, shown++ ? ", " : "");
            report_put_thread(out, threads->items[k].tid, threads->items[k].name);
        }
    }
    if (count > shown)
        output_printf(out, " and %zu more", count - shown);
    output_literal(out, "\n");
}
