/*
 * task_chains.c: which task waits for which. The continuations of a running task lead to the tasks that wait for it:
 * those that the continuations complete or run. The state machine of a task that does not run leads to what its async
 * method awaits: a task, or another source of a value.
 */
#include "contracts/threading/async_method.h"
#include "contracts/threading/continuation.h"
#include "src/waits/wait_graph.h"
#include "util/text.h"

DEFINE_VECTOR(pending_tasks, uint64_t);
DEFINE_VECTOR(described_tasks, struct cdacq_task);

struct following {
    struct cdacq_wait_graph *graph;
    uint64_t waiter;
};

static bool is_active(struct cdacq_wait_graph *graph, uint64_t task)
{
    enum task_status status;
    return task_read_status(&graph->types, task, &status) && !task_is_completed(status);
}

/* Notes that `task` waits for `other`. Returns whether that is the first task it is known to wait for. */
static bool link_task(struct cdacq_wait_graph *graph, uint64_t task, uint64_t other)
{
    const struct task_link link = {.waiter = task, .other = other};
    bool added = false;
    graph_count_look_up(graph);
    if (graph->links.count >= RUNNING_TASKS_MAX) {
        graph_note_too_many(graph);
        return false;
    }
    struct task_link *item = task_links_append_items(&graph->links, 1);
    if (!item || !task_table_insert(&graph->awaits, link, &added)) {
        graph->links.count -= item != NULL;
        graph_note_memory(graph);
        return false;
    }
    *item = link;
    return added;
}

static bool is_cancellable(struct cdacq_wait_graph *graph, uint64_t task)
{
    bool cancellable = false;
    if (!task_read_cancellation(&graph->types, task, &cancellable)) {
        graph_note_unreadable(graph);
        return true;
    }
    return cancellable;
}

static bool follow(void *context, uint64_t object, enum threading_type type)
{
    struct following *following = context;
    /* A task that the first of several tasks or a cancellation completes does not wait for this task alone. */
    if ((type == THREADING_TASK || type == THREADING_ALL) && !is_cancellable(following->graph, object))
        (void)link_task(following->graph, object, following->waiter);
    return following->graph->links.count < RUNNING_TASKS_MAX;
}

static void follow_task(struct cdacq_wait_graph *graph, uint64_t task)
{
    struct following following = {graph, task};
    if (!task_each_continuation(&graph->types, task, follow, &following))
        graph_note_too_many(graph);
    uint64_t parent = task_waiting_parent(&graph->types, task);
    if (parent)
        (void)link_task(graph, parent, task);
}

void graph_link_tasks(struct cdacq_wait_graph *graph)
{
    for (size_t i = 0; i < graph->runs.count; i++) {
        const struct task_link run = graph->runs.items[i];
        bool added = false;
        if (!is_active(graph, run.waiter))
            continue;
        if (!task_table_insert(&graph->runners, run, &added))
            graph_note_memory(graph);
        if (added)
            follow_task(graph, run.waiter);
    }
    /* The list grows while it is read. Each task is followed once: at its first link. */
    for (size_t i = 0; i < graph->links.count; i++) {
        const struct task_link link = graph->links.items[i];
        const struct task_link *first = task_table_find(&graph->awaits, link.waiter);
        if (first && first->other == link.other && !task_table_find(&graph->runners, link.waiter))
            follow_task(graph, link.waiter);
    }
}

/*
 * The thread that runs a task or an async iterator. NULL: none is known. A thread runs an iterator by its box, so the
 * iterator is linked to the box: a deadlock then goes through both.
 */
static const struct task_link *runner_of(struct cdacq_wait_graph *graph, uint64_t task)
{
    const struct task_link *run = task_table_find(&graph->runners, task);
    struct async_method method;
    if (run || threading_is_task(threading_type_of(&graph->types, task, true)) ||
        !async_method_find(&graph->types, task, &method))
        return run;
    run = task_table_find(&graph->runners, method.box);
    if (run && !task_table_find(&graph->awaits, task))
        (void)link_task(graph, task, method.box);
    return run;
}

/* The tasks of a Task.WhenAll that have not completed, up to `limit`. */
struct active_tasks {
    struct cdacq_wait_graph *graph;
    uint64_t first;
    uint32_t count, limit;
    uint32_t *looks_left; /* at tasks, with those that have completed; NULL: no bound */
};

static bool take_active(void *context, uint64_t task)
{
    struct active_tasks *active = context;
    if (active->looks_left && !*active->looks_left)
        return false;
    if (active->looks_left)
        --*active->looks_left;
    if (!threading_is_task(threading_type_of(&active->graph->types, task, true)) || !is_active(active->graph, task))
        return true;
    active->first = active->count++ ? active->first : task;
    return active->count < active->limit;
}

/*
 * How many tasks a Task.WhenAll waits for beside the one that graph_next_task() gives: up to OTHERS_MAX, and 0 if too
 * many were looked at. The search for deadlocks needs the reads.
 */
static uint32_t count_others(struct cdacq_wait_graph *graph, uint64_t task)
{
    struct active_tasks active = {.graph = graph, .limit = OTHERS_MAX + 1, .looks_left = &graph->other_looks_left};
    if (threading_type_of(&graph->types, task, true) != THREADING_ALL)
        return 0;
    (void)task_each_of_all(&graph->types, task, take_active, &active);
    return active.count && graph->other_looks_left ? active.count - 1 : 0;
}

static struct cdacq_task describe(struct cdacq_wait_graph *graph, uint64_t task, int *ret_runner)
{
    const struct task_link *run = runner_of(graph, task);
    enum task_status status;
    bool has_status = threading_is_task(threading_type_of(&graph->types, task, true)) &&
                      task_read_status(&graph->types, task, &status);
    *ret_runner = run ? (int)run->other : NO_THREAD;
    return (struct cdacq_task){
        .size = sizeof(struct cdacq_task),
        .object = task,
        .type = graph_type_name(graph, task),
        .status = has_status ? task_status_text(status) : NULL,
        .method = graph_task_method(graph, task),
        .tid = run ? graph->threads.items[run->other].tid : 0,
        .others = count_others(graph, task),
    };
}

static bool leads_to(void *context, uint64_t task, uint64_t object)
{
    return graph_task_leads_to(context, task, object);
}

/* What a task of one of the core library's own types waits for; 0: it is none, or that is not known. */
static uint64_t next_of_framework(struct cdacq_wait_graph *graph, uint64_t task, enum threading_type type)
{
    struct active_tasks active = {.graph = graph, .limit = 1};
    uint64_t source = 0;
    switch (type) {
    case THREADING_RUNTIME_ASYNC:
        return continuation_awaited(&graph->types, continuation_of_task(&graph->types, task));
    case THREADING_SOURCE_TASK:
        return threading_read(&graph->types, task, THREADING_TASK_SOURCE, &source) ? source : 0;
    case THREADING_ALL:
        (void)task_each_of_all(&graph->types, task, take_active, &active);
        return active.first;
    default:
        return 0;
    }
}

uint64_t graph_next_task(struct cdacq_wait_graph *graph, uint64_t task)
{
    const struct task_link *link = task_table_find(&graph->awaits, task);
    if (link)
        return link->other;
    struct async_method method;
    enum threading_type type = threading_type_of(&graph->types, task, true);
    uint64_t awaited = next_of_framework(graph, task, type);
    if (awaited) {
        (void)link_task(graph, task, awaited);
        return awaited;
    }
    if (type == THREADING_ANY || (threading_is_task(type) && is_cancellable(graph, task)) ||
        !async_method_find(&graph->types, task, &method))
        return 0;
    awaited = async_method_awaited(&graph->types, &method, leads_to, graph);
    if (awaited)
        (void)link_task(graph, task, awaited);
    return awaited;
}

/* The task that a suspended method awaits; 0: none, or it is not known. */
static uint64_t awaited_task(struct cdacq_wait_graph *graph, uint64_t task)
{
    struct async_method method;
    uint64_t awaited;
    if (threading_type_of(&graph->types, task, true) == THREADING_RUNTIME_ASYNC)
        awaited = continuation_awaited(&graph->types, continuation_of_task(&graph->types, task));
    else
        awaited =
            async_method_find(&graph->types, task, &method) ? async_method_awaiter_task(&graph->types, &method) : 0;
    return threading_is_task(threading_type_of(&graph->types, awaited, true)) ? awaited : 0;
}

/* Whether what a task's method awaited has completed. The method's state refers to it until the method goes on. */
static bool has_pending_continuation(struct cdacq_wait_graph *graph, uint64_t task)
{
    enum task_status status;
    uint64_t awaited = awaited_task(graph, task);
    return awaited && task_read_status(&graph->types, awaited, &status) && task_is_completed(status);
}

/* Appends what is said of a task: an element for each of its methods, from that which completes it. */
static bool append_task(struct cdacq_wait_graph *graph, uint64_t task, struct described_tasks *tasks, int *ret_runner)
{
    const struct cdacq_task whole = describe(graph, task, ret_runner);
    const struct task_link *code = task_table_find(&graph->running_code, task);
    bool is_runtime_async = threading_type_of(&graph->types, task, true) == THREADING_RUNTIME_ASYNC;
    struct async_frame_list own = {0};
    bool room = async_frames_of(&graph->async, task, &own);
    size_t begin = tasks->count;
    for (size_t i = own.count; i-- && room && tasks->count < TASK_CHAIN_MAX;) {
        struct cdacq_method method;
        struct cdacq_task item = whole;
        bool is_written = async_frame_answer(&graph->async, &own.items[i], &method);
        if (is_runtime_async) {
            item.object = tasks->count == begin ? task : own.items[i].object;
            item.method = graph_code_method(graph, own.items[i].pc);
            item.tid = 0; /* it runs another method */
        }
        item.file = method.file;
        item.line = method.line;
        if (is_written)
            room = described_tasks_append(tasks, item);
    }
    if (room && (tasks->count == begin || whole.tid)) {
        struct cdacq_task item = whole;
        if (is_runtime_async && code)
            item.method = graph_code_method(graph, code->other);
        room = described_tasks_append(tasks, item);
    }
    async_frame_list_deinit(&own);
    return room;
}

void graph_describe_task_wait(struct cdacq_wait_graph *graph, struct graph_wait *wait)
{
    struct described_tasks tasks = {0};
    struct object_indices seen = {0};
    uint64_t task = wait->blocker == NO_THREAD ? wait->wait.object : 0;
    bool room = true, is_cycle = false;
    while (task && room && tasks.count < TASK_CHAIN_MAX && graph->tasks_shown < TASKS_SHOWN_MAX) {
        bool is_new = false; /* or it is a cycle */
        size_t before = tasks.count;
        room = object_indices_insert(&seen, (struct object_index){task, 0}, &is_new) &&
               (!is_new || append_task(graph, task, &tasks, &wait->blocker));
        graph->tasks_shown += tasks.count - before;
        is_cycle |= !is_new && room;
        uint64_t next = is_new && wait->blocker == NO_THREAD ? graph_next_task(graph, task) : 0;
        if (is_new && room && !next && wait->blocker == NO_THREAD)
            wait->wait.has_pending_continuation = has_pending_continuation(graph, task);
        task = next;
    }
    if (room && task)
        graph_note_too_many(graph);
    struct cdacq_task *kept = room ? arena_allocate(&graph->arena, (tasks.count + 1) * sizeof *kept) : NULL;
    if (kept) {
        if (tasks.count)
            memcpy(kept, tasks.items, tasks.count * sizeof *kept);
        wait->wait.tasks = kept;
        wait->wait.task_count = tasks.count;
        wait->wait.is_cycle = is_cycle;
    } else {
        graph_note_memory(graph);
    }
    described_tasks_deinit(&tasks);
    object_indices_deinit(&seen);
}

/* ---- Everything that a wait depends on ---- */

/* Tasks that will be followed to what they wait for, each once. */
struct pending {
    struct cdacq_wait_graph *graph;
    struct pending_tasks tasks;
    struct object_indices seen;
    uint64_t all; /* the Task.WhenAll whose tasks are being added; 0: a thread waits for these tasks itself */
};

static bool add_pending(struct pending *pending, uint64_t task)
{
    bool added = false;
    graph_count_look_up(pending->graph);
    if (pending->tasks.count >= RUNNING_TASKS_MAX) {
        graph_note_too_many(pending->graph);
        return false;
    }
    if (!object_indices_insert(&pending->seen, (struct object_index){task, 0}, &added) ||
        (added && !pending_tasks_append(&pending->tasks, task))) {
        graph_note_memory(pending->graph);
        return false;
    }
    return true;
}

static bool add_one_of_all(void *context, uint64_t task)
{
    struct pending *pending = context;
    struct cdacq_wait_graph *graph = pending->graph;
    if (!threading_is_task(threading_type_of(&graph->types, task, true)) || !is_active(graph, task))
        return true;
    if (pending->all)
        (void)link_task(graph, pending->all, task);
    return add_pending(pending, task);
}

static void follow_pending(struct pending *pending, uint64_t task)
{
    struct cdacq_wait_graph *graph = pending->graph;
    if (runner_of(graph, task))
        return;
    pending->all = task;
    uint64_t next = graph_next_task(graph, task);
    if (next)
        (void)add_pending(pending, next);
    if (threading_type_of(&graph->types, task, true) == THREADING_ALL &&
        !task_each_of_all(&graph->types, task, add_one_of_all, pending))
        graph_note_too_many(graph);
}

void graph_follow_waits(struct cdacq_wait_graph *graph)
{
    struct pending pending = {.graph = graph};
    for (size_t i = 0; i < graph->waits.count; i++) {
        const struct cdacq_wait *wait = &graph->waits.items[i].wait;
        if (wait->kind == CDACQ_WAIT_TASK && wait->object)
            (void)add_pending(&pending, wait->object);
        else if (wait->kind == CDACQ_WAIT_TASKS && wait->object &&
                 !list_each(&graph->types, wait->object, TASK_ARRAY_MAX, add_one_of_all, &pending))
            graph_note_too_many(graph);
    }
    for (size_t i = 0; i < pending.tasks.count; i++) /* the list grows while it is read */
        follow_pending(&pending, pending.tasks.items[i]);
    pending_tasks_deinit(&pending.tasks);
    object_indices_deinit(&pending.seen);
}
