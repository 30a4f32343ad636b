/*
 * code_heap.c: JIT-compiled code: heaps with their nibble maps, methods with their headers, stub blocks.
 *
 * A block is a pointer, then code. The pointer of a method is the address of its RealCodeHeader; that of a block of
 * stubs is the number of their kind. In the interpreter's heaps the header is an InterpreterRealCodeHeader. The nibble
 * map is written by the runtime's rule for setting and deleting: the nibble of the start, and in version 2 a pointer to
 * the start in each further unit that the block fills. Source: src/coreclr/vm/codeman.cpp,
 * EECodeGenManager::NibbleMapSet and NibbleMapDelete.
 */
#include "mocktarget/mock.h"

enum { BUCKET = 32, UNIT = 8 * BUCKET }; /* bytes of code for a nibble, and for a 32-bit unit of the map */

/* ---- The nibble map ---- */

static uint32_t pointer_to(uint64_t delta)
{
    return (uint32_t)((delta & ~UINT64_C(15)) + ((delta & 15) >> 2) + 9);
}

static uint64_t unit_at(uint64_t header_map, uint64_t delta)
{
    return header_map + delta / UNIT * 4;
}

static unsigned shift_of(uint64_t delta)
{
    return 28 - 4 * (unsigned)(delta % UNIT / BUCKET);
}

void mock_nibble_set(struct mock *mock, uint64_t header_map, uint64_t map_base, uint64_t start, uint64_t size)
{
    uint64_t delta = start - map_base, end = delta + size, unit = unit_at(header_map, delta);
    uint32_t value = (uint32_t)mock_read_uint(mock, unit, 4);
    if (start % 4 || (value >> shift_of(delta) & 15)) {
        mock_fail(mock, "no code can start at %#llx", (unsigned long long)start);
        return;
    }
    value |= (uint32_t)(delta % BUCKET / 4 + 1) << shift_of(delta);
    mock_write_uint(mock, unit, 4, value);
    if (mock->options.version == 1)
        return;
    for (uint64_t covered = align_down(delta, UNIT) + UNIT; covered + UNIT <= end; covered += UNIT)
        mock_write_uint(mock, unit_at(header_map, covered), 4, pointer_to(delta));
}

void mock_nibble_delete(struct mock *mock, uint64_t header_map, uint64_t map_base, uint64_t start)
{
    uint64_t delta = start - map_base, unit = unit_at(header_map, delta);
    uint32_t value = (uint32_t)mock_read_uint(mock, unit, 4) & ~(UINT32_C(15) << shift_of(delta));
    mock_write_uint(mock, unit, 4, value);
    if (mock->options.version == 1)
        return;
    for (unit += 4; !mock->failed && mock_read_uint(mock, unit, 4) == pointer_to(delta); unit += 4)
        mock_write_uint(mock, unit, 4, 0);
}

/* EE_ILEXCEPTION, preceded by the number of clauses. */
static uint64_t write_exception_info(struct mock *mock, const struct mock_method *method)
{
    if (!method->clause_count)
        return 0;
    uint64_t size = mock->sizes[T_EEILException] + method->clause_count * mock_clause_size(mock, false);
    uint64_t info = mock_alloc(mock, mock->word + size, 8) + mock->word;
    mock_write_pointer(mock, info - mock->word, method->clause_count);
    mock_clauses_write(mock, mock_address_of(mock, info, F_EEILException_Clauses), method->clauses,
                       method->clause_count, false);
    return info;
}

/* ---- Heaps ---- */

uint64_t mock_new_manager(struct mock *mock, const char *global)
{
    uint64_t manager = mock_object(mock, T_EEJitManager, 64), variable = mock_alloc(mock, mock->word, mock->word);
    mock_write_pointer(mock, variable, manager);
    mock_global(mock, global, variable);
    return manager;
}

uint64_t mock_jit_manager(const struct mock *mock)
{
    return mock->jit_manager;
}

uint64_t mock_interpreter_manager(const struct mock *mock)
{
    return mock->interpreter_manager;
}

/* A LoaderCodeHeap, or a HostCodeHeap for dynamic methods. */
static uint64_t write_code_heap(struct mock *mock, const struct mock_heap *heap, bool host)
{
    enum { LOADER_CODE_HEAP = 0, HOST_CODE_HEAP = 1 };
    uint64_t object = mock_object(mock, host ? T_HostCodeHeap : T_LoaderCodeHeap, 64);
    mock_put(mock, object, F_CodeHeap_HeapType, host ? HOST_CODE_HEAP : LOADER_CODE_HEAP);
    if (host) {
        mock_put(mock, object, F_HostCodeHeap_BaseAddress, heap->begin);
        mock_put(mock, object, F_HostCodeHeap_CurrentAddress, heap->cursor);
    }
    return object;
}

/* The end of the heap's hot code, and the begin of its cold parts. */
static void put_bounds(struct mock_heap *heap, uint64_t end)
{
    struct mock *mock = heap->mock;
    mock_put(mock, heap->node,
             mock->options.cold_jit_code ? F_CodeHeapListNode_BottomEndAddress : F_CodeHeapListNode_EndAddress, end);
    if (mock->options.cold_jit_code)
        mock_put(mock, heap->node, F_CodeHeapListNode_TopStartAddress, heap->top);
}

struct mock_heap *mock_heap_create(struct mock *mock, const struct mock_heap_options *options)
{
    struct mock_heap *heap =
        mock_keep(mock, &(struct mock_heap){.mock = mock, .interpreter = options->interpreter}, sizeof *heap);
    if (!heap)
        return NULL;
    if (heap->interpreter && !mock->interpreter_manager)
        mock->interpreter_manager = mock_new_manager(mock, "InterpreterJitManagerAddress");
    uint64_t manager = heap->interpreter ? mock->interpreter_manager : mock->jit_manager;
    unsigned access = MOCK_READ | MOCK_WRITE | MOCK_EXECUTE;
    heap->begin = mock_map(mock, options->begin, options->size, access, NULL, 0);
    heap->end = heap->begin + options->size;
    heap->top = heap->end;
    heap->map_base = align_down(heap->begin - options->map_slack, BUCKET);
    heap->cursor = heap->begin + 4 * mock_random(mock, 40); /* the runtime puts a jump stub first */
    uint64_t units = (heap->end - heap->map_base) / UNIT + 2;
    heap->header_map = mock_alloc(mock, units * 4, 4);
    heap->node = mock_object(mock, T_CodeHeapListNode, 0);
    mock_put(mock, heap->node, F_CodeHeapListNode_StartAddress, heap->begin);
    put_bounds(heap, heap->begin);
    mock_put(mock, heap->node, F_CodeHeapListNode_MapBase, heap->map_base);
    mock_put(mock, heap->node, F_CodeHeapListNode_HeaderMap, heap->header_map);
    mock_put(mock, heap->node, F_CodeHeapListNode_Heap, write_code_heap(mock, heap, options->collectible));
    mock_put(mock, heap->node, F_CodeHeapListNode_Next, mock_fetch(mock, manager, F_EEJitManager_AllCodeHeaps));
    mock_put(mock, manager, F_EEJitManager_AllCodeHeaps, heap->node);
    heap->section =
        mock_section_add(mock, &(struct mock_section){.begin = heap->begin,
                                                      .end = heap->end,
                                                      .flags = MOCK_SECTION_CODE_HEAP |
                                                               (options->collectible ? MOCK_SECTION_COLLECTIBLE : 0) |
                                                               (options->interpreter ? MOCK_SECTION_INTERPRETER : 0),
                                                      .heap_list = heap->node});
    return heap;
}

/* The start of the next block: after its pointer, aligned, and in a bucket of its own. */
static uint64_t next_start(const struct mock_heap *heap, uint64_t skip, uint64_t alignment)
{
    const struct mock *mock = heap->mock;
    uint64_t start = align_up(heap->cursor + skip + mock->word, alignment);
    while (heap->last_start && (start - heap->map_base) / BUCKET == (heap->last_start - heap->map_base) / BUCKET)
        start += alignment;
    return start;
}

/* Takes everything up to `end` for the block at `start`. False if the heap is full. */
static bool take(struct mock_heap *heap, uint64_t start, uint64_t end)
{
    struct mock *mock = heap->mock;
    if (end > heap->top)
        return mock_fail(mock, "the heap at %#llx is full", (unsigned long long)heap->begin);
    heap->cursor = end;
    heap->last_start = start;
    mock_nibble_set(mock, heap->header_map, heap->map_base, start, end - start);
    put_bounds(heap, end);
    return !mock->failed;
}

static uint64_t rounded(const struct mock *mock, uint64_t size)
{
    return align_up(MAX(size, UINT64_C(1)), mock_length_unit(mock));
}

/* Writes the RUNTIME_FUNCTION and the expected answer of the body or of a funclet. */
static void add_function(struct mock_heap *heap, uint64_t entry, uint64_t unwind, uint64_t begin, uint64_t size,
                         const struct mock_function *method)
{
    struct mock *mock = heap->mock;
    struct mock_function function = *method;
    bool cold_body = method->cold && begin == method->cold_start;
    mock_unwind_write(mock, unwind, size, false);
    if (cold_body)
        mock_unwind_make_fragment(mock, unwind);
    mock_runtime_function(mock, entry, begin - heap->begin, size, unwind - heap->begin);
    function.begin = begin;
    function.end = begin + size;
    function.offset = method->cold ? method->hot_size + (begin - method->cold_start) : begin - method->method;
    function.funclet = begin != method->method && !cold_body;
    function.unwind_info = entry;
    mock_expect(mock, &function);
}

/* The expected values that all functions of a method share. */
static struct mock_function method_expected(struct mock *mock, const struct mock_method *method, uint64_t start,
                                            uint64_t size)
{
    bool gc_info = !method->no_gc_info || mock->options.no_funclets; /* the only source of the length in that case */
    return (struct mock_function){
        .method = start,
        .method_desc = method->method_desc,
        .hot_size = size,
        .debug_info = method->no_debug_info ? 0 : mock_alloc(mock, 16, 1),
        .gc_info = gc_info ? mock_alloc(mock, MOCK_GC_INFO_SIZE, 4) : 0,
        .gc_info_version = (unsigned)mock->globals[G_GCInfoVersion],
        .clauses = mock_keep(mock, method->clauses, method->clause_count * sizeof *method->clauses),
        .clause_count = method->clause_count,
    };
}

/* Byte code, whose length only the GC info in its header states. */
static uint64_t interpreted_method(struct mock_heap *heap, const struct mock_method *method)
{
    struct mock *mock = heap->mock;
    uint64_t start = next_start(heap, method->skip, MAX(method->alignment ? method->alignment : 16u, 4u));
    uint64_t size = MAX(method->size, UINT64_C(1));
    if (!take(heap, start, start + size + method->tail))
        return 0;
    uint64_t header = mock_object(mock, T_InterpreterRealCodeHeader, 0);
    struct mock_function expected = method_expected(mock, method, start, size);
    expected.code = MOCK_CODE_INTERPRETER;
    expected.begin = start;
    expected.end = start + size;
    if (!expected.gc_info) /* the only source of its length */
        expected.gc_info = mock_alloc(mock, MOCK_GC_INFO_SIZE, 4);
    mock_gc_info_write_interpreted(mock, expected.gc_info, size, expected.gc_info_version);
    mock_write_pointer(mock, start - mock->word, header);
    mock_put(mock, header, F_InterpreterRealCodeHeader_MethodDesc, method->method_desc);
    mock_put(mock, header, F_InterpreterRealCodeHeader_DebugInfo, expected.debug_info);
    mock_put(mock, header, F_InterpreterRealCodeHeader_GCInfo, expected.gc_info);
    mock_put(mock, header, F_InterpreterRealCodeHeader_JitEHInfo, write_exception_info(mock, method));
    mock_expect(mock, &expected);
    return mock->failed ? 0 : start;
}

/* The sizes of a method's functions: the hot ones, then the cold ones. */
struct parts {
    size_t hot, count;
    uint64_t hot_size, cold_size;
};

/*
 * The size of function `i`: the body and its funclets; with cold code, the body's cold part is before the funclets
 * there.
 */
static uint64_t function_size(const struct mock *mock, const struct mock_method *method, const struct parts *parts,
                              size_t i)
{
    if (!i)
        return rounded(mock, method->size);
    if (method->cold && i == parts->hot)
        return rounded(mock, method->cold);
    return rounded(mock, method->funclets[i - 1 - (method->cold && i > parts->hot)]);
}

static struct parts parts_of(const struct mock *mock, const struct mock_method *method)
{
    struct parts parts = {.count = method->funclet_count + 1 + (method->cold != 0)};
    parts.hot = method->cold ? 1 : parts.count;
    for (size_t i = 0; i < parts.count; i++)
        *(i < parts.hot ? &parts.hot_size : &parts.cold_size) += function_size(mock, method, &parts, i);
    return parts;
}

/* Takes the top of the heap for the cold part, whose header points to that of the hot part. Returns its start. */
static uint64_t take_cold(struct mock_heap *heap, uint64_t start, uint64_t header, uint64_t size)
{
    struct mock *mock = heap->mock;
    uint64_t cold = align_down(heap->top - size, BUCKET);
    if (cold - mock->word < heap->cursor) {
        mock_fail(mock, "the heap at %#llx is full", (unsigned long long)heap->begin);
        return 0;
    }
    heap->top = cold - mock->word;
    put_bounds(heap, heap->cursor);
    mock_nibble_set(mock, heap->header_map, heap->map_base, cold, size);
    mock_write_pointer(mock, cold - mock->word, start - mock->word);
    mock_put(mock, header, F_RealCodeHeader_ColdCodeHeader, cold - mock->word);
    return cold;
}

uint64_t mock_method(struct mock_heap *heap, const struct mock_method *method)
{
    struct mock *mock = heap ? heap->mock : NULL;
    if (!mock || mock->failed)
        return 0;
    if (heap->interpreter)
        return interpreted_method(heap, method);
    struct parts parts = parts_of(mock, method);
    uint64_t start = next_start(heap, method->skip, MAX(method->alignment ? method->alignment : 16u, 4u));
    uint64_t unwind = align_up(start + parts.hot_size, 4);
    if (!take(heap, start, unwind + parts.count * mock_unwind_size(mock) + method->tail))
        return 0;

    uint64_t entry_size = mock->sizes[T_RuntimeFunction];
    uint64_t header = mock_object(mock, T_RealCodeHeader, parts.count * entry_size);
    mock_write_pointer(mock, start - mock->word, header);
    mock_put(mock, header, F_RealCodeHeader_MethodDesc, method->method_desc);

    struct mock_function expected = method_expected(mock, method, start, parts.hot_size);
    expected.code = MOCK_CODE_JIT;
    expected.cold_size = parts.cold_size;
    if (method->cold)
        expected.cold_start = take_cold(heap, start, header, parts.cold_size);
    if (expected.gc_info)
        mock_gc_info_write(mock, expected.gc_info, parts.hot_size + parts.cold_size, expected.gc_info_version);
    mock_put(mock, header, F_RealCodeHeader_DebugInfo, expected.debug_info);
    mock_put(mock, header, F_RealCodeHeader_GCInfo, expected.gc_info);
    mock_put(mock, header, F_RealCodeHeader_EHInfo, write_exception_info(mock, method));
    if (mock->options.no_funclets) {
        expected.begin = start;
        expected.end = start + parts.hot_size;
        mock_expect(mock, &expected);
        return mock->failed ? 0 : start;
    }
    mock_put(mock, header, F_RealCodeHeader_NumUnwindInfos, parts.count);
    uint64_t entry = mock_address_of(mock, header, F_RealCodeHeader_UnwindInfos), begin = start;
    for (size_t i = 0; i < parts.count; i++) {
        uint64_t size = function_size(mock, method, &parts, i);
        if (i == parts.hot) {
            begin = expected.cold_start;
            expected.cold = true;
        }
        add_function(heap, entry + i * entry_size, unwind + i * mock_unwind_size(mock), begin, size, &expected);
        begin += size;
    }
    return mock->failed ? 0 : start;
}

uint64_t mock_method_header(struct mock_heap *heap, uint64_t start)
{
    return mock_read_pointer(heap->mock, start - heap->mock->word);
}

uint64_t mock_stub(struct mock_heap *heap, unsigned kind, uint64_t size)
{
    struct mock *mock = heap ? heap->mock : NULL;
    if (!mock || mock->failed)
        return 0;
    uint64_t start = next_start(heap, 0, 16);
    if (!take(heap, start, start + size))
        return 0;
    mock_write_pointer(mock, start - mock->word, kind);
    mock_expect(mock, &(struct mock_function){.begin = start,
                                              .end = start + size,
                                              .code = MOCK_CODE_STUB,
                                              .stub_kind = mock_stub_kind(mock, kind),
                                              .method = start});
    return start;
}

void mock_code_free(struct mock_heap *heap, uint64_t start)
{
    mock_nibble_delete(heap->mock, heap->header_map, heap->map_base, start);
    mock_expect_nothing(heap->mock, start, start + 1);
}

uint64_t mock_range_list(struct mock *mock, uint64_t size, unsigned kind, bool collectible, uint64_t *ret_begin)
{
    uint64_t begin = mock_map(mock, 0, size, MOCK_READ | MOCK_EXECUTE, NULL, 0);
    uint64_t list = mock_object(mock, T_CodeRangeMapRangeList, 0);
    mock_put(mock, list, F_CodeRangeMapRangeList_RangeListType, kind);
    mock_expect(mock, &(struct mock_function){.begin = begin,
                                              .end = begin + size,
                                              .code = MOCK_CODE_RANGE_LIST,
                                              .stub_kind = mock_stub_kind(mock, kind),
                                              .method = begin});
    if (ret_begin)
        *ret_begin = begin;
    return mock_section_add(
        mock, &(struct mock_section){.begin = begin,
                                     .end = begin + size,
                                     .flags = MOCK_SECTION_RANGE_LIST | (collectible ? MOCK_SECTION_COLLECTIBLE : 0),
                                     .range_list = list});
}
