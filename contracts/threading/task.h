/*
 * task.h: System.Threading.Tasks.Task: its state, what it runs, and what its completion leads to.
 * Source: dotnet/runtime src/libraries/System.Private.CoreLib/src/System/Threading/Tasks/{Task,TaskContinuation}.cs;
 * src/libraries/System.Private.CoreLib/src/System/Runtime/CompilerServices/AsyncTaskMethodBuilderT.cs.
 */
#ifndef CDACQ_CONTRACTS_THREADING_TASK_H
#define CDACQ_CONTRACTS_THREADING_TASK_H

#include "contracts/threading/threading_types.h"

enum {
    CONTINUATIONS_MAX = 1 << 20, /* continuations of one task */
    TASK_ARRAY_MAX = 1 << 20,    /* tasks of one Task.WaitAll or Task.WhenAll */
};

/* System.Threading.Tasks.TaskStatus */
enum task_status {
    TASK_CREATED,
    TASK_WAITING_FOR_ACTIVATION,
    TASK_WAITING_TO_RUN,
    TASK_RUNNING,
    TASK_WAITING_FOR_CHILDREN,
    TASK_RAN_TO_COMPLETION,
    TASK_CANCELED,
    TASK_FAULTED,
};

static inline bool task_is_completed(enum task_status status)
{
    return status >= TASK_RAN_TO_COMPLETION;
}

/* In these functions, `task` must be a task, as threading_is_task() says. */

/* False, and *ret is untouched, if it cannot be read. */
bool task_read_status(struct threading_types *types, uint64_t task, enum task_status *ret);

/* The runtime's name of a status, such as "WaitingForActivation". */
const char *task_status_text(enum task_status status);

/*
 * Whether a CancellationToken can complete the task: the task was created with a token that can be cancelled, and does
 * not run yet. False, and *ret is untouched, if that cannot be read.
 */
bool task_read_cancellation(struct threading_types *types, uint64_t task, bool *ret);

/* The parent of the task, if it waits for its children to complete. 0: there is none, or it cannot be read. */
uint64_t task_waiting_parent(struct threading_types *types, uint64_t task);

/*
 * Calls `visit` for each object that the task's completion leads to: a task, an event that a thread waits for, or an
 * object of another type, such as a pooled box. Ends when `visit` returns false. Returns false if the task has more
 * than CONTINUATIONS_MAX continuations; the others are left out.
 */
bool task_each_continuation(struct threading_types *types, uint64_t task,
                            bool (*visit)(void *context, uint64_t object, enum threading_type type), void *context);

/* The same for the tasks that a task of THREADING_ALL waits for, at most TASK_ARRAY_MAX. */
bool task_each_of_all(struct threading_types *types, uint64_t task, bool (*visit)(void *context, uint64_t object),
                      void *context);

/* The same for the elements of a List<T> of objects, at most `limit`. */
bool list_each(struct threading_types *types, uint64_t list, uint64_t limit,
               bool (*visit)(void *context, uint64_t object), void *context);

/* The entry point of the method that a delegate calls. 0: it is no delegate, or it is not known. */
uint64_t delegate_entry_point(struct threading_types *types, uint64_t delegate);

/* The entry point of the method that the task runs. 0: it runs none, or it is not known. */
uint64_t task_entry_point(struct threading_types *types, uint64_t task);

#endif
