/*
 * wait_graph.h: struct cdacq_wait_graph, and the functions by which its files fill it. waits.c calls them in order:
 * frames (wait_frames.c), the wait of each thread (wait_find.c, wait_initializers.c), tasks (task_chains.c,
 * task_leads.c), the thread pool (wait_pool.c), names (wait_names.c), deadlocks (deadlocks.c). A graph belongs to the
 * thread that uses its session.
 */
#ifndef CDACQ_WAITS_WAIT_GRAPH_H
#define CDACQ_WAITS_WAIT_GRAPH_H

#include "cdacq/lock.h"
#include "contracts/code_info/gc_slots.h"
#include "contracts/threading/managed_wait.h"
#include "contracts/threading/reader_writer_lock.h"
#include "contracts/threading/task.h"
#include "contracts/threading/wait_role.h"
#include "src/lookup/resolver.h"
#include "src/waits/async_frames.h"
#include "util/arena.h"
#include "util/error.h"

struct text;

enum {
    NO_THREAD = -1,
    LOCKS_MAX = 1 << 20,
    WAIT_NAMES_MAX = 4096,       /* names of types; also of methods */
    TASK_CHAIN_MAX = 1024,       /* tasks that are shown behind a wait */
    TASKS_SHOWN_MAX = 1 << 18,   /* behind all waits: thousands of threads can wait for the end of one long chain */
    OTHERS_MAX = 100,            /* further tasks of a Task.WhenAll that are counted */
    OTHER_LOOKS_MAX = 1 << 22,   /* tasks that are looked at for that, behind all waits */
    RUNNING_TASKS_MAX = 1 << 20, /* tasks that run; also links between tasks, and tasks that are followed */
};

/* A thread that was added. */
struct graph_thread {
    uint64_t address; /* of its Thread; 0: the runtime does not know it */
    uint32_t managed_id;
    int tid;
    const char *name;       /* NULL: not known */
    bool is_waiting;        /* the runtime says so: it sleeps, waits or joins */
    bool has_wait;          /* one was found in its frames or its state */
    bool is_background;     /* the runtime says so: the process does not wait for its end */
    bool has_run_main;      /* the runtime says so: it waits for the foreground threads to end, or has ended */
    bool is_of_pool;        /* the runtime says so: a worker of the thread pool, or a thread that serves it */
    bool serves_pool;       /* by its stack: it is none of the workers */
    bool is_worker;         /* likewise */
    bool runs_work;         /* and it runs a work item */
    uint64_t worker_locals; /* its THREADING_WORKER_LOCALS, if it runs one; 0: not found */
};

/* The thread pool, as the frames of its workers refer to it. */
struct graph_pool {
    uint64_t pool, queue; /* of THREADING_POOL and THREADING_WORK_QUEUE; 0: not found */
    bool ambiguous;       /* there are several of one: none of them counts */
    struct cdacq_thread_pool described;
};

/* What is the same for all frames with one program counter. */
struct wait_site {
    uint64_t key;          /* the program counter, and whether it is a return address */
    uint32_t first, count; /* of its slots */
    uint8_t role;          /* enum wait_role */
    bool exact;            /* the slots are known */
    bool of_framework;     /* the method is, as wait_is_of_framework says */
    bool is_initializer;   /* the method is a static constructor */
    bool neutral;          /* a stub of the runtime's, or waits for its caller: says nothing, and ends no wait */
};

/* An object that a thread may wait for in a role. */
struct wait_candidate {
    uint64_t object; /* 0: there is none */
    enum cdacq_wait_source by;
    bool ambiguous; /* there are several */
};

/* Whether something is so. */
enum graph_answer {
    GRAPH_UNKNOWN,
    GRAPH_YES,
    GRAPH_NO,
};

/* The thread whose frames are being added. */
struct current_thread {
    bool active;
    bool past_wait;          /* a frame of another method was seen: the rest of the stack does not wait */
    bool framework_waits;    /* a method of the framework called the one that waits */
    bool left_native;        /* a frame of managed code was seen */
    enum graph_answer timed; /* whether the C library waits with a timeout; unknown if it does not wait */
    enum graph_answer token; /* whether a CancellationToken ends the wait for an event or a semaphore */
    uint64_t funclet_method; /* of the frame before, if that was a funclet */
    uint64_t code;           /* an address in the last method without a role */
    uint32_t roles;          /* a bit for each */
    int process;             /* for whose end it waits, by a Process in its frames; 0: none, or not known */
    uint64_t safe_handle;    /* the SafeWaitHandle that it waits for; 0: none, or not known */
    bool several_handles;    /* frames of the wait have others, too: WaitHandle.SignalAndWait has the one it signals */
    struct wait_candidate candidates[WAIT_ROLE_COUNT];
    /* Since .NET 11: */
    struct managed_wait waited;       /* what the thread is registered for */
    struct managed_blocking blocking; /* the record in its frames; the innermost */
};

/* A task that a thread runs, or a task that waits for another. */
struct task_link {
    uint64_t waiter; /* the task */
    uint64_t other;  /* the index of the thread; the task that is waited for */
};

struct object_index {
    uint64_t object;
    size_t index;
};

struct type_name {
    uint64_t method_table;
    const char *name; /* NULL: it cannot be formed */
    uint32_t length;
};

/* A wait with what only the library needs. */
struct graph_wait {
    struct cdacq_wait wait;
    int thread, blocker; /* indices; NO_THREAD */
    enum reader_writer_wait reader_writer;
    uint64_t waitable; /* the THREADING_WAITABLE that it waits for, since .NET 11; 0: not known, or several */
    bool is_inlined;   /* no frame says how it waits: the compiler inlined the methods that do */
};

DEFINE_VECTOR(graph_threads, struct graph_thread);
DEFINE_VECTOR(graph_locks, struct cdacq_lock);
DEFINE_VECTOR(graph_waits, struct graph_wait);
DEFINE_VECTOR(graph_deadlocks, struct cdacq_deadlock);
DEFINE_VECTOR(task_links, struct task_link);
DEFINE_U64_TABLE(wait_sites, struct wait_site, key);
DEFINE_U64_TABLE(object_indices, struct object_index, object);
DEFINE_U64_TABLE(type_names, struct type_name, method_table);
DEFINE_U64_TABLE(task_table, struct task_link, waiter);

struct cdacq_wait_graph {
    struct resolver *resolver;
    struct threading_types types;
    struct async_frames async;
    struct arena arena;
    uint64_t core_base;    /* of the core library's image */
    bool has_managed_wait; /* as managed_wait_is_used says */
    struct wait_sites sites;
    struct gc_slots slots; /* of all sites */
    struct current_thread current;
    struct graph_threads threads;
    struct object_indices by_address, by_id, by_tid; /* threads, by their Thread, the runtime's id, the
                                                        id by which the runtime knows the kernel's thread */
    struct graph_locks locks;
    struct object_indices lock_indices;
    struct task_table monitors; /* from a Lock that was found to the object whose monitor it is; 0: none is known */
    bool misses_monitors;       /* some sync blocks could not be read */
    struct task_table joins;    /* from a THREADING_WAITABLE to the System.Threading.Thread whose end it stands for */
    struct graph_waits waits;
    struct task_links runs;              /* tasks that threads run */
    struct task_table runners;           /* likewise */
    struct task_table running_code;      /* from such a task to an address in the method that its runner called */
    struct task_table awaits;            /* from a task to one that it waits for */
    struct task_links links;             /* all of these */
    struct object_indices followed;      /* tasks whose continuations are in the next table */
    struct task_table leads;             /* from a continuation to its task */
    struct task_table initializers;      /* from a MethodTable to the thread that runs its static constructor */
    struct task_links initializer_words; /* words of frames that wait for one, each with its thread */
    struct graph_deadlocks deadlocks;
    struct graph_pool pool;
    struct type_names type_names;
    struct type_names method_names; /* by the entry point or the state machine */
    uint64_t name_bytes;            /* of both, taken from the memory of the target's work */
    size_t tasks_shown;
    uint32_t other_looks_left;  /* of OTHER_LOOKS_MAX */
    struct cdacq_error problem; /* the first; status OK: there is none */
    bool completed;
};

/*
 * Counts looking up a task in a table as work: there may be a million others, and then it takes about as long as so
 * many reads.
 */
static inline void graph_count_look_up(struct cdacq_wait_graph *graph)
{
    enum { UNITS_OF_A_LOOK_UP = 12 };
    work_add_steps(&graph->resolver->reader.target->work, UNITS_OF_A_LOOK_UP);
}

/* The thread whose frames are being added. There is one. */
static inline struct graph_thread *graph_last_thread(struct cdacq_wait_graph *graph)
{
    return &graph->threads.items[graph->threads.count - 1];
}

/* Keeps the first problem. */
static inline void graph_note_memory(struct cdacq_wait_graph *graph)
{
    if (graph->problem.status >= 0)
        error_set(&graph->problem, CDACQ_ERR_NOMEM, 0, "out of memory");
}

static inline void graph_note_too_many(struct cdacq_wait_graph *graph)
{
    if (graph->problem.status >= 0)
        error_set(&graph->problem, CDACQ_ERR_FUEL, 0, "there are too many objects to look at");
}

static inline void graph_note_unreadable(struct cdacq_wait_graph *graph)
{
    if (graph->problem.status >= 0)
        error_set(&graph->problem, CDACQ_ERR_MEMORY, 0, "it cannot be read whether a task can be cancelled");
}

/* The same for a failure of the reader, which is then forgotten. */
static inline void graph_note_failure(struct cdacq_wait_graph *graph)
{
    struct cdacq_error error;
    if (reader_status(&graph->resolver->reader, &error) < 0 && graph->problem.status >= 0)
        graph->problem = error;
    reader_begin(&graph->resolver->reader, FUEL_LOOKUP);
}

/* ---- lock_state.c ---- */

/* Reads a lock, without the type and the owner's other ids. False, and the reader fails, if it cannot be read. */
bool lock_read(struct threading_types *types, uint64_t object, struct cdacq_lock *ret);

/* Adds the lock of an object unless it is known or neither held nor waited for. Its index; -1 if it is not added. */
int64_t graph_add_lock(struct cdacq_wait_graph *graph, uint64_t object);

/*
 * Since .NET 11, the monitor of an object is a Lock. The first function notes an object that was found, if it is a
 * Lock, the second the monitor of each object. The last gives the object whose monitor a Lock is, or the Lock if it is
 * none; 0: not known. Any other object stands for itself.
 */
void graph_note_found_lock(struct cdacq_wait_graph *graph, uint64_t object);
void graph_note_monitor(struct cdacq_wait_graph *graph, uint64_t lock, uint64_t object);
uint64_t graph_object_of_lock(const struct cdacq_wait_graph *graph, uint64_t lock);

/* ---- wait_frames.c ---- */

/* The innermost of the runtime's Frames of a Thread; 0: none, or it cannot be read. */
uint64_t graph_innermost_frame(struct cdacq_wait_graph *graph, uint64_t thread);

/* The System.Threading.Thread of a Thread; 0: none, or it cannot be read. */
uint64_t graph_thread_object(struct cdacq_wait_graph *graph, uint64_t thread);

/* The objects in a frame: tasks that run, locks that are held, candidates for a wait. */
void graph_read_frame(struct cdacq_wait_graph *graph, const struct cdacq_frame *frame);

/* Since .NET 11: finds the record of a wait for a Lock among the words of a frame of the current thread. */
void graph_find_blocking(struct cdacq_wait_graph *graph, const struct cdacq_frame *frame);

/* ---- wait_pool.c ---- */

/* An object of a frame in which the last thread works for the thread pool. */
void graph_take_pool_object(struct cdacq_wait_graph *graph, uint64_t object, enum threading_type type);

/* After the waits are known. */
void graph_describe_pool(struct cdacq_wait_graph *graph);

/* ---- wait_find.c ---- */

/* What the current thread waits for, after its last frame. */
void graph_find_wait(struct cdacq_wait_graph *graph);

/* The same without adding it to the graph. False if the thread does not wait. */
bool graph_current_wait(struct cdacq_wait_graph *graph, struct graph_wait *ret);

/* ---- task_leads.c ---- */

/*
 * Whether the completion of a task leads to an object. The continuations of each task are read once, since thousands of
 * threads may wait for one task.
 */
bool graph_task_leads_to(struct cdacq_wait_graph *graph, uint64_t task, uint64_t object);

/* ---- task_chains.c ---- */

/* Follows the tasks that run to those that wait for them. */
void graph_link_tasks(struct cdacq_wait_graph *graph);

/* Follows the tasks that threads wait for, alone or among others, to what they wait for. */
void graph_follow_waits(struct cdacq_wait_graph *graph);

/* What a task waits for, and nothing else completes it; 0: that is not known, or something else may complete it. */
uint64_t graph_next_task(struct cdacq_wait_graph *graph, uint64_t task);

/* Fills in the tasks and the blocker of a wait for a task. */
void graph_describe_task_wait(struct cdacq_wait_graph *graph, struct graph_wait *wait);

/* ---- wait_initializers.c ---- */

/* The last thread runs a static constructor. */
void graph_take_initializer(struct cdacq_wait_graph *graph, uint64_t method_desc);

/* A word of a frame in which the last thread may wait for one. */
void graph_take_initializer_word(struct cdacq_wait_graph *graph, uint64_t word);

/* Adds the waits for those that other threads run, after all frames. */
void graph_find_initializer_waits(struct cdacq_wait_graph *graph);

/* ---- wait_names.c ---- */

/* Gives the memory of all names back to the target's work. */
void graph_return_names(struct cdacq_wait_graph *graph);

/* The name of a type; NULL: not known. */
const char *graph_method_table_name(struct cdacq_wait_graph *graph, uint64_t method_table);

/* The name of an object's type; NULL: not known. */
const char *graph_type_name(struct cdacq_wait_graph *graph, uint64_t object);

/* Appends the method that has an entry point, as `reader_begin` allows; nothing if it is not known. */
void wait_name_entry(struct resolver *resolver, uint64_t entry, struct text *text);

/* The method of a task; NULL: not known. */
const char *graph_task_method(struct cdacq_wait_graph *graph, uint64_t task);

/* The method whose code is at an address; NULL: not known. */
const char *graph_code_method(struct cdacq_wait_graph *graph, uint64_t address);

/* ---- deadlocks.c ---- */

void graph_find_deadlocks(struct cdacq_wait_graph *graph);

#endif
