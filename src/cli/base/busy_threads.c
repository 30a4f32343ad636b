#include "src/cli/base/busy_threads.h"

#include <stdlib.h>
#include <string.h>

#include "src/cli/base/memory.h"
#include "util/binary_search.h"
#include "util/clock.h"

enum {
    WINDOW_NS = 200 * 1000 * 1000,
    LOOKS_MAX = 100, /* at the runtime, in that time */
    /* What is worth telling: less is usual. */
    COLLECTION_PERCENT = 10,
    EXCEPTIONS = 10,
    OVERLOAD_PERCENT = 50,
};

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

/* Whether a thread did not run meanwhile. */
static bool did_not_run(const struct cdacq_thread_time *then, const struct cdacq_thread_time *now)
{
    return then->tid && then->runs && then->runs == now->runs && then->delay_ns == now->delay_ns &&
           then->processor_time_ns == now->processor_time_ns;
}

/* Whether a thread neither ran nor waited for a processor meanwhile. */
static bool was_still(const struct cdacq_thread_time *then, const struct cdacq_thread_time *now)
{
    return did_not_run(then, now) && !then->ready && !now->ready;
}

/* Whether it waited for a processor all the time: the kernel counts that only when it runs again. */
static bool was_starved(const struct cdacq_thread_time *then, const struct cdacq_thread_time *now)
{
    return did_not_run(then, now) && then->ready && now->ready;
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
        unsigned percent = share_of(then.processor_time_ns, now->processor_time_ns, elapsed);
        unsigned delayed = was_starved(&then, now) ? 100 : share_of(then.delay_ns, now->delay_ns, elapsed);
        const struct busy_thread busy = {
            .tid = now->tid,
            .percent = percent,
            .delayed = MIN(delayed, 100 - percent), /* a delay can have begun before */
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

/* Looks once at what the runtime does. */
static void look(struct cdacq_session *session, struct busy_runtime *ret)
{
    struct cdacq_activity activity = {.size = sizeof activity};
    if (cdacq_session_get_activity(session, &activity, NULL) < 0)
        return;
    ret->looks++;
    ret->suspension_known = activity.suspension_known;
    ret->suspension_partly = activity.suspension_partly;
    ret->suspended_looks += activity.suspended;
    ret->thrown += activity.thrown;
}

/* Lets the process run for the time of a measurement, and looks at it now and then: for less than half of the time. */
static void watch(struct cdacq_session *session, uint64_t until, struct busy_runtime *ret)
{
    uint64_t now = monotonic_ns(), took = 0;
    while (now < until) {
        uint64_t pause = session ? MAX((uint64_t)WINDOW_NS / LOOKS_MAX, took) : until - now;
        pause = MIN(pause, until - now);
        nanosleep(&(struct timespec){.tv_nsec = (long)pause}, NULL);
        uint64_t began = monotonic_ns();
        if (session && began < until)
            look(session, ret);
        now = monotonic_ns();
        took = now - began;
    }
}

/* What a limit did from one reading to the next; nothing if it is another limit by then. */
static void compare_limits(const struct cdacq_processor_limit *before, const struct cdacq_processor_limit *after,
                           struct cdacq_processor_limit *ret)
{
    if (!after->quota_ns || before->quota_ns != after->quota_ns || before->period_ns != after->period_ns ||
        before->periods > after->periods || before->throttled_periods > after->throttled_periods ||
        before->throttled_time_ns > after->throttled_time_ns)
        return;
    *ret = *after;
    ret->periods -= before->periods;
    ret->throttled_periods -= before->throttled_periods;
    ret->throttled_time_ns -= before->throttled_time_ns;
}

void busy_threads_measure(int pid, struct cdacq_session *session, struct busy_threads *ret)
{
    struct times before = {0}, after = {0};
    struct cdacq_processor_limit limit_before = {.size = sizeof limit_before}, limit = limit_before;
    uint64_t began = monotonic_ns();
    busy_threads_release(ret);
    if (pid && read_times(pid, &before)) {
        (void)cdacq_get_processor_limit(pid, &limit_before, NULL);
        watch(session, began + WINDOW_NS, &ret->runtime);
        uint64_t elapsed = MAX(monotonic_ns() - began, UINT64_C(1));
        if (read_times(pid, &after)) {
            (void)cdacq_get_processor_limit(pid, &limit, NULL);
            compare_limits(&limit_before, &limit, &ret->limit);
            ret->measured = true;
            ret->seconds = (double)elapsed / 1e9;
            compare_times(&before, &after, elapsed, ret);
        }
    }
    times_deinit(&before);
    times_deinit(&after);
}

void busy_thread_release(struct busy_thread *thread)
{
    for (unsigned k = 0; k < BUSY_SAMPLES - 1; k++)
        free(thread->sampled[k]);
}

void busy_threads_release(struct busy_threads *busy)
{
    for (size_t i = 0; i < busy->list.count; i++)
        busy_thread_release(&busy->list.items[i]);
    busy_list_deinit(&busy->list);
    still_list_deinit(&busy->still);
    *busy = (struct busy_threads){0};
}

const struct busy_thread *busy_find(const struct busy_threads *busy, int tid)
{
    for (size_t i = 0; i < busy->list.count; i++)
        if (busy->list.items[i].tid == tid)
            return &busy->list.items[i];
    return NULL;
}

unsigned busy_percent(const struct busy_threads *busy, int tid)
{
    const struct busy_thread *found = busy_find(busy, tid);
    return found ? found->percent : 0;
}

unsigned busy_wanted(const struct busy_threads *busy, int tid)
{
    const struct busy_thread *found = busy_find(busy, tid);
    return found ? busy_wanted_by(found) : 0;
}

unsigned busy_delayed(const struct busy_threads *busy, int tid)
{
    const struct busy_thread *found = busy_find(busy, tid);
    return found ? found->delayed : 0;
}

unsigned busy_samples_in(const struct busy_thread *thread, const char *method)
{
    unsigned count = method != NULL; /* that of the report */
    for (unsigned i = 0; method && i < BUSY_SAMPLES - 1; i++)
        count += thread->sampled[i] && strcmp(thread->sampled[i], method) == 0;
    return count;
}

struct busy_causes busy_find_causes(const struct busy_threads *busy)
{
    const struct busy_runtime *runtime = &busy->runtime;
    struct busy_causes ret = {.throttled_periods = busy->limit.throttled_periods};
    unsigned percent = runtime->looks ? 100 * runtime->suspended_looks / runtime->looks : 0;
    if (percent >= COLLECTION_PERCENT)
        ret.collection_percent = percent;
    if (runtime->thrown >= EXCEPTIONS)
        ret.exceptions_per_second = (uint64_t)((double)runtime->thrown / busy->seconds);
    for (size_t i = 0; i < busy->list.count && !ret.throttled_periods; i++)
        if (busy->list.items[i].delayed >= OVERLOAD_PERCENT)
            ret.overload_percent = MAX(ret.overload_percent, busy->list.items[i].delayed);
    return ret;
}

const char *busy_cause_word(const struct busy_causes *causes)
{
    return causes->throttled_periods       ? "throttling"
           : causes->overload_percent      ? "overload"
           : causes->collection_percent    ? "garbage_collection"
           : causes->exceptions_per_second ? "exceptions"
                                           : NULL;
}

bool busy_is_still(const struct busy_threads *busy, int tid)
{
    size_t i = lower_bound(k, busy->still.count, busy->still.items[k] < tid);
    return i < busy->still.count && busy->still.items[i] == tid;
}
