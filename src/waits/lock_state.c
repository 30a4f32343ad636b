/*
 * lock_state.c: who holds a lock: the monitor of an object, a System.Threading.Lock or a ReaderWriterLockSlim.
 */
#include "contracts/objects/sync_block.h"
#include "contracts/threading/managed_lock.h"
#include "contracts/threading/reader_writer_lock.h"
#include "src/waits/wait_graph.h"
#include "util/text.h"

static bool take_managed(struct threading_types *types, uint64_t object, struct cdacq_lock *lock)
{
    struct managed_lock managed;
    if (!managed_lock_read(types, object, &managed))
        return reader_fail(types->cache->reader, CDACQ_ERR_FIELD, object, "System.Threading.Lock");
    lock->held = managed.held;
    lock->owner_id = managed.thread_id;
    lock->owner_tid = (int)managed.os_id;
    lock->recursion = managed.recursion;
    lock->waiters = managed.waiters;
    return true;
}

static bool take_reader_writer(struct threading_types *types, uint64_t object, struct cdacq_lock *lock)
{
    struct reader_writer_lock state;
    if (!reader_writer_lock_read(types, object, &state))
        return reader_fail(types->cache->reader, CDACQ_ERR_FIELD, object, "ReaderWriterLockSlim");
    lock->owner_id = state.writer ? state.writer : state.upgrader;
    lock->held = state.writer || state.readers;
    lock->readers = state.readers;
    lock->waiters = state.waiters;
    return true;
}

bool lock_read(struct threading_types *types, uint64_t object, struct cdacq_lock *ret)
{
    struct reader *reader = types->cache->reader;
    struct cdacq_lock lock = {.size = sizeof lock, .object = object};
    struct object_monitor monitor;
    enum threading_type type = threading_type_of(types, object, true);
    if (type == THREADING_LOCK) {
        lock.kind = CDACQ_LOCK_LOCK;
        if (!take_managed(types, object, &lock))
            return false;
    } else if (type == THREADING_READER_WRITER) {
        lock.kind = CDACQ_LOCK_READER_WRITER;
        if (!take_reader_writer(types, object, &lock))
            return false;
    } else {
        if (!object_monitor_read(reader, object, &monitor))
            return false;
        lock.held = monitor.held;
        lock.thin = monitor.thin;
        lock.owner = monitor.thread;
        lock.owner_id = monitor.thread_id;
        lock.recursion = monitor.recursion;
        lock.waiters = monitor.waiters;
        lock.sync_block = monitor.sync_block;
        if (monitor.lock_object && !take_managed(types, monitor.lock_object, &lock))
            return false;
    }
    *ret = lock;
    return true;
}

/* A process can have millions of monitors: only those whose Locks were found are kept. */
void graph_note_found_lock(struct cdacq_wait_graph *graph, uint64_t object)
{
    if (graph->has_managed_wait && threading_type_of(&graph->types, object, true) == THREADING_LOCK &&
        !task_table_insert(&graph->monitors, (struct task_link){object, 0}, NULL))
        graph_note_memory(graph);
}

void graph_note_monitor(struct cdacq_wait_graph *graph, uint64_t lock, uint64_t object)
{
    struct task_link *found = lock ? task_table_find(&graph->monitors, lock) : NULL;
    if (found && !found->other)
        found->other = object;
}

uint64_t graph_object_of_lock(const struct cdacq_wait_graph *graph, uint64_t lock)
{
    const struct task_link *found = task_table_find(&graph->monitors, lock);
    if (!found || (!found->other && !graph->misses_monitors))
        return lock;
    return found->other;
}

int64_t graph_add_lock(struct cdacq_wait_graph *graph, uint64_t object)
{
    struct cdacq_lock lock;
    const struct object_index *known = object_indices_find(&graph->lock_indices, object);
    if (known)
        return (int64_t)known->index;
    reader_begin(&graph->resolver->reader, FUEL_LOOKUP);
    if (!lock_read(&graph->types, object, &lock) || (!lock.held && !lock.waiters))
        return -1;
    if (graph->locks.count == LOCKS_MAX) {
        graph_note_too_many(graph);
        return -1;
    }
    graph_note_found_lock(graph, object);
    const struct object_index item = {object, graph->locks.count};
    if (!graph_locks_append(&graph->locks, lock) || !object_indices_insert(&graph->lock_indices, item, NULL)) {
        graph_note_memory(graph);
        return -1;
    }
    return (int64_t)item.index;
}
