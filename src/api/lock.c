/*
 * lock.c: cdacq_session_get_lock, which reads a single lock. A graph without threads recognises the object's type.
 */
#include "contracts/thread.h"
#include "src/lookup/opened_session.h"
#include "src/lookup/opened_target.h"
#include "src/waits/wait_graph.h"
#include "util/sized.h"
#include "util/text.h"

/* Fills in the ids of the owner that the lock itself does not have, from the list of Threads. */
static void find_owner(struct resolver *resolver, struct cdacq_lock *lock)
{
    struct thread_list list = {0};
    if ((!lock->owner && !lock->owner_id && !lock->owner_tid) ||
        !(resolver->target->layout.usable & 1u << LAYOUT_Thread))
        return;
    reader_begin(&resolver->reader, FUEL_OPEN);
    thread_list_read(&resolver->reader, &list);
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
    if (!session || !object)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, session ? "no object" : "no session");
    struct cdacq_lock lock;
    struct cdacq_wait_graph *graph;
    status = cdacq_wait_graph_create(session, &graph, err);
    if (status < 0)
        return status;
    reader_begin(&session->resolver.reader, FUEL_LOOKUP);
    if (!lock_read(&graph->types, object, &lock))
        status = reader_status(&session->resolver.reader, err);
    if (status >= 0) {
        const char *type = graph_type_name(graph, object);
        lock.type = type ? resolver_intern(&session->resolver, type, strlen(type)) : NULL;
        find_owner(&session->resolver, &lock);
        sized_copy(ret, &lock, sizeof lock);
    }
    cdacq_wait_graph_destroy(graph);
    return status;
}
