/*
 * thread_pool.h: the runtime's own thread pool: how many workers it may have, and how many work items wait in its
 * queues. Every worker takes items from the pool's queues. It also has a queue of its own, from which others can steal.
 * Source: dotnet/runtime src/libraries/System.Private.CoreLib/src/System/Threading/{PortableThreadPool,
 * ThreadPoolWorkQueue}.cs; Collections/Concurrent/ConcurrentQueue{,Segment}.cs.
 */
#ifndef CDACQ_CONTRACTS_THREADING_THREAD_POOL_H
#define CDACQ_CONTRACTS_THREADING_THREAD_POOL_H

#include "contracts/threading/threading_types.h"

struct thread_pool_limits {
    uint32_t min, max; /* number of workers; the pool starts those above `min` slowly */
};

/* Each function returns false, and leaves *ret untouched, if something cannot be read. */

/* `pool` must be of THREADING_POOL, also in the next function. */
bool thread_pool_read_limits(struct threading_types *types, uint64_t pool, struct thread_pool_limits *ret);

/* How many workers the pool lets run work items at once. The others are idle, even while items are queued. */
bool thread_pool_read_goal(struct threading_types *types, uint64_t pool, uint32_t *ret);

/* Counts the work items in the pool's queues, not in those of workers. `queue` must be of THREADING_WORK_QUEUE. */
bool work_queue_count(struct threading_types *types, uint64_t queue, uint64_t *ret);

/*
 * Calls `visit` for each work item in the pool's queues, or in a WorkStealingQueue, which belongs to a worker, until it
 * returns false. False also if something cannot be read; what was visited before counts.
 */
bool work_queue_each(struct threading_types *types, uint64_t queue, bool (*visit)(void *context, uint64_t item),
                     void *context);
bool stealing_queue_each(struct threading_types *types, uint64_t queue, bool (*visit)(void *context, uint64_t item),
                         void *context);

/* Counts the work items in a worker's own queue. `locals` must be of THREADING_WORKER_LOCALS. */
bool worker_queue_count(struct threading_types *types, uint64_t locals, uint64_t *ret);

#endif
