#include "src/cli/commands/object_heap.h"

#include "src/cli/base/memory.h"

void object_heap_deinit(struct object_heap *heap)
{
    heap_segments_deinit(&heap->segments);
    heap->is_read = false;
}

static int take_segment(const struct cdacq_heap_segment *segment, void *context)
{
    struct object_heap *heap = context;
    if (!heap_segments_append(&heap->segments, *segment))
        out_of_memory();
    return 0;
}

const char *object_heap_generation(struct object_heap *heap, struct cdacq_session *session, uint64_t address)
{
    const struct cdacq_heap_visitor visitor = {.size = sizeof visitor, .segment = take_segment, .context = heap};
    if (!heap->is_read)
        (void)cdacq_session_visit_heap(session, &visitor, NULL, NULL);
    heap->is_read = true;
    for (size_t i = 0; i < heap->segments.count; i++) {
        const struct cdacq_heap_segment *segment = &heap->segments.items[i];
        if (address >= segment->begin && address < segment->end)
            return cdacq_generation_text(segment->generation);
    }
    return NULL;
}

/* ---- Referrers -------------------------------------------------------------------------------------------------- */

struct search {
    uint64_t address, limit, count;
    uint64_t method_table; /* of the object that is visited */
    struct object_referrers *found;
};

static int take_object(const struct cdacq_heap_object *object, void *context)
{
    struct search *search = context;
    search->method_table = object->method_table;
    return 0;
}

static int take_reference(uint64_t object, uint64_t offset, uint64_t target, void *context)
{
    struct search *search = context;
    if (target != search->address)
        return 0;
    const struct object_referrer referrer = {.address = object, .offset = offset, .method_table = search->method_table};
    if (search->count++ < search->limit && !object_referrers_append(search->found, referrer))
        out_of_memory();
    return 0;
}

bool object_referrers_read(struct cdacq_session *session, uint64_t address, uint64_t limit,
                           struct object_referrers *ret, uint64_t *ret_count, struct cdacq_error *err)
{
    struct search search = {.address = address, .limit = limit, .found = ret};
    const struct cdacq_heap_visitor visitor = {
        .size = sizeof visitor, .object = take_object, .context = &search, .reference = take_reference};
    enum cdacq_status status = cdacq_session_visit_heap(session, &visitor, NULL, err);
    *ret_count = search.count;
    return status >= 0;
}
