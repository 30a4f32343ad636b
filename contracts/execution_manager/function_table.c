#include "contracts/execution_manager/function_table.h"

#include "contracts/code_lookup/nibble_map.h"
#include "contracts/execution_manager/code_heap.h"

enum { METHODS_MAX = 1 << 20, ENTRIES_MAX = 1 << 22, CONTEXT_FLAGS = 3 };

/* What the runtime registers a heap's table by: HeapList::GetModuleBase. */
static uint64_t module_base(struct reader *reader, uint64_t node)
{
    uint64_t routine = read_optional(reader, node, F_CodeHeapListNode_CLRPersonalityRoutine);
    return routine ? routine : read_field(reader, node, F_CodeHeapListNode_MapBase);
}

static uint64_t find_heap(struct reader *reader, uint64_t table)
{
    uint64_t base = read_field(reader, table, F_DynamicFunctionTable_MinimumAddress);
    uint64_t context = read_field(reader, table, F_DynamicFunctionTable_Context);
    uint64_t manager = context & ~(uint64_t)CONTEXT_FLAGS;
    uint64_t node = read_optional(reader, manager, F_EEJitManager_AllCodeHeaps);
    while (node && reader_step(reader, "code heaps") && module_base(reader, node) != base)
        node = read_field(reader, node, F_CodeHeapListNode_Next);
    return reader_failed(reader) ? 0 : node;
}

struct collection {
    struct reader *reader;
    struct function_table *table;
    uint64_t total; /* entries of all methods */
};

/* Adds the entries of a method. Stubs have none. */
static bool add_block(const struct nibble_block *block, void *context)
{
    struct collection *collection = context;
    struct reader *reader = collection->reader;
    if (block->unknown)
        return true;
    uint64_t header = read_pointer(reader, block->start - reader->pointer_size);
    if (!reader_failed(reader) && header > reader->layout->globals[G_StubCodeBlockLast]) {
        uint64_t count = read_field(reader, header, F_RealCodeHeader_NumUnwindInfos);
        uint64_t first = field_address(reader, header, F_RealCodeHeader_UnwindInfos);
        /* The methods of a damaged core can share one header: the total is bounded. */
        bool fits = count <= ENTRIES_MAX - collection->total && collection->table->count < METHODS_MAX;
        if (!reader_failed(reader) && !fits)
            return reader_fail(reader, CDACQ_ERR_CORRUPT, header, "RealCodeHeader.NumUnwindInfos");
        if (!reader_failed(reader) && count &&
            !function_table_append(collection->table, (struct function_entries){first, (uint32_t)count}))
            return reader_fail(reader, CDACQ_ERR_NOMEM, 0, "function table");
        collection->total += reader_failed(reader) ? 0 : count;
    }
    reader_recover(reader, FAILURE(CDACQ_ERR_MEMORY));
    return !reader_failed(reader);
}

bool function_table_read(const struct execution_manager *manager, struct reader *reader, uint64_t table,
                         struct function_table *ret)
{
    size_t before = ret->count;
    if (!has_field(reader, F_DynamicFunctionTable_MinimumAddress))
        return true;
    uint64_t node = find_heap(reader, table);
    if (!node)
        return !reader_failed(reader);
    struct nibble_map map = {
        .base = read_field(reader, node, F_CodeHeapListNode_MapBase),
        .header_map = read_field(reader, node, F_CodeHeapListNode_HeaderMap),
    };
    uint64_t begin = read_field(reader, node, F_CodeHeapListNode_StartAddress), end = code_heap_end(reader, node);
    struct collection collection = {.reader = reader, .table = ret};
    if (!reader_failed(reader) && begin < end)
        nibble_map_each(reader, manager->managers.nibble_map, &map, begin, end, add_block, &collection);
    for (size_t i = before, j = ret->count; i + 1 < j; i++) { /* the last method first */
        struct function_entries first = ret->items[i];
        ret->items[i] = ret->items[--j];
        ret->items[j] = first;
    }
    return !reader_failed(reader);
}
