#include "tests/support/gc_mock.h"

#include <stdlib.h>

#include "target/memory.h"
#include "tests/support/layout_support.h"

enum {
    GENERATION_SIZE = 0x100,
    START_SEGMENT = 56, /* in a generation */
    ALLOCATION_START = 64,
    ALLOC_ALLOCATED = 0x20, /* in a heap of server GC */
    EPHEMERAL_SEGMENT = 0x28,
    FINALIZE_QUEUE = 0x30,
    GENERATION_TABLE = 0x40,
    OOM_HISTORY = GENERATION_TABLE + GC_GENERATION_MAX * GENERATION_SIZE,
    HEAP_SIZE_OF_ALL = OOM_HISTORY + 9 * 8,
    SEGMENT_SIZE = 72, /* of the record */
    ALLOCATED = 0,
    COMMITTED = 8,
    RESERVED = 16,
    MEM = 32,
    FLAGS = 40,
    NEXT = 48,
    ROOM = 0x1000,       /* of a segment's objects */
    THREAD_CONTEXT = 88, /* in a Thread of .NET 8 */
    THREAD_LINK = 232,   /* likewise */
    HOLE = 0x200,        /* in which a thread allocates */
    SMALLEST = 24,       /* object */
    FILL_POINTERS = 7,   /* of a CFinalize; then the array */
    /* Of a segment of handles: */
    BLOCKS = 120,
    BLOCK_TYPE = 1560,
    USER_DATA = 1680,
    TAIL = 1920,
    VALUES = 4096,
};

static uint64_t allocate(struct gc_mock *mock, uint64_t size)
{
    uint64_t address = mock->end;
    mock->end += (size + 15) & ~UINT64_C(15);
    if (mock->end > GC_MOCK_HANDLES)
        abort();
    return address;
}

void gc_mock_put(struct gc_mock *mock, uint64_t address, uint64_t value, unsigned width)
{
    if (address < GC_MOCK_BASE || address + width > GC_MOCK_BASE + GC_MOCK_SIZE)
        abort();
    for (unsigned i = 0; i < width; i++)
        mock->bytes[address - GC_MOCK_BASE + i] = (uint8_t)(value >> 8 * i);
}

uint64_t gc_mock_get(const struct gc_mock *mock, uint64_t address)
{
    uint64_t value;
    memcpy(&value, mock->bytes + (address - GC_MOCK_BASE), sizeof value);
    return value;
}

static uint64_t new_word(struct gc_mock *mock, uint64_t value)
{
    uint64_t address = allocate(mock, 8);
    gc_mock_put(mock, address, value, 8);
    return address;
}

/* ---- Types and objects ---- */

static uint64_t new_table(struct gc_mock *mock, uint32_t base_size, uint32_t component_size)
{
    uint64_t table = allocate(mock, 64);
    gc_mock_put(mock, table, component_size ? component_size | UINT32_C(0x80000000) : 0, 4);
    gc_mock_put(mock, table + 4, base_size, 4);
    return table;
}

/* Puts an object at *at, which is moved on. */
static void put_object(struct gc_mock *mock, uint64_t *at, enum cdacq_generation generation, uint64_t table,
                       uint32_t count)
{
    uint32_t flags = (uint32_t)gc_mock_get(mock, table), base_size = (uint32_t)(gc_mock_get(mock, table) >> 32);
    uint64_t size = base_size + (uint64_t)(flags & 0xffff) * count;
    gc_mock_put(mock, *at, table | (count & 1), 8); /* the GC has marked some */
    gc_mock_put(mock, *at + 8, count, 4);
    mock->planted[generation].count++;
    mock->planted[generation].bytes += size < SMALLEST ? SMALLEST : size;
    *at += ((size < SMALLEST ? SMALLEST : size) + 7) & ~UINT64_C(7);
}

/* Puts some of every type. */
static void put_objects(struct gc_mock *mock, uint64_t *at, enum cdacq_generation generation, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        put_object(mock, at, generation, mock->plain_table, 0);
        put_object(mock, at, generation, mock->string_table, i); /* an empty one takes 22 bytes: the least is 24 */
        put_object(mock, at, generation, mock->array_table, 3 * i);
        put_object(mock, at, generation, mock->free_table, 5 + i);
    }
}

/* ---- Segments ---- */

static uint64_t add_segment(struct gc_mock *mock, uint64_t begin, uint64_t end, uint64_t next, uint64_t flags)
{
    uint64_t record = allocate(mock, SEGMENT_SIZE);
    const uint64_t words[] = {end, begin + ROOM, begin + ROOM, end, begin, flags, next};
    for (unsigned i = 0; i < ARRAY_SIZE(words); i++)
        gc_mock_put(mock, record + 8 * (uint64_t)i, words[i], 8);
    if (mock->segment_count == GC_MOCK_SEGMENTS)
        abort();
    mock->firsts[mock->segment_count] = begin;
    mock->segments[mock->segment_count++] = record;
    return record;
}

static uint64_t add_filled(struct gc_mock *mock, enum cdacq_generation generation, uint64_t next)
{
    uint64_t begin = allocate(mock, ROOM), at = begin;
    put_objects(mock, &at, generation, 4);
    return add_segment(mock, begin, at, next, generation == CDACQ_GENERATION_FROZEN);
}

static void set_start(struct gc_mock *mock, unsigned heap, unsigned generation, uint64_t segment)
{
    gc_mock_put(mock, mock->generation_tables[heap] + generation * GENERATION_SIZE + START_SEGMENT, segment, 8);
}

/* The youngest objects; the thread allocates in the middle of those of the first heap. */
static uint64_t put_youngest(struct gc_mock *mock, unsigned heap, uint64_t *at)
{
    put_objects(mock, at, CDACQ_GENERATION_0, 2);
    if (heap == 0) {
        gc_mock_put(mock, mock->thread + THREAD_CONTEXT, *at, 8);
        gc_mock_put(mock, mock->thread + THREAD_CONTEXT + 8, *at + HOLE - SMALLEST, 8);
        *at += HOLE;
    }
    put_objects(mock, at, CDACQ_GENERATION_0, 2);
    return *at;
}

static void set_ephemeral(struct gc_mock *mock, unsigned heap, uint64_t segment, uint64_t end)
{
    gc_mock_put(mock, mock->alloc_allocated[heap], end, 8);
    gc_mock_put(mock, mock->alloc_allocated[heap] + (EPHEMERAL_SEGMENT - ALLOC_ALLOCATED), segment, 8);
}

static void add_regions(struct gc_mock *mock, unsigned heap)
{
    uint64_t begin = allocate(mock, ROOM), at = begin;
    uint64_t end = put_youngest(mock, heap, &at);
    uint64_t youngest = add_segment(mock, begin, begin, 0, 0); /* the GC sets `allocated` later */
    set_ephemeral(mock, heap, youngest, end);
    set_start(mock, heap, 0, youngest);
    set_start(mock, heap, 1, add_filled(mock, CDACQ_GENERATION_1, 0));
    uint64_t old = add_filled(mock, CDACQ_GENERATION_2, add_filled(mock, CDACQ_GENERATION_2, 0));
    set_start(mock, heap, 2, heap == 0 ? add_filled(mock, CDACQ_GENERATION_FROZEN, old) : old);
}

static void add_ephemeral(struct gc_mock *mock, unsigned heap)
{
    uint64_t begin = allocate(mock, ROOM), at = begin, table = mock->generation_tables[heap];
    put_objects(mock, &at, CDACQ_GENERATION_2, 1);
    gc_mock_put(mock, table + GENERATION_SIZE + ALLOCATION_START, at, 8);
    put_objects(mock, &at, CDACQ_GENERATION_1, 1);
    gc_mock_put(mock, table + ALLOCATION_START, at, 8);
    uint64_t end = put_youngest(mock, heap, &at);
    uint64_t last = add_segment(mock, begin, begin, 0, 0);
    set_ephemeral(mock, heap, last, end);
    uint64_t old = add_filled(mock, CDACQ_GENERATION_2, last);
    for (unsigned generation = 0; generation < GC_EPHEMERAL_COUNT; generation++)
        set_start(mock, heap, generation, last);
    set_start(mock, heap, 2, heap == 0 ? add_filled(mock, CDACQ_GENERATION_FROZEN, old) : old);
}

/* ---- The GC ---- */

static void add_vars(struct gc_mock *mock, uint64_t max_generation)
{
    uint64_t of_heap = allocate(mock, 4 * 19), of_generation = allocate(mock, 4 * 3);
    gc_mock_put(mock, of_heap, ALLOC_ALLOCATED, 4);
    gc_mock_put(mock, of_heap + 4, EPHEMERAL_SEGMENT, 4);
    gc_mock_put(mock, of_heap + 8, FINALIZE_QUEUE, 4);
    gc_mock_put(mock, of_heap + 12, OOM_HISTORY, 4);
    gc_mock_put(mock, of_heap + 4 * 18, GENERATION_TABLE, 4);
    gc_mock_put(mock, of_generation, 0, 4);
    gc_mock_put(mock, of_generation + 4, START_SEGMENT, 4);
    gc_mock_put(mock, of_generation + 8, mock->options.has_segments ? ALLOCATION_START : UINT32_MAX, 4);
    mock->vars = allocate(mock, 8 * 32);
    gc_mock_put(mock, mock->vars, 0x102, 8); /* 2.1 */
    mock->generation_size = mock->vars + 8;
    gc_mock_put(mock, mock->vars + 8, GENERATION_SIZE, 8);
    gc_mock_put(mock, mock->vars + 8 * 2, GC_GENERATION_MAX, 8);
    gc_mock_put(mock, mock->vars + 8 * 7, max_generation, 8);
    gc_mock_put(mock, mock->vars + 8 * 24, mock->invalid_count, 8);
    gc_mock_put(mock, mock->vars + 8 * 29, mock->handle_map, 8);
    gc_mock_put(mock, mock->vars + 8 * 31, of_generation, 8);
    if (mock->options.is_server) {
        gc_mock_put(mock, mock->vars + 8 * 22, mock->count, 8);
        gc_mock_put(mock, mock->vars + 8 * 23, mock->heaps, 8);
        gc_mock_put(mock, mock->vars + 8 * 30, of_heap, 8);
    } else {
        gc_mock_put(mock, mock->vars + 8 * 6, mock->generation_tables[0], 8);
        gc_mock_put(mock, mock->vars + 8 * 10, mock->alloc_allocated[0] + 8, 8);
        gc_mock_put(mock, mock->vars + 8 * 15, mock->alloc_allocated[0], 8);
        gc_mock_put(mock, mock->vars + 8 * 17, mock->generation_tables[0] - GENERATION_TABLE + OOM_HISTORY, 8);
        gc_mock_put(mock, mock->vars + 8 * 18, mock->alloc_allocated[0] - ALLOC_ALLOCATED + FINALIZE_QUEUE, 8);
    }
    mock->layout.globals[G_GcDacVars] = new_word(mock, mock->vars);
    mock->layout.global_present[G_GcDacVars] = true;
}

static void set_field(struct gc_mock *mock, enum layout_field field, uint32_t offset, unsigned width)
{
    mock->layout.fields[field] = (struct layout_slot){.offset = offset, .width = (uint8_t)width, .present = true};
}

static void set_global(struct gc_mock *mock, enum layout_global global, uint64_t value)
{
    mock->layout.globals[global] = value;
    mock->layout.global_present[global] = true;
}

static void publish(struct gc_mock *mock)
{
    set_field(mock, F_HeapSegment_Allocated, ALLOCATED, 8);
    set_field(mock, F_HeapSegment_Committed, COMMITTED, 8);
    set_field(mock, F_HeapSegment_Reserved, RESERVED, 8);
    set_field(mock, F_HeapSegment_Mem, MEM, 8);
    set_field(mock, F_HeapSegment_Flags, FLAGS, 8);
    set_field(mock, F_HeapSegment_Next, NEXT, 8);
    set_field(mock, F_Generation_AllocationContext, 0, 0);
    set_field(mock, F_Generation_StartSegment, START_SEGMENT, 8);
    if (mock->options.has_segments)
        set_field(mock, F_Generation_AllocationStart, ALLOCATION_START, 8);
    mock->layout.sizes[T_Generation] = GENERATION_SIZE;
    set_global(mock, G_TotalGenerationCount, GC_GENERATION_MAX);
    set_global(mock, G_StructureInvalidCount, mock->invalid_count);
    set_field(mock, F_HandleTableMap_BucketsPtr, 0, 8);
    set_field(mock, F_HandleTableMap_Next, 8, 8);
    set_field(mock, F_HandleTableBucket_Table, 0, 8);
    set_field(mock, F_HandleTable_SegmentList, 56, 8);
    set_field(mock, F_TableSegment_NextSegment, TAIL + 6 * mock->handle_kinds, 8);
    set_field(mock, F_TableSegment_RgAllocation, 4 * BLOCKS, 0);
    set_field(mock, F_TableSegment_RgUserData, USER_DATA, 0);
    set_field(mock, F_TableSegment_RgTail, TAIL, 0);
    set_field(mock, F_TableSegment_RgValue, VALUES, 0);
    set_field(mock, F_CFinalize_FillPointers, 0, 0);
    set_field(mock, F_OomHistory_Reason, 0, 4);
    set_field(mock, F_OomHistory_AllocSize, 8, 8);
    set_field(mock, F_OomHistory_GcIndex, 32, 8);
    set_global(mock, G_HandleTableMap, mock->handle_map);
    if (mock->options.is_server) {
        set_field(mock, F_GCHeap_OomData, OOM_HISTORY, 0);
        set_field(mock, F_GCHeap_FinalizeQueue, FINALIZE_QUEUE, 8);
        set_field(mock, F_GCHeap_AllocAllocated, ALLOC_ALLOCATED, 8);
        set_field(mock, F_GCHeap_EphemeralHeapSegment, EPHEMERAL_SEGMENT, 8);
        set_field(mock, F_GCHeap_GenerationTable, GENERATION_TABLE, 0);
        set_global(mock, G_NumHeaps, mock->count);
        set_global(mock, G_Heaps, mock->heaps);
    } else {
        set_global(mock, G_GCHeapOomData, mock->generation_tables[0] - GENERATION_TABLE + OOM_HISTORY);
        set_global(mock, G_GCHeapGenerationTable, mock->generation_tables[0]);
        set_global(mock, G_GCHeapEphemeralHeapSegment, mock->alloc_allocated[0] + 8);
        set_global(mock, G_GCHeapAllocAllocated, mock->alloc_allocated[0]);
        set_global(mock, G_GCHeapFinalizeQueue, mock->alloc_allocated[0] - ALLOC_ALLOCATED + FINALIZE_QUEUE);
    }
}

/* ---- Handles and finalizers ---- */

static void put_handle(struct gc_mock *mock, unsigned block, unsigned handle, uint64_t object)
{
    gc_mock_put(mock, GC_MOCK_HANDLES + VALUES + 8 * (64 * (uint64_t)block + handle), object, 8);
}

/*
 * A map with one table of one segment. Its blocks: 0 has three strong handles, 1 two dependent ones, whose second block
 * is 2, and 5 one weak handle. Objects are the addresses 0x1000 and up.
 */
static void add_handles(struct gc_mock *mock)
{
    uint64_t buckets = allocate(mock, 8 * 10), bucket = allocate(mock, 16), tables = allocate(mock, 8 * GC_MOCK_HEAPS);
    uint64_t next = GC_MOCK_HANDLES + TAIL;
    mock->handle_kinds = mock->options.is_published ? 13 : 12;
    mock->handle_map = allocate(mock, 24);
    mock->handle_table = allocate(mock, 72);
    gc_mock_put(mock, mock->handle_map, buckets, 8);
    gc_mock_put(mock, buckets, bucket, 8);
    gc_mock_put(mock, bucket, tables, 8);
    gc_mock_put(mock, tables, mock->handle_table, 8);
    gc_mock_put(mock, mock->handle_table + (mock->options.is_published ? 56 : 48), GC_MOCK_HANDLES, 8);
    next += 6 * (uint64_t)mock->handle_kinds;
    gc_mock_put(mock, next + 8, mock->handle_table, 8);
    for (unsigned i = 0; i < BLOCKS; i++) {
        gc_mock_put(mock, GC_MOCK_HANDLES + BLOCK_TYPE + i, 0xff, 1);
        gc_mock_put(mock, GC_MOCK_HANDLES + USER_DATA + i, 0xff, 1);
    }
    gc_mock_put(mock, GC_MOCK_HANDLES + BLOCK_TYPE, CDACQ_HANDLE_STRONG, 1);
    gc_mock_put(mock, GC_MOCK_HANDLES + BLOCK_TYPE + 1, CDACQ_HANDLE_DEPENDENT, 1);
    gc_mock_put(mock, GC_MOCK_HANDLES + USER_DATA + 1, 2, 1);
    gc_mock_put(mock, GC_MOCK_HANDLES + BLOCK_TYPE + 2, mock->handle_kinds - 1, 1);
    gc_mock_put(mock, GC_MOCK_HANDLES + BLOCK_TYPE + 5, CDACQ_HANDLE_WEAK_SHORT, 1);
    for (unsigned i = 0; i < 3; i++)
        put_handle(mock, 0, 7 * i, 0x1000 + i);
    for (unsigned i = 0; i < 2; i++) {
        put_handle(mock, 1, 63 * i, 0x1003 + i);
        put_handle(mock, 2, 63 * i, 0x2003 + i);
    }
    put_handle(mock, 5, 1, 0x1005);
}

/* Five objects whose finalizers wait, one of each generation, then one that is ready in each of the last parts. */
static uint64_t new_queue(struct gc_mock *mock)
{
    uint64_t queue = allocate(mock, 8 * (FILL_POINTERS + 2)), array = allocate(mock, 8 * FILL_POINTERS);
    for (uint64_t i = 0; i < FILL_POINTERS; i++) {
        gc_mock_put(mock, array + 8 * i, 0x3000 + i, 8);
        gc_mock_put(mock, queue + 8 * i, array + 8 * (i + 1), 8);
    }
    gc_mock_put(mock, queue + 8 * FILL_POINTERS, array, 8);
    return queue;
}

static void add_gc(struct gc_mock *mock)
{
    unsigned heaps = mock->options.is_server ? GC_MOCK_HEAPS : 1;
    uint64_t array = allocate(mock, 8 * GC_MOCK_HEAPS), max_generation = new_word(mock, 2);
    mock->count = new_word(mock, heaps);
    mock->heaps = new_word(mock, array);
    mock->invalid_count = new_word(mock, 0);
    for (unsigned i = 0; i < heaps; i++) {
        uint64_t heap = allocate(mock, HEAP_SIZE_OF_ALL);
        gc_mock_put(mock, array + 8 * (uint64_t)i, heap, 8);
        mock->alloc_allocated[i] = heap + ALLOC_ALLOCATED;
        mock->generation_tables[i] = heap + GENERATION_TABLE;
        mock->finalize_queues[i] = new_queue(mock);
        gc_mock_put(mock, heap + FINALIZE_QUEUE, mock->finalize_queues[i], 8);
    }
    if (mock->options.is_published)
        publish(mock);
    else
        add_vars(mock, max_generation);
    set_global(mock, G_FreeObjectMethodTable, new_word(mock, mock->free_table));
}

static void add_thread(struct gc_mock *mock)
{
    uint64_t store = allocate(mock, 256);
    mock->thread = allocate(mock, 1216);
    gc_mock_put(mock, store + mock->layout.fields[F_ThreadStore_FirstThreadLink].offset, mock->thread + THREAD_LINK, 8);
    set_global(mock, G_ThreadStore, new_word(mock, store));
}

static bool span_at(uint64_t address, uint64_t *ret_begin, uint64_t *ret_end, const void **ret_bytes, void *context)
{
    const struct gc_mock *mock = context;
    uint64_t begin = GC_MOCK_BASE, end = GC_MOCK_BASE + GC_MOCK_SIZE;
    if (address < begin || address >= end)
        return false;
    if (mock->missing) {
        begin = address < mock->missing ? begin : mock->missing + PAGE_SIZE;
        end = address < mock->missing ? mock->missing : end;
        if (address < begin)
            return false;
    }
    *ret_begin = begin;
    *ret_end = end;
    *ret_bytes = mock->bytes + (begin - GC_MOCK_BASE);
    return true;
}

void gc_mock_init(struct gc_mock *mock, struct gc_mock_options options)
{
    struct cdacq_error error;
    *mock = (struct gc_mock){.end = GC_MOCK_BASE + 16, .options = options};
    layout_of_net8_x64(&mock->layout);
    mock->free_table = new_table(mock, 24, 1);
    mock->plain_table = new_table(mock, 40, 0);
    mock->array_table = new_table(mock, 24, 12);
    mock->string_table = new_table(mock, 22, 2);
    add_thread(mock);
    add_handles(mock);
    add_gc(mock);
    mock->objects_begin = mock->end;
    for (unsigned heap = 0; heap < (options.is_server ? GC_MOCK_HEAPS : 1); heap++) {
        (options.has_segments ? add_ephemeral : add_regions)(mock, heap);
        set_start(mock, heap, 3, add_filled(mock, CDACQ_GENERATION_LOH, 0));
        set_start(mock, heap, 4, add_filled(mock, CDACQ_GENERATION_POH, 0));
    }
    const struct cdacq_memory memory = {.size = sizeof memory, .context = mock, .span_at = span_at};
    if (memory_open(&memory, NULL, false, &mock->target, &error) < 0)
        abort();
    reader_init_fields(&mock->reader, mock->target, &mock->layout, 8, false);
    reader_begin(&mock->reader, FUEL_INDEX);
}

void gc_mock_deinit(struct gc_mock *mock)
{
    target_destroy(mock->target);
}

void gc_mock_refuse(struct gc_mock *mock, unsigned heap, uint32_t reason, uint64_t size, uint64_t index)
{
    uint64_t history = mock->generation_tables[heap] - GENERATION_TABLE + OOM_HISTORY;
    gc_mock_put(mock, history, reason, 4);
    gc_mock_put(mock, history + 8, size, 8);
    gc_mock_put(mock, history + 32, index, 8);
}
