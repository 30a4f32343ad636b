#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/cli/memory.h"
#include "src/cli/report.h"
#include "util/base.h"

DEFINE_VECTOR(shown_waits, const struct cdacq_wait *);

enum { THREADS_SHOWN = 20 }; /* of those that wait for the same, in the text */

static bool is_deadlocked(const struct report *report, int tid)
{
    for (size_t i = 0; i < report->deadlocks.count; i++)
        for (size_t k = 0; k < report->deadlocks.items[i]->count; k++)
            if (report->deadlocks.items[i]->waits[k]->tid == tid)
                return true;
    return false;
}

bool report_is_deadlocked(const struct report *report, const struct stack *stack)
{
    for (size_t i = 0; i < stack->threads.count; i++)
        if (is_deadlocked(report, stack->threads.items[i].tid))
            return true;
    return false;
}

/* ---- Text ---- */

static void put_thread(struct output *out, int tid, const char *name)
{
    output_printf(out, "TID %d", tid);
    if (name && name[0])
        output_text_between(out, " \"", name, "\"");
}

/* "N.Worker 0x7f..": the object of a wait or a lock. */
static void put_object(struct output *out, const char *type, uint64_t object)
{
    output_note(out, type ? type : "an object");
    output_printf(out, " 0x%" PRIx64, object);
}

static void put_doubt_and_timeout(struct output *out, const struct cdacq_wait *wait)
{
    if (wait->by == CDACQ_WAIT_BY_SCAN)
        output_styled(out, STYLE_DOUBT, " [guess]");
    if (wait->has_timeout && wait->timeout >= 0)
        output_printf(out, " (at most %d ms)", wait->timeout);
}

/* What it waits for, as the end of "TID 12 waits". */
static void put_aim(struct output *out, const struct cdacq_wait *wait)
{
    static const struct {
        const char *known, *unknown;
    } aims[] = {
        [CDACQ_WAIT_ENTER] = {" to enter ", " to enter a lock"},
        [CDACQ_WAIT_PULSE] = {" to be pulsed on ", " to be pulsed"},
        [CDACQ_WAIT_TASK] = {" for the task ", " for a task"},
        [CDACQ_WAIT_TASKS] = {" for all tasks of ", " for all of several tasks"},
        [CDACQ_WAIT_EVENT] = {" for the event ", " for an event"},
        [CDACQ_WAIT_SEMAPHORE] = {" for the semaphore ", " for a semaphore"},
        [CDACQ_WAIT_JOIN] = {" for the end of the thread ", " for the end of a thread"},
        [CDACQ_WAIT_HANDLE] = {" for the handle ", " for one or several handles"},
    };
    if (wait->object) {
        output_literal(out, aims[wait->kind].known);
        put_object(out, wait->type, wait->object);
    } else {
        output_literal(out, aims[wait->kind].unknown);
        output_literal(out, ", not known which");
    }
    put_doubt_and_timeout(out, wait);
}

/* The same for several threads, each of which waits for a task of its own that reads like this one. */
static void put_aim_of_each(struct output *out, const struct cdacq_wait *wait)
{
    output_literal(out, ", each for a task ");
    output_note(out, wait->type ? wait->type : "of a type that is not known");
    put_doubt_and_timeout(out, wait);
}

/* Who has to go on first, as the end of the line. */
static void put_blocker(struct output *out, const struct cdacq_wait *wait)
{
    static const char *const words[] = {[CDACQ_WAIT_ENTER] = ", held by ",
                                        [CDACQ_WAIT_TASK] = ", run by ",
                                        [CDACQ_WAIT_JOIN] = ", which is ",
                                        [CDACQ_WAIT_HANDLE] = NULL};
    const char *word = words[wait->kind] ? words[wait->kind] : ", of ";
    if (!wait->blocker_tid && !wait->blocker_id) {
        if (wait->readers)
            output_printf(out, ", held by %" PRIu32 " reader%s", wait->readers, plural(wait->readers));
        else if (wait->kind == CDACQ_WAIT_ENTER && wait->object)
            output_literal(out, ", whose owner is not known");
        return;
    }
    output_literal(out, word);
    if (!wait->blocker_tid)
        output_printf(out, "the runtime's thread %u", wait->blocker_id);
    else
        put_thread(out, wait->blocker_tid, wait->blocker_name);
    if (!wait->blocker_tid || !wait->blocker_id)
        output_literal(out, ", which has ended");
    if (wait->readers > 1)
        output_printf(out, " and %" PRIu32 " more reader%s", wait->readers - 1, plural(wait->readers - 1));
}

static const char *task_text(const struct cdacq_task *task)
{
    return task->method ? task->method : task->type ? task->type : "?";
}

static bool reads_alike(const struct cdacq_task *a, const struct cdacq_task *b)
{
    return a->tid == b->tid && strcmp(task_text(a), task_text(b)) == 0 &&
           strcmp(a->status ? a->status : "", b->status ? b->status : "") == 0;
}

/* The tasks behind a wait, a line each. Equal lines after the second task are one. */
static void put_tasks(struct output *out, const struct cdacq_wait *wait)
{
    for (size_t i = 0, alike; i < wait->task_count; i += alike) {
        const struct cdacq_task *task = &wait->tasks[i];
        for (alike = 1; i && i + alike < wait->task_count && reads_alike(task, task + alike);)
            alike++;
        output_literal(out, i ? "    which awaits " : "    the task is ");
        output_note(out, task_text(task));
        if (task->status)
            output_text_between(out, ", ", task->status, "");
        if (task->tid)
            output_printf(out, ", run by TID %d", task->tid);
        if (alike > 1)
            output_printf(out, " (%zu of them in a row)", alike);
        output_literal(out, "\n");
    }
}

/* Whether each wait is known to end only with what it waits for. */
static bool is_certain(const struct cdacq_deadlock *deadlock)
{
    for (size_t i = 0; i < deadlock->count; i++)
        if (deadlock->waits[i]->endless != CDACQ_ENDLESS_YES)
            return false;
    return true;
}

static void write_deadlock(struct output *out, const struct cdacq_deadlock *deadlock)
{
    output_style(out, STYLE_ERROR);
    output_printf(out, "\nDeadlock of %zu thread%s:\n", deadlock->count, plural(deadlock->count));
    output_style(out, STYLE_NONE);
    for (size_t i = 0; i < deadlock->count; i++) {
        output_literal(out, "  ");
        put_thread(out, deadlock->waits[i]->tid, deadlock->waits[i]->name);
        output_literal(out, " waits");
        put_aim(out, deadlock->waits[i]);
        put_blocker(out, deadlock->waits[i]);
        output_literal(out, "\n");
        put_tasks(out, deadlock->waits[i]);
    }
    if (!is_certain(deadlock))
        output_styled(out, STYLE_DOUBT,
                      "  (it is none if one of these waits has a timeout or can be cancelled, which is not known)\n");
}

static void write_deadlock_line(struct output *out, const struct cdacq_deadlock *deadlock)
{
    output_style(out, STYLE_ERROR);
    output_printf(out, "%-12s", "deadlock");
    output_style(out, STYLE_NONE);
    for (size_t i = 0; i < deadlock->count; i++) {
        put_thread(out, deadlock->waits[i]->tid, deadlock->waits[i]->name);
        output_literal(out, " -> ");
    }
    if (deadlock->count)
        put_thread(out, deadlock->waits[0]->tid, deadlock->waits[0]->name);
    if (!is_certain(deadlock))
        output_styled(out, STYLE_DOUBT, " (if none of these waits has a timeout or can be cancelled)");
    output_literal(out, "\n");
}

static int add_wait(const struct cdacq_wait *wait, void *context)
{
    if (!shown_waits_append(context, wait))
        out_of_memory();
    return 0;
}

static int compare_texts(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* The order of tasks that differ in what the lines about them say. */
static int compare_tasks(const struct cdacq_wait *a, const struct cdacq_wait *b)
{
    int order = compare_texts(a->type, b->type);
    order = order ? order : compare_numbers(a->task_count, b->task_count);
    for (size_t i = 0; i < a->task_count && !order; i++) {
        order = compare_texts(task_text(&a->tasks[i]), task_text(&b->tasks[i]));
        order = order ? order : compare_texts(a->tasks[i].status, b->tasks[i].status);
        order = order ? order : compare_numbers((uint64_t)a->tasks[i].tid, (uint64_t)b->tasks[i].tid);
    }
    return order;
}

/* The order of waits that differ in what their lines say. For several tasks that read alike, no address is shown. */
static int compare_lines(const struct cdacq_wait *a, const struct cdacq_wait *b)
{
    int order = compare_numbers(a->kind, b->kind);
    if (!order)
        order = a->kind == CDACQ_WAIT_TASK && a->object && b->object ? compare_tasks(a, b)
                                                                     : compare_numbers(a->object, b->object);
    order = order ? order : compare_numbers(a->by, b->by);
    /* Of one lock, a reader may be blocked by another thread than a writer. */
    order = order ? order : compare_numbers((uint64_t)a->blocker_tid, (uint64_t)b->blocker_tid);
    order = order ? order : compare_numbers(a->has_timeout, b->has_timeout);
    return order || !a->has_timeout ? order : compare_numbers((uint64_t)a->timeout, (uint64_t)b->timeout);
}

static int compare_waits(const void *left, const void *right)
{
    const struct cdacq_wait *a = *(const struct cdacq_wait *const *)left, *b = *(const struct cdacq_wait *const *)right;
    int order = compare_lines(a, b);
    order = order ? order : compare_numbers(a->object, b->object);
    return order ? order : compare_numbers((uint64_t)a->tid, (uint64_t)b->tid);
}

/* Threads that wait for the same, or for tasks that read alike, in one line. What is not known is not the same. */
static size_t count_alike(const struct shown_waits *waits, size_t first)
{
    const struct cdacq_wait *wait = waits->items[first];
    size_t end = first + 1;
    while (wait->object && end < waits->count && compare_lines(wait, waits->items[end]) == 0)
        end++;
    return end - first;
}

static void write_wait(struct output *out, const struct cdacq_wait *const *waits, size_t count)
{
    output_literal(out, "  ");
    for (size_t i = 0; i < MIN(count, (size_t)THREADS_SHOWN); i++) {
        output_literal(out, i ? ", " : "");
        put_thread(out, waits[i]->tid, waits[i]->name);
    }
    if (count > THREADS_SHOWN)
        output_printf(out, " and %zu more", count - THREADS_SHOWN);
    output_literal(out, count > 1 ? " wait" : " waits");
    if (waits[0]->object == waits[count - 1]->object)
        put_aim(out, waits[0]);
    else
        put_aim_of_each(out, waits[0]);
    put_blocker(out, waits[0]);
    output_literal(out, "\n");
    put_tasks(out, waits[0]);
}

static void put_queued(struct output *out, const struct cdacq_thread_pool *pool)
{
    output_printf(out, "%" PRIu64 " work item%s queued", pool->queued, pool->queued == 1 ? " is" : "s are");
}

/* Of one moment: whether it lasts, a second report shows. */
static void put_starvation(struct output *out, const struct cdacq_thread_pool *pool)
{
    output_style(out, STYLE_ERROR);
    const char *busy = pool->busy < pool->workers ? "busy " : ""; /* the pool lets no other run */
    if (pool->busy == 1)
        output_printf(out, "its only %sworker waits", busy);
    else
        output_printf(out, "all %" PRIu32 " %sworkers wait", pool->busy, busy);
    output_literal(out, " while ");
    put_queued(out, pool);
    output_style(out, STYLE_NONE);
    output_literal(out, ": starvation, if it lasts");
    if (pool->has_limits)
        output_printf(out, " (at most %" PRIu32 " worker%s)", pool->max_workers, plural(pool->max_workers));
    output_literal(out, "\n");
}

static void write_pool(const struct report *report, struct output *out)
{
    const struct cdacq_thread_pool *pool = &report->pool;
    if (!pool->busy)
        return;
    output_styled(out, STYLE_HEADING, "\nThread pool:\n");
    output_literal(out, "  ");
    if (report->pool.starves) {
        put_starvation(out, pool);
        return;
    }
    output_printf(out, "%" PRIu32 " worker%s", pool->workers, plural(pool->workers));
    if (pool->has_limits)
        output_printf(out, " (at most %" PRIu32 ")", pool->max_workers);
    output_printf(out, ", %" PRIu32 " busy, of which %" PRIu32 " wait%s; ", pool->busy, pool->waiting,
                  pool->waiting == 1 ? "s" : "");
    if (pool->has_queued)
        put_queued(out, pool);
    else
        output_literal(out, "the number of queued work items is not known");
    output_literal(out, "\n");
}

void report_write_waits_text(const struct report *report, bool brief)
{
    struct output *out = report->answers.out;
    struct shown_waits waits = {0};
    for (size_t i = 0; i < report->deadlocks.count; i++) {
        if (brief)
            write_deadlock_line(out, report->deadlocks.items[i]);
        else
            write_deadlock(out, report->deadlocks.items[i]);
    }
    if (brief) {
        if (report->pool.starves) {
            output_printf(out, "%-12s", "thread pool");
            put_starvation(out, &report->pool);
        }
        return;
    }
    write_pool(report, out);
    (void)cdacq_wait_graph_visit_waits(report->graph, add_wait, &waits, NULL);
    if (waits.count) {
        output_styled(out, STYLE_HEADING, "\nWaits:\n");
        qsort(waits.items, waits.count, sizeof *waits.items, compare_waits);
    }
    for (size_t i = 0, n; i < waits.count && !output_failed(out); i += n) {
        n = count_alike(&waits, i);
        write_wait(out, waits.items + i, n);
    }
    if (report->waits_problem)
        output_note_between(out, "\n(some waits may be missing: ", report->waits_problem, ")\n");
    shown_waits_deinit(&waits);
}

/* ---- JSON ---- */

static const char *const wait_kinds[] = {
    [CDACQ_WAIT_ENTER] = "enter", [CDACQ_WAIT_PULSE] = "pulse",   [CDACQ_WAIT_TASK] = "task",
    [CDACQ_WAIT_TASKS] = "tasks", [CDACQ_WAIT_EVENT] = "event",   [CDACQ_WAIT_SEMAPHORE] = "semaphore",
    [CDACQ_WAIT_JOIN] = "join",   [CDACQ_WAIT_HANDLE] = "handle",
};

static const char *const lock_kinds[] = {
    [CDACQ_LOCK_MONITOR] = "monitor",
    [CDACQ_LOCK_LOCK] = "lock",
    [CDACQ_LOCK_READER_WRITER] = "reader_writer",
};

static const char *const wait_sources[] = {
    [CDACQ_WAIT_BY_NOTHING] = NULL,
    [CDACQ_WAIT_BY_STATE] = "state",
    [CDACQ_WAIT_BY_FRAME] = "frame",
    [CDACQ_WAIT_BY_SCAN] = "scan",
};

static int write_lock(const struct cdacq_lock *lock, void *context)
{
    struct json_writer *w = context;
    json_begin_object(w, NULL);
    json_string(w, "kind", lock_kinds[lock->kind]);
    json_address(w, "object", lock->object);
    json_note(w, "type", lock->type);
    json_bool(w, "held", lock->held);
    json_bool(w, "thin", lock->thin);
    json_known_number(w, "owner_tid", lock->owner_tid > 0, (uint64_t)lock->owner_tid);
    json_known_number(w, "owner_id", lock->owner_id > 0, lock->owner_id);
    json_number(w, "recursion", lock->recursion);
    json_number(w, "waiters", lock->waiters);
    json_number(w, "readers", lock->readers);
    json_end_object(w);
    return output_failed(w->out);
}

static void write_task(struct json_writer *w, const struct cdacq_task *task)
{
    json_begin_object(w, NULL);
    json_address(w, "object", task->object);
    json_note(w, "type", task->type);
    json_string(w, "status", task->status);
    json_note(w, "method", task->method);
    json_known_number(w, "tid", task->tid > 0, (uint64_t)task->tid);
    json_end_object(w);
}

static int write_wait_json(const struct cdacq_wait *wait, void *context)
{
    struct json_writer *w = context;
    json_begin_object(w, NULL);
    json_number(w, "tid", (uint64_t)wait->tid);
    json_string(w, "kind", wait_kinds[wait->kind]);
    json_address(w, "object", wait->object);
    json_note(w, "type", wait->type);
    json_string(w, "by", wait_sources[wait->by]);
    json_known_number(w, "timeout", wait->has_timeout && wait->timeout >= 0, (uint64_t)wait->timeout);
    if (wait->endless == CDACQ_ENDLESS_UNKNOWN)
        json_null(w, "endless");
    else
        json_bool(w, "endless", wait->endless == CDACQ_ENDLESS_YES);
    json_known_number(w, "blocker_tid", wait->blocker_tid > 0, (uint64_t)wait->blocker_tid);
    json_known_number(w, "blocker_id", wait->blocker_id > 0, wait->blocker_id);
    json_begin_array(w, "tasks");
    for (size_t i = 0; i < wait->task_count; i++)
        write_task(w, &wait->tasks[i]);
    json_end_array(w);
    json_end_object(w);
    return output_failed(w->out);
}

static void write_pool_json(const struct cdacq_thread_pool *pool, struct json_writer *w)
{
    if (!pool->workers) {
        json_null(w, "thread_pool");
        return;
    }
    json_begin_object(w, "thread_pool");
    json_number(w, "workers", pool->workers);
    json_number(w, "busy", pool->busy);
    json_number(w, "waiting", pool->waiting);
    json_known_number(w, "min_workers", pool->has_limits, pool->min_workers);
    json_known_number(w, "max_workers", pool->has_limits, pool->max_workers);
    json_known_number(w, "queued", pool->has_queued, pool->queued);
    json_bool(w, "starves", pool->starves);
    json_end_object(w);
}

void report_write_waits_json(const struct report *report, struct json_writer *w)
{
    json_begin_array(w, "locks");
    (void)cdacq_wait_graph_visit_locks(report->graph, write_lock, w, NULL);
    json_end_array(w);
    json_begin_array(w, "waits");
    (void)cdacq_wait_graph_visit_waits(report->graph, write_wait_json, w, NULL);
    json_end_array(w);
    json_begin_array(w, "deadlocks");
    for (size_t i = 0; i < report->deadlocks.count; i++) {
        json_begin_object(w, NULL);
        json_begin_array(w, "waits");
        for (size_t k = 0; k < report->deadlocks.items[i]->count; k++)
            (void)write_wait_json(report->deadlocks.items[i]->waits[k], w);
        json_end_array(w);
        json_end_object(w);
    }
    json_end_array(w);
    write_pool_json(&report->pool, w);
    json_note(w, "waits_problem", report->waits_problem);
}
