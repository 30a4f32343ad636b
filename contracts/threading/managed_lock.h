/*
 * managed_lock.h: System.Threading.Lock of .NET 9 and later: who holds it, and how many threads wait for it.
 * Source: dotnet/runtime src/libraries/System.Private.CoreLib/src/System/Threading/Lock.cs.
 */
#ifndef CDACQ_CONTRACTS_THREADING_MANAGED_LOCK_H
#define CDACQ_CONTRACTS_THREADING_MANAGED_LOCK_H

#include "contracts/threading/threading_types.h"

struct managed_lock {
    bool held;
    uint32_t thread_id; /* of the owner (Thread.Id), since .NET 11; 0: it is about to enter or to leave */
    uint32_t os_id;     /* the kernel's id of the owner, on .NET 9 and 10 */
    uint32_t recursion; /* how often the owner entered again: 0 for once */
    uint32_t waiters;
};

/* Reads the state of `object`, which must be of THREADING_LOCK. False, and *ret is untouched, if it cannot be read. */
bool managed_lock_read(struct threading_types *types, uint64_t object, struct managed_lock *ret);

/* Whether a SafeWaitHandle is that of the event by which such an object blocks the threads that want to enter it. */
bool managed_lock_has_handle(struct threading_types *types, uint64_t object, uint64_t handle);

#endif
