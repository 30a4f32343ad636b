/*
 * continuation.h: async methods that the runtime suspends, since .NET 11: a method that waits has a Continuation
 * object, which leads to that of the method that awaits it. The last of them belongs to a RuntimeAsyncTask; the task
 * refers to the first, which belongs to the innermost method, or to what that waits for. While a thread runs such
 * methods, an AsyncDispatcherInfo on its stack refers to the Continuation of the next one.
 * Source: dotnet/runtime src/coreclr/vm/datadescriptor/datadescriptor.inc (ContinuationObject, AsyncResumeInfo);
 * src/coreclr/System.Private.CoreLib/src/System/Runtime/CompilerServices/{AsyncHelpers.CoreCLR,
 * RuntimeAsyncTaskContinuation}.cs.
 */
#ifndef CDACQ_CONTRACTS_THREADING_CONTINUATION_H
#define CDACQ_CONTRACTS_THREADING_CONTINUATION_H

#include "contracts/threading/threading_types.h"

struct continuation {
    uint64_t next; /* that of the method that awaits this one; 0: there is none in its task */
    uint64_t info; /* the AsyncResumeInfo; 0: it stands for what a method waits for */
    uint64_t pc;   /* the code where the method goes on; 0: there is none, or it cannot be read */
};

/* False if the object is no Continuation, or if it cannot be read. */
bool continuation_read(struct threading_types *types, uint64_t object, struct continuation *ret);

/* The first Continuation of a suspended RuntimeAsyncTask. 0: there is none, or it cannot be read. */
uint64_t continuation_of_task(struct threading_types *types, uint64_t task);

/* What its innermost method waits for: a task or another source of a value. 0: that is not known. */
uint64_t continuation_awaited(struct threading_types *types, uint64_t first);

/* A RuntimeAsyncTask whose methods a thread runs. */
struct dispatched {
    uint64_t running; /* the task */
    uint64_t next;    /* the Continuation of the method that awaits those that run; 0: there is none in the task */
};

/*
 * Calls `visit` for each RuntimeAsyncTask that the runtime's Thread at `thread` runs, from the innermost. Ends when
 * `visit` returns false, or where it cannot be read further.
 */
void continuation_each_dispatched(struct threading_types *types, uint64_t thread,
                                  bool (*visit)(void *context, const struct dispatched *dispatched), void *context);

#endif
