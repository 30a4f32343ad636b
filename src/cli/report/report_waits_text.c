#include <inttypes.h>
#include <string.h>

#include "src/cli/report/other_process.h"
#include "src/cli/report/signature_names.h"
#include "src/cli/report/wait_lines.h"

enum { THREADS_SHOWN = 20 }; /* of those that wait for the same */

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
    if (report_wait_is_bounded(wait))
        output_printf(out, " (at most %d ms)", wait->timeout_ms);
}

/* What it waits for, as the end of "TID 12 waits". */
static void put_aim(struct output *out, const struct report *report, const struct cdacq_wait *wait)
{
    static const struct {
        const char *known, *unknown;
    } aims[] = {
        [CDACQ_WAIT_ENTER] = {" for the lock ", " for a lock"},
        [CDACQ_WAIT_PULSE] = {" to be pulsed on ", " to be pulsed"},
        [CDACQ_WAIT_TASK] = {" for the task ", " for a task"},
        [CDACQ_WAIT_TASKS] = {" for all tasks of ", " for all of several tasks"},
        [CDACQ_WAIT_EVENT] = {" for the event ", " for an event"},
        [CDACQ_WAIT_SEMAPHORE] = {" for the semaphore ", " for a semaphore"},
        [CDACQ_WAIT_JOIN] = {" for the end of the thread ", " for the end of a thread"},
        [CDACQ_WAIT_HANDLE] = {" for the handle ", " for one or several handles"},
        [CDACQ_WAIT_INITIALIZER] = {" for the static constructor of ", " for a static constructor"},
        [CDACQ_WAIT_SLEEP] = {NULL, " for a time (Thread.Sleep)"},
        [CDACQ_WAIT_FINALIZERS] = {NULL, " for the finalizers to run"},
        [CDACQ_WAIT_PROCESS] = {NULL, " for a process to end"},
    };
    if (wait->process) {
        output_literal(out, " for the end of ");
        other_process_put(out, report, wait->process);
    } else if (!aims[wait->kind].known) {
        output_literal(out, aims[wait->kind].unknown);
    } else if (wait->kind == CDACQ_WAIT_TASK && wait->object && wait->task_count && wait->tasks[0].method) {
        output_note_between(out, " for the task of ", wait->tasks[0].method, ""); /* its type says less */
        output_printf(out, " 0x%" PRIx64, wait->object);
    } else if (wait->object) {
        output_literal(out, aims[wait->kind].known);
        put_object(out, wait->type, wait->object);
    } else {
        output_literal(out, aims[wait->kind].unknown);
        output_literal(out, ", not known which");
    }
    put_doubt_and_timeout(out, wait);
}

/* The same for several threads: each waits for a task of its own that reads like this one. */
static void put_aim_of_each(struct output *out, const struct cdacq_wait *wait)
{
    output_literal(out, ", each for a task ");
    output_note(out, wait->type ? wait->type : "of a type that is not known");
    put_doubt_and_timeout(out, wait);
}

/* Who has to go on first, as the end of the line. */
static void put_blocker(struct output *out, const struct report *report, const struct cdacq_wait *wait)
{
    static const char *const words[] = {
        [CDACQ_WAIT_ENTER] = ", held by ",   [CDACQ_WAIT_TASK] = ", run by ",        [CDACQ_WAIT_JOIN] = ", which is ",
        [CDACQ_WAIT_HANDLE] = ", owned by ", [CDACQ_WAIT_INITIALIZER] = ", run by ", [CDACQ_WAIT_FINALIZERS] = ", on "};
    const char *word = words[wait->kind] ? words[wait->kind] : ", of ";
    if (!wait->blocker_tid && !wait->blocker_id) {
        if (wait->readers)
            output_printf(out, ", held by %" PRIu32 " reader%s", wait->readers, plural(wait->readers));
        else if (wait->kind == CDACQ_WAIT_ENTER && wait->object)
            output_literal(out, ", whose owner is not known");
        return;
    }
    const struct report_place place = report_place_of(report, wait->blocker_tid);
    output_literal(out, word);
    if (!wait->blocker_tid)
        output_printf(out, "the runtime's thread %u", wait->blocker_id);
    else
        report_put_thread(out, wait->blocker_tid, wait->blocker_name);
    report_put_in_place(out, &place);
    if (!wait->blocker_tid || !wait->blocker_id)
        output_literal(out, ", which has ended");
    if (wait->readers > 1)
        output_printf(out, " and %" PRIu32 " more reader%s", wait->readers - 1, plural(wait->readers - 1));
}

/* The tasks behind a wait, a line each. Equal lines after the second task are one. */
static void put_tasks(struct output *out, const struct cdacq_wait *wait)
{
    for (size_t i = 0, alike; i < wait->task_count; i += alike) {
        const struct cdacq_task *task = &wait->tasks[i];
        for (alike = 1; i && i + alike < wait->task_count && wait_lines_tasks_alike(task, task + alike);)
            alike++;
        output_literal(out, i ? "    which awaits " : "    the task is ");
        output_note(out, wait_lines_task(task));
        if (task->file) {
            output_text_between(out, " ", path_basename(task->file), "");
            output_printf(out, ":%" PRIu32, task->line);
        }
        if (task->status && strcmp(task->status, "WaitingForActivation") != 0) /* that is: it has not ended */
            output_text_between(out, ", ", task->status, "");
        if (task->tid)
            output_printf(out, ", run by TID %d", task->tid);
        if (task->others)
            output_printf(out, ", and waits for %s%" PRIu32 " more task%s",
                          task->others < TASK_OTHERS_MAX ? "" : "at least ", task->others, plural(task->others));
        if (wait->has_pending_continuation && i + alike == wait->task_count)
            output_literal(out, ": what it awaited has completed, but the rest of it has not begun to run");
        if (alike > 1)
            output_printf(out, " (%zu of them in a row)", alike);
        output_literal(out, "\n");
    }
}

bool report_deadlock_is_certain(const struct cdacq_deadlock *deadlock)
{
    for (size_t i = 0; i < deadlock->count; i++)
        if (deadlock->waits[i]->endless != CDACQ_ENDLESS_YES)
            return false;
    return true;
}

/* What ends the process when Main has returned, as the end of "TID 12 waits". */
static void put_foreground(struct output *out, const struct report *report)
{
    size_t count = 0;
    output_literal(out, " for the foreground threads to end, since Main has returned");
    for (struct stacks_cursor at = {0}; stacks_next_thread(report->all_stacks, &at);) {
        if (!at.thread->is_foreground || ++count > THREADS_SHOWN)
            continue;
        output_literal(out, count == 1 ? ": " : ", ");
        report_put_thread(out, at.thread->tid, at.thread->name);
    }
    if (count > THREADS_SHOWN)
        output_printf(out, " and %zu more", count - THREADS_SHOWN);
}

void report_put_wait(struct output *out, const struct report *report, const struct cdacq_wait *wait)
{
    if (wait->kind == CDACQ_WAIT_FOREGROUND) {
        put_foreground(out, report);
        return;
    }
    put_aim(out, report, wait);
    put_blocker(out, report, wait);
}

static bool are_one_place(const struct report_place *a, const struct report_place *b)
{
    bool same_method = a->method == b->method || (a->method && b->method && strcmp(a->method, b->method) == 0);
    return same_method && a->line == b->line && a->is_guess == b->is_guess;
}

/* Where threads wait that wait for the same. */
static void put_places(struct output *out, const struct report *report, const struct cdacq_wait *const *waits,
                       size_t count)
{
    const struct report_place first = report_place_of(report, waits[0]->tid);
    size_t same = 1;
    for (; same < count; same++) {
        const struct report_place other = report_place_of(report, waits[same]->tid);
        if (!are_one_place(&first, &other))
            break;
    }
    report_put_in_place(out, &first);
    if (first.method && same < count)
        output_literal(out, " and elsewhere");
}

static void write_deadlock(const struct report *report, struct output *out, const struct cdacq_deadlock *deadlock)
{
    output_style(out, STYLE_ERROR);
    output_printf(out, "\nDeadlock of %zu thread%s", deadlock->count, plural(deadlock->count));
    report_put_runtime(out, report, "in");
    output_literal(out, ":\n");
    output_style(out, STYLE_NONE);
    for (size_t i = 0; i < deadlock->count; i++) {
        output_literal(out, "  ");
        report_put_thread(out, deadlock->waits[i]->tid, deadlock->waits[i]->name);
        output_literal(out, " waits");
        put_places(out, report, deadlock->waits + i, 1);
        report_put_wait(out, report, deadlock->waits[i]);
        output_literal(out, "\n");
        put_tasks(out, deadlock->waits[i]);
    }
    if (!report_deadlock_is_certain(deadlock))
        output_styled(out, STYLE_DOUBT,
                      "  (it is none if one of these waits has a timeout or can be cancelled, which is not known)\n");
}

static void write_deadlock_line(const struct report *report, struct output *out, const struct cdacq_deadlock *deadlock)
{
    output_style(out, STYLE_ERROR);
    output_printf(out, "%-12s", "deadlock");
    output_style(out, STYLE_NONE);
    for (size_t i = 0; i < deadlock->count; i++) {
        report_put_thread(out, deadlock->waits[i]->tid, deadlock->waits[i]->name);
        output_literal(out, " -> ");
    }
    if (deadlock->count)
        report_put_thread(out, deadlock->waits[0]->tid, deadlock->waits[0]->name);
    report_put_runtime(out, report, "in");
    if (!report_deadlock_is_certain(deadlock))
        output_styled(out, STYLE_DOUBT, " (if none of these waits has a timeout or can be cancelled)");
    output_literal(out, "\n");
}

static void write_wait(const struct report *report, struct output *out, const struct cdacq_wait *const *waits,
                       size_t count)
{
    output_literal(out, "  ");
    for (size_t i = 0; i < MIN(count, (size_t)THREADS_SHOWN); i++) {
        output_literal(out, i ? ", " : "");
        report_put_thread(out, waits[i]->tid, waits[i]->name);
    }
    if (count > THREADS_SHOWN)
        output_printf(out, " and %zu more", count - THREADS_SHOWN);
    output_literal(out, count > 1 ? " wait" : " waits");
    put_places(out, report, waits, count);
    if (waits[0]->object == waits[count - 1]->object) {
        report_put_wait(out, report, waits[0]);
    } else {
        put_aim_of_each(out, waits[0]);
        put_blocker(out, report, waits[0]);
    }
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

static void write_heading(const struct report *report, struct output *out, const char *text)
{
    output_literal(out, "\n");
    output_style(out, STYLE_HEADING);
    output_text(out, text);
    report_put_runtime(out, report, "of");
    output_literal(out, ":");
    output_style(out, STYLE_NONE);
    output_literal(out, "\n");
}

static void write_pool(const struct report *report, struct output *out)
{
    const struct cdacq_thread_pool *pool = &report->pool;
    if (!pool->busy)
        return;
    write_heading(report, out, "Thread pool");
    output_literal(out, "  ");
    if (report->pool.starves) {
        put_starvation(out, pool);
        return;
    }
    output_printf(out, "%" PRIu32 " worker%s", pool->workers, plural(pool->workers));
    if (pool->has_limits)
        output_printf(out, " (at most %" PRIu32 ")", pool->max_workers);
    output_printf(out, ", %" PRIu32 " busy, %" PRIu32 " of them waiting; ", pool->busy, pool->waiting);
    if (pool->has_queued)
        put_queued(out, pool);
    else
        output_literal(out, "the number of queued work items is not known");
    output_literal(out, "\n");
}

static void write_deadlocks(const struct report *report, struct output *out, bool brief)
{
    for (size_t i = 0; i < report->deadlocks.count; i++) {
        if (brief)
            write_deadlock_line(report, out, report->deadlocks.items[i]);
        else
            write_deadlock(report, out, report->deadlocks.items[i]);
    }
}

void report_write_deadlocks_text(const struct report *report, bool brief)
{
    const struct report *one;
    for (size_t next = 0; (one = report_next_runtime(report, &next));)
        write_deadlocks(one, report->answers.out, brief);
}

/* ---- Idle threads ---- */

/* A method of the framework that idle threads run, and how many. */
struct idle_method {
    const struct cdacq_method *method; /* NULL: none whose name is known */
    size_t count;
};

enum { IDLE_SHOWN = 8 };

/* Whether a thread waits for work: no thread has to go on first, and nothing of the program is in it. */
static bool is_idle(const struct report *report, const struct cdacq_wait *wait)
{
    bool may_be = wait->kind == CDACQ_WAIT_PULSE || wait->kind == CDACQ_WAIT_EVENT ||
                  wait->kind == CDACQ_WAIT_SEMAPHORE || wait->kind == CDACQ_WAIT_HANDLE ||
                  wait->kind == CDACQ_WAIT_TASK || wait->kind == CDACQ_WAIT_SLEEP;
    const struct stack *stack = report_stack_of(report, wait->tid);
    if (!may_be || wait->blocker_tid || wait->blocker_id || !stack || stack->problem || report_runs_program(stack))
        return false;
    for (size_t i = 0; i < wait->task_count; i++) {
        const char *method = wait->tasks[i].method;
        if (method && !signature_is_of_framework(method, strlen(method)))
            return false;
    }
    return true;
}

/* The outermost method that says what the thread is for. */
static const struct cdacq_method *purpose_of(const struct stack *stack)
{
    static const char start[] = "System.Threading.Thread.";
    for (size_t i = stack->frames.count; i--;) {
        const struct cdacq_method *method = &stack->frames.items[i].shared->method;
        if (method->answer == CDACQ_ANSWER_MANAGED && method->name_length &&
            strncmp(method->name, start, sizeof start - 1) != 0)
            return method;
    }
    return NULL;
}

/* Returns false if there is no room for another method. */
static bool count_idle(struct idle_method *methods, size_t *count, const struct cdacq_method *method)
{
    for (size_t i = 0; i < *count; i++)
        if (methods[i].method == method ||
            (method && methods[i].method && strcmp(methods[i].method->name, method->name) == 0)) {
            methods[i].count++;
            return true;
        }
    if (*count == IDLE_SHOWN)
        return false;
    methods[(*count)++] = (struct idle_method){method, 1};
    return true;
}

/* The idle threads of a runtime. */
struct idle_threads {
    struct idle_method methods[IDLE_SHOWN];
    size_t known;     /* methods */
    size_t elsewhere; /* threads in further ones */
    size_t count;     /* all threads */
};

/* Takes the waits of idle threads out, and those of deadlocks, which have lines already. */
static void take_idle(const struct report *report, struct shown_waits *waits, struct idle_threads *ret)
{
    size_t kept = 0;
    *ret = (struct idle_threads){.count = 0};
    for (size_t i = 0; i < waits->count; i++) {
        const struct cdacq_wait *wait = waits->items[i];
        if (is_idle(report, wait)) {
            ret->count++;
            ret->elsewhere += !count_idle(ret->methods, &ret->known, purpose_of(report_stack_of(report, wait->tid)));
        } else if (!report_is_deadlocked(report, wait->tid)) {
            waits->items[kept++] = wait;
        }
    }
    waits->count = kept;
}

static void write_idle(const struct idle_threads *idle, struct output *out)
{
    bool is_one = idle->known == 1 && !idle->elsewhere;
    if (!idle->count)
        return;
    output_printf(out, "  %zu thread%s of the framework %s idle", idle->count, plural(idle->count),
                  idle->count == 1 ? "is" : "are");
    for (size_t i = 0; i < idle->known; i++) {
        const struct cdacq_method *method = idle->methods[i].method;
        output_literal(out, is_one ? "" : i ? "," : ":");
        if (!is_one)
            output_printf(out, " %zu", idle->methods[i].count);
        output_literal(out, " in ");
        if (method)
            signature_write_name(out, method->name, method->name_length);
        else
            output_literal(out, "code without a name");
    }
    if (idle->elsewhere)
        output_printf(out, ", %zu elsewhere", idle->elsewhere);
    output_literal(out, "\n");
}

/* The part of one runtime. */
static void write_waits(const struct report *report, struct output *out, bool brief)
{
    struct shown_waits waits;
    struct idle_threads idle;
    if (brief) {
        if (report->pool.starves) {
            output_printf(out, "%-12s", "thread pool");
            if (report->tells_runtime)
                output_printf(out, "runtime %u: ", report->facts.runtime);
            put_starvation(out, &report->pool);
        }
        return;
    }
    write_pool(report, out);
    wait_lines_collect(report->graph, &waits);
    take_idle(report, &waits, &idle);
    if (waits.count || idle.count)
        write_heading(report, out, "Waits");
    for (size_t i = 0, n; i < waits.count && !output_failed(out); i += n) {
        n = wait_lines_count(&waits, i);
        write_wait(report, out, waits.items + i, n);
    }
    write_idle(&idle, out);
    if (report->waits_problem) {
        output_literal(out, "\n(some waits");
        report_put_runtime(out, report, "of");
        output_note_between(out, " may be missing: ", report->waits_problem, ")\n");
    }
    wait_lines_release(&waits);
}

void report_write_waits_text(const struct report *report, bool brief)
{
    const struct report *one;
    for (size_t next = 0; (one = report_next_runtime(report, &next));)
        write_waits(one, report->answers.out, brief);
}
