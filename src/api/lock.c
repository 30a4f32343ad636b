/*
 * lock.c: the locks of cdacq/lock.h: the monitor of an object, or a System.Threading.Lock.
 */
#include "contracts/objects/sync_block.h"
#include "contracts/thread.h"
#include "contracts/threading/managed_lock.h"
#include "src/api/wait_graph.h"
#include "util/sized.h"

static bool take_managed(struct threading_types *types, uint64_t object, struct cdacq_lock *lock)
{
    struct managed_lock managed;
    if (!managed_lock_read(types, object, &managed))
        return reader_fail(&types->cache->reader->raw, CDACQ_ERR_FIELD, object, "System.Threading.Lock");
    lock->held = managed.held;
    lock->owner_id = managed.thread_id;
    lock->owner_tid = (int)managed.os_id;
    lock->recursion = managed.recursion;
    lock->waiters = managed.waiters;
    return true;
}

bool lock_read(struct threading_types *types, uint64_t object, struct cdacq_lock *ret)
{
    struct field_reader *reader = types->cache->reader;
    struct cdacq_lock lock = {.size = sizeof lock, .object = object};
    struct object_monitor monitor;
    if (threading_type_of(types, object, true) == THREADING_LOCK) {
        lock.kind = CDACQ_LOCK_LOCK;
        if (!take_managed(types, object, &lock))
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

/* Adds what the list of Threads knows of the owner. */
static void find_owner(struct cdacq_session *session, struct cdacq_lock *lock)
{
    struct thread_list list = {0};
    if ((!lock->owner && !lock->owner_id && !lock->owner_tid) ||
        !(session->target->layout.usable & 1u << LAYOUT_Thread))
        return;
    reader_begin(&session->reader.raw, FUEL_OPEN);
    thread_list_read(&session->reader, &list);
    for (size_t i = 0; i < list.count; i++) {
        const struct thread_data *thread = &list.items[i];
        if (lock->owner      ? thread->address == lock->owner
            : lock->owner_id ? thread->id == lock->owner_id
                             : thread->os_id == (uint64_t)lock->owner_tid) {
            lock->owner = thread->address;
            lock->owner_id = thread->id;
            lock->owner_tid = (int)thread->os_id;
            break;
        }
    }
    thread_list_deinit(&list);
}

enum cdacq_status cdacq_session_get_lock(struct cdacq_session *session, uint64_t object, struct cdacq_lock *ret,
                                         struct cdacq_error *err)
{
    enum cdacq_status status = sized_check(ret, "struct cdacq_lock", err);
    if (status < 0)
        return status;
    if (!session)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "no session");
    struct cdacq_lock lock;
    struct cdacq_wait_graph *graph;
    status = cdacq_wait_graph_create(session, &graph, err);
    if (status < 0)
        return status;
    reader_begin(&session->reader.raw, FUEL_LOOKUP);
    if (!lock_read(&graph->types, object, &lock))
        status = reader_status(&session->reader.raw, err);
    if (status >= 0) {
        const char *type = graph_type_name(graph, object);
        lock.type = type ? arena_string(&session->arena, type, strlen(type)) : NULL;
        find_owner(session, &lock);
        sized_copy(ret, &lock, sizeof lock);
    }
    cdacq_wait_graph_destroy(graph);
    return status;
}
