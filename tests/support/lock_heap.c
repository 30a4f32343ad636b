#include "tests/support/lock_heap.h"

#include "src/lookup/opened_session.h"

#include <stdlib.h>

#include "formats/names/signature.h"
#include "src/lookup/opened_target.h"
#include "target/memory.h"
#include "tests/support/layout_support.h"
#include "tests/support/metadata_writer.h"
#include "tests/support/no_files.h"
#include "util/text.h"

enum { CACHE_LINE = 64, THREAD_STATIC = 1 << 24 };

static const struct heap_field {
    enum lock_heap_type type;
    const char *name;
    uint32_t offset; /* from the object */
    uint8_t element;
} heap_fields[] = {
    {LOCK_HEAP_LOCK, "_owningThreadId", LOCK_OWNER, ELEMENT_U4},
    {LOCK_HEAP_LOCK, "_state", LOCK_STATE, ELEMENT_U4},
    {LOCK_HEAP_LOCK, "_recursionCount", LOCK_RECURSION, ELEMENT_U4},
    {LOCK_HEAP_LOCK, "_waitEventOrCondition", LOCK_EVENT_OR_CONDITION, ELEMENT_CLASS},
    {LOCK_HEAP_TASK, "m_action", TASK_ACTION, ELEMENT_CLASS},
    {LOCK_HEAP_TASK, "m_contingentProperties", TASK_CONTINGENT, ELEMENT_CLASS},
    {LOCK_HEAP_TASK, "m_continuationObject", TASK_CONTINUATION, ELEMENT_CLASS},
    {LOCK_HEAP_TASK, "m_stateFlags", TASK_STATE, ELEMENT_I4},
    {LOCK_HEAP_TASK, "m_stateObject", TASK_STATE_OBJECT, ELEMENT_CLASS},
    {LOCK_HEAP_EVENT, "m_lock", EVENT_LOCK, ELEMENT_CLASS},
    {LOCK_HEAP_EVENT, "m_combinedState", EVENT_STATE, ELEMENT_I4},
    {LOCK_HEAP_THREAD, "_joinEvent", THREAD_JOIN, ELEMENT_CLASS},
    {LOCK_HEAP_THREAD, "_waitInfo", THREAD_WAIT, ELEMENT_CLASS},
    {LOCK_HEAP_THREAD, "_DONT_USE_InternalThread", THREAD_INTERNAL, ELEMENT_I},
    {LOCK_HEAP_THREAD, "_isDead", THREAD_DEAD, ELEMENT_BOOLEAN},
    {LOCK_HEAP_LIST, "_items", LIST_ITEMS, ELEMENT_CLASS},
    {LOCK_HEAP_LIST, "_size", LIST_SIZE, ELEMENT_I4},
    {LOCK_HEAP_DELEGATE, "_target", DELEGATE_TARGET, ELEMENT_CLASS},
    {LOCK_HEAP_BOX, "StateMachine", 8, ELEMENT_VALUETYPE},
    {LOCK_HEAP_MACHINE, "<>u__1", FREE_WORDS, ELEMENT_VALUETYPE},
    {LOCK_HEAP_MACHINE, "<>1__state", MACHINE_STATE, ELEMENT_I4},
    {LOCK_HEAP_CONTINGENT, "m_cancellationToken", CONTINGENT_TOKEN, ELEMENT_VALUETYPE},
    {LOCK_HEAP_CONTINGENT, "m_parent", CONTINGENT_PARENT, ELEMENT_CLASS},
    {LOCK_HEAP_READER_WRITER, "_readEvent", RW_READ_EVENT, ELEMENT_CLASS},
    {LOCK_HEAP_READER_WRITER, "_writeEvent", RW_WRITE_EVENT, ELEMENT_CLASS},
    {LOCK_HEAP_READER_WRITER, "_upgradeEvent", RW_UPGRADEABLE_EVENT, ELEMENT_CLASS},
    {LOCK_HEAP_READER_WRITER, "_waitUpgradeEvent", RW_UPGRADE_EVENT, ELEMENT_CLASS},
    {LOCK_HEAP_READER_WRITER, "_owners", RW_OWNERS, ELEMENT_U4},
    {LOCK_HEAP_READER_WRITER, "_writeLockOwnerId", RW_WRITER, ELEMENT_I4},
    {LOCK_HEAP_READER_WRITER, "_upgradeLockOwnerId", RW_UPGRADER, ELEMENT_I4},
    {LOCK_HEAP_READER_WRITER, "_fUpgradeThreadHoldingRead", RW_UPGRADER_READS, ELEMENT_BOOLEAN},
    {LOCK_HEAP_READER_WRITER, "_numReadWaiters", RW_WAITERS, ELEMENT_U4},
    {LOCK_HEAP_READER_WRITER, "_numWriteWaiters", RW_WAITERS + 4, ELEMENT_U4},
    {LOCK_HEAP_READER_WRITER, "_numUpgradeWaiters", RW_WAITERS + 4, ELEMENT_U4},
    {LOCK_HEAP_READER_WRITER, "_numWriteUpgradeWaiters", RW_WAITERS + 4, ELEMENT_U4},
    {LOCK_HEAP_HANDLE, "_waitHandle", HANDLE_SAFE, ELEMENT_CLASS},
    {LOCK_HEAP_POOL, "_minThreads", POOL_MIN, ELEMENT_I2},
    {LOCK_HEAP_POOL, "_maxThreads", POOL_MAX, ELEMENT_I2},
    {LOCK_HEAP_POOL, "_separated", POOL_COUNTS - CACHE_LINE, ELEMENT_VALUETYPE},
    {LOCK_HEAP_WORK_QUEUE, "workItems", WORK_QUEUE_NORMAL, ELEMENT_CLASS},
    {LOCK_HEAP_WORK_QUEUE, "highPriorityWorkItems", WORK_QUEUE_HIGH, ELEMENT_CLASS},
    {LOCK_HEAP_WORK_QUEUE, "_assignableWorkItemQueues", WORK_QUEUE_ASSIGNED, ELEMENT_CLASS},
    {LOCK_HEAP_LOCALS, "workStealingQueue", LOCALS_QUEUE, ELEMENT_CLASS},
    {LOCK_HEAP_STEALING, "m_headIndex", STEALING_HEAD, ELEMENT_I4},
    {LOCK_HEAP_STEALING, "m_tailIndex", STEALING_TAIL, ELEMENT_I4},
    {LOCK_HEAP_STEALING, "m_mask", STEALING_MASK, ELEMENT_I4},
    {LOCK_HEAP_STEALING, "m_array", STEALING_ARRAY, ELEMENT_CLASS},
    {LOCK_HEAP_QUEUE, "_head", QUEUE_HEAD, ELEMENT_CLASS},
    {LOCK_HEAP_SEGMENT, "_nextSegment", SEGMENT_NEXT, ELEMENT_CLASS},
    {LOCK_HEAP_SEGMENT, "_slotsMask", SEGMENT_MASK, ELEMENT_I4},
    {LOCK_HEAP_SEGMENT, "_headAndTail", SEGMENT_ENDS, ELEMENT_VALUETYPE},
    {LOCK_HEAP_SEGMENT, "_slots", SEGMENT_SLOTS, ELEMENT_CLASS},
    {LOCK_HEAP_CONDITION, "_lock", CONDITION_LOCK, ELEMENT_CLASS},
    {LOCK_HEAP_CONDITION, "_waitEvent", CONDITION_EVENT, ELEMENT_CLASS},
    {LOCK_HEAP_WAIT_INFO, "_waitedObjects", WAIT_OBJECTS, ELEMENT_CLASS},
    {LOCK_HEAP_WAIT_INFO, "_waitedCount", WAIT_COUNT, ELEMENT_I4},
    {LOCK_HEAP_WAITABLE, "_ownershipInfo", WAITABLE_OWNER, ELEMENT_CLASS},
    {LOCK_HEAP_OWNERSHIP, "_thread", OWNER_THREAD, ELEMENT_CLASS},
    {LOCK_HEAP_SAFE_HANDLE, "handle", SAFE_HANDLE_VALUE, ELEMENT_I},
    {LOCK_HEAP_TASK_AWAIT, "Task", AWAIT_OBJECT, ELEMENT_CLASS},
    {LOCK_HEAP_TASK_AWAIT, "RuntimeAsyncTask", AWAIT_OF, ELEMENT_CLASS},
    {LOCK_HEAP_SOURCE_AWAIT, "Source", AWAIT_OBJECT, ELEMENT_CLASS},
    {LOCK_HEAP_DISPATCHER, "Next", DISPATCHER_NEXT + 8, ELEMENT_I}, /* a struct, which has no method table */
    {LOCK_HEAP_DISPATCHER, "NextContinuation", DISPATCHER_CONTINUATION + 8, ELEMENT_CLASS},
    {LOCK_HEAP_DISPATCHER, "CurrentTask", DISPATCHER_TASK + 8, ELEMENT_CLASS},
    {LOCK_HEAP_DISPATCHER, "t_current", THREAD_STATIC | (DISPATCHER_CURRENT + 8), ELEMENT_I},
    {LOCK_HEAP_ALL, "m_tasks", ALL_TASKS, ELEMENT_CLASS},
};

static const char *const type_names[LOCK_HEAP_TYPES][2] = {
    {"System", "Object"},
    {"System.Threading", "Lock"},
    {"System.Threading.Tasks", "Task"},
    {"System.Threading", "ManualResetEventSlim"},
    {"System.Threading", "Thread"},
    {"System.Collections.Generic", "List`1"},
    {"System", "Delegate"},
    {"N", "Work"},
    {"", "TwoTaskWhenAnyPromise`1"},
    {"", "CancellationPromise`1"},
    {"", "AsyncStateMachineBox`1"},
    {"N", "<M>d__0"},
    {"", "ContingentProperties"},
    {"System.Threading", "CancellationTokenSource"},
    {"System.Threading", "ReaderWriterLockSlim"},
    {"System.Threading", "WaitHandle"},
    {"System.Threading", "PortableThreadPool"},
    {"System.Threading", "ThreadPoolWorkQueue"},
    {"System.Threading", "ThreadPoolWorkQueueThreadLocals"},
    {"", "WorkStealingQueue"},
    {"System.Collections.Concurrent", "ConcurrentQueue`1"},
    {"System.Collections.Concurrent", "ConcurrentQueueSegment`1"},
    {"System.Threading", "Condition"},
    {"", "ThreadWaitInfo"},
    {"", "WaitableObject"},
    {"", "OwnershipInfo"},
    {"Microsoft.Win32.SafeHandles", "SafeWaitHandle"},
    {"", "RuntimeAsyncTask`1"},
    {"System.Runtime.CompilerServices", "Continuation"},
    {"System.Runtime.CompilerServices", "RuntimeAsyncTaskContinuation"},
    {"", "ValueTaskSourceContinuation"},
    {"System.Runtime.CompilerServices", "AsyncDispatcherInfo"},
    {"", "WhenAllPromise`1"},
};

enum {
    FIRST_TYPE = 2,
    OBJECT_SIZE = 72, /* with the header */
    MT_INSTANCE = 0x10,
};

/* ---- Memory ---- */

void lock_heap_put(struct lock_heap *heap, uint64_t address, uint64_t value, unsigned width)
{
    uint8_t *at = heap->bytes + (address - LOCK_HEAP_BASE);
    for (unsigned i = 0; i < width; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

uint64_t lock_heap_get(const struct lock_heap *heap, uint64_t address)
{
    return load_u64(heap->bytes + (address - LOCK_HEAP_BASE), false);
}

void lock_heap_set(struct lock_heap *heap, uint64_t base, enum layout_field field, uint64_t value)
{
    const struct layout_slot *slot = &heap->target.layout.fields[field];
    if (!slot->present)
        abort(); /* this release does not describe it */
    lock_heap_put(heap, base + slot->offset, value, slot->width);
}

static uint64_t allocate(struct lock_heap *heap, uint64_t size)
{
    uint64_t address = heap->end;
    heap->end += align_up(size, 8);
    if (heap->end > LOCK_HEAP_BASE + LOCK_HEAP_SIZE)
        abort();
    return address;
}

/* ---- Types ---- */

/* The row of a field: those of a LOCK_HEAP_MACHINE are followed by its variables. */
static uint32_t field_rid(size_t i)
{
    return (uint32_t)i + 1 + (heap_fields[i].type > LOCK_HEAP_MACHINE ? LOCK_HEAP_VARIABLES : 0);
}

static uint8_t *write_metadata(size_t *ret_size)
{
    static const uint8_t signature[] = {0x06, ELEMENT_OBJECT};
    struct metadata_writer w;
    uint32_t field = 1;
    metadata_writer_init(&w);
    uint32_t blob = metadata_writer_blob(&w, signature, sizeof signature);
    for (unsigned type = 0; type < LOCK_HEAP_TYPES; type++) {
        uint32_t name = metadata_writer_string(&w, type_names[type][1]);
        METADATA_ROW(&w, METADATA_TYPE_DEF, 1, name, metadata_writer_string(&w, type_names[type][0]), 0, field, 1);
        for (size_t i = 0; i < ARRAY_SIZE(heap_fields); i++)
            field += heap_fields[i].type == type;
        field += type == LOCK_HEAP_MACHINE ? LOCK_HEAP_VARIABLES : 0;
    }
    for (size_t i = 0, rid = 1; i < ARRAY_SIZE(heap_fields); i++, rid++) {
        for (; rid < field_rid(i); rid++)
            METADATA_ROW(&w, METADATA_FIELD, 1, metadata_writer_string(&w, "variable"), blob);
        METADATA_ROW(&w, METADATA_FIELD, 1, metadata_writer_string(&w, heap_fields[i].name), blob);
    }
    uint8_t *metadata = metadata_writer_finish(&w, ret_size);
    metadata_writer_deinit(&w);
    return metadata;
}

static void add_bytes(struct lock_heap *heap, uint64_t address, const uint8_t *bytes, size_t size)
{
    memcpy(heap->bytes + (address - LOCK_HEAP_BASE), bytes, size);
}

/* What a Module refers to for its metadata. */
static uint64_t add_dynamic_metadata(struct lock_heap *heap, const uint8_t *metadata, size_t size)
{
    uint64_t buffer = allocate(heap, 32 + size), data = buffer + 32;
    if (heap->is_net11) {
        data = buffer + heap->target.layout.fields[F_DynamicMetadata_Data].offset;
        lock_heap_set(heap, buffer, F_DynamicMetadata_Size, size);
    } else {
        lock_heap_set(heap, buffer, F_SBuffer_Size, size);
        lock_heap_set(heap, buffer, F_SBuffer_Buffer, data);
    }
    add_bytes(heap, data, metadata, size);
    return buffer;
}

/* With a map of its types in .NET 11. */
static uint64_t add_module(struct lock_heap *heap, uint64_t metadata)
{
    uint64_t module = allocate(heap, 2048);
    if (!heap->is_net11) {
        lock_heap_set(heap, module, F_Module_DynamicMetadataSBuffer, metadata);
        return module;
    }
    uint64_t map = module + heap->target.layout.fields[F_Module_TypeDefToMethodTableMap].offset;
    lock_heap_set(heap, module, F_Module_DynamicMetadata, metadata);
    lock_heap_set(heap, map, F_ModuleLookupMap_Count, FIRST_TYPE + LOCK_HEAP_TYPES);
    lock_heap_set(heap, map, F_ModuleLookupMap_TableData, allocate(heap, 8 * (FIRST_TYPE + LOCK_HEAP_TYPES)));
    return module;
}

static uint64_t add_table(struct lock_heap *heap, uint32_t rid, uint32_t flags, uint32_t base_size, uint64_t parent,
                          uint64_t module)
{
    uint64_t table = allocate(heap, 64), class = allocate(heap, 64);
    lock_heap_set(heap, table, F_MethodTable_MTFlags, flags);
    lock_heap_set(heap, table, F_MethodTable_BaseSize, base_size);
    if (heap->is_net11)
        lock_heap_set(heap, table, F_MethodTable_MTFlags2, (uint64_t)rid << 8);
    else
        lock_heap_set(heap, table, F_MethodTable_TypeDefRid, rid);
    lock_heap_set(heap, table, F_MethodTable_ParentMethodTable, parent);
    lock_heap_set(heap, table, F_MethodTable_Module, module);
    lock_heap_set(heap, table, F_MethodTable_EEClassOrCanonMT, class);
    return table;
}

static void add_field_descs(struct lock_heap *heap, unsigned type)
{
    uint64_t first = heap->end;
    for (size_t i = 0; i < ARRAY_SIZE(heap_fields); i++) {
        if (heap_fields[i].type != type)
            continue;
        uint64_t desc = allocate(heap, 16);
        uint32_t is_static = heap_fields[i].offset & THREAD_STATIC ? 3u << 24 : 0; /* and one for each thread */
        lock_heap_set(heap, desc, F_FieldDesc_DWord1, field_rid(i) | is_static);
        lock_heap_set(heap, desc, F_FieldDesc_DWord2,
                      ((heap_fields[i].offset & ~(uint32_t)THREAD_STATIC) - 8) | (uint32_t)heap_fields[i].element
                                                                                     << 27);
    }
    lock_heap_set(heap, heap->tables[type] + 64, F_EEClass_FieldDescList, first);
}

static bool is_of_program(unsigned type)
{
    return type == LOCK_HEAP_OTHER || type == LOCK_HEAP_MACHINE;
}

static uint64_t parent_of(const struct lock_heap *heap, unsigned type)
{
    bool is_task = type == LOCK_HEAP_OTHER || type == LOCK_HEAP_ANY || type == LOCK_HEAP_TIMED ||
                   type == LOCK_HEAP_BOX || type == LOCK_HEAP_RUNTIME_ASYNC || type == LOCK_HEAP_ALL;
    if (type == LOCK_HEAP_TASK_AWAIT || type == LOCK_HEAP_SOURCE_AWAIT)
        return heap->tables[LOCK_HEAP_CONTINUATION];
    return is_task ? heap->tables[LOCK_HEAP_TASK] : type ? heap->tables[LOCK_HEAP_OBJECT] : 0;
}

/* Makes `type` an instance whose argument is `argument`. */
static void instantiate(struct lock_heap *heap, enum lock_heap_type type, uint64_t argument)
{
    uint64_t info = allocate(heap, 8), dictionaries = allocate(heap, 8), arguments = allocate(heap, 8);
    lock_heap_set(heap, info, F_GenericsDictInfo_NumDicts, 1);
    lock_heap_set(heap, info, F_GenericsDictInfo_NumTypeArgs, 1);
    lock_heap_put(heap, dictionaries, arguments, 8);
    lock_heap_put(heap, arguments, argument, 8);
    lock_heap_set(heap, heap->tables[type], F_MethodTable_PerInstInfo, dictionaries);
    lock_heap_set(heap, heap->tables[type], F_MethodTable_MTFlags, MT_INSTANCE);
}

static void add_types(struct lock_heap *heap)
{
    size_t size;
    uint8_t *metadata = write_metadata(&size);
    uint64_t data = add_dynamic_metadata(heap, metadata, size);
    free(metadata);
    heap->core = add_module(heap, data);
    heap->program = add_module(heap, data);
    for (unsigned type = 0; type < LOCK_HEAP_TYPES; type++) {
        heap->tables[type] = add_table(heap, FIRST_TYPE + type, 0, OBJECT_SIZE, parent_of(heap, type),
                                       is_of_program(type) ? heap->program : heap->core);
        add_field_descs(heap, type);
    }
    instantiate(heap, LOCK_HEAP_BOX, heap->tables[LOCK_HEAP_MACHINE]);
    heap->references_table = add_table(heap, FIRST_TYPE, 0x800a0008, 24, heap->tables[0], heap->core);
    heap->slots_table = add_table(heap, FIRST_TYPE, 0x800a0010, 24, heap->tables[0], heap->core);
}

/* ---- Objects ---- */

uint64_t lock_heap_object(struct lock_heap *heap, enum lock_heap_type type)
{
    uint64_t size = type == LOCK_HEAP_POOL ? OBJECT_SIZE + 2 * CACHE_LINE : OBJECT_SIZE;
    uint64_t object = allocate(heap, size) + 8; /* after its header */
    lock_heap_set(heap, object, F_Object_m_pMethTab, heap->tables[type]);
    return object;
}

static uint64_t add_array(struct lock_heap *heap, const uint64_t *objects, uint32_t count)
{
    uint64_t array = allocate(heap, 24 + count * UINT64_C(8)) + 8;
    lock_heap_set(heap, array, F_Object_m_pMethTab, heap->references_table);
    lock_heap_set(heap, array, F_Array_m_NumComponents, count);
    for (uint32_t i = 0; i < count; i++)
        lock_heap_put(heap, array + 16 + i * UINT64_C(8), objects[i], 8);
    return array;
}

uint64_t lock_heap_list(struct lock_heap *heap, const uint64_t *objects, uint32_t count)
{
    uint64_t list = lock_heap_object(heap, LOCK_HEAP_LIST), items = add_array(heap, objects, count);
    lock_heap_put(heap, list + LIST_ITEMS, items, 8);
    lock_heap_put(heap, list + LIST_SIZE, count, 4);
    return list;
}

/* The slots of a segment: those in use have a reference, which is the position and not that of an object. */
static uint64_t add_slots(struct lock_heap *heap, const uint32_t ends[2], uint32_t slots)
{
    uint64_t array = allocate(heap, 24 + slots * UINT64_C(16)) + 8;
    lock_heap_set(heap, array, F_Object_m_pMethTab, heap->slots_table);
    lock_heap_set(heap, array, F_Array_m_NumComponents, slots);
    for (uint32_t i = 0; i < slots && ends[0] + i != ends[1]; i++) {
        uint64_t slot = array + 16 + (ends[0] + i) % slots * UINT64_C(16);
        lock_heap_put(heap, slot, LOCK_HEAP_ITEM + ends[0] + i, 8);
        lock_heap_put(heap, slot + 8, ends[0] + i + 1, 4);
    }
    return array;
}

uint64_t lock_heap_queue(struct lock_heap *heap, const uint32_t (*ends)[2], size_t count, uint32_t slots)
{
    uint64_t queue = lock_heap_object(heap, LOCK_HEAP_QUEUE), link = queue + QUEUE_HEAD;
    for (size_t i = 0; i < count; i++) {
        uint64_t segment = lock_heap_object(heap, LOCK_HEAP_SEGMENT);
        allocate(heap, 4 * CACHE_LINE); /* the end of the segment: an object is smaller */
        lock_heap_put(heap, link, segment, 8);
        lock_heap_put(heap, segment + SEGMENT_MASK, slots - 1, 4);
        lock_heap_put(heap, segment + SEGMENT_ENDS + CACHE_LINE, ends[i][0], 4);
        lock_heap_put(heap, segment + SEGMENT_ENDS + 2 * CACHE_LINE, ends[i][1] + (i + 1 < count ? 2 * slots : 0), 4);
        lock_heap_put(heap, segment + SEGMENT_SLOTS, add_slots(heap, ends[i], slots), 8);
        link = segment + SEGMENT_NEXT;
    }
    return queue;
}

void lock_heap_hold(struct lock_heap *heap, unsigned monitor, int owner, uint32_t recursion, uint32_t waiters)
{
    if (heap->is_net11) {
        uint64_t lock = heap->locks[monitor];
        lock_heap_put(heap, lock + LOCK_OWNER, (uint64_t)(owner + 1), 4); /* the runtime's id; 0: none */
        lock_heap_put(heap, lock + LOCK_STATE, (owner >= 0) | waiters << 7, 4);
        lock_heap_put(heap, lock + LOCK_RECURSION, recursion, 4);
        return;
    }
    uint64_t block = heap->blocks[monitor];
    lock_heap_set(heap, block, F_SyncBlock_LockState, (owner >= 0) | waiters << 6);
    lock_heap_set(heap, block, F_SyncBlock_Recursion, owner >= 0 ? recursion + 1 : 0);
    lock_heap_set(heap, block, F_SyncBlock_HoldingThread, owner >= 0 ? heap->threads[owner] : 0);
}

void lock_heap_block(struct lock_heap *heap, unsigned thread, unsigned monitor, uint32_t kind)
{
    lock_heap_set(heap, heap->threads[thread], F_Thread_DebugBlockingInfo, heap->items[thread]);
    lock_heap_set(heap, heap->items[thread], F_DebugBlockingItem_pMonitor, heap->blocks[monitor]);
    lock_heap_set(heap, heap->items[thread], F_DebugBlockingItem_type, kind);
    lock_heap_set(heap, heap->items[thread], F_DebugBlockingItem_dwTimeout, UINT32_MAX);
}

/* ---- .NET 11 ---- */

/* The slot of a handle. */
static uint64_t add_handle(struct lock_heap *heap, uint64_t object)
{
    uint64_t handle = allocate(heap, 8);
    lock_heap_put(heap, handle, object, 8);
    return handle;
}

uint64_t lock_heap_handle(struct lock_heap *heap, uint64_t *ret_waitable)
{
    uint64_t handle = lock_heap_object(heap, LOCK_HEAP_HANDLE), safe = lock_heap_object(heap, LOCK_HEAP_SAFE_HANDLE);
    *ret_waitable = lock_heap_object(heap, LOCK_HEAP_WAITABLE);
    lock_heap_put(heap, handle + HANDLE_SAFE, safe, 8);
    lock_heap_put(heap, safe + SAFE_HANDLE_VALUE, add_handle(heap, *ret_waitable), 8);
    return handle;
}

void lock_heap_register(struct lock_heap *heap, unsigned thread, const uint64_t *waitables, uint32_t count)
{
    uint64_t info = lock_heap_object(heap, LOCK_HEAP_WAIT_INFO);
    lock_heap_put(heap, heap->objects[thread] + THREAD_WAIT, info, 8);
    lock_heap_put(heap, info + WAIT_OBJECTS, add_array(heap, waitables, count), 8);
    lock_heap_put(heap, info + WAIT_COUNT, count, 4);
}

void lock_heap_record(struct lock_heap *heap, unsigned thread, uint64_t object, int32_t timeout)
{
    enum { KIND_LOCK = 2, KIND_CONDITION = 3 };
    bool is_condition = lock_heap_get(heap, object) == heap->tables[LOCK_HEAP_CONDITION];
    uint64_t reference = heap->stacks[thread] + 8;
    lock_heap_put(heap, reference, object, 8);
    lock_heap_put(heap, reference + 8, reference, 8);
    lock_heap_put(heap, reference + 16, is_condition ? KIND_CONDITION : KIND_LOCK, 4);
    lock_heap_put(heap, reference + 20, (uint32_t)timeout, 4);
}

struct cdacq_frame lock_heap_frame(const struct lock_heap *heap, unsigned thread)
{
    return (struct cdacq_frame){.size = sizeof(struct cdacq_frame),
                                .sp = heap->stacks[thread],
                                .cfa = heap->stacks[thread] + LOCK_HEAP_STACK_WORDS * UINT64_C(8)};
}

uint64_t lock_heap_continuation(struct lock_heap *heap, enum lock_heap_type type, uint64_t next, uint64_t pc)
{
    uint64_t object = lock_heap_object(heap, type), info = pc ? allocate(heap, 16) : 0;
    lock_heap_set(heap, object, F_ContinuationObject_Next, next);
    lock_heap_set(heap, object, F_ContinuationObject_ResumeInfo, info);
    if (info)
        lock_heap_set(heap, info, F_AsyncResumeInfo_DiagnosticIP, pc);
    return object;
}

uint64_t lock_heap_dispatch(struct lock_heap *heap, unsigned thread, uint64_t task, uint64_t continuation)
{
    uint64_t info = allocate(heap, 32), current = heap->thread_data[thread] + DISPATCHER_CURRENT;
    lock_heap_put(heap, info + DISPATCHER_NEXT, lock_heap_get(heap, current), 8);
    lock_heap_put(heap, info + DISPATCHER_CONTINUATION, continuation, 8);
    lock_heap_put(heap, info + DISPATCHER_TASK, task, 8);
    lock_heap_put(heap, current, info, 8);
    return info;
}

/* The type has its thread-static fields at the start of a thread's data. */
static void add_thread_statics(struct lock_heap *heap)
{
    enum { DIRECT = 2 << 24 };
    uint64_t module_map = heap->core + heap->target.layout.fields[F_Module_TypeDefToMethodTableMap].offset;
    uint64_t types = lock_heap_get(heap, module_map + heap->target.layout.fields[F_ModuleLookupMap_TableData].offset);
    uint64_t size = heap->target.layout.sizes[T_ThreadStaticsInfo];
    uint64_t info = allocate(heap, size + 32);
    for (unsigned type = 0; type < LOCK_HEAP_TYPES; type++)
        lock_heap_put(heap, types + 8 * (uint64_t)(FIRST_TYPE + type), heap->tables[type], 8);
    lock_heap_put(heap,
                  info + heap->target.layout.fields[F_ThreadStaticsInfo_NonGCTlsIndex].offset +
                      heap->target.layout.fields[F_TLSIndex_TLSIndexRawIndex].offset,
                  DIRECT, 4);
    lock_heap_set(heap, heap->tables[LOCK_HEAP_DISPATCHER], F_MethodTable_AuxiliaryData, info + size);
    for (unsigned i = 0; i < LOCK_HEAP_THREADS; i++) {
        heap->thread_data[i] = allocate(heap, DISPATCHER_CURRENT + 8);
        lock_heap_set(heap, heap->threads[i], F_Thread_ThreadLocalDataPtr, heap->thread_data[i]);
    }
}

static void add_net11(struct lock_heap *heap)
{
    lock_heap_set(heap, heap->store, F_ThreadStore_FirstThreadLink, heap->threads[0]);
    for (unsigned i = 0; i < LOCK_HEAP_THREADS; i++) {
        lock_heap_set(heap, heap->threads[i], F_Thread_LinkNext, i + 1 < LOCK_HEAP_THREADS ? heap->threads[i + 1] : 0);
        heap->objects[i] = lock_heap_object(heap, LOCK_HEAP_THREAD);
        lock_heap_put(heap, heap->objects[i] + THREAD_INTERNAL, heap->threads[i], 8);
        lock_heap_set(heap, heap->threads[i], F_Thread_ExposedObject, add_handle(heap, heap->objects[i]));
        heap->stacks[i] = allocate(heap, LOCK_HEAP_STACK_WORDS * UINT64_C(8));
    }
    for (unsigned i = 1; i <= LOCK_HEAP_BLOCKS; i++) {
        heap->locks[i] = lock_heap_object(heap, LOCK_HEAP_LOCK);
        lock_heap_set(heap, heap->blocks[i], F_SyncBlock_Lock, add_handle(heap, heap->locks[i]));
    }
    add_thread_statics(heap);
}

/* ---- The target ---- */

static void add_objects(struct lock_heap *heap)
{
    heap->objects_begin = heap->end;
    for (unsigned i = 0; i < LOCK_HEAP_THREADS; i++) {
        heap->threads[i] = allocate(heap, 1600);
        heap->items[i] = allocate(heap, 32);
        lock_heap_set(heap, heap->threads[i], F_Thread_Id, i + 1);
        lock_heap_set(heap, heap->threads[i], F_Thread_OSId, 101 + i);
        lock_heap_set(heap, heap->threads[i], F_Thread_Frame, UINT64_MAX);
    }
    heap->store = allocate(heap, 256);
    uint64_t link = heap->store + heap->target.layout.fields[F_ThreadStore_FirstThreadLink].offset;
    for (unsigned i = 0; i < LOCK_HEAP_THREADS; i++) { /* a link leads to the next link */
        uint64_t next = heap->threads[i] + heap->target.layout.fields[F_Thread_LinkNext].offset;
        lock_heap_put(heap, link, next, 8);
        link = next;
    }
    heap->table = allocate(heap, (LOCK_HEAP_BLOCKS + 1) * 16);
    heap->cache = allocate(heap, 256);
    lock_heap_set(heap, heap->cache, F_SyncBlockCache_FreeSyncTableIndex, LOCK_HEAP_BLOCKS + 1);
    for (unsigned i = 1; i <= LOCK_HEAP_BLOCKS; i++) {
        heap->blocks[i] = allocate(heap, 96);
        heap->monitors[i] = lock_heap_object(heap, LOCK_HEAP_OBJECT);
        if (!heap->is_net11)
            lock_heap_set(heap, heap->blocks[i], F_SyncBlock_m_dwSyncIndex, 0x80000000 | i);
        lock_heap_set(heap, heap->table + i * UINT64_C(16), F_SyncTableEntry_SyncBlock, heap->blocks[i]);
        lock_heap_set(heap, heap->table + i * UINT64_C(16), F_SyncTableEntry_Object, heap->monitors[i]);
        lock_heap_put(heap, heap->monitors[i] - 4, 0x08000000 | i, 4);
    }
}

static bool span_at(uint64_t address, uint64_t *ret_begin, uint64_t *ret_end, const void **ret_bytes, void *context)
{
    const struct lock_heap *heap = context;
    if (address < LOCK_HEAP_BASE || address >= LOCK_HEAP_BASE + LOCK_HEAP_SIZE)
        return false;
    *ret_begin = LOCK_HEAP_BASE;
    *ret_end = LOCK_HEAP_BASE + LOCK_HEAP_SIZE;
    *ret_bytes = heap->bytes;
    return true;
}

static void bind_layout(struct lock_heap *heap)
{
    if (heap->is_net11)
        layout_of_net11_x64(&heap->target.layout);
    else
        layout_of_net8_x64(&heap->target.layout);
    heap->target.layout.architecture = ARCHITECTURE_X64;
    heap->target.layout.usable = UINT32_MAX;
}

/* A variable of the runtime that holds a pointer. */
static void add_global(struct lock_heap *heap, enum layout_global global, uint64_t value)
{
    uint64_t variable = allocate(heap, 8);
    lock_heap_put(heap, variable, value, 8);
    heap->target.layout.globals[global] = variable;
    heap->target.layout.global_present[global] = true;
}

static void init(struct lock_heap *heap, bool is_net11)
{
    struct cdacq_error error;
    *heap = (struct lock_heap){.end = LOCK_HEAP_BASE, .is_net11 = is_net11};
    bind_layout(heap);
    add_types(heap);
    add_global(heap, G_StringMethodTable, heap->tables[LOCK_HEAP_OBJECT]); /* any type of the core library */
    uint64_t variables = heap->end;
    heap->end += 32;
    add_objects(heap);
    uint64_t end = heap->end;
    heap->end = variables;
    add_global(heap, G_SyncTableEntries, heap->table);
    add_global(heap, G_SyncBlockCache, heap->cache);
    add_global(heap, G_ThreadStore, heap->store);
    if (is_net11)
        add_global(heap, G_ContinuationMethodTable, heap->tables[LOCK_HEAP_CONTINUATION]);
    heap->end = end;
    const struct cdacq_memory memory = {.size = sizeof memory, .context = heap, .span_at = span_at};
    if (memory_open(&memory, NULL, false, &heap->target.memory, &error) < 0)
        abort();
    heap->target.descriptor_info.pointer_size = 8;
    resolver_init(&heap->session.resolver, &heap->target, no_files);
    reader_begin(&heap->session.resolver.reader, FUEL_INDEX);
}

void lock_heap_init(struct lock_heap *heap)
{
    init(heap, false);
}

void lock_heap_init_net11(struct lock_heap *heap)
{
    init(heap, true);
    add_net11(heap);
}

void lock_heap_deinit(struct lock_heap *heap)
{
    resolver_deinit(&heap->session.resolver);
    target_destroy(heap->target.memory);
}

struct cdacq_thread lock_heap_thread(const struct lock_heap *heap, unsigned thread)
{
    return (struct cdacq_thread){.size = sizeof(struct cdacq_thread),
                                 .tid = 101 + (int)thread,
                                 .thread = heap->threads[thread],
                                 .managed_id = thread + 1};
}

void lock_heap_add_threads(struct lock_heap *heap, struct cdacq_wait_graph *graph)
{
    for (unsigned i = 0; i < LOCK_HEAP_THREADS; i++) {
        struct cdacq_thread thread = lock_heap_thread(heap, i);
        thread.name = "n";
        cdacq_wait_graph_add_thread(graph, &thread);
    }
}
