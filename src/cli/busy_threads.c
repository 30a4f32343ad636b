#include "src/cli/busy_threads.h"

#include <stdlib.h>

#include "cdacq.h"
#include "src/cli/memory.h"
#include "util/binary_search.h"
#include "util/clock.h"

enum { WINDOW_NS = 200 * 1000 * 1000 };

DEFINE_VECTOR_FUNCTIONS(busy_list, struct busy_thread);
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
    if (x->percent != y->percent)
        return x->percent > y->percent ? -1 : 1;
    return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* A thread that began meanwhile has used all its time since. */
static uint64_t time_before(const struct times *before, int tid)
{
    size_t i = lower_bound(k, before->count, before->items[k].tid < tid);
    return i < before->count && before->items[i].tid == tid ? before->items[i].processor_time : 0;
}

static void compare_times(const struct times *before, const struct times *after, uint64_t elapsed,
                          struct busy_list *ret)
{
    for (size_t i = 0; i < after->count; i++) {
        const struct cdacq_thread_time *now = &after->items[i];
        uint64_t then = time_before(before, now->tid);
        double used = now->processor_time > then ? (double)(now->processor_time - then) : 0;
        double percent = MIN(100 * used / (double)elapsed + 0.5, 100.0); /* the last tick can have been before */
        struct busy_thread busy = {.tid = now->tid, .percent = (unsigned)percent};
        if (busy.percent >= BUSY_LEAST && !busy_list_append(ret, busy))
            out_of_memory();
    }
    if (ret->count)
        qsort(ret->items, ret->count, sizeof *ret->items, compare_busy);
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
            compare_times(&before, &after, elapsed, &ret->list);
        }
    }
    times_deinit(&before);
    times_deinit(&after);
}

void busy_threads_release(struct busy_threads *busy)
{
    busy_list_deinit(&busy->list);
    *busy = (struct busy_threads){0};
}

unsigned busy_percent(const struct busy_threads *busy, int tid)
{
    for (size_t i = 0; i < busy->list.count; i++)
        if (busy->list.items[i].tid == tid)
            return busy->list.items[i].percent;
    return 0;
}
