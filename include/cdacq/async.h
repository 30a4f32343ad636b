/*
 * cdacq/async.h: every async operation that is pending: the async methods that have suspended, found on the GC heap,
 * where no thread has to wait for them or run them. One thread at a time uses a session. Source: dotnet/runtime
 * src/libraries/System.Private.CoreLib/src/System/Runtime/CompilerServices/AsyncTaskMethodBuilderT.cs,
 * System/Threading/Tasks/Task.cs; src/coreclr/vm/datadescriptor/datadescriptor.inc (ContinuationObject).
 */
#ifndef CDACQ_ASYNC_H
#define CDACQ_ASYNC_H

#include <cdacq/session.h>

CDACQ_BEGIN_DECLS

/*
 * Async methods, from the innermost: each awaits the one before. Equal chains are one: their methods await in the same
 * places, and the innermost ones wait for the same kind of thing. A chain ends at a method whose task several methods
 * await, and at a task that completes with several others (Task.WhenAll, Task.WhenAny); each suspended method is in one
 * chain. The library sets `size`. What pointers point to is valid until the callback returns.
 */
struct cdacq_async_chain {
    size_t size;
    const struct cdacq_method *methods; /* where each awaits, as a frame of CDACQ_FRAMES_ASYNC has it */
    size_t method_count;                /* at least 1 */
    uint64_t count;                     /* equal chains: 1 or more */
    /*
     * What the innermost method waits for, in words: "Task.Delay, due in 2.3 s". Printable UTF-8. Of several equal
     * chains, what all of them have in common, or what one of them waits for after "such as".
     */
    const char *waits_for;
    uint64_t object;    /* what it waits for: a task or another source of a value; 0: not known, or not all the same */
    uint64_t operation; /* the innermost task of the first of the equal chains, or the box of its state machine */
    uint64_t first_object; /* like `object`, of the first of the equal chains */
    /*
     * What the outermost method of the first of the equal chains completes, if that is one task or other object that is
     * none of an async method, such as that of Task.Run; 0: nothing, several, or not known.
     */
    uint64_t completes;
    bool is_cycle; /* the chain waits for itself, perhaps through other chains: it cannot complete */
};

/* Failed tasks whose exceptions nobody has observed, and that have the same method and type of exception. */
struct cdacq_failed_task {
    size_t size;
    uint64_t count;     /* 1 or more */
    uint64_t address;   /* of the first task */
    uint64_t exception; /* its exception; 0: not known */
    const char *method; /* the method that failed; NULL: it is no async method, or not known */
    const char *type;   /* of the exception, as Type.ToString() gives it; NULL: not known */
};

/* The caller sets `size`. */
struct cdacq_async_info {
    size_t size;
    uint64_t chain_count;   /* with equal ones */
    uint64_t method_count;  /* suspended methods in all of them */
    uint64_t failed_count;  /* failed tasks that nobody has observed */
    uint64_t problem_count; /* what was left out: cdacq_async_visitor.problem got the first 1,000 */
};

/*
 * What is called. A callback that returns non-zero ends the visit. Any may be NULL. None may use the session. The
 * caller sets `size`.
 */
struct cdacq_async_visitor {
    size_t size;
    int (*chain)(const struct cdacq_async_chain *chain, void *context); /* the most frequent first */
    int (*failed)(const struct cdacq_failed_task *task, void *context); /* likewise */
    int (*problem)(const char *text, void *context); /* one printable line; valid until the callback returns */
    void *context;
};

/*
 * Visits the chains of all pending async operations, then the failed tasks. An object that is garbage, but not yet
 * collected, counts. At most 4,194,304 operations are found. CDACQ_STOPPED: a callback returned non-zero. `ret` may be
 * NULL. Fails as cdacq_session_visit_heap does, and with CONTRACT for NativeAOT. *ret is set unless it fails. A process
 * that runs changes meanwhile: stop it (CDACQ_OPEN_STOP), or the result is inexact.
 */
CDACQ_API enum cdacq_status cdacq_session_visit_async(struct cdacq_session *session,
                                                      const struct cdacq_async_visitor *visitor,
                                                      struct cdacq_async_info *ret, struct cdacq_error *err);

CDACQ_END_DECLS

#endif
