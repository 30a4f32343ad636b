/*
 * managed_lock.h: System.Threading.Lock of .NET 9 and later: who holds it, and how many threads wait for it.
 * Source: dotnet/runtime src/libraries/System.Private.CoreLib/src/System/Threading/Lock.cs.
 */
#ifndef CDACQ_CONTRACTS_THREADING_MANAGED_LOCK_H
#define CDACQ_CONTRACTS_THREADING_MANAGED_LOCK_H

#include "contracts/threading/threading_types.h"

struct managed_lock {
    bool held;
    uint32_t thread_id; /* of the owner (Thread.Id), since .NET 11; 0 if it is about to enter or to leave */
    uint32_t os_id;     /* the same as the kernel's id, of .NET 9 and 10 */
    uint32_t recursion; /* how often the owner entered again: 0 for once */
    uint32_t waiters; /* 0 if the runtime is newer than .NET 10: the place of their number in the state is not known */
};

/* False if it cannot be read. `object` must be of THREADING_LOCK. */
bool managed_lock_read(struct threading_types *types, uint64_t object, struct managed_lock *ret);

#endif
