#include "src/cli/report.h"

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

static int write_wait(const struct cdacq_wait *wait, void *context)
{
    struct json_writer *w = context;
    json_begin_object(w, NULL);
    json_number(w, "tid", (uint64_t)wait->tid);
    json_string(w, "kind", wait_kinds[wait->kind]);
    json_address(w, "object", wait->object);
    json_note(w, "type", wait->type);
    json_string(w, "by", wait_sources[wait->by]);
    json_known_number(w, "timeout", report_wait_is_bounded(wait), (uint64_t)wait->timeout);
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
    json_bool(w, "pending_continuation", wait->has_pending_continuation);
    json_end_object(w);
    return output_failed(w->out);
}

static void write_pool(const struct cdacq_thread_pool *pool, struct json_writer *w)
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
    (void)cdacq_wait_graph_visit_waits(report->graph, write_wait, w, NULL);
    json_end_array(w);
    json_begin_array(w, "deadlocks");
    for (size_t i = 0; i < report->deadlocks.count; i++) {
        json_begin_object(w, NULL);
        json_begin_array(w, "waits");
        for (size_t k = 0; k < report->deadlocks.items[i]->count; k++)
            (void)write_wait(report->deadlocks.items[i]->waits[k], w);
        json_end_array(w);
        json_end_object(w);
    }
    json_end_array(w);
    write_pool(&report->pool, w);
    json_note(w, "waits_problem", report->waits_problem);
}
