/*
 * cdacq/lock.h: locks of a target, what its threads wait for, deadlocks, and the thread pool.
 *
 * A lock is the monitor of an object (C#'s `lock`), or an object of type System.Threading.Lock or
 * System.Threading.ReaderWriterLockSlim. The state of the lock says who holds it. Three things show which object a
 * thread waits for: the state of the runtime or of the object, the references that the collector would find in the
 * thread's frames, or a search of the words of a frame. An object that only the search found is a guess and is marked.
 * Source: dotnet/runtime docs/design/datacontracts/{SyncBlock,Thread,GCInfo}.md.
 */
#ifndef CDACQ_LOCK_H
#define CDACQ_LOCK_H

#include <cdacq/stack.h>

CDACQ_BEGIN_DECLS

/* ---- Locks ------------------------------------------------------------------------------------------------------- */

/* The kind of a lock: the monitor of an object, a System.Threading.Lock or a ReaderWriterLockSlim. */
enum cdacq_lock_kind {
    CDACQ_LOCK_MONITOR,       /* the monitor of any object */
    CDACQ_LOCK_LOCK,          /* a System.Threading.Lock */
    CDACQ_LOCK_READER_WRITER, /* a System.Threading.ReaderWriterLockSlim */
};

/*
 * A lock. The caller of cdacq_session_get_lock sets `size`. The session or the graph that gave the lock owns the
 * string.
 */
struct cdacq_lock {
    size_t size;
    enum cdacq_lock_kind kind;
    uint64_t object;
    const char *type; /* of the object, as Type.ToString() gives it; printable UTF-8; NULL: not known */
    bool held;
    bool thin;         /* a monitor that is in the object's header: no thread has waited for it */
    uint32_t owner_id; /* the runtime's id of the thread that holds it; 0: none, or not known */
    uint64_t owner;    /* address of its Thread; 0: none, not known, or the runtime has deleted it */
    /*
     * The kernel's id of the owner; 0: none, or not known. A System.Threading.Lock of .NET 9 and 10 keeps the id of an
     * owner that has ended. In a graph, this is the id of the thread as it was added; otherwise, it is the id in the
     * process's own pid namespace.
     */
    int owner_tid;
    uint32_t recursion;  /* how often the owner entered again: 0 for once */
    uint32_t waiters;    /* threads that wait to enter, as the lock counts them */
    uint64_t sync_block; /* of a monitor that has one; else 0 */
    /*
     * Of a ReaderWriterLockSlim, whose `recursion` is always 0: the number of threads that hold it to read. The owner
     * is the one of them that may upgrade; the lock does not record the others. 0: the owner holds it to write, or
     * nobody holds it.
     */
    uint32_t readers;
};

/*
 * Reads the lock of the object at `object`: the object itself if it is a Lock or a ReaderWriterLockSlim, otherwise its
 * monitor. Fails with ARGUMENT or NOMEM, or with CORRUPT, MEMORY, FIELD or CONTRACT if the lock cannot be read, and
 * then leaves *ret untouched. Does not check that there is an object.
 */
CDACQ_API enum cdacq_status cdacq_session_get_lock(struct cdacq_session *session, uint64_t object,
                                                   struct cdacq_lock *ret, struct cdacq_error *err);

/* ---- Waits ------------------------------------------------------------------------------------------------------- */

/* What a thread waits for. */
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
    CDACQ_WAIT_SLEEP,      /* Thread.Sleep */
    CDACQ_WAIT_FINALIZERS, /* GC.WaitForPendingFinalizers: for the thread that runs finalizers */
    CDACQ_WAIT_PROCESS,    /* Process.WaitForExit: for another process to end */
};

/* How the library found the object of a wait. */
enum cdacq_wait_source {
    CDACQ_WAIT_BY_NOTHING, /* it is not known: `object` is 0 */
    CDACQ_WAIT_BY_STATE,   /* the runtime or the object says so */
    CDACQ_WAIT_BY_FRAME,   /* the frame of the waiting method holds a reference to it, and to no other of its kind */
    CDACQ_WAIT_BY_SCAN,    /* a guess: a word of the frame, or a register, points to an object of the right kind */
};

/* Whether only what a thread waits for ends its wait. */
enum cdacq_wait_endless {
    CDACQ_ENDLESS_UNKNOWN,
    CDACQ_ENDLESS_YES, /* the wait has no timeout, and no CancellationToken ends it */
    CDACQ_ENDLESS_NO,  /* it has one of these */
};

/*
 * A Task, or another source of a value that an async method awaits (IValueTaskSource): an async iterator, or the state
 * of a channel, timer or socket operation. Since .NET 11, one task can stand for several async methods that await each
 * other; then there is one element for each, and `object` is that of its Continuation for all but the outermost. The
 * graph owns the strings.
 */
struct cdacq_task {
    size_t size;
    uint64_t object;
    const char *type;   /* of the object; NULL: not known */
    const char *status; /* System.Threading.Tasks.TaskStatus: "WaitingForActivation"; NULL: not known, or no Task */
    /*
     * The async method or iterator that the task belongs to, or the method that it runs; NULL: not known. Formal
     * parameters replace type arguments that cannot be read.
     */
    const char *method;
    int tid;          /* the thread that runs it; 0: none, or not known */
    const char *file; /* where the method awaits or, if a thread runs it, where that is; NULL: not known */
    uint32_t line;    /* from 1; 0: not known */
    uint32_t others;  /* further tasks that it waits for (Task.WhenAll), not shown here; 100: there may be more */
};

/* What a thread waits for. The graph owns what pointers point to. */
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
    int32_t timeout_ms;  /* what the program gave, or what is left of it; -1: the wait has no timeout */
    /*
     * The thread that has to go on first: it holds the lock, owns the Mutex (known since .NET 11), is to end, or runs
     * the task, the static constructor or the finalizers. If it has ended, only one of its ids is known: a monitor
     * keeps the runtime's, a System.Threading.Lock of .NET 9 and 10 the kernel's.
     */
    int blocker_tid;          /* 0: none, or not known */
    uint32_t blocker_id;      /* 0: likewise */
    const char *blocker_name; /* NULL: not known */
    /* Of CDACQ_WAIT_TASK: that task, then what it awaits, and so on as far as known. */
    const struct cdacq_task *tasks;
    size_t task_count;
    enum cdacq_wait_endless endless;
    uint32_t readers; /* of CDACQ_WAIT_ENTER: the threads that hold a ReaderWriterLockSlim to read */
    /*
     * The async method of the last of `tasks` could go on, because what it awaited has completed. The rest of it has
     * not begun: it is queued to the thread pool, a SynchronizationContext or a TaskScheduler. False also if that is
     * not known.
     */
    bool has_pending_continuation;
    bool is_cycle; /* the last of `tasks` awaits one of those before it: none of them can complete */
    /*
     * Of CDACQ_WAIT_PROCESS: the pid, in the caller's pid namespace; of a core, as the process knew it. 0: not known.
     */
    int process;
};

/*
 * A cycle of threads: each waits for the next, and the last for the first. A wait that is known to end by itself is in
 * no cycle. A wait whose `endless` is CDACQ_ENDLESS_UNKNOWN may end by itself, and then this is no deadlock. The graph
 * owns the waits.
 */
struct cdacq_deadlock {
    size_t size;
    const struct cdacq_wait *const *waits; /* one for each thread of the cycle, in its order */
    size_t count;
};

/*
 * The runtime's own thread pool (System.Threading.ThreadPool), as the stacks of its workers show it. The caller sets
 * `size`. The pool starves while work items are queued and every worker that it allows to run is waiting: it allows
 * more workers only slowly, and a worker may wait for one of the queued items. The pool can have idle workers at the
 * same time, which it started under an earlier load and does not allow to run now.
 */
struct cdacq_thread_pool {
    size_t size;
    uint64_t object;      /* the PortableThreadPool; 0: not known */
    uint32_t workers;     /* threads that exist to run work items; 0: none was found, and nothing else is known */
    uint32_t busy;        /* workers that run an item now */
    uint32_t waiting;     /* busy workers that sleep or wait for something */
    bool has_limits;      /* the next two are known */
    uint32_t min_workers; /* the pool starts so many at once, further ones slowly */
    uint32_t max_workers;
    bool has_queued; /* the next is known; it is not if no worker is busy */
    uint64_t queued; /* work items that no worker has begun to run, in all queues: ThreadPool.PendingWorkItemCount */
    bool starves;    /* at this moment; false also if that is not known */
};

/*
 * What all threads wait for. The caller fills it while it visits the threads and their frames:
 *
 *     cdacq_wait_graph_create(session, &graph, &error);
 *     for each thread:  cdacq_wait_graph_add_thread(graph, thread);
 *         for each of its frames:  cdacq_wait_graph_add_frame(graph, frame);
 *     cdacq_wait_graph_complete(graph, &error);
 *     cdacq_wait_graph_visit_waits(graph, ...);
 *
 * A graph uses its session and must be destroyed before it. It belongs to the thread that uses the session. Its strings
 * are valid until it is destroyed. docs/limits.md lists its bounds.
 */
struct cdacq_wait_graph;

/*
 * Creates an empty graph; the caller destroys it. Fails with ARGUMENT or NOMEM, or with CONTRACT if the runtime does
 * not describe its threads and objects in a version that this build reads.
 */
CDACQ_API enum cdacq_status cdacq_wait_graph_create(struct cdacq_session *session, struct cdacq_wait_graph **ret,
                                                    struct cdacq_error *err);

/* Frees the graph and its strings. NULL is allowed. */
CDACQ_API void cdacq_wait_graph_destroy(struct cdacq_wait_graph *graph);

/*
 * Adds a thread that cdacq_session_visit_threads passed. The frames that are added after it belong to it. If `graph` is
 * NULL, this call and the next do nothing, so that a program need not ask whether there is a graph.
 * cdacq_wait_graph_complete reports what fails here.
 */
CDACQ_API void cdacq_wait_graph_add_thread(struct cdacq_wait_graph *graph, const struct cdacq_thread *thread);

/* Adds a frame that cdacq_session_visit_frames passed, from the innermost to the outermost. */
CDACQ_API void cdacq_wait_graph_add_frame(struct cdacq_wait_graph *graph, const struct cdacq_frame *frame);

/*
 * Reads the locks and finds out who waits for whom, after the last thread was added. Nothing can be added afterwards.
 * Fails with ARGUMENT if the graph is complete already. Any other negative status means that something could not be
 * read, or that a bound was reached (FUEL), and *err has the first reason; what was found can be visited.
 */
CDACQ_API enum cdacq_status cdacq_wait_graph_complete(struct cdacq_wait_graph *graph, struct cdacq_error *err);

/*
 * Call `visit` for every lock that is held or waited for, every wait, and every deadlock. What they pass is valid until
 * the graph is destroyed. A lock that no thread waits for is found only if it is a monitor with a sync block or a frame
 * of its owner refers to it. CDACQ_STOPPED: `visit` returned non-zero. Fails with ARGUMENT if the graph is not
 * complete.
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
 * Describes the thread pool; `workers` is 0 if none of its workers was found. Fails with ARGUMENT if the graph is not
 * complete, and then leaves *ret untouched.
 */
CDACQ_API enum cdacq_status cdacq_wait_graph_get_thread_pool(const struct cdacq_wait_graph *graph,
                                                             struct cdacq_thread_pool *ret, struct cdacq_error *err);

CDACQ_END_DECLS

#endif
