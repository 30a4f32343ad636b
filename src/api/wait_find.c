/*
 * wait_find.c: finds what a thread waits for, from the monitor that the runtime blocks it on and from the objects in
 * its frames. The object of a wait is confirmed if the two agree: the monitor belongs to the event or semaphore in the
 * frame, and the event is a continuation of the task.
 */
#include "contracts/objects/sync_block.h"
#include "contracts/stack_walk/explicit_frame.h"
#include "contracts/thread.h"
#include "src/api/wait_graph.h"

#define EVENT_IS_SET UINT32_C(0x80000000) /* of ManualResetEventSlim.m_combinedState */

/* What is known of the monitor that a thread is blocked on. */
struct blocked {
    bool known; /* the runtime describes what threads are blocked on */
    bool is_blocked;
    struct thread_blocking blocking;
    uint64_t object; /* the object that the monitor belongs to; 0: not known */
};

static struct blocked read_blocked(struct cdacq_wait_graph *graph, uint64_t thread)
{
    struct field_reader *reader = &graph->session->reader;
    struct blocked blocked = {.known = has_field(reader, F_Thread_DebugBlockingInfo)};
    reader_begin(&reader->raw, FUEL_LOOKUP);
    blocked.is_blocked = thread && thread_read_blocking(reader, thread, &blocked.blocking);
    if (blocked.is_blocked && !sync_block_object(reader, blocked.blocking.sync_block, &blocked.object))
        blocked.object = 0;
    graph_note_failure(graph);
    return blocked;
}

static bool has_role(const struct current_thread *current, enum wait_role role)
{
    return current->roles >> role & 1;
}

static struct wait_candidate candidate_of(const struct current_thread *current, enum wait_role role)
{
    struct wait_candidate candidate = current->candidates[role];
    if (candidate.ambiguous)
        candidate = (struct wait_candidate){0};
    return candidate;
}

/* Whether the monitor that the thread is blocked on belongs to `object`. */
static bool owns_monitor(struct cdacq_wait_graph *graph, uint64_t object, enum threading_field field,
                         const struct blocked *blocked)
{
    uint64_t monitor;
    return object && blocked->object && threading_read(&graph->types, object, field, &monitor) &&
           monitor == blocked->object;
}

static void set_object(struct cdacq_wait *wait, enum cdacq_wait_kind kind, const struct wait_candidate *candidate,
                       bool confirmed)
{
    wait->kind = kind;
    wait->object = candidate->object;
    wait->by = !candidate->object ? CDACQ_WAIT_BY_NOTHING : confirmed ? CDACQ_WAIT_BY_STATE : candidate->by;
}

/* ---- Waits by kind. False: the wait is over, but the thread has not noticed yet. ---- */

/* Whether the last thread itself runs the task. */
static bool is_own_task(const struct cdacq_wait_graph *graph, uint64_t task)
{
    for (size_t i = graph->runs.count; i && graph->runs.items[i - 1].other == graph->threads.count - 1; i--)
        if (graph->runs.items[i - 1].waiter == task)
            return true;
    return false;
}

static bool wait_for_task(struct cdacq_wait_graph *graph, uint64_t event, struct cdacq_wait *wait)
{
    struct wait_candidate task = candidate_of(&graph->current, WAIT_ROLE_TASK);
    enum task_status status;
    if (task.by == CDACQ_WAIT_BY_SCAN && is_own_task(graph, task.object)) /* the stack refers to it in any case */
        task = (struct wait_candidate){0};
    if (task.object && task_read_status(&graph->types, task.object, &status) && task_is_completed(status))
        return false;
    set_object(wait, CDACQ_WAIT_TASK, &task, task.object && event && graph_task_leads_to(graph, task.object, event));
    return true;
}

static bool wait_for_event(struct cdacq_wait_graph *graph, const struct blocked *blocked, struct cdacq_wait *wait)
{
    struct wait_candidate event = candidate_of(&graph->current, WAIT_ROLE_EVENT);
    uint64_t state;
    bool confirmed = owns_monitor(graph, event.object, THREADING_EVENT_LOCK, blocked);
    if (event.object && threading_read(&graph->types, event.object, THREADING_EVENT_STATE, &state) &&
        state & EVENT_IS_SET)
        return false;
    if (has_role(&graph->current, WAIT_ROLE_TASK))
        return wait_for_task(graph, confirmed ? event.object : 0, wait);
    if (has_role(&graph->current, WAIT_ROLE_TASKS)) {
        struct wait_candidate list = candidate_of(&graph->current, WAIT_ROLE_TASKS);
        set_object(wait, CDACQ_WAIT_TASKS, &list, false);
    } else {
        set_object(wait, CDACQ_WAIT_EVENT, &event, confirmed);
    }
    return true;
}

/* A Lock blocks its threads by an event. If the thread waits for the handle of that event, the Lock is confirmed. */
static bool wait_for_lock(struct cdacq_wait_graph *graph, struct cdacq_wait *wait)
{
    struct wait_candidate lock = candidate_of(&graph->current, WAIT_ROLE_LOCK);
    bool confirmed =
        threading_field_has_handle(&graph->types, lock.object, THREADING_LOCK_EVENT, graph->current.safe_handle);
    set_object(wait, CDACQ_WAIT_ENTER, &lock, confirmed);
    return true;
}

static bool wait_for_reader_writer(struct cdacq_wait_graph *graph, struct graph_wait *found)
{
    struct wait_candidate lock = candidate_of(&graph->current, WAIT_ROLE_READER_WRITER);
    found->reader_writer = reader_writer_wait_of(&graph->types, lock.object, graph->current.safe_handle);
    set_object(&found->wait, CDACQ_WAIT_ENTER, &lock, found->reader_writer != READER_WRITER_UNKNOWN);
    return true;
}

/* The object that a thread passed to the runtime; 0: not known. .NET 8 and 9 keep the reference in a Frame. */
static uint64_t object_of_frame(struct cdacq_wait_graph *graph, uint64_t thread)
{
    uint64_t objects[FRAME_OBJECTS_MAX];
    uint64_t frame = graph_innermost_frame(graph, thread);
    return frame && frame_objects(&graph->session->reader, frame, objects) == 1 ? objects[0] : 0;
}

static bool wait_for_thread(struct cdacq_wait_graph *graph, uint64_t thread, struct cdacq_wait *wait)
{
    uint64_t object = object_of_frame(graph, thread);
    struct wait_candidate joined = candidate_of(&graph->current, WAIT_ROLE_JOIN);
    if (threading_type_of(&graph->types, object, true) == THREADING_THREAD)
        joined = (struct wait_candidate){.object = object, .by = CDACQ_WAIT_BY_STATE};
    set_object(wait, CDACQ_WAIT_JOIN, &joined, false);
    return true;
}

static bool wait_by_monitor(struct cdacq_wait_graph *graph, const struct blocked *blocked, struct cdacq_wait *wait)
{
    const struct wait_candidate monitor = {.object = blocked->object, .by = CDACQ_WAIT_BY_STATE};
    struct wait_candidate semaphore = candidate_of(&graph->current, WAIT_ROLE_SEMAPHORE);
    wait->has_timeout = true;
    wait->timeout = (int32_t)blocked->blocking.timeout;
    if (blocked->blocking.kind == THREAD_BLOCKED_ENTERING) {
        set_object(wait, CDACQ_WAIT_ENTER, &monitor, false);
        return true;
    }
    if (has_role(&graph->current, WAIT_ROLE_EVENT))
        return wait_for_event(graph, blocked, wait);
    if (has_role(&graph->current, WAIT_ROLE_SEMAPHORE)) {
        set_object(wait, CDACQ_WAIT_SEMAPHORE, &semaphore,
                   owns_monitor(graph, semaphore.object, THREADING_SEMAPHORE_LOCK, blocked));
        return true;
    }
    set_object(wait, CDACQ_WAIT_PULSE, &monitor, false);
    return true;
}

/* Finds a wait from the frames alone, if the runtime does not say that the thread is blocked on a monitor. */
static bool wait_by_role(struct cdacq_wait_graph *graph, const struct blocked *blocked, uint64_t thread,
                         struct graph_wait *found)
{
    const struct current_thread *current = &graph->current;
    struct cdacq_wait *wait = &found->wait;
    struct wait_candidate candidate;
    if (has_role(current, WAIT_ROLE_LOCK) && has_role(current, WAIT_ROLE_HANDLE)) /* otherwise it spins */
        return wait_for_lock(graph, wait);
    if (has_role(current, WAIT_ROLE_READER_WRITER) && has_role(current, WAIT_ROLE_HANDLE)) /* likewise */
        return wait_for_reader_writer(graph, found);
    if (has_role(current, WAIT_ROLE_JOIN))
        return wait_for_thread(graph, thread, wait);
    if (!blocked->known && has_role(current, WAIT_ROLE_EVENT))
        return wait_for_event(graph, blocked, wait);
    if (!blocked->known && has_role(current, WAIT_ROLE_SEMAPHORE)) {
        candidate = candidate_of(current, WAIT_ROLE_SEMAPHORE);
        set_object(wait, CDACQ_WAIT_SEMAPHORE, &candidate, false);
        return true;
    }
    for (enum wait_role role = WAIT_ROLE_ENTER; !blocked->known && role <= WAIT_ROLE_PULSE; role++) {
        if (!has_role(current, role))
            continue;
        candidate = candidate_of(current, role);
        set_object(wait, role == WAIT_ROLE_ENTER ? CDACQ_WAIT_ENTER : CDACQ_WAIT_PULSE, &candidate, false);
        return true;
    }
    if (has_role(current, WAIT_ROLE_HANDLE)) {
        candidate = current->several_handles ? (struct wait_candidate){0} : candidate_of(current, WAIT_ROLE_HANDLE);
        set_object(wait, CDACQ_WAIT_HANDLE, &candidate, false);
        return true;
    }
    return false;
}

/* Whether a CancellationToken ends a wait of this kind. */
static enum graph_answer can_be_cancelled(const struct current_thread *current, const struct cdacq_wait *wait)
{
    switch (wait->kind) {
    case CDACQ_WAIT_TASK:
    case CDACQ_WAIT_TASKS:
    case CDACQ_WAIT_EVENT:
    case CDACQ_WAIT_SEMAPHORE:
        return current->token;
    case CDACQ_WAIT_PULSE:
    case CDACQ_WAIT_HANDLE: /* a method of the framework can have a token that pulses the object or sets the handle */
        return current->framework_waits || !wait->object ? GRAPH_UNKNOWN : GRAPH_NO;
    case CDACQ_WAIT_ENTER:
    case CDACQ_WAIT_JOIN:
    case CDACQ_WAIT_FOREGROUND:
    case CDACQ_WAIT_INITIALIZER:
        break;
    }
    return GRAPH_NO;
}

/* Finds out whether the wait ends by itself: by a timeout or a CancellationToken. */
static void find_end(const struct current_thread *current, struct cdacq_wait *wait)
{
    enum graph_answer timed = wait->has_timeout ? wait->timeout >= 0 ? GRAPH_YES : GRAPH_NO : current->timed;
    enum graph_answer cancelled = can_be_cancelled(current, wait);
    if (!wait->has_timeout && timed == GRAPH_NO) {
        wait->has_timeout = true;
        wait->timeout = -1;
    }
    wait->endless = timed == GRAPH_YES || cancelled == GRAPH_YES ? CDACQ_ENDLESS_NO
                    : timed == GRAPH_NO && cancelled == GRAPH_NO ? CDACQ_ENDLESS_YES
                                                                 : CDACQ_ENDLESS_UNKNOWN;
}

/* The thread that ran Main waits in the runtime, so no frame of managed code shows it; the thread's state does. */
static bool wait_for_foreground(struct cdacq_wait *wait)
{
    wait->kind = CDACQ_WAIT_FOREGROUND;
    wait->by = CDACQ_WAIT_BY_STATE;
    wait->has_timeout = true;
    wait->timeout = -1;
    return true;
}

void graph_find_wait(struct cdacq_wait_graph *graph)
{
    if (!graph->current.active || !graph->threads.count)
        return;
    const struct graph_thread *thread = graph_last_thread(graph);
    struct blocked blocked = read_blocked(graph, thread->address);
    struct graph_wait found = {
        .wait = {.size = sizeof found.wait,
                 .tid = thread->tid,
                 .thread = thread->address,
                 .managed_id = thread->managed_id,
                 .name = thread->name},
        .thread = (int)graph->threads.count - 1,
        .blocker = NO_THREAD,
    };
    graph->current.active = false;
    bool waits = thread->has_run_main ? wait_for_foreground(&found.wait)
                 : blocked.is_blocked ? wait_by_monitor(graph, &blocked, &found.wait)
                                      : wait_by_role(graph, &blocked, thread->address, &found);
    find_end(&graph->current, &found.wait);
    bool has_timeout = found.wait.has_timeout && found.wait.timeout >= 0;
    if (has_timeout && graph->current.framework_waits) /* the framework's method may wait again after it */
        found.wait.has_timeout = false;
    struct graph_wait *wait = waits ? graph_waits_append_items(&graph->waits, 1) : NULL;
    graph_last_thread(graph)->has_wait = wait != NULL;
    if (wait)
        *wait = found;
    else if (waits)
        graph_note_memory(graph);
}
