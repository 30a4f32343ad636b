#include "contracts/execution_manager/code_heap_infos.h"

/* CodeHeap::CodeHeapType */
enum { CODE_HEAP_LOADER = 0, CODE_HEAP_HOST = 1 };

/* The variable that points to a manager; 0 where the target does not tell it. */
static uint64_t manager_variable(const struct field_reader *reader, enum cdacq_code_kind kind)
{
    const struct layout *layout = reader->layout;
    enum layout_global global = kind == CDACQ_CODE_JITTED ? G_EEJitManagerAddress : G_InterpreterJitManagerAddress;
    return layout->global_present[global] ? layout->globals[global] : 0;
}

static bool has_heap_of(const struct range_section *section, enum cdacq_code_kind kind)
{
    return range_section_manager(section) == (kind == CDACQ_CODE_JITTED ? CODE_MANAGER_EE : CODE_MANAGER_INTERPRETER) &&
           section->heap_list;
}

bool jit_manager_info(const struct execution_manager *manager, struct field_reader *reader, enum cdacq_code_kind kind,
                      struct cdacq_jit_manager_info *ret)
{
    struct range_section_list list;
    uint64_t variable = manager_variable(reader, kind);
    *ret = (struct cdacq_jit_manager_info){.size = sizeof *ret, .kind = kind};
    if (kind != CDACQ_CODE_JITTED && kind != CDACQ_CODE_INTERPRETER)
        return true;
    if (variable) {
        ret->address = read_pointer(&reader->raw, variable);
        if (ret->address && has_field(reader, F_EEJitManager_AllCodeHeaps))
            ret->heap_list = read_field(reader, ret->address, F_EEJitManager_AllCodeHeaps);
        return !reader_failed(&reader->raw);
    }
    if (!range_section_map_list(reader, manager->map, &list))
        return false;
    for (size_t i = 0; i < list.count && !ret->address; i++)
        if (has_heap_of(&list.items[i], kind))
            ret->address = list.items[i].jit_manager;
    free(list.items);
    return true;
}

static void read_code_heap(struct field_reader *reader, struct cdacq_code_heap_info *heap)
{
    switch (read_field(reader, heap->heap, F_CodeHeap_HeapType)) {
    case CODE_HEAP_LOADER:
        heap->type = CDACQ_CODE_HEAP_LOADER;
        if (has_field(reader, F_LoaderCodeHeap_LoaderHeap))
            heap->loader_heap = field_address(reader, heap->heap, F_LoaderCodeHeap_LoaderHeap);
        break;
    case CODE_HEAP_HOST:
        heap->type = CDACQ_CODE_HEAP_HOST;
        if (has_field(reader, F_HostCodeHeap_BaseAddress) && has_field(reader, F_HostCodeHeap_CurrentAddress)) {
            heap->base = read_field(reader, heap->heap, F_HostCodeHeap_BaseAddress);
            heap->current = read_field(reader, heap->heap, F_HostCodeHeap_CurrentAddress);
        }
        break;
    }
}

static bool add_node(struct field_reader *reader, uint64_t node, struct code_heap_list *list)
{
    struct cdacq_code_heap_info heap = {
        .size = sizeof heap,
        .node = node,
        .begin = read_field(reader, node, F_CodeHeapListNode_StartAddress),
        .end = read_field(reader, node, F_CodeHeapListNode_EndAddress),
        .map_base = read_field(reader, node, F_CodeHeapListNode_MapBase),
        .header_map = read_field(reader, node, F_CodeHeapListNode_HeaderMap),
    };
    if (has_field(reader, F_CodeHeapListNode_Heap))
        heap.heap = read_field(reader, node, F_CodeHeapListNode_Heap);
    if (reader_failed(&reader->raw))
        return false;
    if (heap.heap && has_field(reader, F_CodeHeap_HeapType)) {
        struct cdacq_code_heap_info typed = heap;
        read_code_heap(reader, &typed);
        if (!reader_recover(&reader->raw, FAILURE(CDACQ_ERR_MEMORY))) /* of what type it is is the least of it */
            heap = typed;
    }
    if (list->count == CODE_HEAP_MAX) { /* the list is the target's: it may be a circle */
        list->count = 0;
        reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, node, "CodeHeapListNode.Next");
        return false;
    }
    if (list->count == list->capacity) {
        size_t capacity = MAX(list->capacity * 2, (size_t)16);
        struct cdacq_code_heap_info *items = realloc(list->items, capacity * sizeof *items);
        if (!items) {
            reader_fail(&reader->raw, CDACQ_ERR_NOMEM, 0, "code heaps");
            return false;
        }
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = heap;
    return true;
}

/* Heaps by the range sections that they fill: one each. One that cannot be read does not take the others with it. */
static void add_by_sections(const struct execution_manager *manager, struct field_reader *reader,
                            enum cdacq_code_kind kind, struct code_heap_list *ret)
{
    struct range_section_list list;
    struct reader_failure failure = {0};
    if (!range_section_map_list(reader, manager->map, &list))
        return;
    for (size_t i = 0; i < list.count && failure.status != CDACQ_ERR_NOMEM; i++)
        if (has_heap_of(&list.items[i], kind) && !add_node(reader, list.items[i].heap_list, ret)) {
            failure = reader_failure(&reader->raw);
            reader_recover(&reader->raw, FAILURE_ANY);
        }
    if (!reader_fail_again(&reader->raw, &failure) && list.unreadable)
        reader_fail(&reader->raw, CDACQ_ERR_MEMORY, manager->map, "RangeSectionMap");
    free(list.items);
}

void code_heaps_list(const struct execution_manager *manager, struct field_reader *reader, enum cdacq_code_kind kind,
                     struct code_heap_list *ret)
{
    struct cdacq_jit_manager_info info;
    bool described = manager_variable(reader, kind) && has_field(reader, F_EEJitManager_AllCodeHeaps) &&
                     has_field(reader, F_CodeHeapListNode_Next);
    *ret = (struct code_heap_list){0};
    if (kind != CDACQ_CODE_JITTED && kind != CDACQ_CODE_INTERPRETER)
        return;
    if (!described)
        add_by_sections(manager, reader, kind, ret);
    else if (jit_manager_info(manager, reader, kind, &info))
        for (uint64_t node = info.heap_list;
             node && reader_step(&reader->raw, "code heaps") && add_node(reader, node, ret);)
            node = read_field(reader, node, F_CodeHeapListNode_Next);
}
