/*
 * async_kinds.h: the types of objects that async operations consist of and wait for, recognised by name, and the fields
 * of such objects, found by name. Both are looked up once for each type. A version of a library that names them
 * otherwise has no such type or field: the objects are then of another kind, and nothing is guessed.
 * Source: dotnet/runtime src/libraries/System.Private.CoreLib/src/System/Threading/{SemaphoreSlim,PeriodicTimer}.cs,
 * Tasks/{Task,TaskCompletionSource,TaskExceptionHolder}.cs; src/libraries/System.Threading.Channels/src;
 * src/libraries/System.Net.Sockets/src/System/Net/Sockets/SocketAsyncEventArgs.cs.
 */
#ifndef CDACQ_WAITS_ASYNC_KINDS_H
#define CDACQ_WAITS_ASYNC_KINDS_H

#include "contracts/threading/threading_types.h"

/* A type, or one derived from it. */
enum async_kind {
    ASYNC_OTHER,
    ASYNC_BOX,          /* of a state machine */
    ASYNC_RUNTIME_TASK, /* RuntimeAsyncTask<T> */
    ASYNC_TASK,         /* another task */
    ASYNC_DELAY,        /* the task of Task.Delay */
    ASYNC_WHEN_ALL,     /* of Task.WhenAll */
    ASYNC_WHEN_ANY,     /* of Task.WhenAny */
    ASYNC_WAIT_ASYNC,   /* of Task.WaitAsync */
    ASYNC_UNWRAP,       /* of Task.Run for async methods, and of Task.Unwrap */
    ASYNC_SEMAPHORE,    /* SemaphoreSlim */
    ASYNC_SEMAPHORE_TASK,
    ASYNC_SOURCE,       /* TaskCompletionSource and TaskCompletionSource<T> */
    ASYNC_HOLDER,       /* TaskExceptionHolder */
    ASYNC_CHANNEL,      /* of System.Threading.Channels */
    ASYNC_CHANNEL_CALL, /* a read or write that waits */
    ASYNC_DEQUE,        /* in which some channels keep these */
    ASYNC_SOCKET,       /* SocketAsyncEventArgs */
    ASYNC_FILE,         /* what reads and writes files on the thread pool */
    ASYNC_PERIODIC,     /* what PeriodicTimer waits with */
    ASYNC_HTTP_REQUEST, /* HttpRequestMessage */
    ASYNC_HTTP_SERVED,  /* HttpProtocol of Kestrel: a connection or stream, with the request that it serves */
    ASYNC_TIMER,        /* TimerQueueTimer */
    ASYNC_WORK_QUEUE,   /* ThreadPoolWorkQueue */
    ASYNC_STEALING,     /* ThreadPoolWorkQueue.WorkStealingQueue: that of a worker */
    ASYNC_KIND_COUNT,
};

struct async_type {
    uint64_t method_table;
    uint64_t sample; /* an object */
    enum async_kind kind;
    bool is_known; /* `kind` is set */
};

/* A field of a type. `name` is a string of this program: its address identifies it. */
struct async_field_key {
    uint64_t method_table;
    const char *name;
};

struct async_named_field {
    struct async_field_key key;
    bool found;
    uint8_t element;
    uint32_t offset; /* from the object */
};

static inline struct async_field_key async_named_field_key(const struct async_named_field *field)
{
    return field->key;
}

static inline uint64_t hash_async_field(struct async_field_key key, uint64_t seed)
{
    return hash_u64(key.method_table, hash_u64((uintptr_t)key.name, seed));
}

static inline bool equal_async_fields(struct async_field_key a, struct async_field_key b)
{
    return a.method_table == b.method_table && a.name == b.name;
}

DEFINE_U64_TABLE(async_types, struct async_type, method_table);
DEFINE_HASH_TABLE(async_named_fields, struct async_named_field, struct async_field_key, async_named_field_key,
                  hash_async_field, equal_async_fields);

struct async_kinds {
    struct threading_types *types;
    struct async_types known;
    struct async_named_fields fields;
};

void async_kinds_deinit(struct async_kinds *kinds);

/* The kind of an object's type. `object` may be any number. Does not fail the reader. */
enum async_kind async_kind_of(struct async_kinds *kinds, uint64_t object);

/* The same for the type of the object `sample`. */
enum async_kind async_kind_of_type(struct async_kinds *kinds, uint64_t method_table, uint64_t sample);

/* An object's method table, 0 if it cannot be read. `object` may be any number. Does not fail the reader. */
uint64_t async_type_of(struct async_kinds *kinds, uint64_t object);

/*
 * A field of an object, or of the struct at `object` less a pointer's size, of `width` bytes, 0: a pointer. False, and
 * *ret is untouched, if it has no such field, or if that cannot be read. Does not fail the reader.
 */
bool async_read(struct async_kinds *kinds, uint64_t object, const char *name, unsigned width, uint64_t *ret);

/* The value of a reference field; 0 also if there is none. */
uint64_t async_reference(struct async_kinds *kinds, uint64_t object, const char *name);

#endif
