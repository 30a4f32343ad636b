/*
 * activity.c: what the runtime does at one moment, in a few numbers. Source: dotnet/runtime
 * docs/design/datacontracts/Thread.md, src/coreclr/vm/threadsuspend.h (g_pGCThread), src/coreclr/gc/gcscan.h.
 */
#include <stdlib.h>

#include "contracts/gc/heap.h"
#include "contracts/thread.h"
#include "src/lookup/opened_session.h"
#include "src/lookup/opened_target.h"
#include "util/binary_search.h"
#include "util/sized.h"

enum { THREADS_MAX = 4096 };

static int compare_thrown(const void *a, const void *b)
{
    uint64_t x = ((const struct thrown *)a)->thread, y = ((const struct thrown *)b)->thread;
    return x < y ? -1 : x > y;
}

/* Whether the last exception of a Thread is another one than before. That of a new Thread does not count. */
static bool is_new(const struct thrown_list *before, const struct thrown *now)
{
    size_t i = lower_bound(k, before->count, before->items[k].thread < now->thread);
    return now->object && i < before->count && before->items[i].thread == now->thread &&
           before->items[i].object != now->object;
}

/* Reads the exceptions of the Threads. One that is deleted meanwhile adds nothing. */
static bool read_exceptions(struct reader *reader, const struct thread_list *threads, struct cdacq_activity *ret,
                            struct thrown_list *ret_thrown)
{
    for (size_t i = 0; i < MIN(threads->count, (size_t)THREADS_MAX); i++) {
        struct thread_objects objects;
        reader_begin(reader, FUEL_LOOKUP);
        if (thread_has_ended(&threads->items[i]) || !thread_read_objects(reader, threads->items[i].address, &objects))
            continue;
        ret->thread_count++;
        ret->throwing += objects.exception_info != 0;
        if (!thrown_list_append(ret_thrown, (struct thrown){threads->items[i].address, objects.last_thrown}))
            return false;
    }
    if (ret_thrown->count)
        qsort(ret_thrown->items, ret_thrown->count, sizeof *ret_thrown->items, compare_thrown);
    return true;
}

/* The Thread for which the others are suspended, and what the GC says, which knows less but always something. */
static void read_suspension(struct reader *reader, struct cdacq_activity *ret)
{
    bool under_way = false, is_server = false;
    reader_begin(reader, FUEL_LOOKUP);
    bool is_described = reader->layout->global_present[G_GCThread];
    bool by_thread = thread_suspending(reader) != 0 && !reader_failed(reader);
    is_described &= !reader_failed(reader);
    reader_begin(reader, FUEL_LOOKUP);
    bool has_state = gc_read_state(reader, &under_way, &is_server);
    ret->suspended = by_thread || under_way;
    ret->suspension_known = is_described || has_state;
    ret->suspension_partly = ret->suspension_known && (!is_described || is_server);
}

enum cdacq_status cdacq_session_get_activity(struct cdacq_session *session, struct cdacq_activity *ret,
                                             struct cdacq_error *err)
{
    enum cdacq_status status = sized_check(ret, "struct cdacq_activity", err);
    struct cdacq_activity found = {.size = sizeof found};
    struct thrown_list thrown = {0};
    struct thread_list threads = {0};
    if (status < 0)
        return status;
    if (!session)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "no session");
    if (session->resolver.target->is_native || !(session->resolver.target->layout.usable & 1u << LAYOUT_Thread))
        return error_set(err, CDACQ_ERR_CONTRACT, 0, "the runtime publishes no Thread contract that this build reads");
    struct reader *reader = &session->resolver.reader;
    resolver_begin(&session->resolver);
    read_suspension(reader, &found);
    reader_begin(reader, FUEL_OPEN);
    thread_list_read(reader, &threads);
    status = reader_status(reader, err);
    if (status >= 0 && !read_exceptions(reader, &threads, &found, &thrown))
        status = error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for the runtime's Threads");
    thread_list_deinit(&threads);
    if (status < 0) {
        thrown_list_deinit(&thrown);
        return status;
    }
    for (size_t i = 0; session->has_thrown && i < thrown.count; i++)
        found.thrown += is_new(&session->thrown, &thrown.items[i]);
    thrown_list_deinit(&session->thrown);
    session->thrown = thrown;
    session->has_thrown = true;
    sized_copy(ret, &found, sizeof found);
    return CDACQ_OK;
}
