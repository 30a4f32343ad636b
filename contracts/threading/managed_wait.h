/*
 * managed_wait.h: what the core library records of a waiting thread. Since .NET 11, it implements waits itself (on
 * Unix), and monitors too: each WaitHandle has an object for which threads are registered while they wait, and a thread
 * that enters a Lock or waits for a pulse has a ThreadBlockingInfo on its stack, for debuggers.
 * Source: dotnet/runtime src/libraries/System.Private.CoreLib/src/System/Threading/{WaitSubsystem.ThreadWaitInfo.Unix,
 * WaitSubsystem.WaitableObject.Unix,WaitSubsystem.HandleManager.Unix,ThreadBlockingInfo,Condition}.cs;
 * src/coreclr/System.Private.CoreLib/src/System/Threading/Thread.CoreCLR.cs.
 */
#ifndef CDACQ_CONTRACTS_THREADING_MANAGED_WAIT_H
#define CDACQ_CONTRACTS_THREADING_MANAGED_WAIT_H

#include "contracts/threading/threading_types.h"

/* Whether the runtime's core library waits in this way. */
static inline bool managed_wait_is_used(const struct reader *reader)
{
    return has_field(reader, F_SyncBlock_Lock); /* a monitor is a Lock */
}

/* What a thread is registered for. */
struct managed_wait {
    uint32_t count;  /* of the objects that it waits for; 0: none, or not known */
    uint64_t object; /* if there is one: a THREADING_WAITABLE; else 0 */
};

/* A ThreadBlockingInfo. */
struct managed_blocking {
    uint64_t lock;   /* the Lock; 0: there is no such record */
    bool is_pulse;   /* the thread waits for a pulse of the Lock; otherwise, to enter it */
    int32_t timeout; /* milliseconds; -1: without end */
};

/* Reads what a thread waits for. `thread` is a System.Threading.Thread, or 0. Does not fail the reader. */
struct managed_wait managed_wait_read(struct threading_types *types, uint64_t thread);

/* The object that stands for a SafeWaitHandle, or for a WaitHandle. 0: none, or not known. Do not fail the reader. */
uint64_t managed_wait_of_safe_handle(struct threading_types *types, uint64_t safe_handle);
uint64_t managed_wait_of_handle(struct threading_types *types, uint64_t wait_handle);

/* The object that threads wait for to join a System.Threading.Thread. 0: no thread has joined it, or not known. */
uint64_t managed_wait_of_join(struct threading_types *types, uint64_t thread);

/* The System.Threading.Thread that owns the Mutex of such an object. 0: none, it is no Mutex, or not known. */
uint64_t managed_wait_owner(struct threading_types *types, uint64_t object);

/*
 * Reads the words at `address` as a ThreadBlockingInfo whose reference is in the same frame, from `begin` to before
 * `end`. `lock` is 0 if they are none. Does not fail the reader.
 */
struct managed_blocking managed_blocking_read(struct threading_types *types, uint64_t address, uint64_t begin,
                                              uint64_t end);

#endif
