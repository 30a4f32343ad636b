/*
 * wait_pool.c: describes the thread pool: how many of its workers run work items, how many of these wait, and how many
 * items are queued. A pool starves if items are queued while every worker that it allows to run is waiting.
 */
#include "contracts/threading/thread_pool.h"
#include "src/waits/wait_graph.h"
#include "util/sized.h"
#include "util/text.h"

static void take_once(struct graph_pool *pool, uint64_t *known, uint64_t object)
{
    pool->ambiguous |= *known && *known != object;
    *known = object;
}

void graph_take_pool_object(struct cdacq_wait_graph *graph, uint64_t object, enum threading_type type)
{
    if (type == THREADING_POOL)
        take_once(&graph->pool, &graph->pool.pool, object);
    else if (type == THREADING_WORK_QUEUE)
        take_once(&graph->pool, &graph->pool.queue, object);
    else if (type == THREADING_WORKER_LOCALS)
        graph_last_thread(graph)->worker_locals = object;
}

/* Counts the items of all queues. False if one queue cannot be read: a part of the number says little. */
static bool count_queued(struct cdacq_wait_graph *graph, uint64_t *ret)
{
    uint64_t count, sum;
    if (!graph->pool.queue || graph->pool.ambiguous || !work_queue_count(&graph->types, graph->pool.queue, &sum))
        return false;
    for (size_t i = 0; i < graph->threads.count; i++) {
        const struct graph_thread *thread = &graph->threads.items[i];
        if (!thread->runs_work)
            continue;
        if (!worker_queue_count(&graph->types, thread->worker_locals, &count))
            return false;
        sum += count;
    }
    *ret = sum;
    return true;
}

static void count_workers(const struct cdacq_wait_graph *graph, struct cdacq_thread_pool *pool)
{
    for (size_t i = 0; i < graph->threads.count; i++) {
        const struct graph_thread *thread = &graph->threads.items[i];
        pool->workers += thread->is_worker;
        pool->busy += thread->runs_work;
        pool->waiting += thread->runs_work && thread->is_waiting;
    }
    for (size_t i = 0; i < graph->waits.count; i++) { /* one for each thread at most */
        const struct graph_thread *thread = &graph->threads.items[graph->waits.items[i].thread];
        pool->waiting += thread->runs_work && !thread->is_waiting;
    }
}

/* Whether a thread may be a worker that was not counted, because its stack could not be walked to the end. */
static bool misses_workers(const struct cdacq_wait_graph *graph)
{
    for (size_t i = 0; i < graph->threads.count; i++) {
        const struct graph_thread *thread = &graph->threads.items[i];
        if (thread->is_of_pool && !thread->is_worker && !thread->serves_pool)
            return true;
    }
    return false;
}

/* The pool keeps workers beyond its goal idle, so an idle worker does not mean that a queued item will run. */
static bool starves(struct cdacq_wait_graph *graph, const struct cdacq_thread_pool *pool)
{
    uint32_t goal;
    if (!pool->busy || pool->waiting < pool->busy || !pool->has_queued || !pool->queued || misses_workers(graph))
        return false;
    return pool->busy == pool->workers ||
           (pool->object && thread_pool_read_goal(&graph->types, pool->object, &goal) && pool->busy >= goal);
}

void graph_describe_pool(struct cdacq_wait_graph *graph)
{
    struct cdacq_thread_pool *pool = &graph->pool.described;
    struct thread_pool_limits limits;
    count_workers(graph, pool);
    pool->object = graph->pool.ambiguous ? 0 : graph->pool.pool;
    pool->has_limits = pool->object && thread_pool_read_limits(&graph->types, pool->object, &limits);
    if (pool->has_limits) {
        pool->min_workers = limits.min;
        pool->max_workers = limits.max;
    }
    pool->has_queued = count_queued(graph, &pool->queued);
    pool->starves = starves(graph, pool);
}

enum cdacq_status cdacq_wait_graph_get_thread_pool(const struct cdacq_wait_graph *graph, struct cdacq_thread_pool *ret,
                                                   struct cdacq_error *err)
{
    enum cdacq_status status = sized_check(ret, "struct cdacq_thread_pool", err);
    if (status == CDACQ_OK && (!graph || !graph->completed))
        status = error_set(err, CDACQ_ERR_ARGUMENT, 0, "no graph, or it is not complete");
    if (status == CDACQ_OK)
        sized_copy(ret, &graph->pool.described, sizeof graph->pool.described);
    return status;
}
