#include "contracts/threading/threading_types.h"

#include "contracts/objects/field.h"
#include "contracts/type_system/core_type.h"
#include "contracts/type_system/type_handle.h"
#include "formats/metadata_members.h"
#include "formats/names/signature.h"

/* The names of the types. Several names can stand for one type. */
static const struct {
    enum threading_type type;
    const char *space, *name;
} type_names[] = {
    {THREADING_LOCK, "System.Threading", "Lock"},
    {THREADING_TASK, "System.Threading.Tasks", "Task"},
    {THREADING_EVENT, "System.Threading", "ManualResetEventSlim"},
    {THREADING_SEMAPHORE, "System.Threading", "SemaphoreSlim"},
    {THREADING_THREAD, "System.Threading", "Thread"},
    {THREADING_WAIT_HANDLE, "System.Threading", "WaitHandle"},
    {THREADING_SAFE_HANDLE, "Microsoft.Win32.SafeHandles", "SafeWaitHandle"},
    {THREADING_DELEGATE, "System", "Delegate"},
    {THREADING_LIST, "System.Collections.Generic", "List`1"},
    {THREADING_AWAIT, "System.Threading.Tasks", "AwaitTaskContinuation"},
    {THREADING_CONTINUE_WITH, "System.Threading.Tasks", "ContinueWithTaskContinuation"},
    {THREADING_CANCELLATION, "System.Threading", "CancellationTokenSource"},
    {THREADING_READER_WRITER, "System.Threading", "ReaderWriterLockSlim"},
    {THREADING_POOL, "System.Threading", "PortableThreadPool"},
    {THREADING_WORK_QUEUE, "System.Threading", "ThreadPoolWorkQueue"},
    {THREADING_WORKER_LOCALS, "System.Threading", "ThreadPoolWorkQueueThreadLocals"},
    {THREADING_CONDITION, "System.Threading", "Condition"},
    {THREADING_WAIT_INFO, "", "ThreadWaitInfo"},
    {THREADING_WAITABLE, "", "WaitableObject"},
    {THREADING_OWNERSHIP, "", "OwnershipInfo"},
    {THREADING_ANY, "", "CompleteOnInvokePromise`1"},
    {THREADING_ANY, "", "TwoTaskWhenAnyPromise`1"},
    {THREADING_ANY, "", "CancellationPromise`1"},
    {THREADING_ALL, "", "WhenAllPromise`1"},
    {THREADING_SOURCE_TASK, "", "ValueTaskSourceAsTask"},
    {THREADING_RUNTIME_ASYNC, "", "RuntimeAsyncTask`1"},
    {THREADING_TASK_AWAIT, "System.Runtime.CompilerServices", "RuntimeAsyncTaskContinuation"},
    {THREADING_SOURCE_AWAIT, "", "ValueTaskSourceContinuation"},
};

static const struct {
    const char *name;
    uint8_t width; /* 0: a pointer */
} field_names[THREADING_FIELD_COUNT] = {
    [THREADING_LOCK_STATE] = {"_state", 4},
    [THREADING_LOCK_OWNER] = {"_owningThreadId", 4},
    [THREADING_LOCK_RECURSION] = {"_recursionCount", 4},
    [THREADING_TASK_STATE] = {"m_stateFlags", 4},
    [THREADING_TASK_CONTINUATION] = {"m_continuationObject", 0},
    [THREADING_TASK_ACTION] = {"m_action", 0},
    [THREADING_TASK_STATE_OBJECT] = {"m_stateObject", 0},
    [THREADING_CONTINUATION_TASK] = {"Task", 0},
    [THREADING_CONTINUATION_ASYNC_TASK] = {"RuntimeAsyncTask", 0},
    [THREADING_CONTINUATION_SOURCE] = {"Source", 0},
    [THREADING_TASK_SOURCE] = {"_source", 0},
    [THREADING_TASK_CONTINGENT] = {"m_contingentProperties", 0},
    [THREADING_CONTINGENT_TOKEN] = {"m_cancellationToken", 0},
    [THREADING_CONTINGENT_PARENT] = {"m_parent", 0},
    [THREADING_EVENT_LOCK] = {"m_lock", 0},
    [THREADING_EVENT_STATE] = {"m_combinedState", 4},
    [THREADING_SEMAPHORE_LOCK] = {"m_lockObjAndDisposed", 0},
    [THREADING_SEMAPHORE_COUNT] = {"m_currentCount", 4},
    [THREADING_THREAD_INTERNAL] = {"_DONT_USE_InternalThread", 0},
    [THREADING_THREAD_DEAD] = {"_isDead", 1},
    [THREADING_THREAD_JOIN] = {"_joinEvent", 0},
    [THREADING_THREAD_WAIT] = {"_waitInfo", 0},
    [THREADING_WAIT_COUNT] = {"_waitedCount", 4},
    [THREADING_WAIT_OBJECTS] = {"_waitedObjects", 0},
    [THREADING_WAITABLE_OWNER] = {"_ownershipInfo", 0},
    [THREADING_OWNER_THREAD] = {"_thread", 0},
    [THREADING_LOCK_EVENT] = {"_waitEvent", 0},
    [THREADING_LOCK_EVENT_OR_CONDITION] = {"_waitEventOrCondition", 0},
    [THREADING_CONDITION_LOCK] = {"_lock", 0},
    [THREADING_CONDITION_EVENT] = {"_waitEvent", 0},
    [THREADING_WAIT_HANDLE_SAFE] = {"_waitHandle", 0},
    [THREADING_SAFE_HANDLE_VALUE] = {"handle", 0},
    [THREADING_DELEGATE_TARGET] = {"_target", 0},
    [THREADING_DELEGATE_METHOD] = {"_methodPtr", 0},
    [THREADING_DELEGATE_METHOD_AUX] = {"_methodPtrAux", 0},
    [THREADING_LIST_ITEMS] = {"_items", 0},
    [THREADING_LIST_SIZE] = {"_size", 4},
    [THREADING_AWAIT_ACTION] = {"m_action", 0},
    [THREADING_CONTINUE_WITH_TASK] = {"m_task", 0},
    [THREADING_ALL_TASKS] = {"m_tasks", 0},
    [THREADING_RW_OWNERS] = {"_owners", 4},
    [THREADING_RW_WRITER] = {"_writeLockOwnerId", 4},
    [THREADING_RW_UPGRADER] = {"_upgradeLockOwnerId", 4},
    [THREADING_RW_UPGRADER_READS] = {"_fUpgradeThreadHoldingRead", 1},
    [THREADING_RW_WAIT_READ] = {"_numReadWaiters", 4},
    [THREADING_RW_WAIT_WRITE] = {"_numWriteWaiters", 4},
    [THREADING_RW_WAIT_UPGRADEABLE] = {"_numUpgradeWaiters", 4},
    [THREADING_RW_WAIT_UPGRADE] = {"_numWriteUpgradeWaiters", 4},
    [THREADING_RW_READ_EVENT] = {"_readEvent", 0},
    [THREADING_RW_WRITE_EVENT] = {"_writeEvent", 0},
    [THREADING_RW_UPGRADEABLE_EVENT] = {"_upgradeEvent", 0},
    [THREADING_RW_UPGRADE_EVENT] = {"_waitUpgradeEvent", 0},
    [THREADING_POOL_MIN] = {"_minThreads", 2},
    [THREADING_POOL_MAX] = {"_maxThreads", 2},
    [THREADING_POOL_COUNTS] = {"_separated", 0},
    [THREADING_WORK_QUEUE_NORMAL] = {"workItems", 0},
    [THREADING_WORK_QUEUE_HIGH] = {"highPriorityWorkItems", 0},
    [THREADING_WORK_QUEUE_LOW] = {"lowPriorityWorkItems", 0},
    [THREADING_WORK_QUEUE_ASSIGNED] = {"_assignableWorkItemQueues", 0},
    [THREADING_WORKER_QUEUE] = {"workStealingQueue", 0},
    [THREADING_STEALING_HEAD] = {"m_headIndex", 4},
    [THREADING_STEALING_TAIL] = {"m_tailIndex", 4},
    [THREADING_STEALING_MASK] = {"m_mask", 4},
    [THREADING_STEALING_ARRAY] = {"m_array", 0},
    [THREADING_SEGMENT_SLOTS] = {"_slots", 0},
    [THREADING_QUEUE_HEAD] = {"_head", 0},
    [THREADING_SEGMENT_MASK] = {"_slotsMask", 4},
    [THREADING_SEGMENT_ENDS] = {"_headAndTail", 0},
    [THREADING_SEGMENT_NEXT] = {"_nextSegment", 0},
};

DEFINE_U64_TABLE_FUNCTIONS(threading_method_tables, struct threading_method_table, address);

void threading_types_init(struct threading_types *types, struct module_cache *cache)
{
    struct reader *reader = cache->reader;
    *types = (struct threading_types){.cache = cache, .reads_left = THREADING_READS_MAX};
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    uint64_t core = core_module(reader);
    if (reader_leave(reader, &outer).status >= 0)
        types->core = core;
}

void threading_types_deinit(struct threading_types *types)
{
    threading_method_tables_deinit(&types->known);
    threading_boxes_deinit(&types->boxes);
    threading_async_fields_deinit(&types->async_fields);
}

struct type_search type_search_begin(struct threading_types *types, uint32_t fuel)
{
    struct reader *reader = types->cache->reader;
    struct reader_task outer = reader_enter(reader, fuel);
    return (struct type_search){outer, reader_fuel(reader)};
}

bool type_search_end(struct threading_types *types, const struct type_search *search)
{
    struct reader *reader = types->cache->reader;
    uint32_t reads = (search->fuel - reader_fuel(reader)) / THREADING_STEPS_OF_A_READ;
    types->reads_left -= MIN(reads, types->reads_left);
    return reader_leave(reader, &search->outer).status >= 0;
}

/* Identifies a type of the core library by its own name, not by a base type. False if the name cannot be read. */
static bool identify(struct threading_types *types, uint64_t method_table, enum threading_type *ret)
{
    const struct metadata *metadata;
    uint32_t token;
    if (type_handle_definition(types->cache, method_table, &metadata, &token) != CDACQ_OK)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(type_names); i++) {
        bool equal = false;
        if (metadata_type_is(metadata, token, type_names[i].space, type_names[i].name, &equal) != CDACQ_OK)
            return false;
        if (equal) {
            *ret = type_names[i].type;
            break;
        }
    }
    return true;
}

static struct threading_method_table classify(struct threading_types *types, uint64_t method_table)
{
    struct reader *reader = types->cache->reader;
    struct threading_method_table ret = {.address = method_table};
    enum threading_type type = THREADING_OTHER;
    for (unsigned i = 0; method_table && !type && i < HIERARCHY_MAX && reader_step(reader, "base types"); i++) {
        if (read_field(reader, method_table, F_MethodTable_Module) == types->core)
            ret.unread |= !identify(types, method_table, &type);
        method_table = method_table_parent(reader, method_table);
    }
    ret.unread |= reader_failed(reader);
    ret.type = (uint8_t)(reader_failed(reader) ? THREADING_OTHER : type);
    return ret;
}

static struct threading_method_table find_type(struct threading_types *types, uint64_t object, bool trusted)
{
    struct reader *reader = types->cache->reader;
    struct threading_method_table ret = {.type = THREADING_OTHER, .unread = true};
    if (!types->core || !object || object % reader->pointer_size || !types->reads_left)
        return ret;
    types->reads_left--;
    struct type_search search = type_search_begin(types, FUEL_NAME);
    uint64_t table = object_method_table(reader, object);
    const struct threading_method_table *known =
        reader_failed(reader) ? NULL : threading_method_tables_find(&types->known, table);
    if (known) {
        ret = *known;
    } else if (!reader_failed(reader) && !(table % reader->pointer_size) &&
               (trusted || read_field(reader, table, F_MethodTable_Module) == types->core)) {
        ret = classify(types, table);
        if (types->known.count < THREADING_TYPES_MAX)
            (void)threading_method_tables_insert(&types->known, ret, NULL);
    }
    (void)type_search_end(types, &search);
    return ret;
}

enum threading_type threading_type_of(struct threading_types *types, uint64_t object, bool trusted)
{
    return (enum threading_type)find_type(types, object, trusted).type;
}

bool threading_type_differs(struct threading_types *types, uint64_t object, enum threading_type type)
{
    struct threading_method_table table = find_type(types, object, true);
    return table.type != type && !table.unread;
}

/* Searches for a field once: it has the same offset in every type that is derived from the one that declares it. */
static void find_field(struct threading_types *types, uint64_t object, enum threading_field field)
{
    struct reader *reader = types->cache->reader;
    struct threading_field_place *place = &types->fields[field];
    struct object_field found;
    struct type_search search = type_search_begin(types, FUEL_INDEX);
    uint64_t table = object_method_table(reader, object);
    bool exists = !reader_failed(reader) && object_field_find(types->cache, table, field_names[field].name, &found) &&
                  !found.is_static;
    place->searched = type_search_end(types, &search);
    place->found = place->searched && exists;
    if (place->found)
        place->offset = (uint32_t)object_field_address(reader, 0, &found);
}

bool threading_field_address(struct threading_types *types, uint64_t object, enum threading_field field, uint64_t *ret)
{
    struct threading_field_place *place = &types->fields[field];
    if (!object || !types->reads_left)
        return false;
    types->reads_left--;
    if (!place->searched)
        find_field(types, object, field);
    if (place->found)
        *ret = object + place->offset;
    return place->found;
}

bool threading_read(struct threading_types *types, uint64_t object, enum threading_field field, uint64_t *ret)
{
    struct reader *reader = types->cache->reader;
    uint64_t address;
    if (!threading_field_address(types, object, field, &address))
        return false;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    unsigned width = field_names[field].width ? field_names[field].width : reader->pointer_size;
    uint64_t value = read_uint(reader, address, width);
    if (reader_leave(reader, &outer).status < 0)
        return false;
    *ret = value;
    return true;
}

bool threading_read_optional(struct threading_types *types, uint64_t object, enum threading_field field, uint64_t *ret)
{
    const struct threading_field_place *place = &types->fields[field];
    if (threading_read(types, object, field, ret))
        return true;
    *ret = 0;
    return place->searched && !place->found;
}

bool threading_field_has_handle(struct threading_types *types, uint64_t object, enum threading_field field,
                                uint64_t handle)
{
    uint64_t event, safe;
    return handle && threading_read(types, object, field, &event) && event &&
           threading_read(types, event, THREADING_WAIT_HANDLE_SAFE, &safe) && safe == handle;
}

bool threading_array(struct threading_types *types, uint64_t object, struct object_array *ret)
{
    struct reader *reader = types->cache->reader;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    bool is_array = object_array_read(reader, object, ret) && ret->element_size == reader->pointer_size;
    return reader_leave(reader, &outer).status >= 0 && is_array;
}

bool threading_element(struct threading_types *types, const struct object_array *array, uint64_t index, uint64_t *ret)
{
    struct reader *reader = types->cache->reader;
    if (!types->reads_left)
        return false;
    types->reads_left--;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    *ret = read_pointer(reader, array->elements + index * reader->pointer_size);
    return reader_leave(reader, &outer).status >= 0;
}
