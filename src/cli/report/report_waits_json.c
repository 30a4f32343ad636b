#include "src/cli/report/other_process.h"

static const char *const wait_kinds[] = {
    [CDACQ_WAIT_ENTER] = "enter",
    [CDACQ_WAIT_PULSE] = "pulse",
    [CDACQ_WAIT_TASK] = "task",
    [CDACQ_WAIT_TASKS] = "tasks",
    [CDACQ_WAIT_EVENT] = "event",
    [CDACQ_WAIT_SEMAPHORE] = "semaphore",
    [CDACQ_WAIT_JOIN] = "join",
    [CDACQ_WAIT_HANDLE] = "handle",
    [CDACQ_WAIT_FOREGROUND] = "foreground",
    [CDACQ_WAIT_INITIALIZER] = "initializer",
    [CDACQ_WAIT_SLEEP] = "sleep",
    [CDACQ_WAIT_FINALIZERS] = "finalizers",
    [CDACQ_WAIT_PROCESS] = "process",
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

/* Where locks and waits of a runtime are written. */
struct place {
    const struct report *report;
    struct json_writer *w;
};

/* Which runtime it is of, where there are several. */
static void write_runtime(const struct place *place)
{
    if (place->report->tells_runtime)
        json_number(place->w, "runtime", place->report->facts.runtime);
}

static int write_lock(const struct cdacq_lock *lock, void *context)
{
    const struct place *place = context;
    struct json_writer *w = place->w;
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
    write_runtime(place);
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
    json_note(w, "file", task->file);
    json_known_number(w, "line", task->line > 0, task->line);
    json_number(w, "others", task->others);
    json_end_object(w);
}

static int write_wait(const struct cdacq_wait *wait, void *context)
{
    const struct place *place = context;
    struct json_writer *w = place->w;
    json_begin_object(w, NULL);
    json_number(w, "tid", (uint64_t)wait->tid);
    json_string(w, "kind", wait_kinds[wait->kind]);
    json_address(w, "object", wait->object);
    json_note(w, "type", wait->type);
    json_string(w, "by", wait_sources[wait->by]);
    json_known_number(w, "timeout", report_wait_is_bounded(wait), (uint64_t)wait->timeout_ms);
    if (wait->endless == CDACQ_ENDLESS_UNKNOWN)
        json_null(w, "endless");
    else
        json_bool(w, "endless", wait->endless == CDACQ_ENDLESS_YES);
    json_known_number(w, "blocker_tid", wait->blocker_tid > 0, (uint64_t)wait->blocker_tid);
    json_known_number(w, "blocker_id", wait->blocker_id > 0, wait->blocker_id);
    const struct report_place here = report_place_of(place->report, wait->tid);
    const struct report_place there = report_place_of(place->report, wait->blocker_tid);
    report_write_place_json(w, "place", &here);
    report_write_place_json(w, "blocker_place", &there);
    json_begin_array(w, "tasks");
    for (size_t i = 0; i < wait->task_count; i++)
        write_task(w, &wait->tasks[i]);
    json_end_array(w);
    json_bool(w, "pending_continuation", wait->has_pending_continuation);
    json_bool(w, "cycle", wait->is_cycle);
    other_process_write_members(w, place->report, "process", wait->process);
    write_runtime(place);
    json_end_object(w);
    return output_failed(w->out);
}

/* `key` is NULL in an array. */
static void write_pool(const struct place *place, const char *key)
{
    const struct cdacq_thread_pool *pool = &place->report->pool;
    struct json_writer *w = place->w;
    json_begin_object(w, key);
    json_number(w, "workers", pool->workers);
    json_number(w, "busy", pool->busy);
    json_number(w, "waiting", pool->waiting);
    json_known_number(w, "min_workers", pool->has_limits, pool->min_workers);
    json_known_number(w, "max_workers", pool->has_limits, pool->max_workers);
    json_known_number(w, "queued", pool->has_queued, pool->queued);
    json_bool(w, "starves", pool->starves);
    write_runtime(place);
    json_end_object(w);
}

/* The pool of the runtime that leads and, where there are several, of all. */
static void write_pools(const struct report *report, struct json_writer *w)
{
    const struct report *one;
    if (report->pool.workers)
        write_pool(&(struct place){report, w}, "thread_pool");
    else
        json_null(w, "thread_pool");
    if (!report->tells_runtime)
        return;
    json_begin_array(w, "thread_pools");
    for (size_t next = 0; (one = report_next_runtime(report, &next));)
        if (one->pool.workers)
            write_pool(&(struct place){one, w}, NULL);
    json_end_array(w);
}

static void write_deadlocks(struct place *place)
{
    const struct report_deadlocks *deadlocks = &place->report->deadlocks;
    struct json_writer *w = place->w;
    for (size_t i = 0; i < deadlocks->count; i++) {
        json_begin_object(w, NULL);
        json_begin_array(w, "waits");
        for (size_t k = 0; k < deadlocks->items[i]->count; k++)
            (void)write_wait(deadlocks->items[i]->waits[k], place);
        json_end_array(w);
        write_runtime(place);
        json_end_object(w);
    }
}

void report_write_waits_json(const struct report *report, struct json_writer *w)
{
    const struct report *one;
    json_begin_array(w, "locks");
    for (size_t next = 0; (one = report_next_runtime(report, &next));)
        (void)cdacq_wait_graph_visit_locks(one->graph, write_lock, &(struct place){one, w}, NULL);
    json_end_array(w);
    json_begin_array(w, "waits");
    for (size_t next = 0; (one = report_next_runtime(report, &next));)
        (void)cdacq_wait_graph_visit_waits(one->graph, write_wait, &(struct place){one, w}, NULL);
    json_end_array(w);
    json_begin_array(w, "deadlocks");
    for (size_t next = 0; (one = report_next_runtime(report, &next));)
        write_deadlocks(&(struct place){one, w});
    json_end_array(w);
    write_pools(report, w);
    json_note(w, "waits_problem", report_any_waits_problem(report));
}
