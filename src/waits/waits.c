/*
 * waits.c: the calls of cdacq/lock.h that build and visit a graph of waits.
 */
#include "src/waits/wait_graph.h"

#include <inttypes.h>

#include "contracts/objects/sync_block.h"
#include "contracts/thread.h"
#include "src/lookup/opened_session.h"
#include "util/sized.h"
#include "util/text.h"

static int find_thread(const struct object_indices *threads, uint64_t key)
{
    const struct object_index *found = key ? object_indices_find(threads, key) : NULL;
    return found ? (int)found->index : NO_THREAD;
}

/* The thread that holds a lock. */
static int owner_of_lock(const struct cdacq_wait_graph *graph, const struct cdacq_lock *lock)
{
    return lock->owner      ? find_thread(&graph->by_address, lock->owner)
           : lock->owner_id ? find_thread(&graph->by_id, lock->owner_id)
                            : find_thread(&graph->by_tid, (uint64_t)lock->owner_tid);
}

/* ---- Building ---- */

enum cdacq_status cdacq_wait_graph_create(struct cdacq_session *session, struct cdacq_wait_graph **ret,
                                          struct cdacq_error *err)
{
    uint32_t needed = 1u << LAYOUT_Thread | 1u << LAYOUT_Object | 1u << LAYOUT_RuntimeTypeSystem;
    if (!session || !ret)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "no session, or nowhere to put the graph");
    if (session->resolver.modules.aot)
        return error_set(err, CDACQ_ERR_CONTRACT, 0, "locks and waits of NativeAOT programs are not read");
    if ((session->resolver.reader.layout->usable & needed) != needed)
        return error_set(err, CDACQ_ERR_CONTRACT, 0,
                         "the runtime publishes no Thread, Object or RuntimeTypeSystem contract that this build reads");
    struct cdacq_wait_graph *graph = calloc(1, sizeof *graph);
    if (!graph)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    graph->resolver = &session->resolver;
    graph->other_looks_left = OTHER_LOOKS_MAX;
    resolver_begin(&session->resolver);
    graph->resolver->records.text_users++;
    reader_begin(&session->resolver.reader, FUEL_INDEX);
    threading_types_init(&graph->types, &session->resolver.modules);
    async_frames_init(&graph->async, graph->resolver, &graph->types);
    const struct module *core =
        graph->types.core ? module_cache_get(&session->resolver.modules, graph->types.core) : NULL;
    graph->core_base = core ? core->base : 0;
    graph->has_managed_wait = managed_wait_is_used(&session->resolver.reader);
    *ret = graph;
    return CDACQ_OK;
}

void cdacq_wait_graph_destroy(struct cdacq_wait_graph *graph)
{
    if (!graph)
        return;
    graph->resolver->records.text_users--;
    graph_return_names(graph);
    async_frames_deinit(&graph->async);
    threading_types_deinit(&graph->types);
    wait_sites_deinit(&graph->sites);
    gc_slots_deinit(&graph->slots);
    graph_threads_deinit(&graph->threads);
    object_indices_deinit(&graph->by_address);
    object_indices_deinit(&graph->by_id);
    object_indices_deinit(&graph->by_tid);
    graph_locks_deinit(&graph->locks);
    object_indices_deinit(&graph->lock_indices);
    task_table_deinit(&graph->monitors);
    task_table_deinit(&graph->joins);
    graph_waits_deinit(&graph->waits);
    task_links_deinit(&graph->runs);
    task_links_deinit(&graph->links);
    task_table_deinit(&graph->runners);
    task_table_deinit(&graph->running_code);
    task_table_deinit(&graph->awaits);
    task_table_deinit(&graph->leads);
    object_indices_deinit(&graph->followed);
    task_table_deinit(&graph->initializers);
    task_links_deinit(&graph->initializer_words);
    graph_deadlocks_deinit(&graph->deadlocks);
    type_names_deinit(&graph->type_names);
    type_names_deinit(&graph->method_names);
    arena_deinit(&graph->arena);
    free(graph);
}

/* False if there are too many threads or no memory; the graph notes that. */
static bool append_thread(struct cdacq_wait_graph *graph, const struct graph_thread *thread)
{
    size_t index = graph->threads.count;
    if (index >= RUNTIME_THREADS_MAX) {
        graph_note_too_many(graph);
        return false;
    }
    bool added = graph_threads_append(&graph->threads, *thread) &&
                 (!thread->address ||
                  object_indices_insert(&graph->by_address, (struct object_index){thread->address, index}, NULL)) &&
                 (!thread->managed_id ||
                  object_indices_insert(&graph->by_id, (struct object_index){thread->managed_id, index}, NULL));
    if (!added)
        graph_note_memory(graph);
    return added;
}

void cdacq_wait_graph_add_thread(struct cdacq_wait_graph *graph, const struct cdacq_thread *thread)
{
    struct cdacq_thread copy = {.size = sizeof copy};
    if (!graph || graph->completed || sized_check(thread, "struct cdacq_thread", NULL) < 0)
        return;
    sized_copy(&copy, thread, sized_size(thread));
    epoch_follow(&graph->resolver->epoch);
    graph_find_wait(graph);
    /*
     * The runtime marks the thread that ran Main as a background thread before it lets it wait. Since .NET 11, only the
     * core library marks threads that wait.
     */
    const uint32_t has_run_main =
        CDACQ_THREAD_EXITING | CDACQ_THREAD_BACKGROUND | (graph->has_managed_wait ? 0 : (uint32_t)CDACQ_THREAD_WAITING);
    const struct graph_thread item = {
        .address = copy.thread,
        .managed_id = copy.managed_id,
        .tid = copy.tid,
        .name = copy.name ? arena_string(&graph->arena, copy.name, strlen(copy.name)) : NULL,
        .is_waiting = copy.state & CDACQ_THREAD_WAITING,
        .is_background = copy.state & CDACQ_THREAD_BACKGROUND,
        .has_run_main = (copy.state & has_run_main) == has_run_main,
        .is_of_pool = copy.state & CDACQ_THREAD_POOL,
    };
    size_t index = graph->threads.count;
    (void)append_thread(graph, &item);
    graph->current = (struct current_thread){.active = graph->threads.count > index};
    if (graph->current.active && graph->has_managed_wait && item.is_waiting)
        graph->current.waited = managed_wait_read(&graph->types, graph_thread_object(graph, item.address));
}

void cdacq_wait_graph_add_frame(struct cdacq_wait_graph *graph, const struct cdacq_frame *frame)
{
    struct cdacq_frame copy = {.size = sizeof copy};
    if (!graph || !graph->current.active || sized_check(frame, "struct cdacq_frame", NULL) < 0)
        return;
    sized_copy(&copy, frame, sized_size(frame));
    epoch_follow(&graph->resolver->epoch);
    graph_read_frame(graph, &copy);
}

static void index_tid(struct cdacq_wait_graph *graph, uint64_t tid, size_t index)
{
    if (tid && !object_indices_insert(&graph->by_tid, (struct object_index){tid, index}, NULL))
        graph_note_memory(graph);
}

/*
 * Indexes the threads by the kernel's ids as the runtime knows them: those of the process's own pid namespace. Threads
 * of the runtime that the caller has not added are added without frames, because they may hold locks. One that has
 * ended has no id of the kernel.
 */
static void add_runtime_threads(struct cdacq_wait_graph *graph)
{
    struct thread_list list;
    size_t added = graph->threads.count, without = 0;
    uint64_t first = 0;
    if (!added) /* cdacq_session_visit_threads says why the target has no threads */
        return;
    reader_begin(&graph->resolver->reader, FUEL_OPEN);
    thread_list_read(&graph->resolver->reader, &list);
    graph_note_failure(graph);
    for (size_t i = 0; i < list.count; i++) {
        const struct thread_data *thread = &list.items[i];
        bool ended = thread_has_ended(thread);
        const struct graph_thread item = {
            .address = thread->address,
            .managed_id = thread->id,
            .tid = ended ? 0 : (int)thread->os_id,
            .is_background = thread->state & CDACQ_THREAD_BACKGROUND,
        };
        int known = find_thread(&graph->by_address, thread->address);
        if (known == NO_THREAD && (thread->os_id || ended)) {
            known = (int)graph->threads.count;
            if (!ended)
                first = without++ ? first : thread->os_id;
            if (!append_thread(graph, &item))
                break;
        }
        if (known != NO_THREAD && graph->threads.items[known].tid)
            index_tid(graph, thread->os_id, (size_t)known);
    }
    for (size_t i = 0; !list.count && i < added; i++)
        index_tid(graph, (uint64_t)MAX(graph->threads.items[i].tid, 0), i);
    if (without && graph->problem.status >= 0)
        error_set(&graph->problem, CDACQ_ERR_CORRUPT, 0,
                  "the runtime knows %zu thread%s, such as that with the id %" PRIu64 ", that %s not among the threads "
                  "with stacks",
                  without, without > 1 ? "s" : "", first, without > 1 ? "are" : "is");
    thread_list_deinit(&list);
}

/* ---- Locks ---- */

/* Notes how many sync blocks could not be read, and why the first one could not. */
static void note_left_out(struct cdacq_wait_graph *graph, uint32_t count, const struct reader_failure *first)
{
    struct cdacq_error error;
    if (count && graph->problem.status >= 0 && reader_report(&graph->resolver->reader, first, &error) < 0)
        error_set(&graph->problem, error.status, error.address, "%" PRIu32 " sync block%s cannot be read: %s", count,
                  count > 1 ? "s" : "", error.message);
}

/* Adds the monitors that have sync blocks. */
static void read_sync_table(struct cdacq_wait_graph *graph)
{
    struct reader *reader = &graph->resolver->reader;
    struct reader_failure first = {0};
    uint32_t left_out = 0;
    reader_begin(reader, FUEL_INDEX);
    uint32_t count = sync_table_count(reader);
    for (uint32_t i = 1; i <= count && reader_step(reader, "sync blocks"); i++) {
        struct sync_entry entry;
        struct object_monitor monitor;
        if (!sync_table_entry(reader, i, &entry))
            break;
        if (!entry.object || !entry.sync_block)
            continue;
        struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
        bool found = sync_block_monitor_read(reader, entry.sync_block, &monitor) &&
                     (monitor.held || monitor.waiters || monitor.lock_object);
        if (found) {
            graph_note_monitor(graph, monitor.lock_object, entry.object);
            (void)graph_add_lock(graph, entry.object);
        }
        struct reader_failure failure = reader_leave(reader, &outer);
        if (failure.status < 0 && !left_out++)
            first = failure;
    }
    graph->misses_monitors = left_out || reader_failed(reader);
    graph_note_failure(graph);
    note_left_out(graph, left_out, &first);
}

static void name_owners(struct cdacq_wait_graph *graph)
{
    for (size_t i = 0; i < graph->locks.count; i++) {
        struct cdacq_lock *lock = &graph->locks.items[i];
        lock->type = graph_type_name(graph, lock->object);
        int owner = owner_of_lock(graph, lock);
        lock->owner = owner == NO_THREAD ? 0 : graph->threads.items[owner].address;
        if (owner == NO_THREAD) /* it has ended; the id that the lock itself has remains */
            continue;
        lock->owner_id = graph->threads.items[owner].managed_id;
        lock->owner_tid = graph->threads.items[owner].tid;
    }
}

/* ---- Waits ---- */

/* The owner of the lock that a thread waits for; NO_THREAD if it does not wait for the owner, or none is known. */
static int find_owner(struct cdacq_wait_graph *graph, struct graph_wait *wait)
{
    int64_t index = wait->wait.object ? graph_add_lock(graph, wait->wait.object) : -1;
    const struct cdacq_lock *lock = index < 0 ? NULL : &graph->locks.items[index];
    if (!lock || !lock->held)
        return NO_THREAD;
    wait->wait.readers = lock->readers;
    if (lock->kind == CDACQ_LOCK_READER_WRITER && !reader_writer_waits_for(!lock->readers, wait->reader_writer))
        return NO_THREAD;
    wait->wait.blocker_id = lock->owner_id;
    wait->wait.blocker_tid = lock->owner_tid;
    return owner_of_lock(graph, lock);
}

/*
 * Describes a wait for a Lock or a monitor. The owner of a Lock is known even if it is not known whose monitor it is.
 */
static void describe_lock(struct cdacq_wait_graph *graph, struct graph_wait *wait)
{
    if (wait->wait.kind == CDACQ_WAIT_ENTER)
        wait->blocker = find_owner(graph, wait);
    wait->wait.object = graph_object_of_lock(graph, wait->wait.object);
    if (!wait->wait.object)
        wait->wait.by = CDACQ_WAIT_BY_NOTHING;
}

/* The thread of a System.Threading.Thread; NO_THREAD if it is not known. */
static int thread_of_object(struct cdacq_wait_graph *graph, uint64_t object)
{
    uint64_t thread;
    return threading_read(&graph->types, object, THREADING_THREAD_INTERNAL, &thread)
               ? find_thread(&graph->by_address, thread)
               : NO_THREAD;
}

/* Notes what stands for the end of each thread, if a thread may wait for that. */
static void find_joins(struct cdacq_wait_graph *graph)
{
    bool joins = false;
    for (size_t i = 0; i < graph->waits.count; i++)
        joins |= graph->waits.items[i].wait.kind == CDACQ_WAIT_JOIN && graph->waits.items[i].waitable;
    for (size_t i = 0; joins && i < graph->threads.count; i++) {
        uint64_t object = graph_thread_object(graph, graph->threads.items[i].address);
        uint64_t waitable = managed_wait_of_join(&graph->types, object);
        if (waitable && !task_table_insert(&graph->joins, (struct task_link){waitable, object}, NULL))
            graph_note_memory(graph);
    }
}

/* Since .NET 11, what the core library has registered the thread for says which thread it joins. */
static void describe_join(struct cdacq_wait_graph *graph, struct graph_wait *wait)
{
    const struct task_link *join = wait->waitable ? task_table_find(&graph->joins, wait->waitable) : NULL;
    if (join) {
        wait->wait.object = join->other;
        wait->wait.by = CDACQ_WAIT_BY_STATE;
    } else if (wait->is_inlined) {
        wait->wait.kind = CDACQ_WAIT_HANDLE;
        wait->wait.endless = wait->wait.endless == CDACQ_ENDLESS_NO ? CDACQ_ENDLESS_NO : CDACQ_ENDLESS_UNKNOWN;
    }
    wait->blocker = thread_of_object(graph, wait->wait.object);
}

/* Since .NET 11, the core library records which thread owns a Mutex, unless other processes can use it. */
static void describe_handle(struct cdacq_wait_graph *graph, struct graph_wait *wait)
{
    wait->blocker = thread_of_object(graph, managed_wait_owner(&graph->types, wait->waitable));
}

/* The thread that runs finalizers. */
static int find_finalizer(struct cdacq_wait_graph *graph)
{
    struct reader *reader = &graph->resolver->reader;
    reader_begin(reader, FUEL_LOOKUP);
    uint64_t thread = thread_of_finalizers(reader);
    return reader_failed(reader) ? NO_THREAD : find_thread(&graph->by_address, thread);
}

/* Threads for whose end the process waits. */
struct foreground {
    bool exists;
    int last; /* the only one; NO_THREAD if there are several, or none is known */
};

static struct foreground find_foreground(const struct cdacq_wait_graph *graph)
{
    struct foreground found = {.last = NO_THREAD};
    for (size_t i = 0; i < graph->threads.count; i++) {
        const struct graph_thread *thread = &graph->threads.items[i];
        if (!thread->tid || !thread->address || thread->is_background)
            continue;
        found.last = found.exists ? NO_THREAD : (int)i;
        if (found.exists)
            break;
        found.exists = true;
    }
    return found;
}

static void describe_waits(struct cdacq_wait_graph *graph)
{
    const struct foreground foreground = find_foreground(graph); /* once: each thread may claim that it has run Main */
    size_t kept = 0;
    find_joins(graph);
    for (size_t i = 0; i < graph->waits.count; i++) {
        struct graph_wait wait = graph->waits.items[i];
        if (wait.wait.kind == CDACQ_WAIT_ENTER || wait.wait.kind == CDACQ_WAIT_PULSE)
            describe_lock(graph, &wait);
        else if (wait.wait.kind == CDACQ_WAIT_JOIN)
            describe_join(graph, &wait);
        else if (wait.wait.kind == CDACQ_WAIT_HANDLE)
            describe_handle(graph, &wait);
        else if (wait.wait.kind == CDACQ_WAIT_TASK)
            graph_describe_task_wait(graph, &wait);
        else if (wait.wait.kind == CDACQ_WAIT_FOREGROUND)
            wait.blocker = foreground.last;
        else if (wait.wait.kind == CDACQ_WAIT_FINALIZERS)
            wait.blocker = find_finalizer(graph);
        if (wait.wait.kind == CDACQ_WAIT_ENTER && wait.blocker == wait.thread)
            continue; /* the thread has entered the lock */
        if (wait.wait.kind == CDACQ_WAIT_FOREGROUND && graph->has_managed_wait && !foreground.exists)
            continue; /* the process is about to end */
        bool may_be_idle = wait.wait.kind == CDACQ_WAIT_HANDLE || wait.wait.kind == CDACQ_WAIT_SLEEP;
        if (may_be_idle && graph->threads.items[wait.thread].serves_pool)
            continue; /* the thread is idle: it waits for something to do */
        if (wait.wait.kind == CDACQ_WAIT_INITIALIZER)
            wait.wait.type = graph_method_table_name(graph, wait.wait.object);
        else if (wait.wait.object)
            wait.wait.type = graph_type_name(graph, wait.wait.object);
        if (wait.blocker != NO_THREAD) {
            const struct graph_thread *blocker = &graph->threads.items[wait.blocker];
            wait.wait.blocker_tid = blocker->tid;
            wait.wait.blocker_id = blocker->managed_id;
            wait.wait.blocker_name = blocker->name;
        }
        graph->waits.items[kept++] = wait;
    }
    graph->waits.count = kept;
}

enum cdacq_status cdacq_wait_graph_complete(struct cdacq_wait_graph *graph, struct cdacq_error *err)
{
    if (!graph || graph->completed)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "no graph, or it is complete");
    epoch_follow(&graph->resolver->epoch);
    graph_find_wait(graph);
    graph->completed = true;
    read_sync_table(graph);
    add_runtime_threads(graph);
    graph_link_tasks(graph);
    graph_find_initializer_waits(graph);
    describe_waits(graph);
    graph_describe_pool(graph);
    graph_follow_waits(graph);
    name_owners(graph);
    graph_find_deadlocks(graph);
    if (!graph->types.reads_left)
        graph_note_too_many(graph);
    if (graph->problem.status < 0 && err)
        *err = graph->problem;
    return graph->problem.status < 0 ? graph->problem.status : epoch_check_process(&graph->resolver->epoch, err);
}

/* ---- Visiting ---- */

static enum cdacq_status check_visit(const struct cdacq_wait_graph *graph, bool has_visit, struct cdacq_error *err)
{
    return graph && graph->completed && has_visit
               ? CDACQ_OK
               : error_set(err, CDACQ_ERR_ARGUMENT, 0, "no graph, or it is not complete, or no function to call");
}

enum cdacq_status cdacq_wait_graph_visit_locks(const struct cdacq_wait_graph *graph,
                                               int (*visit)(const struct cdacq_lock *lock, void *context),
                                               void *context, struct cdacq_error *err)
{
    enum cdacq_status status = check_visit(graph, visit != NULL, err);
    for (size_t i = 0; status == CDACQ_OK && i < graph->locks.count; i++) {
        const struct cdacq_lock *lock = &graph->locks.items[i];
        /* A Lock that is the monitor of an object is in the list as that; one that may be is not shown twice. */
        if (graph_object_of_lock(graph, lock->object) == lock->object && visit(lock, context))
            status = CDACQ_STOPPED;
    }
    return status;
}

enum cdacq_status cdacq_wait_graph_visit_waits(const struct cdacq_wait_graph *graph,
                                               int (*visit)(const struct cdacq_wait *wait, void *context),
                                               void *context, struct cdacq_error *err)
{
    enum cdacq_status status = check_visit(graph, visit != NULL, err);
    for (size_t i = 0; status == CDACQ_OK && i < graph->waits.count; i++)
        if (visit(&graph->waits.items[i].wait, context))
            status = CDACQ_STOPPED;
    return status;
}

enum cdacq_status cdacq_wait_graph_visit_deadlocks(const struct cdacq_wait_graph *graph,
                                                   int (*visit)(const struct cdacq_deadlock *deadlock, void *context),
                                                   void *context, struct cdacq_error *err)
{
    enum cdacq_status status = check_visit(graph, visit != NULL, err);
    for (size_t i = 0; status == CDACQ_OK && i < graph->deadlocks.count; i++)
        if (visit(&graph->deadlocks.items[i], context))
            status = CDACQ_STOPPED;
    return status;
}
