/*
 * lock_heap.h: threads, locks and tasks in a small memory, laid out as .NET 8 for x64 does (and System.Threading.Lock
 * as .NET 9), or as .NET 11.0.0 does, for tests and fuzzing. Bytes may be overwritten before they are read.
 */
#ifndef CDACQ_TESTS_SUPPORT_LOCK_HEAP_H
#define CDACQ_TESTS_SUPPORT_LOCK_HEAP_H

#include "cdacq/lock.h"
#include "src/lookup/opened_session.h"
#include "src/lookup/opened_target.h"
#include "src/waits/wait_graph.h"

enum {
    LOCK_HEAP_BASE = 0x100000,
    LOCK_HEAP_SIZE = 0x24000,
    LOCK_HEAP_THREADS = 6,     /* with the runtime's ids 1, 2, ... and the kernel's ids 101, 102, ... */
    LOCK_HEAP_BLOCKS = 8,      /* sync blocks, of the indices 1, 2, ... */
    LOCK_HEAP_VARIABLES = 100, /* further fields of a LOCK_HEAP_MACHINE */
};

/* The types, in the order of their TypeDefs. */
enum lock_heap_type {
    LOCK_HEAP_OBJECT,
    LOCK_HEAP_LOCK,
    LOCK_HEAP_TASK,
    LOCK_HEAP_EVENT,
    LOCK_HEAP_THREAD,
    LOCK_HEAP_LIST,
    LOCK_HEAP_DELEGATE,
    LOCK_HEAP_OTHER,   /* of the program: derived from Task */
    LOCK_HEAP_ANY,     /* a Task that one of two completes */
    LOCK_HEAP_TIMED,   /* a Task that another completes, or a timeout */
    LOCK_HEAP_BOX,     /* the Task of an async method whose state machine is a LOCK_HEAP_MACHINE */
    LOCK_HEAP_MACHINE, /* of the program */
    LOCK_HEAP_CONTINGENT,
    LOCK_HEAP_SOURCE, /* a CancellationTokenSource */
    LOCK_HEAP_READER_WRITER,
    LOCK_HEAP_HANDLE, /* a WaitHandle */
    LOCK_HEAP_POOL,
    LOCK_HEAP_WORK_QUEUE,
    LOCK_HEAP_LOCALS, /* of a worker of the pool */
    LOCK_HEAP_STEALING,
    LOCK_HEAP_QUEUE, /* a ConcurrentQueue */
    LOCK_HEAP_SEGMENT,
    LOCK_HEAP_CONDITION,
    LOCK_HEAP_WAIT_INFO, /* a ThreadWaitInfo, as the next two of .NET 11 */
    LOCK_HEAP_WAITABLE,
    LOCK_HEAP_OWNERSHIP,
    LOCK_HEAP_SAFE_HANDLE,
    LOCK_HEAP_RUNTIME_ASYNC, /* the Task of methods that the runtime suspends, as the next four of .NET 11 */
    LOCK_HEAP_CONTINUATION,
    LOCK_HEAP_TASK_AWAIT,   /* a Continuation that stands for a task */
    LOCK_HEAP_SOURCE_AWAIT, /* the same for another source of a value */
    LOCK_HEAP_DISPATCHER,   /* AsyncDispatcherInfo */
    LOCK_HEAP_ALL,          /* the Task of a Task.WhenAll */
    LOCK_HEAP_TYPES
};

/* Offsets of the fields from the object. */
enum {
    LOCK_OWNER = 16,
    LOCK_STATE = 20,
    LOCK_RECURSION = 24,
    LOCK_EVENT_OR_CONDITION = 32,
    TASK_STATE = 40,
    TASK_CONTINUATION = 16,
    TASK_ACTION = 8,
    TASK_CONTINGENT = 24,
    TASK_STATE_OBJECT = 32,
    ALL_TASKS = 48,    /* of an ALL: an array, as lock_heap_list() puts it into LIST_ITEMS */
    AWAIT_OBJECT = 40, /* of a TASK_AWAIT or SOURCE_AWAIT: what is waited for */
    AWAIT_OF = 48,     /* of a TASK_AWAIT: the task of the method that waits */
    DISPATCHER_NEXT = 8,
    DISPATCHER_CONTINUATION = 16,
    DISPATCHER_TASK = 24,
    DISPATCHER_CURRENT = 64, /* of the thread's data: the address of the first AsyncDispatcherInfo */
    CONTINGENT_TOKEN = 8,
    CONTINGENT_PARENT = 16,
    EVENT_LOCK = 8,
    EVENT_STATE = 16,
    THREAD_INTERNAL = 40,
    THREAD_JOIN = 8,
    THREAD_WAIT = 16,
    THREAD_DEAD = 48,
    CONDITION_LOCK = 8,
    CONDITION_EVENT = 16,
    WAIT_OBJECTS = 8,
    WAIT_COUNT = 16,
    WAITABLE_OWNER = 8,
    OWNER_THREAD = 8,
    SAFE_HANDLE_VALUE = 8,
    LIST_ITEMS = 8,
    LIST_SIZE = 16,
    DELEGATE_TARGET = 8,
    FREE_WORDS = 48, /* of a BOX or MACHINE: first what it awaits, then another variable, or in its place: */
    MACHINE_STATE = 56,
    RW_READ_EVENT = 8,
    RW_WRITE_EVENT = 16,
    RW_UPGRADEABLE_EVENT = 24,
    RW_UPGRADE_EVENT = 32,
    RW_OWNERS = 40,
    RW_WRITER = 44,
    RW_UPGRADER = 48,
    RW_WAITERS = 52, /* to read; only these */
    RW_UPGRADER_READS = 60,
    HANDLE_SAFE = 8,
    POOL_MIN = 8,
    POOL_MAX = 10,
    POOL_COUNTS = 16 + 64, /* the field, and a cache line */
    WORK_QUEUE_NORMAL = 8,
    WORK_QUEUE_HIGH = 16,
    WORK_QUEUE_ASSIGNED = 24,
    LOCALS_QUEUE = 8,
    STEALING_HEAD = 8,
    STEALING_TAIL = 12,
    QUEUE_HEAD = 8,
    SEGMENT_NEXT = 8,
    SEGMENT_MASK = 16,
    SEGMENT_ENDS = 24,
    SEGMENT_SLOTS = 24 + 3 * 64,
    STEALING_MASK = 16,
    STEALING_ARRAY = 24,
};

#define LOCK_HEAP_ITEM (UINT64_C(1) << 40) /* and its position: what stands in the slots of a queue */

enum { LOCK_HEAP_STACK_WORDS = 8 }; /* of a thread of .NET 11 */

struct lock_heap {
    uint8_t bytes[LOCK_HEAP_SIZE];
    uint64_t end;           /* the next free address */
    uint64_t objects_begin; /* what precedes it are types and metadata */
    struct cdacq_target target;
    struct cdacq_session session;
    uint64_t tables[LOCK_HEAP_TYPES], references_table, slots_table;
    uint64_t core, program; /* Modules */
    uint64_t threads[LOCK_HEAP_THREADS], items[LOCK_HEAP_THREADS];
    uint64_t blocks[LOCK_HEAP_BLOCKS + 1], monitors[LOCK_HEAP_BLOCKS + 1]; /* sync blocks and their objects, from 1 */
    uint64_t table, cache, store;
    /* Of .NET 11; the Locks are those of the monitors, from 1. */
    bool is_net11;
    uint64_t locks[LOCK_HEAP_BLOCKS + 1], objects[LOCK_HEAP_THREADS], stacks[LOCK_HEAP_THREADS];
    uint64_t thread_data[LOCK_HEAP_THREADS]; /* ThreadLocalData, with the thread-static fields */
};

/* Every monitor is free, no thread waits. */
void lock_heap_init(struct lock_heap *heap);
void lock_heap_deinit(struct lock_heap *heap);

/* The same as .NET 11 has it: monitors are Locks, and each thread has a System.Threading.Thread and a small stack. */
void lock_heap_init_net11(struct lock_heap *heap);

void lock_heap_put(struct lock_heap *heap, uint64_t address, uint64_t value, unsigned width);
uint64_t lock_heap_get(const struct lock_heap *heap, uint64_t address); /* a pointer */
void lock_heap_set(struct lock_heap *heap, uint64_t base, enum layout_field field, uint64_t value);
uint64_t lock_heap_object(struct lock_heap *heap, enum lock_heap_type type);

/* A List<T> of objects. */
uint64_t lock_heap_list(struct lock_heap *heap, const uint64_t *objects, uint32_t count);

/*
 * A ConcurrentQueue of `count` segments of `slots` slots, a power of two; `ends` are the head and the tail of each. The
 * segment that another one follows is frozen.
 */
uint64_t lock_heap_queue(struct lock_heap *heap, const uint32_t (*ends)[2], size_t count, uint32_t slots);

/* Thread `owner` (-1: none) holds a monitor, entered 1 + `recursion` times; `waiters` wait. */
void lock_heap_hold(struct lock_heap *heap, unsigned monitor, int owner, uint32_t recursion, uint32_t waiters);

/* Thread `thread` is blocked on a monitor: kind 0 enters, 1 waits for a pulse. */
void lock_heap_block(struct lock_heap *heap, unsigned thread, unsigned monitor, uint32_t kind);

/*
 * For .NET 11. A WaitHandle; *ret_waitable is what stands for it. A thread is registered for some of these (NULL: for
 * none). The thread has a record on its stack: `object` is a Lock that it enters, or a Condition that it waits on.
 */
uint64_t lock_heap_handle(struct lock_heap *heap, uint64_t *ret_waitable);
void lock_heap_register(struct lock_heap *heap, unsigned thread, const uint64_t *waitables, uint32_t count);
void lock_heap_record(struct lock_heap *heap, unsigned thread, uint64_t object, int32_t timeout);

/* A Continuation, or one that stands for what a method waits for: its code goes on at `pc` (0: it has none). */
uint64_t lock_heap_continuation(struct lock_heap *heap, enum lock_heap_type type, uint64_t next, uint64_t pc);

/* An AsyncDispatcherInfo, which thread `thread` then has as its first one. */
uint64_t lock_heap_dispatch(struct lock_heap *heap, unsigned thread, uint64_t task, uint64_t continuation);

/* The frame in which that record is. */
struct cdacq_frame lock_heap_frame(const struct lock_heap *heap, unsigned thread);

/* A thread as a visit of the threads passes it, without a name. */
struct cdacq_thread lock_heap_thread(const struct lock_heap *heap, unsigned thread);

/* Adds the threads to a graph, without frames. */
void lock_heap_add_threads(struct lock_heap *heap, struct cdacq_wait_graph *graph);

#endif
