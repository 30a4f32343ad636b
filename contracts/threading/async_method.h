/*
 * async_method.h: an async method or iterator that has not ended: its state machine, the box that continues it, and
 * what it awaits. In optimised code, the state machine is a struct inside the box. In unoptimised code, and for an
 * iterator, it is a class, and the box refers to its object.
 * Source: dotnet/runtime src/libraries/System.Private.CoreLib/src/System/Runtime/CompilerServices/
 * {AsyncTaskMethodBuilderT,PoolingAsyncValueTaskMethodBuilderT,AsyncIteratorMethodBuilder}.cs, System/Threading/Tasks/
 * Sources/ManualResetValueTaskSourceCore.cs.
 */
#ifndef CDACQ_CONTRACTS_THREADING_ASYNC_METHOD_H
#define CDACQ_CONTRACTS_THREADING_ASYNC_METHOD_H

#include "contracts/threading/threading_types.h"

#define ASYNC_IL_UNKNOWN UINT32_MAX

enum {
    ASYNC_WORDS_MAX = 4096,       /* words of a box or state machine that are searched */
    ASYNC_AWAITERS_MAX = 256,     /* awaiters of a state machine */
    ASYNC_SOURCE_WORDS_MAX = 128, /* words of an object that may be a source, which are searched */
};

struct async_method {
    uint64_t box;     /* the object that the completion of the awaited task continues */
    uint64_t machine; /* the object of the state machine; 0: it is in the box */
    uint64_t type;    /* the method table of the state machine; 0: `box` is a task of another kind */
};

/*
 * Finds the async method of `object`: a Task, a pooled box, or the object of an async iterator. False if it is none of
 * them.
 */
bool async_method_find(struct threading_types *types, uint64_t object, struct async_method *ret);

/* Whether the method is an async iterator, whose state machine passes its values on. */
bool async_method_is_iterator(struct threading_types *types, const struct async_method *method);

/* The type of the state machine of a box, whose method table is given. 0: it is no box, or it cannot be read. */
uint64_t async_box_machine(struct threading_types *types, uint64_t method_table);

/* The first word of `object` that refers to another object of `method_table`. 0: there is none. */
uint64_t async_object_reference_to(struct threading_types *types, uint64_t object, uint64_t method_table);

/* Whether a word of `object` refers to `other`, which may be the same. */
bool async_object_refers_to(struct threading_types *types, uint64_t object, uint64_t other);

/* Calls `visit` for each word of `object` after its method table, until it returns false. */
void async_object_each_word(struct threading_types *types, uint64_t object, bool (*visit)(void *context, uint64_t word),
                            void *context);

/*
 * The first task that a word of `object` refers to and whose completion leads on, as `leads` says: for a Continuation
 * of a method that uses an awaiter of its own. 0: there is none.
 */
uint64_t async_object_task(struct threading_types *types, uint64_t object, bool (*leads)(void *context, uint64_t task),
                           void *context);

/*
 * What the first of the method's awaiters refers to: a task that has not completed, or else another object. It is not
 * checked that it leads to the box. 0: nothing, or it is not known.
 */
uint64_t async_method_awaiter(struct threading_types *types, const struct async_method *method);

/*
 * What the method awaits: a task whose completion leads to the box, as `leads_to` says, or another source of a value
 * (IValueTaskSource). An awaiter refers to the source, and the source has the box as the state of its continuation. 0:
 * nothing, or it is not known.
 */
uint64_t async_method_awaited(struct threading_types *types, const struct async_method *method,
                              bool (*leads_to)(void *context, uint64_t task, uint64_t object), void *context);

/*
 * The task that an awaiter of a suspended method refers to. Until the task completes, async_method_awaited() finds it,
 * too. If it has completed, the rest of the method can run, but has not begun. 0: there is none, or it is not known.
 */
uint64_t async_method_awaiter_task(struct threading_types *types, const struct async_method *method);

/*
 * The number of the state in which a method has suspended. False if it runs, has not begun, has ended or has given a
 * value, or if its state machine cannot be read.
 */
bool async_method_state(struct threading_types *types, const struct async_method *method, int32_t *ret);

/* Where a method has suspended. */
struct async_suspension {
    const struct module *module;
    uint32_t token;     /* of the state machine's MoveNext */
    uint32_t il_offset; /* in the statement that awaits; ASYNC_IL_UNKNOWN: not known */
};

/*
 * Where the state machine of type `method_table` suspends in a state: its code stores the number of the state before it
 * suspends. False if the type cannot be read.
 */
bool async_method_suspension(struct threading_types *types, uint64_t method_table, int32_t state,
                             struct async_suspension *ret);

/*
 * The box or task to which a source of a value (IValueTaskSource), as an async iterator or a pooled box is one, will
 * pass on: it has a delegate and, after it, the delegate's argument. 0: none, or it is not known.
 */
uint64_t async_method_source_continuation(struct threading_types *types, uint64_t source);

#endif
