#include "contracts/thread.h"

enum {
    STATE_HIJACKED = 0x80, /* ThreadState */
    /* Schema of the descriptor (.NET 11). Before it, ThrownObject was a handle, and a link led to the next link. */
    DIRECT_SINCE = 2,
};

bool thread_read(struct reader *reader, uint64_t address, struct thread_data *ret)
{
    struct thread_data thread = {
        .address = address,
        .os_id = read_field(reader, address, F_Thread_OSId),
        .frame = read_optional(reader, address, F_Thread_Frame),
        .stack_base = read_optional(reader, address, F_Thread_CachedStackBase),
        .id = (uint32_t)read_optional(reader, address, F_Thread_Id),
        .state = (uint32_t)read_optional(reader, address, F_Thread_State),
        .is_cooperative = read_optional(reader, address, F_Thread_PreemptiveGCDisabled) != 0,
    };
    if (thread.state & STATE_HIJACKED && has_field(reader, F_Thread_m_pvHJRetAddr)) {
        thread.hijacked_slot = read_optional(reader, address, F_Thread_m_ppvHJRetAddrPtr);
        thread.hijacked_address = read_optional(reader, address, F_Thread_m_pvHJRetAddr);
    }
    if (reader_failed(reader))
        return false;
    *ret = thread;
    return true;
}

/* The object of a handle, 0 for no handle. */
static uint64_t read_handle(struct reader *reader, uint64_t handle)
{
    return handle ? read_pointer(reader, handle) : 0;
}

bool exception_info_described(const struct reader *reader)
{
    return (has_field(reader, F_ExceptionInfo_ThrownObject) && has_field(reader, F_ExceptionInfo_PreviousNestedInfo)) ||
           (has_field(reader, F_ExInfo_ThrownObject) && has_field(reader, F_ExInfo_PreviousNestedInfo));
}

bool exception_info_read(struct reader *reader, uint64_t address, struct exception_info *ret)
{
    bool native = has_field(reader, F_ExInfo_ThrownObject); /* NativeAOT has a type of its own */
    struct exception_info info = {
        .previous =
            read_optional(reader, address, native ? F_ExInfo_PreviousNestedInfo : F_ExceptionInfo_PreviousNestedInfo),
        .object = read_optional(reader, address, native ? F_ExInfo_ThrownObject : F_ExceptionInfo_ThrownObject),
    };
    if (!native && reader->layout->schema < DIRECT_SINCE)
        info.object = read_handle(reader, info.object);
    if (reader_failed(reader))
        return false;
    *ret = info;
    return true;
}

bool thread_read_objects(struct reader *reader, uint64_t address, struct thread_objects *ret)
{
    struct thread_objects objects = {
        .exception_info = read_optional(reader, address, F_Thread_ExceptionTracker),
        .last_thrown = read_handle(reader, read_optional(reader, address, F_Thread_LastThrownObject)),
        .unhandled = read_optional(reader, address, F_Thread_LastThrownObjectIsUnhandled) != 0,
        .exposed = read_handle(reader, read_optional(reader, address, F_Thread_ExposedObject)),
    };
    if (reader_failed(reader))
        return false;
    *ret = objects;
    return true;
}

uint64_t thread_of_finalizers(struct reader *reader)
{
    const struct layout *layout = reader->layout;
    return layout->global_present[G_FinalizerThread] ? read_pointer(reader, layout->globals[G_FinalizerThread]) : 0;
}

bool thread_is_finalizer(struct reader *reader, uint64_t address)
{
    return reader->layout->global_present[G_FinalizerThread] && thread_of_finalizers(reader) == address &&
           !reader_failed(reader);
}

bool thread_read_blocking(struct reader *reader, uint64_t address, struct thread_blocking *ret)
{
    /* An AwareLock is the first part of its sync block. */
    uint64_t item = read_optional(reader, address, F_Thread_DebugBlockingInfo);
    if (!item || !has_field(reader, F_DebugBlockingItem_pMonitor) || reader_failed(reader))
        return false;
    uint32_t kind = (uint32_t)read_field(reader, item, F_DebugBlockingItem_type);
    struct thread_blocking blocking = {
        .kind = kind ? THREAD_BLOCKED_WAITING : THREAD_BLOCKED_ENTERING,
        .sync_block = read_field(reader, item, F_DebugBlockingItem_pMonitor),
        .timeout = (uint32_t)read_field(reader, item, F_DebugBlockingItem_dwTimeout),
    };
    if (reader_failed(reader))
        return false;
    if (kind > THREAD_BLOCKED_WAITING || !blocking.sync_block)
        return reader_fail(reader, CDACQ_ERR_CORRUPT, item, "DebugBlockingItem.type");
    *ret = blocking;
    return true;
}

/*
 * A list that came back to the Thread of `marked` has a cycle of as many Threads as were read since: leaves each Thread
 * once.
 */
static void cut_cycle(struct thread_list *list, size_t marked)
{
    size_t length = list->count - marked, first = length;
    while (first < list->count && list->items[first].address != list->items[first - length].address)
        first++;
    list->count = first;
}

bool thread_list_read(struct reader *reader, struct thread_list *ret)
{
    uint64_t store = read_pointer(reader, reader->layout->globals[G_ThreadStore]);
    /* From what a link leads to back to its Thread. */
    uint64_t offset = reader->layout->schema < DIRECT_SINCE ? reader->layout->fields[F_Thread_LinkNext].offset : 0;
    uint64_t link = store ? read_field(reader, store, F_ThreadStore_FirstThreadLink) : 0;
    struct thread_data thread;
    size_t marked = 0;
    *ret = (struct thread_list){0};
    while (link && reader_step(reader, "threads") && thread_read(reader, link - offset, &thread)) {
        if (ret->count && ret->items[marked].address == thread.address) {
            cut_cycle(ret, marked);
            reader_fail(reader, CDACQ_ERR_CORRUPT, thread.address, "the list of threads comes back to this Thread");
            break;
        }
        if (ret->count == RUNTIME_THREADS_MAX || !thread_list_append(ret, thread)) {
            reader_fail(reader, CDACQ_ERR_NOMEM, link, "threads");
            break;
        }
        if (!(ret->count & (ret->count - 1))) /* a later Thread, at ever longer distances (Brent) */
            marked = ret->count - 1;
        link = read_field(reader, link - offset, F_Thread_LinkNext);
    }
    return !reader_failed(reader);
}

uint64_t thread_suspending(struct reader *reader)
{
    const struct layout *layout = reader->layout;
    return layout->global_present[G_GCThread] ? read_pointer(reader, layout->globals[G_GCThread]) : 0;
}
