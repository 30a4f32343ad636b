/*
 * threading_types.h: recognises the core library's types that threads wait for, and reads the fields of their objects
 * by name. It remembers both, so that the metadata is searched once for thousands of threads.
 * Source: dotnet/runtime src/libraries/System.Private.CoreLib/src/System/Threading/{Lock,Condition,
 * ManualResetEventSlim,SemaphoreSlim,WaitHandle,WaitSubsystem.{ThreadWaitInfo,WaitableObject}.Unix,
 * ReaderWriterLockSlim,PortableThreadPool,ThreadPoolWorkQueue}.cs, Tasks/{Task,TaskContinuation}.cs;
 * src/libraries/System.Private.CoreLib/src/System/Collections/Concurrent/ConcurrentQueue{,Segment}.cs;
 * src/coreclr/System.Private.CoreLib/src/System/{Delegate.CoreCLR,Threading/Thread.CoreCLR}.cs.
 */
#ifndef CDACQ_CONTRACTS_THREADING_THREADING_TYPES_H
#define CDACQ_CONTRACTS_THREADING_THREADING_TYPES_H

#include "contracts/module_cache.h"
#include "contracts/objects/object.h"
#include "util/hash_table.h"

/* A type of the core library, or one derived from it. */
enum threading_type {
    THREADING_OTHER,
    THREADING_LOCK,          /* System.Threading.Lock */
    THREADING_TASK,          /* System.Threading.Tasks.Task */
    THREADING_EVENT,         /* System.Threading.ManualResetEventSlim */
    THREADING_SEMAPHORE,     /* System.Threading.SemaphoreSlim */
    THREADING_THREAD,        /* System.Threading.Thread */
    THREADING_WAIT_HANDLE,   /* System.Threading.WaitHandle */
    THREADING_SAFE_HANDLE,   /* Microsoft.Win32.SafeHandles.SafeWaitHandle */
    THREADING_DELEGATE,      /* System.Delegate */
    THREADING_LIST,          /* System.Collections.Generic.List`1 */
    THREADING_AWAIT,         /* System.Threading.Tasks.AwaitTaskContinuation */
    THREADING_CONTINUE_WITH, /* System.Threading.Tasks.ContinueWithTaskContinuation */
    THREADING_CANCELLATION,  /* System.Threading.CancellationTokenSource, the only field of a CancellationToken */
    THREADING_READER_WRITER, /* System.Threading.ReaderWriterLockSlim */
    THREADING_POOL,          /* System.Threading.PortableThreadPool */
    THREADING_WORK_QUEUE,    /* System.Threading.ThreadPoolWorkQueue: the queues of the pool */
    THREADING_WORKER_LOCALS, /* System.Threading.ThreadPoolWorkQueueThreadLocals: one for each worker of the pool */
    THREADING_CONDITION,     /* System.Threading.Condition: the threads that wait for a pulse of its Lock */
    THREADING_WAIT_INFO,     /* WaitSubsystem.ThreadWaitInfo */
    THREADING_WAITABLE,      /* WaitSubsystem.WaitableObject: what a handle of a WaitHandle leads to */
    THREADING_OWNERSHIP,     /* WaitableObject.OwnershipInfo */
    /*
     * A Task that completes when one of several things happens: that of Task.WhenAny, of Task.WaitAny, and of
     * Task.WaitAsync, which a timeout or a cancellation also completes.
     */
    THREADING_ANY,
    THREADING_ALL,           /* the Task of a Task.WhenAll for Task<T>; that for other tasks keeps no list of them */
    THREADING_SOURCE_TASK,   /* the Task of a ValueTask.AsTask() whose value another source gives */
    THREADING_RUNTIME_ASYNC, /* the Task of async methods that the runtime suspends (continuation.h) */
    THREADING_TASK_AWAIT,    /* a Continuation that stands for a task that such a method waits for */
    THREADING_SOURCE_AWAIT,  /* the same for another source of a value (IValueTaskSource) */
};

enum threading_field {
    THREADING_LOCK_STATE,
    THREADING_LOCK_OWNER,
    THREADING_LOCK_RECURSION,
    THREADING_TASK_STATE,
    THREADING_TASK_CONTINUATION,
    THREADING_TASK_ACTION,
    THREADING_TASK_STATE_OBJECT,
    THREADING_TASK_CONTINGENT,  /* a Task.ContingentProperties, which has the next two fields, or null */
    THREADING_CONTINGENT_TOKEN, /* the source of the token that cancels the task before it runs, or null */
    THREADING_CONTINGENT_PARENT,
    THREADING_CONTINUATION_TASK,       /* the task that is waited for */
    THREADING_CONTINUATION_ASYNC_TASK, /* the RuntimeAsyncTask that waits for it */
    THREADING_CONTINUATION_SOURCE,
    THREADING_TASK_SOURCE, /* of a THREADING_SOURCE_TASK */
    THREADING_EVENT_LOCK,
    THREADING_EVENT_STATE,
    THREADING_SEMAPHORE_LOCK,
    THREADING_SEMAPHORE_COUNT,
    THREADING_THREAD_INTERNAL, /* the runtime's Thread */
    THREADING_THREAD_DEAD,
    THREADING_THREAD_JOIN, /* the WaitHandle that is set when the thread ends, or null: no thread has joined it */
    THREADING_THREAD_WAIT, /* a THREADING_WAIT_INFO, which has the next two fields; null: it has never waited */
    THREADING_WAIT_COUNT,  /* 0: it waits for no object */
    THREADING_WAIT_OBJECTS,
    THREADING_WAITABLE_OWNER, /* a THREADING_OWNERSHIP, which has the next field; null: it is no Mutex */
    THREADING_OWNER_THREAD,
    THREADING_LOCK_EVENT,              /* a WaitHandle, or null, up to .NET 10 */
    THREADING_LOCK_EVENT_OR_CONDITION, /* since .NET 11, the same or a Condition, which has the next two fields */
    THREADING_CONDITION_LOCK,
    THREADING_CONDITION_EVENT, /* the WaitHandle of the Lock, or null */
    THREADING_WAIT_HANDLE_SAFE,
    THREADING_SAFE_HANDLE_VALUE,
    THREADING_DELEGATE_TARGET,
    THREADING_DELEGATE_METHOD,
    THREADING_DELEGATE_METHOD_AUX,
    THREADING_LIST_ITEMS,
    THREADING_LIST_SIZE,
    THREADING_AWAIT_ACTION,
    THREADING_CONTINUE_WITH_TASK,
    THREADING_ALL_TASKS,
    THREADING_RW_OWNERS,
    THREADING_RW_WRITER, /* an id of the runtime, or -1, as in the next field */
    THREADING_RW_UPGRADER,
    THREADING_RW_UPGRADER_READS,
    THREADING_RW_WAIT_READ, /* a number of threads, as in the next three fields */
    THREADING_RW_WAIT_WRITE,
    THREADING_RW_WAIT_UPGRADEABLE,
    THREADING_RW_WAIT_UPGRADE,
    THREADING_RW_READ_EVENT, /* a WaitHandle, or null, as in the next three fields */
    THREADING_RW_WRITE_EVENT,
    THREADING_RW_UPGRADEABLE_EVENT,
    THREADING_RW_UPGRADE_EVENT,
    THREADING_POOL_MIN,
    THREADING_POOL_MAX,
    THREADING_POOL_COUNTS,
    THREADING_WORK_QUEUE_NORMAL, /* a ConcurrentQueue<object>, as in the next two fields, which a version may lack */
    THREADING_WORK_QUEUE_HIGH,
    THREADING_WORK_QUEUE_LOW,
    THREADING_WORK_QUEUE_ASSIGNED, /* an array of such queues; each belongs to some workers */
    THREADING_WORKER_QUEUE,        /* a WorkStealingQueue, which has the next two fields */
    THREADING_STEALING_HEAD,
    THREADING_STEALING_TAIL,
    THREADING_STEALING_MASK, /* the number of elements of the next field, less 1 */
    THREADING_STEALING_ARRAY,
    THREADING_QUEUE_HEAD, /* a ConcurrentQueueSegment, which has the next four fields */
    THREADING_SEGMENT_SLOTS,
    THREADING_SEGMENT_MASK, /* its number of slots, less 1 */
    THREADING_SEGMENT_ENDS, /* a PaddedHeadAndTail, stored in the object itself */
    THREADING_SEGMENT_NEXT,
    THREADING_FIELD_COUNT
};

enum {
    THREADING_TYPES_MAX = 64 * 1024, /* method tables that are remembered */
    THREADING_READS_MAX = 1 << 26,   /* objects and fields that are looked at; after that, nothing is found */
    THREADING_STEPS_OF_A_READ = 16,  /* so many steps of a search in a type count as a read */
};

struct threading_method_table {
    uint64_t address;
    uint8_t type; /* enum threading_type */
    bool unread;  /* the type of it or of a base type could not be read */
};

DEFINE_HASH_TABLE_TYPE(threading_method_tables, struct threading_method_table);

struct threading_field_place {
    bool searched, found;
    uint32_t offset; /* from the object */
};

/* Whether a type is the box of a state machine (contracts/threading/async_method). */
struct threading_box {
    uint64_t method_table;
    uint64_t machine; /* the type of the state machine; 0: it is no box */
    bool is_inside;   /* the state machine is a struct in the box */
};

/* A field of a box or a state machine, by its type and a number that stands for its name. */
struct threading_async_key {
    uint64_t method_table;
    uint32_t number;
};

struct threading_async_field {
    struct threading_async_key key;
    bool found;
    uint32_t offset; /* from the first field */
};

static inline struct threading_async_key threading_async_field_key(const struct threading_async_field *field)
{
    return field->key;
}

static inline uint64_t hash_threading_async(struct threading_async_key key, uint64_t seed)
{
    return hash_u64(key.method_table, hash_u64(key.number, seed));
}

static inline bool equal_threading_async(struct threading_async_key a, struct threading_async_key b)
{
    return a.method_table == b.method_table && a.number == b.number;
}

DEFINE_U64_TABLE(threading_boxes, struct threading_box, method_table);
DEFINE_HASH_TABLE(threading_async_fields, struct threading_async_field, struct threading_async_key,
                  threading_async_field_key, hash_threading_async, equal_threading_async);

/* The type AsyncDispatcherInfo (contracts/threading/continuation). */
struct threading_dispatcher {
    bool searched;
    uint64_t method_table; /* 0: it is not loaded, or cannot be found */
    uint32_t offsets[3];
};

struct threading_types {
    struct module_cache *cache;
    uint64_t core; /* the Module of the core library; 0: not known, so every object is THREADING_OTHER */
    uint32_t reads_left;
    struct threading_method_tables known;
    struct threading_field_place fields[THREADING_FIELD_COUNT];
    struct threading_dispatcher dispatcher;
    struct threading_boxes boxes;
    struct threading_async_fields async_fields;
};

/* Does not fail: if the core library cannot be found, every object is THREADING_OTHER. */
void threading_types_init(struct threading_types *types, struct module_cache *cache);
void threading_types_deinit(struct threading_types *types);

/* A search in the fields and base types of a type, which is a task of its own. */
struct type_search {
    struct reader_task outer;
    uint32_t fuel;
};

struct type_search type_search_begin(struct threading_types *types, uint32_t fuel);

/*
 * Takes the steps of the search from the reads that are left: a process chooses how many fields its types have. False
 * if the search failed.
 */
bool type_search_end(struct threading_types *types, const struct type_search *search);

static inline bool threading_is_task(enum threading_type type)
{
    return type == THREADING_TASK || type == THREADING_ANY || type == THREADING_ALL || type == THREADING_SOURCE_TASK ||
           type == THREADING_RUNTIME_ASYNC;
}

/*
 * The type of an object. `trusted`: the address is that of an object, or 0. Otherwise it may be any number, and only an
 * object whose own type, not a base type, is in the core library is recognised. Does not fail the reader.
 */
enum threading_type threading_type_of(struct threading_types *types, uint64_t object, bool trusted);

/* Whether an object is certainly not of `type`. Its address is trusted. False also if its type cannot be read. */
bool threading_type_differs(struct threading_types *types, uint64_t object, enum threading_type type);

/* In the functions below, `object` must be of the type that declares `field`. They do not fail the reader. */

/* The address of a field. False, and *ret is untouched, if there is no such field. */
bool threading_field_address(struct threading_types *types, uint64_t object, enum threading_field field, uint64_t *ret);

/* The value of a field of at most 8 bytes. False, and *ret is untouched, if it does not exist or cannot be read. */
bool threading_read(struct threading_types *types, uint64_t object, enum threading_field field, uint64_t *ret);

/* The same for a field that some versions of the type lack: true, with 0 in *ret, if there is no such field. */
bool threading_read_optional(struct threading_types *types, uint64_t object, enum threading_field field, uint64_t *ret);

/* Whether a field refers to a WaitHandle whose SafeWaitHandle is `handle`. False if `handle` is 0. */
bool threading_field_has_handle(struct threading_types *types, uint64_t object, enum threading_field field,
                                uint64_t handle);

/* Reads an array of references. False if `object` is something else, or cannot be read. Does not fail the reader. */
bool threading_array(struct threading_types *types, uint64_t object, struct object_array *ret);

/* Reads an element of such an array. False if it cannot be read. Does not fail the reader. */
bool threading_element(struct threading_types *types, const struct object_array *array, uint64_t index, uint64_t *ret);

#endif
