#include "contracts/threading/managed_wait.h"

/* ThreadBlockingInfo.ObjectKind */
enum {
    KIND_LOCK = 2,
    KIND_CONDITION = 3,
};

/* What a field of `object` refers to, if that is of type `from`. 0: nothing, or it is of another type. */
static uint64_t follow(struct threading_types *types, uint64_t object, enum threading_type from,
                       enum threading_field field)
{
    uint64_t value;
    return threading_type_of(types, object, true) == from && threading_read(types, object, field, &value) ? value : 0;
}

struct managed_wait managed_wait_read(struct threading_types *types, uint64_t thread)
{
    struct managed_wait wait = {0};
    struct object_array objects;
    uint64_t info = follow(types, thread, THREADING_THREAD, THREADING_THREAD_WAIT), count, object;
    uint64_t array = follow(types, info, THREADING_WAIT_INFO, THREADING_WAIT_OBJECTS);
    if (!array || !threading_read(types, info, THREADING_WAIT_COUNT, &count) || !count ||
        !threading_array(types, array, &objects) || count > objects.count)
        return wait;
    wait.count = (uint32_t)count;
    if (count == 1 && threading_element(types, &objects, 0, &object) &&
        threading_type_of(types, object, true) == THREADING_WAITABLE)
        wait.object = object;
    return wait;
}

/* A handle is the address of a slot that refers to the object. */
uint64_t managed_wait_of_safe_handle(struct threading_types *types, uint64_t safe_handle)
{
    struct reader *reader = types->cache->reader;
    uint64_t handle = follow(types, safe_handle, THREADING_SAFE_HANDLE, THREADING_SAFE_HANDLE_VALUE);
    if (!handle || handle % reader->pointer_size)
        return 0;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    uint64_t object = read_pointer(reader, handle);
    bool is_read = reader_leave(reader, &outer).status >= 0;
    return is_read && threading_type_of(types, object, true) == THREADING_WAITABLE ? object : 0;
}

uint64_t managed_wait_of_handle(struct threading_types *types, uint64_t wait_handle)
{
    return managed_wait_of_safe_handle(types,
                                       follow(types, wait_handle, THREADING_WAIT_HANDLE, THREADING_WAIT_HANDLE_SAFE));
}

uint64_t managed_wait_of_join(struct threading_types *types, uint64_t thread)
{
    return managed_wait_of_handle(types, follow(types, thread, THREADING_THREAD, THREADING_THREAD_JOIN));
}

uint64_t managed_wait_owner(struct threading_types *types, uint64_t object)
{
    uint64_t ownership = follow(types, object, THREADING_WAITABLE, THREADING_WAITABLE_OWNER);
    uint64_t thread = follow(types, ownership, THREADING_OWNERSHIP, THREADING_OWNER_THREAD);
    return threading_type_of(types, thread, true) == THREADING_THREAD ? thread : 0;
}

struct managed_blocking managed_blocking_read(struct threading_types *types, uint64_t address, uint64_t begin,
                                              uint64_t end)
{
    struct reader *reader = types->cache->reader;
    const struct managed_blocking none = {0};
    struct managed_blocking found = {0};
    uint32_t kind = 0;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    uint64_t reference = read_pointer(reader, address);
    if (reference >= begin && reference < end && reference % reader->pointer_size == 0) { /* so are few words */
        found.lock = read_pointer(reader, reference);
        kind = read_u32(reader, address + reader->pointer_size);
        found.timeout = (int32_t)read_u32(reader, address + reader->pointer_size + sizeof kind);
    }
    if (reader_leave(reader, &outer).status < 0 || (kind != KIND_LOCK && kind != KIND_CONDITION) || found.timeout < -1)
        return none;
    found.is_pulse = kind == KIND_CONDITION;
    if (found.is_pulse)
        found.lock = follow(types, found.lock, THREADING_CONDITION, THREADING_CONDITION_LOCK);
    return threading_type_of(types, found.lock, true) == THREADING_LOCK ? found : none;
}
