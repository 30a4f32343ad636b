#include "contracts/execution_manager/code_heap_infos.h"

#include "contracts/code_lookup/range_section_map.h"
#include "contracts/execution_manager/code_heap.h"

/* CodeHeap::CodeHeapType */
enum { CODE_HEAP_LOADER = 0, CODE_HEAP_HOST = 1 };

/* The variable that points to a manager; 0 if it is not published. */
static uint64_t variable_of(const struct reader *reader, const struct jit_manager_ops *manager)
{
    const struct layout *layout = reader->layout;
    return layout->global_present[manager->heaps_variable] ? layout->globals[manager->heaps_variable] : 0;
}

/* The manager of a kind of code if it keeps code heaps, or NULL. */
static const struct jit_manager_ops *heap_manager(enum cdacq_code_kind kind)
{
    if (kind == ee_jit_manager.method_kind)
        return &ee_jit_manager;
    return kind == interpreter_jit_manager.method_kind ? &interpreter_jit_manager : NULL;
}

bool jit_manager_info(const struct execution_manager *execution_manager, struct reader *reader,
                      enum cdacq_code_kind kind, struct cdacq_jit_manager_info *ret)
{
    struct range_section_list list;
    const struct jit_manager_ops *manager = heap_manager(kind);
    *ret = (struct cdacq_jit_manager_info){.size = sizeof *ret, .kind = kind};
    if (!manager)
        return true;
    uint64_t variable = variable_of(reader, manager);
    if (variable) {
        ret->address = read_pointer(reader, variable);
        ret->heap_list = read_optional(reader, ret->address, F_EEJitManager_AllCodeHeaps);
        return !reader_failed(reader);
    }
    if (!execution_manager_list(execution_manager, reader, &list))
        return false;
    for (size_t i = 0; i < list.count && !ret->address; i++)
        if (jit_manager_of(&list.items[i]) == manager && list.items[i].heap_list)
            ret->address = list.items[i].jit_manager;
    free(list.items);
    return true;
}

static void read_code_heap(struct reader *reader, struct cdacq_code_heap_info *heap)
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

static bool add_node(struct reader *reader, uint64_t node, struct code_heap_list *list)
{
    struct cdacq_code_heap_info heap = {
        .size = sizeof heap,
        .node = node,
        .begin = read_field(reader, node, F_CodeHeapListNode_StartAddress),
        .end = code_heap_end(reader, node),
        .map_base = read_field(reader, node, F_CodeHeapListNode_MapBase),
        .header_map = read_field(reader, node, F_CodeHeapListNode_HeaderMap),
        .heap = read_optional(reader, node, F_CodeHeapListNode_Heap),
    };
    if (reader_failed(reader))
        return false;
    if (heap.heap && has_field(reader, F_CodeHeap_HeapType)) {
        struct cdacq_code_heap_info typed = heap;
        read_code_heap(reader, &typed);
        if (!reader_recover(reader, FAILURE(CDACQ_ERR_MEMORY))) /* its type may stay unknown */
            heap = typed;
    }
    if (list->count == CODE_HEAP_MAX) { /* the target's list may be a cycle */
        list->count = 0;
        return reader_fail(reader, CDACQ_ERR_CORRUPT, node, "CodeHeapListNode.Next");
    }
    return code_heap_list_append(list, heap) || reader_fail(reader, CDACQ_ERR_NOMEM, 0, "code heaps");
}

/* Adds the heap of each range section. A heap that cannot be read does not end the list. */
static void add_by_sections(const struct execution_manager *execution_manager, struct reader *reader,
                            const struct jit_manager_ops *manager, struct code_heap_list *ret)
{
    struct range_section_list list;
    struct reader_failure failure = {0};
    if (!execution_manager_list(execution_manager, reader, &list))
        return;
    for (size_t i = 0; i < list.count && failure.status != CDACQ_ERR_NOMEM; i++)
        if (jit_manager_of(&list.items[i]) == manager && list.items[i].heap_list &&
            !add_node(reader, list.items[i].heap_list, ret)) {
            failure = reader_failure(reader);
            reader_recover(reader, FAILURE_ANY);
        }
    if (!reader_fail_again(reader, &failure) && list.left_out)
        reader_fail(reader, CDACQ_ERR_MEMORY, execution_manager->map, "RangeSectionMap");
    free(list.items);
}

void code_heaps_list(const struct execution_manager *execution_manager, struct reader *reader,
                     enum cdacq_code_kind kind, struct code_heap_list *ret)
{
    struct cdacq_jit_manager_info info;
    const struct jit_manager_ops *manager = heap_manager(kind);
    *ret = (struct code_heap_list){0};
    if (!manager)
        return;
    bool described = variable_of(reader, manager) && has_field(reader, F_EEJitManager_AllCodeHeaps) &&
                     has_field(reader, F_CodeHeapListNode_Next);
    if (!described)
        add_by_sections(execution_manager, reader, manager, ret);
    else if (jit_manager_info(execution_manager, reader, kind, &info))
        for (uint64_t node = info.heap_list; node && reader_step(reader, "code heaps") && add_node(reader, node, ret);)
            node = read_field(reader, node, F_CodeHeapListNode_Next);
}
