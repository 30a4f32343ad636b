#include "src/cli/base/busy_threads.h"

#include <stdlib.h>

#include "cdacq.h"
#include "src/cli/base/memory.h"
#include "util/binary_search.h"
#include "util/clock.h"

enum { WINDOW_NS = 200 * 1000 * 1000 };

DEFINE_VECTOR_FUNCTIONS(busy_list, struct busy_thread);
DEFINE_VECTOR_FUNCTIONS(still_list, int);
DEFINE_VECTOR(times, struct cdacq_thread_time);

static int add_time(const struct cdacq_thread_time *time, void *context)
{
    if (!times_append(context, *time))
        out_of_memory();
    return 0;
}

static int compare_tids(const void *a, const void *b)
{
    int x = ((const struct cdacq_thread_time *)a)->tid, y = ((const struct cdacq_thread_time *)b)->tid;
    return x < y ? -1 : x > y;
}

/* The times, by tid. */
static bool read_times(int pid, struct times *ret)
{
    bool read = cdacq_visit_thread_times(pid, add_time, ret, NULL) >= 0;
    if (ret->count)
        qsort(ret->items, ret->count, sizeof *ret->items, compare_tids);
    return read;
}

static int compare_busy(const void *a, const void *b)
{
    const struct busy_thread *x = a, *y = b;
    unsigned of_x = busy_wanted_by(x), of_y = busy_wanted_by(y);
    if (of_x != of_y)
        return of_x > of_y ? -1 : 1;
    return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* The times of a thread as they were. One that began meanwhile has used all its time since. */
static struct cdacq_thread_time time_before(const struct times *before, int tid)
{
    size_t i = lower_bound(k, before->count, before->items[k].tid < tid);
    return i < before->count && before->items[i].tid == tid ? before->items[i] : (struct cdacq_thread_time){.tid = 0};
}

/* Whether a thread neither ran nor waited for a processor meanwhile. */
static bool was_still(const struct cdacq_thread_time *then, const struct cdacq_thread_time *now)
{
    return then->tid && then->runs && then->runs == now->runs && then->delay == now->delay &&
           then->processor_time == now->processor_time;
}

/* The share of the time, in per cent, by which a sum of times grew. */
static unsigned share_of(uint64_t then, uint64_t now, uint64_t elapsed)
{
    double used = now > then ? (double)(now - then) : 0;
    return (unsigned)MIN(100 * used / (double)elapsed + 0.5, 100.0); /* the last tick can have been before */
}

static void compare_times(const struct times *before, const struct times *after, uint64_t elapsed,
                          struct busy_threads *ret)
{
    for (size_t i = 0; i < after->count; i++) {
        const struct cdacq_thread_time *now = &after->items[i];
        const struct cdacq_thread_time then = time_before(before, now->tid);
        const struct busy_thread busy = {
            .tid = now->tid,
            .percent = share_of(then.processor_time, now->processor_time, elapsed),
            .delayed = share_of(then.delay, now->delay, elapsed),
        };
        if (busy_wanted_by(&busy) >= BUSY_LEAST && !busy_list_append(&ret->list, busy))
            out_of_memory();
        ret->counts_runs |= now->runs != 0;
        if (was_still(&then, now) && !still_list_append(&ret->still, now->tid)) /* by tid, as the times are */
            out_of_memory();
    }
    if (ret->list.count)
        qsort(ret->list.items, ret->list.count, sizeof *ret->list.items, compare_busy);
}

void busy_threads_measure(int pid, struct busy_threads *ret)
{
    struct times before = {0}, after = {0};
    uint64_t began = monotonic_ns();
    busy_threads_release(ret);
    if (pid && read_times(pid, &before)) {
        nanosleep(&(struct timespec){.tv_nsec = WINDOW_NS}, NULL);
        uint64_t elapsed = MAX(monotonic_ns() - began, UINT64_C(1));
        if (read_times(pid, &after)) {
            ret->measured = true;
            ret->seconds = (double)elapsed / 1e9;
            compare_times(&before, &after, elapsed, ret);
        }
    }
    times_deinit(&before);
    times_deinit(&after);
}

void busy_threads_release(struct busy_threads *busy)
{
    busy_list_deinit(&busy->list);
    still_list_deinit(&busy->still);
    *busy = (struct busy_threads){0};
}

static const struct busy_thread *find_busy(const struct busy_threads *busy, int tid)
{
    for (size_t i = 0; i < busy->list.count; i++)
        if (busy->list.items[i].tid == tid)
            return &busy->list.items[i];
    return NULL;
}

unsigned busy_percent(const struct busy_threads *busy, int tid)
{
    const struct busy_thread *found = find_busy(busy, tid);
    return found ? found->percent : 0;
}

unsigned busy_wanted(const struct busy_threads *busy, int tid)
{
    const struct busy_thread *found = find_busy(busy, tid);
    return found ? busy_wanted_by(found) : 0;
}

bool busy_is_still(const struct busy_threads *busy, int tid)
{
    size_t i = lower_bound(k, busy->still.count, busy->still.items[k] < tid);
    return i < busy->still.count && busy->still.items[i] == tid;
}
