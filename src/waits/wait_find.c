/*
 * wait_find.c: finds what a thread waits for, from the monitor that the runtime blocks it on and from the objects in
 * its frames. The object of a wait is confirmed if the two agree: the monitor belongs to the event or semaphore in the
 * frame, and the event is a continuation of the task. Since .NET 11, records of the core library say which monitor that
 * is, and which handle or thread the thread waits for.
 */
#include "contracts/objects/sync_block.h"
#include "contracts/stack_walk/explicit_frame.h"
#include "contracts/thread.h"
#include "contracts/threading/managed_lock.h"
#include "src/waits/wait_graph.h"
#include "target/proc_status.h"
#include "util/text.h"

#define EVENT_IS_SET UINT32_C(0x80000000) /* of ManualResetEventSlim.m_combinedState */

/* What is known of the monitor that a thread is blocked on. */
struct blocked {
    bool known; /* the runtime describes what threads are blocked on */
    bool is_blocked;
    struct thread_blocking blocking;
    uint64_t object; /* that the monitor belongs to, or since .NET 11 the Lock, which may be a monitor; 0: not known */
};

static struct blocked read_blocked(struct cdacq_wait_graph *graph, uint64_t thread)
{
    struct reader *reader = &graph->resolver->reader;
    struct blocked blocked = {.known = has_field(reader, F_Thread_DebugBlockingInfo)};
    const struct managed_blocking *managed = &graph->current.blocking;
    if (managed->lock) {
        blocked.is_blocked = true;
        blocked.blocking.kind = managed->is_pulse ? THREAD_BLOCKED_WAITING : THREAD_BLOCKED_ENTERING;
        blocked.blocking.timeout = (uint32_t)managed->timeout;
        blocked.object = managed->lock;
        return blocked;
    }
    reader_begin(reader, FUEL_LOOKUP);
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

/* Whether a Lock is the monitor of `object`. */
static bool is_monitor_of(struct cdacq_wait_graph *graph, uint64_t lock, uint64_t object)
{
    struct reader *reader = &graph->resolver->reader;
    struct object_monitor monitor;
    reader_begin(reader, FUEL_LOOKUP);
    return object && object_monitor_read(reader, object, &monitor) && monitor.lock_object == lock;
}

/* Whether the monitor that the thread is blocked on belongs to `object`: to what its field refers to. */
static bool owns_monitor(struct cdacq_wait_graph *graph, uint64_t object, enum threading_field field,
                         const struct blocked *blocked)
{
    uint64_t monitor;
    if (!object || !blocked->object || !threading_read(&graph->types, object, field, &monitor))
        return false;
    return monitor == blocked->object || (graph->has_managed_wait && is_monitor_of(graph, blocked->object, monitor));
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
    bool confirmed = managed_lock_has_handle(&graph->types, lock.object, graph->current.safe_handle);
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
    return frame && frame_objects(&graph->resolver->reader, frame, objects) == 1 ? objects[0] : 0;
}

static bool wait_for_thread(struct cdacq_wait_graph *graph, uint64_t thread, struct graph_wait *found)
{
    uint64_t object = object_of_frame(graph, thread);
    struct wait_candidate joined = candidate_of(&graph->current, WAIT_ROLE_JOIN);
    if (graph->has_managed_wait) { /* the waiting thread's own object is in its frames: see describe_join() */
        joined = (struct wait_candidate){0};
        found->waitable = graph->current.waited.object;
    } else if (threading_type_of(&graph->types, object, true) == THREADING_THREAD) {
        joined = (struct wait_candidate){.object = object, .by = CDACQ_WAIT_BY_STATE};
    }
    set_object(&found->wait, CDACQ_WAIT_JOIN, &joined, false);
    return true;
}

static bool wait_for_handle(struct cdacq_wait_graph *graph, uint64_t thread, struct graph_wait *found)
{
    const struct current_thread *current = &graph->current;
    struct wait_candidate handle = candidate_of(current, WAIT_ROLE_HANDLE);
    if (current->several_handles || current->waited.count > 1)
        handle = (struct wait_candidate){0};
    found->waitable = current->waited.object;
    found->is_inlined = !has_role(current, WAIT_ROLE_HANDLE);
    if (found->is_inlined && !handle.object && current->waited.object)
        return wait_for_thread(graph, thread, found);
    set_object(&found->wait, CDACQ_WAIT_HANDLE, &handle, false);
    return !found->is_inlined || current->waited.count;
}

static bool wait_by_monitor(struct cdacq_wait_graph *graph, const struct blocked *blocked, struct cdacq_wait *wait)
{
    const struct wait_candidate monitor = {.object = blocked->object, .by = CDACQ_WAIT_BY_STATE};
    struct wait_candidate semaphore = candidate_of(&graph->current, WAIT_ROLE_SEMAPHORE);
    wait->has_timeout = true;
    wait->timeout_ms = (int32_t)blocked->blocking.timeout;
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

/* A wait that is for no object. */
static bool wait_for_runtime(enum cdacq_wait_kind kind, struct cdacq_wait *wait)
{
    wait->kind = kind;
    wait->by = CDACQ_WAIT_BY_NOTHING;
    return true;
}

/* Finds a wait from the frames alone, if the runtime does not say that the thread is blocked on a monitor. */
static bool wait_by_role(struct cdacq_wait_graph *graph, const struct blocked *blocked, uint64_t thread,
                         struct graph_wait *found)
{
    const struct current_thread *current = &graph->current;
    struct cdacq_wait *wait = &found->wait;
    struct wait_candidate candidate;
    bool is_waiting = has_role(current, WAIT_ROLE_HANDLE) || /* otherwise it spins */
                      (graph->has_managed_wait && graph_last_thread(graph)->is_waiting);
    if (has_role(current, WAIT_ROLE_LOCK) && is_waiting)
        return wait_for_lock(graph, wait);
    if (has_role(current, WAIT_ROLE_READER_WRITER) && is_waiting)
        return wait_for_reader_writer(graph, found);
    if (has_role(current, WAIT_ROLE_FINALIZERS)) /* the runtime's own code waits, whatever it says of the thread */
        return wait_for_runtime(CDACQ_WAIT_FINALIZERS, wait);
    if (graph->has_managed_wait && !is_waiting)
        return false;
    if (has_role(current, WAIT_ROLE_SLEEP))
        return wait_for_runtime(CDACQ_WAIT_SLEEP, wait);
    if (has_role(current, WAIT_ROLE_PROCESS) && is_waiting) {
        const struct target *target = graph->resolver->reader.target;
        bool is_live = target->kind == CDACQ_TARGET_PROCESS && current->process;
        wait->process = is_live ? proc_outer_id(target->pid, current->process) : current->process;
        return wait_for_runtime(CDACQ_WAIT_PROCESS, wait);
    }
    if (has_role(current, WAIT_ROLE_JOIN))
        return wait_for_thread(graph, thread, found);
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
    return wait_for_handle(graph, thread, found);
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
        return current->framework_waits || (!wait->object && current->waited.count != 1) ? GRAPH_UNKNOWN : GRAPH_NO;
    case CDACQ_WAIT_ENTER:
    case CDACQ_WAIT_JOIN:
    case CDACQ_WAIT_FOREGROUND:
    case CDACQ_WAIT_INITIALIZER:
    case CDACQ_WAIT_SLEEP:
    case CDACQ_WAIT_FINALIZERS:
    case CDACQ_WAIT_PROCESS:
        break;
    }
    return GRAPH_NO;
}

/* Finds out whether the wait ends by itself: by a timeout or a CancellationToken. */
static void find_end(const struct current_thread *current, struct cdacq_wait *wait)
{
    enum graph_answer timed = wait->has_timeout ? wait->timeout_ms >= 0 ? GRAPH_YES : GRAPH_NO : current->timed;
    enum graph_answer cancelled = can_be_cancelled(current, wait);
    if (!wait->has_timeout && timed == GRAPH_NO) {
        wait->has_timeout = true;
        wait->timeout_ms = -1;
    }
    wait->endless = timed == GRAPH_YES || cancelled == GRAPH_YES ? CDACQ_ENDLESS_NO
                    : timed == GRAPH_NO && cancelled == GRAPH_NO ? CDACQ_ENDLESS_YES
                                                                 : CDACQ_ENDLESS_UNKNOWN;
}

/*
 * Whether a thread that may have run Main waits for the end of others. Since .NET 11, the state of a thread that is
 * about to end can be the same, but its System.Threading.Thread says that it has ended.
 */
static bool has_run_main(struct cdacq_wait_graph *graph, const struct graph_thread *thread)
{
    uint64_t object, dead;
    if (!thread->has_run_main || !graph->has_managed_wait)
        return thread->has_run_main;
    object = graph_thread_object(graph, thread->address);
    return !graph->current.left_native &&
           (!object || (threading_type_of(&graph->types, object, true) == THREADING_THREAD &&
                        threading_read(&graph->types, object, THREADING_THREAD_DEAD, &dead) && !dead));
}

/* The thread that ran Main waits in the runtime, so no frame of managed code shows it; the thread's state does. */
static bool wait_for_foreground(struct cdacq_wait *wait)
{
    wait->kind = CDACQ_WAIT_FOREGROUND;
    wait->by = CDACQ_WAIT_BY_STATE;
    wait->has_timeout = true;
    wait->timeout_ms = -1;
    return true;
}

bool graph_current_wait(struct cdacq_wait_graph *graph, struct graph_wait *ret)
{
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
    bool waits = has_run_main(graph, thread) ? wait_for_foreground(&found.wait)
                 : blocked.is_blocked        ? wait_by_monitor(graph, &blocked, &found.wait)
                                             : wait_by_role(graph, &blocked, thread->address, &found);
    if (found.wait.kind == CDACQ_WAIT_ENTER || found.wait.kind == CDACQ_WAIT_PULSE)
        graph_note_found_lock(graph, found.wait.object); /* which may be a monitor */
    find_end(&graph->current, &found.wait);
    bool has_timeout = found.wait.has_timeout && found.wait.timeout_ms >= 0;
    if (has_timeout && graph->current.framework_waits) /* the framework's method may wait again after it */
        found.wait.has_timeout = false;
    if (waits)
        *ret = found;
    return waits;
}

void graph_find_wait(struct cdacq_wait_graph *graph)
{
    struct graph_wait found;
    if (!graph->current.active || !graph->threads.count)
        return;
    graph->current.active = false;
    bool waits = graph_current_wait(graph, &found);
    struct graph_wait *wait = waits ? graph_waits_append_items(&graph->waits, 1) : NULL;
    graph_last_thread(graph)->has_wait = wait != NULL;
    if (wait)
        *wait = found;
    else if (waits)
        graph_note_memory(graph);
}
