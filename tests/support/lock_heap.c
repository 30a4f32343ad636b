#include "tests/support/lock_heap.h"

#include "src/api/question.h"

#include <stdlib.h>

#include "formats/names/signature.h"
#include "target/memory.h"
#include "tests/support/layout_support.h"
#include "tests/support/metadata_writer.h"
#include "tests/support/no_files.h"

enum { CACHE_LINE = 64 };

static const struct heap_field {
    enum lock_heap_type type;
    const char *name;
    uint32_t offset; /* from the object */
    uint8_t element;
} heap_fields[] = {
    {LOCK_HEAP_LOCK, "_owningThreadId", LOCK_OWNER, ELEMENT_U4},
    {LOCK_HEAP_LOCK, "_state", LOCK_STATE, ELEMENT_U4},
    {LOCK_HEAP_LOCK, "_recursionCount", LOCK_RECURSION, ELEMENT_U4},
    {LOCK_HEAP_TASK, "m_action", TASK_ACTION, ELEMENT_CLASS},
    {LOCK_HEAP_TASK, "m_contingentProperties", TASK_CONTINGENT, ELEMENT_CLASS},
    {LOCK_HEAP_TASK, "m_continuationObject", TASK_CONTINUATION, ELEMENT_CLASS},
    {LOCK_HEAP_TASK, "m_stateFlags", TASK_STATE, ELEMENT_I4},
    {LOCK_HEAP_EVENT, "m_lock", EVENT_LOCK, ELEMENT_CLASS},
    {LOCK_HEAP_EVENT, "m_combinedState", EVENT_STATE, ELEMENT_I4},
    {LOCK_HEAP_THREAD, "_DONT_USE_InternalThread", THREAD_INTERNAL, ELEMENT_I},
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
    {LOCK_HEAP_QUEUE, "_head", QUEUE_HEAD, ELEMENT_CLASS},
    {LOCK_HEAP_SEGMENT, "_nextSegment", SEGMENT_NEXT, ELEMENT_CLASS},
    {LOCK_HEAP_SEGMENT, "_slotsMask", SEGMENT_MASK, ELEMENT_I4},
    {LOCK_HEAP_SEGMENT, "_headAndTail", SEGMENT_ENDS, ELEMENT_VALUETYPE},
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

static uint64_t add_module(struct lock_heap *heap, uint64_t metadata, size_t size)
{
    uint64_t buffer = allocate(heap, 32), module = allocate(heap, 2048);
    lock_heap_set(heap, buffer, F_SBuffer_Size, size);
    lock_heap_set(heap, buffer, F_SBuffer_Buffer, metadata);
    lock_heap_set(heap, module, F_Module_DynamicMetadataSBuffer, buffer);
    return module;
}

static uint64_t add_table(struct lock_heap *heap, uint32_t rid, uint32_t flags, uint32_t base_size, uint64_t parent,
                          uint64_t module)
{
    uint64_t table = allocate(heap, 64), class = allocate(heap, 64);
    lock_heap_set(heap, table, F_MethodTable_MTFlags, flags);
    lock_heap_set(heap, table, F_MethodTable_BaseSize, base_size);
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
        lock_heap_set(heap, desc, F_FieldDesc_DWord1, field_rid(i));
        lock_heap_set(heap, desc, F_FieldDesc_DWord2,
                      (heap_fields[i].offset - 8) | (uint32_t)heap_fields[i].element << 27);
    }
    lock_heap_set(heap, heap->tables[type] + 64, F_EEClass_FieldDescList, first);
}

static bool is_of_program(unsigned type)
{
    return type == LOCK_HEAP_OTHER || type == LOCK_HEAP_MACHINE;
}

static uint64_t parent_of(const struct lock_heap *heap, unsigned type)
{
    bool is_task = type == LOCK_HEAP_OTHER || type == LOCK_HEAP_ANY || type == LOCK_HEAP_TIMED || type == LOCK_HEAP_BOX;
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
    uint64_t data = allocate(heap, size);
    memcpy(heap->bytes + (data - LOCK_HEAP_BASE), metadata, size);
    free(metadata);
    heap->core = add_module(heap, data, size);
    heap->program = add_module(heap, data, size);
    for (unsigned type = 0; type < LOCK_HEAP_TYPES; type++) {
        heap->tables[type] = add_table(heap, FIRST_TYPE + type, 0, OBJECT_SIZE, parent_of(heap, type),
                                       is_of_program(type) ? heap->program : heap->core);
        add_field_descs(heap, type);
    }
    instantiate(heap, LOCK_HEAP_BOX, heap->tables[LOCK_HEAP_MACHINE]);
    heap->references_table = add_table(heap, FIRST_TYPE, 0x800a0008, 24, heap->tables[0], heap->core);
}

/* ---- Objects ---- */

uint64_t lock_heap_object(struct lock_heap *heap, enum lock_heap_type type)
{
    uint64_t size = type == LOCK_HEAP_POOL ? OBJECT_SIZE + 2 * CACHE_LINE : OBJECT_SIZE;
    uint64_t object = allocate(heap, size) + 8; /* after its header */
    lock_heap_set(heap, object, F_Object_m_pMethTab, heap->tables[type]);
    return object;
}

uint64_t lock_heap_list(struct lock_heap *heap, const uint64_t *objects, uint32_t count)
{
    uint64_t list = lock_heap_object(heap, LOCK_HEAP_LIST), items = allocate(heap, 24 + count * UINT64_C(8)) + 8;
    lock_heap_set(heap, items, F_Object_m_pMethTab, heap->references_table);
    lock_heap_set(heap, items, F_Array_m_NumComponents, count);
    for (uint32_t i = 0; i < count; i++)
        lock_heap_put(heap, items + 16 + i * UINT64_C(8), objects[i], 8);
    lock_heap_put(heap, list + LIST_ITEMS, items, 8);
    lock_heap_put(heap, list + LIST_SIZE, count, 4);
    return list;
}

uint64_t lock_heap_queue(struct lock_heap *heap, const uint32_t (*ends)[2], size_t count, uint32_t slots)
{
    uint64_t queue = lock_heap_object(heap, LOCK_HEAP_QUEUE), link = queue + QUEUE_HEAD;
    for (size_t i = 0; i < count; i++) {
        uint64_t segment = lock_heap_object(heap, LOCK_HEAP_SEGMENT);
        allocate(heap, 3 * CACHE_LINE); /* the end of the segment: an object is smaller */
        lock_heap_put(heap, link, segment, 8);
        lock_heap_put(heap, segment + SEGMENT_MASK, slots - 1, 4);
        lock_heap_put(heap, segment + SEGMENT_ENDS + CACHE_LINE, ends[i][0], 4);
        lock_heap_put(heap, segment + SEGMENT_ENDS + 2 * CACHE_LINE, ends[i][1] + (i + 1 < count ? 2 * slots : 0), 4);
        link = segment + SEGMENT_NEXT;
    }
    return queue;
}

void lock_heap_hold(struct lock_heap *heap, unsigned monitor, int owner, uint32_t recursion, uint32_t waiters)
{
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
        lock_heap_set(heap, heap->blocks[i], F_SyncBlock_m_dwSyncIndex, 0x80000000 | i);
        lock_heap_set(heap, heap->table + i * UINT64_C(16), F_SyncTableEntry_SyncBlock, heap->blocks[i]);
        lock_heap_set(heap, heap->table + i * UINT64_C(16), F_SyncTableEntry_Object, heap->monitors[i]);
        lock_heap_put(heap, heap->monitors[i] - 4, 0x08000000 | i, 4);
    }
}

/* ---- The target ---- */

static bool span_at(void *context, uint64_t address, uint64_t *ret_begin, uint64_t *ret_end, const void **ret_bytes)
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

void lock_heap_init(struct lock_heap *heap)
{
    struct cdacq_error error;
    *heap = (struct lock_heap){.end = LOCK_HEAP_BASE};
    bind_layout(heap);
    add_types(heap);
    add_global(heap, G_StringMethodTable, heap->tables[LOCK_HEAP_OBJECT]); /* any type of the core library */
    uint64_t variables = heap->end;
    heap->end += 24;
    add_objects(heap);
    uint64_t end = heap->end;
    heap->end = variables;
    add_global(heap, G_SyncTableEntries, heap->table);
    add_global(heap, G_SyncBlockCache, heap->cache);
    add_global(heap, G_ThreadStore, heap->store);
    heap->end = end;
    const struct cdacq_memory memory = {.size = sizeof memory, .context = heap, .span_at = span_at};
    if (memory_open(&memory, NULL, false, &heap->target.target, &error) < 0)
        abort();
    heap->session.target = &heap->target;
    field_reader_init(&heap->session.reader, heap->target.target, &heap->target.layout, 8, false);
    module_cache_init(&heap->session.modules, &heap->session.reader, no_files);
    reader_begin(&heap->session.reader.raw, FUEL_INDEX);
}

void lock_heap_deinit(struct lock_heap *heap)
{
    session_question_deinit(&heap->session);
    module_cache_deinit(&heap->session.modules);
    arena_deinit(&heap->session.arena);
    target_destroy(heap->target.target);
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
