#include "contracts/threading/managed_lock.h"

enum {
    STATE_LOCKED = 1,
    STATE_WAITER_SHIFT = 7, /* of .NET 9 and 10; one more than in the runtime's own AwareLock */
};

bool managed_lock_read(struct threading_types *types, uint64_t object, struct managed_lock *ret)
{
    uint64_t state, owner = 0, recursion = 0;
    if (!threading_read(types, object, THREADING_LOCK_STATE, &state) ||
        !threading_read(types, object, THREADING_LOCK_OWNER, &owner) ||
        !threading_read(types, object, THREADING_LOCK_RECURSION, &recursion))
        return false;
    bool is_newer = has_field(types->cache->reader, F_SyncBlock_Lock); /* .NET 11 or later */
    struct managed_lock lock = {.held = state & STATE_LOCKED};
    if (lock.held) {
        *(is_newer ? &lock.thread_id : &lock.os_id) = (uint32_t)owner;
        lock.recursion = (uint32_t)recursion;
    }
    lock.waiters = is_newer ? 0 : (uint32_t)state >> STATE_WAITER_SHIFT;
    *ret = lock;
    return true;
}
