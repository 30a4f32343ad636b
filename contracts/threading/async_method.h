/*
 * async_method.h: an async method or iterator that has not ended: its state machine, the box that continues it, and
 * what it awaits. The compiler makes the state machine a struct, which the box holds, or, without optimisation and for
 * an iterator, a class, to which the box refers.
 * Source: dotnet/runtime src/libraries/System.Private.CoreLib/src/System/Runtime/CompilerServices/
 * {AsyncTaskMethodBuilderT,PoolingAsyncValueTaskMethodBuilderT,AsyncIteratorMethodBuilder}.cs, System/Threading/Tasks/
 * Sources/ManualResetValueTaskSourceCore.cs.
 */
#ifndef CDACQ_CONTRACTS_THREADING_ASYNC_METHOD_H
#define CDACQ_CONTRACTS_THREADING_ASYNC_METHOD_H

#include "contracts/threading/threading_types.h"

enum {
    ASYNC_WORDS_MAX = 4096,       /* of a box or state machine that are searched */
    ASYNC_AWAITERS_MAX = 256,     /* of a state machine */
    ASYNC_SOURCE_WORDS_MAX = 128, /* of an object that may be a source */
};

struct async_method {
    uint64_t box;     /* what the completion of the awaited task leads to */
    uint64_t machine; /* the object of the state machine; 0: it is in the box */
    uint64_t type;    /* the method table of the state machine; 0: no async method's box, but any task */
};

/*
 * The async method of `object`, which is a Task, a box of the builders that pool them, or the object of an async
 * iterator. False if it is none of them.
 */
bool async_method_find(struct threading_types *types, uint64_t object, struct async_method *ret);

/*
 * What it awaits: a task whose completion leads to the box, as `leads_to` says, or another source of a value
 * (IValueTaskSource) to which an awaiter refers and that has the box as the state of its continuation. 0: nothing, or
 * it is not known.
 */
uint64_t async_method_awaited(struct threading_types *types, const struct async_method *method,
                              bool (*leads_to)(void *context, uint64_t task, uint64_t object), void *context);

/*
 * The task that an awaiter of a suspended method refers to. Until it completes, async_method_awaited() finds it, too;
 * if it has completed, the rest of the method is to run, and has not begun. 0: there is none, or it is not known.
 */
uint64_t async_method_awaiter_task(struct threading_types *types, const struct async_method *method);

#endif
