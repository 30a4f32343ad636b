#include "contracts/gc/heap.h"

enum {
    DAC_VARS_MAJOR = 2,
    GENERATION_SIZE_MIN = 0x40, /* bytes: what the known fields take, at least */
    GENERATION_SIZE_MAX = 0x400,
    HEAP_FIELD_MAX = 1 << 20, /* bytes: no field of a heap is further from its start */
    MAX_GENERATION = 2,
};

/* The words of GcDacVars that are read: a number, or the address of a variable or an array. */
enum dac_var {
    VAR_VERSIONS, /* two bytes */
    VAR_GENERATION_SIZE,
    VAR_TOTAL_GENERATION_COUNT,
    VAR_GENERATION_TABLE = 6,
    VAR_MAX_GEN,
    VAR_EPHEMERAL_HEAP_SEGMENT = 10,
    VAR_ALLOC_ALLOCATED = 15,
    VAR_OOM_INFO = 17,
    VAR_FINALIZE_QUEUE,
    VAR_N_HEAPS = 22,
    VAR_G_HEAPS,
    VAR_GC_STRUCTURES_INVALID_CNT,
    VAR_HANDLE_TABLE_MAP = 29,
    VAR_GC_HEAP_FIELD_OFFSETS,
    VAR_GENERATION_FIELD_OFFSETS,
};

/*
 * The elements of the arrays of offsets that are read, which have 32 bits; -1: this build of the GC has no such field.
 */
enum {
    HEAP_ALLOC_ALLOCATED,
    HEAP_EPHEMERAL_HEAP_SEGMENT,
    HEAP_FINALIZE_QUEUE,
    HEAP_OOM_INFO,
    HEAP_GENERATION_TABLE = 18,
    GENERATION_ALLOCATION_CONTEXT = 0,
    GENERATION_START_SEGMENT,
    GENERATION_ALLOCATION_START,
};

/* The offsets of the fields of a heap of server GC. */
struct heap_fields {
    uint32_t alloc_allocated, ephemeral_segment, generation_table;
    uint32_t finalize_queue; /* GC_NO_FIELD: not described */
    uint32_t oom_history;    /* likewise */
};

/* Where the heaps are. */
struct heaps_place {
    bool is_server;
    uint64_t count, heaps;                                         /* of server GC: addresses of variables */
    uint64_t generation_table, ephemeral_segment, alloc_allocated; /* of workstation GC */
    uint64_t finalize_queue;                                       /* likewise; 0: not described */
    uint64_t oom_history;                                          /* likewise */
    uint64_t invalid_count;                                        /* address of the variable */
    struct heap_fields fields;
};

void gc_deinit(struct gc *gc)
{
    gc_heaps_deinit(&gc->heaps);
    *gc = (struct gc){0};
}

/* ---- GcDacVars of .NET 8 to 10 ---- */

static uint64_t read_var(struct reader *reader, uint64_t vars, enum dac_var var)
{
    return read_pointer(reader, vars + (uint64_t)var * reader->pointer_size);
}

/* An element of an array of offsets. */
static uint32_t read_offset(struct reader *reader, uint64_t array, unsigned index, uint32_t max, const char *what)
{
    uint32_t offset = read_u32(reader, array + 4 * (uint64_t)index);
    if (!reader_failed(reader) && (offset > max || offset % reader->pointer_size))
        reader_fail(reader, CDACQ_ERR_CORRUPT, array + 4 * (uint64_t)index, what);
    reader_name_failure(reader, what);
    return offset;
}

static void check(struct reader *reader, bool good, uint64_t address, const char *what)
{
    if (!good)
        reader_fail(reader, CDACQ_ERR_CORRUPT, address, what);
}

/* The layout of dac_heap_segment is part of the major version. */
static struct gc_segment_fields dac_segment_fields(unsigned pointer)
{
    return (struct gc_segment_fields){.allocated = 0,
                                      .committed = pointer,
                                      .reserved = 2 * pointer,
                                      .mem = 4 * pointer,
                                      .flags = 5 * pointer,
                                      .next = 6 * pointer};
}

/* So is that of the handle tables, but for what depends on the number of kinds of handles. */
static struct gc_handle_fields dac_handle_fields(unsigned pointer)
{
    uint32_t blocks = (HANDLE_SEGMENT_SIZE - HANDLE_HEADER_SIZE) / (HANDLES_PER_BLOCK * pointer);
    uint32_t allocation = blocks * (uint32_t)sizeof(uint32_t);             /* after rgGeneration */
    uint32_t types = allocation + blocks + blocks * HANDLES_PER_BLOCK / 8; /* after rgAllocation and rgFreeMask */
    return (struct gc_handle_fields){.next_map = pointer,
                                     .segment_list = GC_NO_FIELD,
                                     .allocation = allocation,
                                     .user_data = types + blocks,
                                     .tail = types + 3 * blocks,
                                     .next_segment = GC_NO_FIELD,
                                     .values = HANDLE_HEADER_SIZE};
}

static void read_dac_generation(struct reader *reader, uint64_t vars, struct gc *gc)
{
    uint64_t size = read_var(reader, vars, VAR_GENERATION_SIZE);
    uint64_t count = read_var(reader, vars, VAR_TOTAL_GENERATION_COUNT);
    uint64_t max_gen = read_var(reader, vars, VAR_MAX_GEN),
             offsets = read_var(reader, vars, VAR_GENERATION_FIELD_OFFSETS);
    check(reader, size > GENERATION_SIZE_MIN && size < GENERATION_SIZE_MAX && size % reader->pointer_size == 0, vars,
          "GcDacVars.generation_size");
    check(reader, count == GC_GENERATION_MAX, vars, "GcDacVars.total_generation_count");
    check(reader, max_gen && read_u32(reader, max_gen) == MAX_GENERATION, vars, "GcDacVars.max_gen");
    check(reader, offsets != 0, vars, "GcDacVars.generation_field_offsets");
    if (reader_failed(reader))
        return;
    uint32_t last = (uint32_t)size - reader->pointer_size;
    gc->generation.size = (uint32_t)size;
    gc->generation.allocation_context =
        read_offset(reader, offsets, GENERATION_ALLOCATION_CONTEXT, last, "generation.allocation_context");
    gc->generation.start_segment =
        read_offset(reader, offsets, GENERATION_START_SEGMENT, last, "generation.start_segment");
    gc->generation.allocation_start = GC_NO_FIELD;
    if (read_u32(reader, offsets + 4 * GENERATION_ALLOCATION_START) != GC_NO_FIELD)
        gc->generation.allocation_start =
            read_offset(reader, offsets, GENERATION_ALLOCATION_START, last, "generation.allocation_start");
}

/* A field of a heap that the GC may lack. */
static uint32_t read_optional_offset(struct reader *reader, uint64_t array, unsigned index, const char *what)
{
    if (read_u32(reader, array + 4 * (uint64_t)index) == GC_NO_FIELD)
        return GC_NO_FIELD;
    return read_offset(reader, array, index, HEAP_FIELD_MAX, what);
}

/* The layout of oom_history is part of the major version. */
static struct gc_oom_fields dac_oom_fields(unsigned pointer)
{
    return (struct gc_oom_fields){.reason = 0, .alloc_size = pointer, .gc_index = 4 * pointer};
}

static void read_dac_vars(struct reader *reader, struct gc *gc, struct heaps_place *ret)
{
    uint64_t vars = read_pointer(reader, reader->layout->globals[G_GcDacVars]);
    reader_name_failure(reader, "g_gcDacGlobals");
    check(reader, vars != 0, reader->layout->globals[G_GcDacVars], "g_gcDacGlobals");
    if (!reader_failed(reader) && read_u8(reader, vars) != DAC_VARS_MAJOR && !reader_failed(reader))
        reader_fail(reader, CDACQ_ERR_CONTRACT, vars, "the major version of GcDacVars");
    gc->segment = dac_segment_fields(reader->pointer_size);
    gc->handle = dac_handle_fields(reader->pointer_size);
    gc->handle_table_map = read_var(reader, vars, VAR_HANDLE_TABLE_MAP);
    gc->oom = dac_oom_fields(reader->pointer_size);
    read_dac_generation(reader, vars, gc);
    ret->heaps = read_var(reader, vars, VAR_G_HEAPS);
    ret->count = read_var(reader, vars, VAR_N_HEAPS);
    ret->is_server = ret->heaps != 0;
    ret->invalid_count = read_var(reader, vars, VAR_GC_STRUCTURES_INVALID_CNT);
    if (!ret->is_server) {
        ret->generation_table = read_var(reader, vars, VAR_GENERATION_TABLE);
        ret->ephemeral_segment = read_var(reader, vars, VAR_EPHEMERAL_HEAP_SEGMENT);
        ret->alloc_allocated = read_var(reader, vars, VAR_ALLOC_ALLOCATED);
        ret->finalize_queue = read_var(reader, vars, VAR_FINALIZE_QUEUE);
        ret->oom_history = read_var(reader, vars, VAR_OOM_INFO);
        return;
    }
    uint64_t offsets = read_var(reader, vars, VAR_GC_HEAP_FIELD_OFFSETS);
    check(reader, offsets != 0, vars, "GcDacVars.gc_heap_field_offsets");
    ret->fields = (struct heap_fields){
        .alloc_allocated =
            read_offset(reader, offsets, HEAP_ALLOC_ALLOCATED, HEAP_FIELD_MAX, "gc_heap.alloc_allocated"),
        .ephemeral_segment =
            read_offset(reader, offsets, HEAP_EPHEMERAL_HEAP_SEGMENT, HEAP_FIELD_MAX, "gc_heap.ephemeral_heap_segment"),
        .generation_table =
            read_offset(reader, offsets, HEAP_GENERATION_TABLE, HEAP_FIELD_MAX, "gc_heap.generation_table"),
        .finalize_queue = read_optional_offset(reader, offsets, HEAP_FINALIZE_QUEUE, "gc_heap.finalize_queue"),
        .oom_history = read_optional_offset(reader, offsets, HEAP_OOM_INFO, "gc_heap.oom_info"),
    };
}

/* ---- What .NET 11 publishes ---- */

static uint32_t offset_of(struct reader *reader, enum layout_field field)
{
    return has_field(reader, field) ? reader->layout->fields[field].offset : (uint32_t)field_missing(reader, field);
}

/* A global that has to be there; `need` names it. */
static uint64_t global_of(struct reader *reader, enum layout_global global, const char *need)
{
    if (!reader->layout->global_present[global])
        reader_fail(reader, CDACQ_ERR_FIELD, 0, need);
    return reader->layout->globals[global];
}

/* Where handles are; left out if that is not described. */
static void read_handle_fields(const struct layout *layout, struct gc *gc)
{
    static const enum layout_field needed[] = {
        F_HandleTableMap_BucketsPtr, F_HandleTableMap_Next,      F_HandleTableBucket_Table,
        F_HandleTable_SegmentList,   F_TableSegment_NextSegment, F_TableSegment_RgAllocation,
        F_TableSegment_RgUserData,   F_TableSegment_RgTail,      F_TableSegment_RgValue};
    uint32_t offsets[ARRAY_SIZE(needed)];
    for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
        if (!layout->fields[needed[i]].present)
            return;
        offsets[i] = layout->fields[needed[i]].offset;
    }
    gc->handle = (struct gc_handle_fields){.buckets = offsets[0],
                                           .next_map = offsets[1],
                                           .table = offsets[2],
                                           .segment_list = offsets[3],
                                           .next_segment = offsets[4],
                                           .allocation = offsets[5],
                                           .user_data = offsets[6],
                                           .tail = offsets[7],
                                           .values = offsets[8]};
    gc->handle_table_map = layout->global_present[G_HandleTableMap] ? layout->globals[G_HandleTableMap] : 0;
}

static void read_published(struct reader *reader, struct gc *gc, struct heaps_place *ret)
{
    const struct layout *layout = reader->layout;
    gc->segment = (struct gc_segment_fields){
        .allocated = offset_of(reader, F_HeapSegment_Allocated),
        .committed = offset_of(reader, F_HeapSegment_Committed),
        .reserved = offset_of(reader, F_HeapSegment_Reserved),
        .mem = offset_of(reader, F_HeapSegment_Mem),
        .flags = offset_of(reader, F_HeapSegment_Flags),
        .next = offset_of(reader, F_HeapSegment_Next),
    };
    gc->generation = (struct gc_generation_fields){
        .size = layout->sizes[T_Generation],
        .allocation_context = offset_of(reader, F_Generation_AllocationContext),
        .start_segment = offset_of(reader, F_Generation_StartSegment),
        .allocation_start = has_field(reader, F_Generation_AllocationStart)
                                ? layout->fields[F_Generation_AllocationStart].offset
                                : GC_NO_FIELD,
    };
    uint64_t count = global_of(reader, G_TotalGenerationCount, "TotalGenerationCount");
    check(reader, count == GC_GENERATION_MAX || reader_failed(reader), 0, "TotalGenerationCount");
    check(reader,
          (gc->generation.size > GENERATION_SIZE_MIN && gc->generation.size < GENERATION_SIZE_MAX) ||
              reader_failed(reader),
          0, "Generation: size");
    read_handle_fields(layout, gc);
    gc->fill_pointers = layout->fields[F_CFinalize_FillPointers].offset;
    bool has_oom = has_field(reader, F_OomHistory_Reason) && has_field(reader, F_OomHistory_AllocSize) &&
                   has_field(reader, F_OomHistory_GcIndex);
    gc->oom = (struct gc_oom_fields){.reason = layout->fields[F_OomHistory_Reason].offset,
                                     .alloc_size = layout->fields[F_OomHistory_AllocSize].offset,
                                     .gc_index = layout->fields[F_OomHistory_GcIndex].offset};
    ret->invalid_count = layout->global_present[G_StructureInvalidCount] ? layout->globals[G_StructureInvalidCount] : 0;
    ret->is_server = layout->global_present[G_Heaps];
    if (ret->is_server) {
        ret->heaps = layout->globals[G_Heaps];
        ret->count = global_of(reader, G_NumHeaps, "NumHeaps");
        ret->fields = (struct heap_fields){
            .alloc_allocated = offset_of(reader, F_GCHeap_AllocAllocated),
            .ephemeral_segment = offset_of(reader, F_GCHeap_EphemeralHeapSegment),
            .generation_table = offset_of(reader, F_GCHeap_GenerationTable),
            .finalize_queue = has_field(reader, F_GCHeap_FinalizeQueue) && has_field(reader, F_CFinalize_FillPointers)
                                  ? layout->fields[F_GCHeap_FinalizeQueue].offset
                                  : GC_NO_FIELD,
            .oom_history =
                has_oom && has_field(reader, F_GCHeap_OomData) ? layout->fields[F_GCHeap_OomData].offset : GC_NO_FIELD,
        };
        return;
    }
    ret->generation_table = global_of(reader, G_GCHeapGenerationTable, "GCHeapGenerationTable");
    ret->ephemeral_segment = global_of(reader, G_GCHeapEphemeralHeapSegment, "GCHeapEphemeralHeapSegment");
    ret->alloc_allocated = global_of(reader, G_GCHeapAllocAllocated, "GCHeapAllocAllocated");
    if (layout->global_present[G_GCHeapFinalizeQueue] && has_field(reader, F_CFinalize_FillPointers))
        ret->finalize_queue = layout->globals[G_GCHeapFinalizeQueue];
    if (layout->global_present[G_GCHeapOomData] && has_oom)
        ret->oom_history = layout->globals[G_GCHeapOomData];
}

/* ---- Heaps ---- */

static void add_heap(struct reader *reader, struct gc *gc, uint64_t generation_table, uint64_t ephemeral_segment,
                     uint64_t alloc_allocated, uint64_t finalize_queue, uint64_t oom_history)
{
    struct gc_heap heap = {
        .generation_table = generation_table,
        .ephemeral_segment = read_pointer(reader, ephemeral_segment),
        .alloc_allocated = read_pointer(reader, alloc_allocated),
        .oom_history = oom_history,
    };
    if (finalize_queue && !reader_failed(reader)) {
        heap.finalize_queue = read_pointer(reader, finalize_queue);
        reader_recover(reader, FAILURE(CDACQ_ERR_MEMORY)); /* the objects can be read without it */
    }
    check(reader, generation_table != 0 || reader_failed(reader), 0, "generation_table");
    if (!reader_failed(reader) && !gc_heaps_append(&gc->heaps, heap))
        reader_fail(reader, CDACQ_ERR_NOMEM, 0, "heaps");
}

static void read_heaps(struct reader *reader, const struct heaps_place *place, struct gc *gc)
{
    if (!place->is_server) {
        add_heap(reader, gc, place->generation_table, place->ephemeral_segment, place->alloc_allocated,
                 place->finalize_queue, place->oom_history);
        return;
    }
    uint32_t count = read_u32(reader, place->count);
    uint64_t heaps = read_pointer(reader, place->heaps);
    check(reader, (count > 0 && count <= GC_HEAP_MAX) || reader_failed(reader), place->count, "NumHeaps");
    for (uint32_t i = 0; i < count && !reader_failed(reader); i++) {
        uint64_t heap = read_pointer(reader, heaps + (uint64_t)i * reader->pointer_size);
        check(reader, heap != 0 || reader_failed(reader), heaps, "Heaps");
        add_heap(reader, gc, heap + place->fields.generation_table, heap + place->fields.ephemeral_segment,
                 heap + place->fields.alloc_allocated,
                 place->fields.finalize_queue == GC_NO_FIELD ? 0 : heap + place->fields.finalize_queue,
                 place->fields.oom_history == GC_NO_FIELD ? 0 : heap + place->fields.oom_history);
    }
}

static void read_place(struct reader *reader, struct gc *gc, struct heaps_place *ret)
{
    if (reader->layout->global_present[G_GcDacVars] && reader->layout->globals[G_GcDacVars])
        read_dac_vars(reader, gc, ret);
    else
        read_published(reader, gc, ret);
    gc->is_server = ret->is_server;
    gc->is_under_way = !reader_failed(reader) && ret->invalid_count && read_u32(reader, ret->invalid_count) != 0;
}

bool gc_read_state(struct reader *reader, bool *ret_under_way, bool *ret_is_server)
{
    struct gc gc = {0};
    struct heaps_place place = {0};
    read_place(reader, &gc, &place);
    if (reader_failed(reader))
        return false;
    *ret_under_way = gc.is_under_way;
    *ret_is_server = gc.is_server;
    return true;
}

bool gc_read(struct reader *reader, struct gc *ret)
{
    struct gc gc = {0};
    struct heaps_place place = {0};
    read_place(reader, &gc, &place);
    gc.has_regions = gc.generation.allocation_start == GC_NO_FIELD;
    if (!reader_failed(reader))
        read_heaps(reader, &place, &gc);
    if (reader_failed(reader)) {
        gc_deinit(&gc);
        return false;
    }
    *ret = gc;
    return true;
}

bool gc_oom_read(struct reader *reader, const struct gc *gc, struct gc_oom *ret)
{
    struct gc_oom newest = {0};
    uint64_t newest_index = 0;
    for (size_t i = 0; i < gc->heaps.count && !reader_failed(reader); i++) {
        uint64_t history = gc->heaps.items[i].oom_history;
        if (!history)
            continue;
        struct gc_oom oom = {.reason = read_u32(reader, history + gc->oom.reason),
                             .size = read_pointer(reader, history + gc->oom.alloc_size)};
        uint64_t index = read_pointer(reader, history + gc->oom.gc_index);
        if (!oom.reason || (newest.reason && index <= newest_index))
            continue;
        newest = oom;
        newest_index = index;
    }
    if (reader_failed(reader))
        return false;
    *ret = newest;
    return true;
}
