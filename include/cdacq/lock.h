/*
 * cdacq/lock.h: locks of a target, what its threads wait for, deadlocks, and the thread pool.
 *
 * A lock is the monitor of an object (C#'s `lock`), or an object of type System.Threading.Lock or
 * System.Threading.ReaderWriterLockSlim. Who holds it is read from its state. Which object a thread waits for comes
 * from the runtime's or the object's own state or from the references that the collector would find in the frame; an
 * object that was only found among the words of a frame is marked. Source: dotnet/runtime
 * docs/design/datacontracts/{SyncBlock,Thread,GCInfo}.md.
 */
#ifndef CDACQ_LOCK_H
#define CDACQ_LOCK_H

#include <cdacq/stack.h>

CDACQ_BEGIN_DECLS

/* ---- Locks ------------------------------------------------------------------------------------------------------- */

enum cdacq_lock_kind {
    CDACQ_LOCK_MONITOR,       /* that of any object */
    CDACQ_LOCK_LOCK,          /* a System.Threading.Lock */
    CDACQ_LOCK_READER_WRITER, /* a System.Threading.ReaderWriterLockSlim */
};

/*
 * A lock. The caller of cdacq_session_get_lock sets `size`. The string belongs to the session or the graph that gave
 * it.
 */
struct cdacq_lock {
    size_t size;
    enum cdacq_lock_kind kind;
    uint64_t object;
    const char *type; /* of the object, as Type.ToString() gives it; printable UTF-8; NULL: not known */
    bool held;
    bool thin;         /* a monitor that is in the object's header: no thread has waited for it */
    uint32_t owner_id; /* the runtime's id of the thread that holds it; 0: none, or not known */
    uint64_t owner;    /* address of its Thread; 0: none, not known, or the thread has ended */
    /*
     * The kernel's id; 0: likewise, but a System.Threading.Lock keeps that of an ended thread. In a graph, it is the id
     * of the thread as it was added; otherwise, it is the id in the process's own pid namespace.
     */
    int owner_tid;
    uint32_t recursion;  /* how often the owner entered again: 0 for once */
    uint32_t waiters;    /* threads that wait to enter, as the lock counts them */
    uint64_t sync_block; /* of a monitor that has one; else 0 */
    /*
     * Of a ReaderWriterLockSlim: threads that hold it to read, also the one that may upgrade, which is the owner then.
     * The others are not known. 0: a thread, the owner, holds it to write, or nobody holds it. `recursion` is 0.
     */
    uint32_t readers;
};

/*
 * Reads the lock of the object at `object`: the Lock or ReaderWriterLockSlim if it is one, otherwise its monitor.
 * Fails with ARGUMENT, or with CORRUPT, MEMORY, FIELD or CONTRACT if it cannot be read, and then leaves *ret untouched.
 * Does not check that there is an object.
 */
CDACQ_API enum cdacq_status cdacq_session_get_lock(struct cdacq_session *session, uint64_t object,
                                                   struct cdacq_lock *ret, struct cdacq_error *err);

/* ---- Waits ------------------------------------------------------------------------------------------------------- */

enum cdacq_wait_kind {
    CDACQ_WAIT_ENTER,     /* to enter a lock */
    CDACQ_WAIT_PULSE,     /* Monitor.Wait: to be pulsed */
    CDACQ_WAIT_TASK,      /* for a Task to complete */
    CDACQ_WAIT_TASKS,     /* for all Tasks of a list */
    CDACQ_WAIT_EVENT,     /* for a ManualResetEventSlim */
    CDACQ_WAIT_SEMAPHORE, /* for a SemaphoreSlim */
    CDACQ_WAIT_JOIN,      /* for a thread to end */
    CDACQ_WAIT_HANDLE,    /* for a WaitHandle */
    /* The thread that ran Main, which has returned: for all threads without CDACQ_THREAD_BACKGROUND to end. */
    CDACQ_WAIT_FOREGROUND,
    /* For another thread to run the static constructor of a type: `object` is its MethodTable, `type` its name. */
    CDACQ_WAIT_INITIALIZER,
};

/* How the object of a wait was found. */
enum cdacq_wait_source {
    CDACQ_WAIT_BY_NOTHING, /* it is not known: `object` is 0 */
    CDACQ_WAIT_BY_STATE,   /* the runtime or the object says so */
    CDACQ_WAIT_BY_FRAME,   /* the frame of the waiting method holds a reference to it, and to no other of its kind */
    CDACQ_WAIT_BY_SCAN,    /* a guess: a word of the frame, or a register, points to an object of the right kind */
};

/* Whether a wait lasts until what it waits for happens. */
enum cdacq_wait_endless {
    CDACQ_ENDLESS_UNKNOWN,
    CDACQ_ENDLESS_YES, /* it has no timeout, and no CancellationToken ends it */
    CDACQ_ENDLESS_NO,
};

/*
 * A Task, or another source of a value that an async method awaits (IValueTaskSource): an async iterator, or the state
 * of a channel, timer or socket operation.
 */
struct cdacq_task {
    size_t size;
    uint64_t object;
    const char *type;
    const char *status; /* System.Threading.Tasks.TaskStatus: "WaitingForActivation"; NULL: not known, or no Task */
    /*
     * The async method or iterator that it belongs to, or the method that it runs; NULL: not known. Formal parameters
     * replace type arguments that cannot be read.
     */
    const char *method;
    int tid; /* the thread that runs it; 0: none, or not known */
};

/* What a thread waits for. */
struct cdacq_wait {
    size_t size;
    enum cdacq_wait_kind kind;
    enum cdacq_wait_source by;
    int tid;             /* the thread that waits: the kernel's id */
    uint64_t thread;     /* its Thread */
    uint32_t managed_id; /* the runtime's id */
    const char *name;    /* NULL: not known */
    uint64_t object;     /* 0: not known */
    const char *type;    /* of the object; NULL: not known */
    bool has_timeout;    /* the next field is known */
    int32_t timeout;     /* that the program gave it, or what is left of that, milliseconds; -1: without end */
    /*
     * The thread that has to go on first: it holds the lock, is to end, or runs the task or the static constructor. If
     * it has ended, only one of its ids is known: a monitor keeps that of the runtime, a System.Threading.Lock of .NET
     * 9 and 10 the kernel's.
     */
    int blocker_tid;     /* 0: none, or not known */
    uint32_t blocker_id; /* 0: likewise */
    const char *blocker_name;
    /* Of CDACQ_WAIT_TASK: that task, then what it awaits, and so on as far as known. */
    const struct cdacq_task *tasks;
    size_t task_count;
    enum cdacq_wait_endless endless;
    uint32_t readers; /* of CDACQ_WAIT_ENTER: the threads that hold a ReaderWriterLockSlim to read */
    /*
     * What the async method of the last of `tasks` awaited has completed, but the rest of the method has not begun: it
     * is queued, to the thread pool, a SynchronizationContext or a TaskScheduler. False also if that is not known.
     */
    bool has_pending_continuation;
};

/*
 * Threads each of which waits for the next, and the last for the first. None of these waits is known to end by itself.
 * One whose `endless` is not known might; then there is no deadlock.
 */
struct cdacq_deadlock {
    size_t size;
    const struct cdacq_wait *const *waits; /* one for each thread */
    size_t count;
};

/*
 * The runtime's own thread pool (System.Threading.ThreadPool), as the stacks of its workers show it. The caller sets
 * `size`. It starves while work items are queued and every worker that it allows to run is waiting: it allows more only
 * slowly, and what a worker waits for may be one of these items. Workers that an earlier load has left may be idle all
 * the same.
 */
struct cdacq_thread_pool {
    size_t size;
    uint64_t object;      /* the PortableThreadPool; 0: not known */
    uint32_t workers;     /* threads that run work items; 0: none was found, and nothing else is known */
    uint32_t busy;        /* of these: run an item now */
    uint32_t waiting;     /* of those that are busy: sleep, or wait for something */
    bool has_limits;      /* the next two are known */
    uint32_t min_workers; /* so many are started at once, others slowly */
    uint32_t max_workers;
    bool has_queued; /* the next is known; it is not if no worker is busy */
    uint64_t queued; /* work items that no worker has begun to run, in all queues: ThreadPool.PendingWorkItemCount */
    bool starves;    /* at this moment; false also if that is not known */
};

/*
 * What all threads wait for. It is filled while the threads and their frames are visited:
 *
 *     cdacq_wait_graph_create(session, &graph, &error);
 *     for each thread:  cdacq_wait_graph_add_thread(graph, thread);
 *         for each of its frames:  cdacq_wait_graph_add_frame(graph, frame);
 *     cdacq_wait_graph_complete(graph, &error);
 *     cdacq_wait_graph_visit_waits(graph, ...);
 *
 * A graph uses its session, and must be destroyed before it. It belongs to the thread that uses the session. Its
 * strings are valid until it is destroyed.
 */
struct cdacq_wait_graph;

/*
 * Creates an empty graph; the caller destroys it. Fails with ARGUMENT, NOMEM, or CONTRACT if the runtime's threads or
 * objects are not described.
 */
CDACQ_API enum cdacq_status cdacq_wait_graph_create(struct cdacq_session *session, struct cdacq_wait_graph **ret,
                                                    struct cdacq_error *err);

/* Frees the graph and its strings. NULL is allowed. */
CDACQ_API void cdacq_wait_graph_destroy(struct cdacq_wait_graph *graph);

/*
 * Adds a thread that cdacq_session_visit_threads passed; the frames that follow are its own. `graph` may be NULL in
 * this call and in the next, which then do nothing, so that a program need not ask whether there is a graph. What fails
 * is reported by cdacq_wait_graph_complete.
 */
CDACQ_API void cdacq_wait_graph_add_thread(struct cdacq_wait_graph *graph, const struct cdacq_thread *thread);

/* Adds a frame that cdacq_session_visit_frames passed, from the innermost to the outermost. */
CDACQ_API void cdacq_wait_graph_add_frame(struct cdacq_wait_graph *graph, const struct cdacq_frame *frame);

/*
 * After the last thread: reads the locks and finds out who waits for whom. Negative: some locks could not be read, and
 * *err says why; what is known can be visited. After that, nothing can be added.
 */
CDACQ_API enum cdacq_status cdacq_wait_graph_complete(struct cdacq_wait_graph *graph, struct cdacq_error *err);

/*
 * Call `visit` for every lock that is held or waited for, every wait, and every deadlock. A lock that no thread waits
 * for is found only if it is inflated or a frame of its owner refers to it. CDACQ_STOPPED: `visit` returned non-zero.
 * Fails with ARGUMENT if the graph is not complete.
 */
CDACQ_API enum cdacq_status cdacq_wait_graph_visit_locks(const struct cdacq_wait_graph *graph,
                                                         int (*visit)(const struct cdacq_lock *lock, void *context),
                                                         void *context, struct cdacq_error *err);
CDACQ_API enum cdacq_status cdacq_wait_graph_visit_waits(const struct cdacq_wait_graph *graph,
                                                         int (*visit)(const struct cdacq_wait *wait, void *context),
                                                         void *context, struct cdacq_error *err);
CDACQ_API enum cdacq_status cdacq_wait_graph_visit_deadlocks(const struct cdacq_wait_graph *graph,
                                                             int (*visit)(const struct cdacq_deadlock *deadlock,
                                                                          void *context),
                                                             void *context, struct cdacq_error *err);

/*
 * Describes the thread pool; `workers` is 0 if no thread of it was found. Fails with ARGUMENT if the graph is not
 * complete.
 */
CDACQ_API enum cdacq_status cdacq_wait_graph_get_thread_pool(const struct cdacq_wait_graph *graph,
                                                             struct cdacq_thread_pool *ret, struct cdacq_error *err);

CDACQ_END_DECLS

#endif
