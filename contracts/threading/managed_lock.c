#include "contracts/threading/managed_lock.h"

#include "contracts/threading/managed_wait.h"

enum {
    STATE_LOCKED = 1,
    STATE_WAITER_SHIFT = 7, /* of .NET 9 to 11; one more than in the runtime's own AwareLock */
};

bool managed_lock_read(struct threading_types *types, uint64_t object, struct managed_lock *ret)
{
    uint64_t state, owner = 0, recursion = 0;
    if (!threading_read(types, object, THREADING_LOCK_STATE, &state) ||
        !threading_read(types, object, THREADING_LOCK_OWNER, &owner) ||
        !threading_read(types, object, THREADING_LOCK_RECURSION, &recursion))
        return false;
    struct managed_lock lock = {.held = state & STATE_LOCKED, .waiters = (uint32_t)state >> STATE_WAITER_SHIFT};
    if (lock.held) {
        *(managed_wait_is_used(types->cache->reader) ? &lock.thread_id : &lock.os_id) = (uint32_t)owner;
        lock.recursion = (uint32_t)recursion;
    }
    *ret = lock;
    return true;
}

bool managed_lock_has_handle(struct threading_types *types, uint64_t object, uint64_t handle)
{
    uint64_t condition;
    if (threading_read(types, object, THREADING_LOCK_EVENT_OR_CONDITION, &condition) &&
        threading_type_of(types, condition, true) == THREADING_CONDITION)
        return threading_field_has_handle(types, condition, THREADING_CONDITION_EVENT, handle);
    return threading_field_has_handle(types, object, THREADING_LOCK_EVENT_OR_CONDITION, handle) ||
           threading_field_has_handle(types, object, THREADING_LOCK_EVENT, handle);
}
