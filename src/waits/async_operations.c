#include "src/waits/async_operations.h"

#include "contracts/gc/allocation_context.h"
#include "contracts/gc/segment.h"
#include "contracts/gc/walk.h"
#include "contracts/threading/async_method.h"
#include "contracts/threading/continuation.h"
#include "contracts/threading/task.h"
#include "src/lookup/resolver.h"

void async_operations_init(struct async_operations *operations, struct resolver *resolver, struct gc_problems *problems)
{
    *operations = (struct async_operations){.resolver = resolver, .problems = problems};
    threading_types_init(&operations->types, &resolver->modules);
    async_frames_init(&operations->async, resolver, &operations->types);
    operations->kinds.types = &operations->types;
}

void async_operations_deinit(struct async_operations *operations)
{
    for (size_t i = 0; i < ASYNC_KIND_COUNT; i++)
        async_objects_deinit(&operations->objects[i]);
    async_frame_list_deinit(&operations->frames);
    async_operation_list_deinit(&operations->items);
    async_indices_deinit(&operations->indices);
    async_chain_list_deinit(&operations->chains);
    async_kinds_deinit(&operations->kinds);
    async_frames_deinit(&operations->async);
    threading_types_deinit(&operations->types);
}

static bool out_of_memory(struct async_operations *operations)
{
    operations->no_memory = true;
    reader_fail(&operations->resolver->reader, CDACQ_ERR_NOMEM, 0, "async operations");
    return false;
}

/* ---- The heap ---- */

/* The kinds whose objects are all needed. */
static bool is_searched(const struct async_operations *operations, enum async_kind kind)
{
    return operations->also_searched >> kind & 1 || kind == ASYNC_BOX || kind == ASYNC_RUNTIME_TASK ||
           kind == ASYNC_SEMAPHORE || kind == ASYNC_CHANNEL || kind == ASYNC_SOURCE || kind == ASYNC_HOLDER;
}

/* Notes each type once. */
static bool take_type(void *context, const struct gc_segment *segment, const struct cdacq_heap_object *object)
{
    struct async_operations *operations = context;
    const struct async_type type = {.method_table = object->method_table, .sample = object->address};
    (void)segment;
    if (LIKELY(operations->recent && operations->recent->method_table == object->method_table))
        return true;
    if (UNLIKELY(operations->kinds.known.count >= THREADING_TYPES_MAX)) {
        operations->recent = async_types_find(&operations->kinds.known, object->method_table);
        operations->is_full |= !operations->recent;
        return true;
    }
    operations->recent = async_types_insert(&operations->kinds.known, type, NULL);
    operations->no_memory |= !operations->recent;
    return operations->recent != NULL;
}

/* Keeps the objects of the kinds that are searched for. */
static bool take_object(void *context, const struct gc_segment *segment, const struct cdacq_heap_object *object)
{
    struct async_operations *operations = context;
    (void)segment;
    if (UNLIKELY(!operations->recent || operations->recent->method_table != object->method_table))
        operations->recent = async_types_find(&operations->kinds.known, object->method_table);
    if (LIKELY(!operations->recent || !is_searched(operations, operations->recent->kind)))
        return true;
    struct async_objects *objects = &operations->objects[operations->recent->kind];
    if (objects->count >= ASYNC_OPERATIONS_MAX) {
        operations->is_full = true;
        return true;
    }
    operations->no_memory |= !async_objects_append(objects, object->address);
    return !operations->no_memory;
}

/*
 * Walks the heap twice: a type is read only when no block of the heap is in use. The second walk meets the problems of
 * the first.
 */
static bool read_heap(struct async_operations *operations, const struct gc_segments *segments,
                      const struct gc_holes *holes)
{
    struct reader *reader = &operations->resolver->reader;
    struct gc_problems quiet = {0};
    bool any = false;
    if (!gc_walk(reader, segments, holes, operations->problems,
                 &(struct gc_visitor){.object = take_type, .context = operations}))
        return operations->no_memory ? out_of_memory(operations) : false;
    for (struct async_type *type = NULL; (type = async_types_next(&operations->kinds.known, type));) {
        (void)async_kind_of_type(&operations->kinds, type->method_table, type->sample);
        any |= is_searched(operations, type->kind);
    }
    operations->recent = NULL;
    if (any &&
        !gc_walk(reader, segments, holes, &quiet, &(struct gc_visitor){.object = take_object, .context = operations}))
        return operations->no_memory ? out_of_memory(operations) : false;
    operations->recent = NULL;
    return !reader_failed(reader);
}

/* ---- Operations ---- */

uint32_t async_operation_of(const struct async_operations *operations, uint64_t object)
{
    const struct async_index *index = object ? async_indices_find(&operations->indices, object) : NULL;
    return index ? (uint32_t)index->other : ASYNC_NONE;
}

/* Adds the operation whose frames were appended from `first` on. */
static bool add_operation(struct async_operations *operations, uint64_t object, size_t first)
{
    struct async_operation item = {.object = object,
                                   .first_frame = first,
                                   .frame_count = (uint32_t)(operations->frames.count - first),
                                   .next = ASYNC_NONE,
                                   .chain = ASYNC_NONE};
    const struct async_index index = {object, operations->items.count};
    if (!item.frame_count)
        return true;
    if (operations->items.count >= ASYNC_OPERATIONS_MAX) {
        operations->frames.count = first;
        operations->is_full = true;
        return true;
    }
    return (async_indices_insert(&operations->indices, index, NULL) &&
            async_operation_list_append(&operations->items, item)) ||
           out_of_memory(operations);
}

/*
 * Whether a box belongs to a method that has suspended. A state machine that is cleared has the number of a state, too:
 * its task has completed then, or, if the box is pooled, it no longer refers to its box.
 */
static bool is_suspended(struct async_operations *operations, const struct async_method *method, int32_t *ret_state)
{
    struct threading_types *types = &operations->types;
    enum task_status status;
    if (!async_method_state(types, method, ret_state))
        return false;
    if (threading_is_task(threading_type_of(types, method->box, true)))
        return task_read_status(types, method->box, &status) && !task_is_completed(status);
    return async_object_refers_to(types, method->machine ? method->machine : method->box, method->box);
}

static bool add_box(struct async_operations *operations, uint64_t box)
{
    struct async_method method;
    struct async_frame frame = {.object = box};
    size_t first = operations->frames.count;
    if (!async_method_find(&operations->types, box, &method) || !method.type || method.box != box ||
        !is_suspended(operations, &method, &frame.state))
        return true;
    frame.type = method.type;
    return async_frame_list_append(&operations->frames, frame) ? add_operation(operations, box, first)
                                                               : out_of_memory(operations);
}

static bool add_runtime_task(struct async_operations *operations, uint64_t task)
{
    enum task_status status;
    size_t first = operations->frames.count;
    if (!task_read_status(&operations->types, task, &status) || task_is_completed(status))
        return true;
    return async_frames_of(&operations->async, task, &operations->frames) ? add_operation(operations, task, first)
                                                                          : out_of_memory(operations);
}

static bool add_operations(struct async_operations *operations)
{
    const struct async_objects *boxes = &operations->objects[ASYNC_BOX],
                               *tasks = &operations->objects[ASYNC_RUNTIME_TASK];
    struct reader *reader = &operations->resolver->reader;
    for (size_t i = 0; i < boxes->count && reader_step(reader, "boxes of state machines"); i++)
        if (!add_box(operations, boxes->items[i]))
            return false;
    for (size_t i = 0; i < tasks->count && reader_step(reader, "async tasks"); i++)
        if (!add_runtime_task(operations, tasks->items[i]))
            return false;
    return !reader_failed(reader);
}

/* ---- What awaits what ---- */

/* Whether a task of Task.WhenAll still waits for one task. */
static bool waits_for_one(struct async_operations *operations, uint64_t task)
{
    uint64_t left;
    return (async_read(&operations->kinds, task, "m_count", 4, &left) ||
            async_read(&operations->kinds, task, "_remainingToComplete", 4, &left)) &&
           left == 1;
}

/* Whether other tasks or events complete a task beside the one that leads to it. */
static bool has_several_ways(struct async_operations *operations, uint64_t object)
{
    enum async_kind kind = async_kind_of(&operations->kinds, object);
    return kind == ASYNC_WHEN_ANY || (kind == ASYNC_WHEN_ALL && !waits_for_one(operations, object));
}

/* The operation that awaits an operation; ASYNC_NONE: there is none, or there are several. */
static uint32_t find_next(struct async_operations *operations, struct async_operation *item)
{
    uint64_t object = item->object;
    for (unsigned i = 0; i < ASYNC_LEADS_MAX; i++) {
        bool several = false;
        object = async_frames_continuation(&operations->async, object, &several);
        item->has_several |= several;
        uint32_t next = async_operation_of(operations, object);
        if (!object || next != ASYNC_NONE)
            return next;
        item->is_bounded |= async_kind_of(&operations->kinds, object) == ASYNC_WAIT_ASYNC;
        if (has_several_ways(operations, object))
            return ASYNC_NONE;
    }
    return ASYNC_NONE;
}

static bool link_operations(struct async_operations *operations)
{
    struct reader *reader = &operations->resolver->reader;
    for (uint32_t i = 0; i < operations->items.count && reader_step(reader, "async operations"); i++) {
        struct async_operation *item = &operations->items.items[i];
        uint32_t next = find_next(operations, item);
        if (next == ASYNC_NONE || operations->items.items[next].is_awaited)
            continue;
        item->next = next;
        operations->items.items[next].is_awaited = true;
    }
    return !reader_failed(reader);
}

struct leading {
    struct async_operations *operations;
    uint64_t object;
};

static bool leads_to(void *context, uint64_t task)
{
    struct leading *leading = context;
    bool several;
    return async_frames_continuation(&leading->operations->async, task, &several) == leading->object;
}

/*
 * What a RuntimeAsyncTask awaits: its first Continuation says so, or has the awaiter. If a thread runs a method of the
 * task, the others wait for that: the task itself.
 */
static uint64_t find_awaited_by_runtime(struct async_operations *operations, uint64_t task)
{
    struct threading_types *types = &operations->types;
    struct leading leading = {operations, task};
    uint64_t first = continuation_of_task(types, task), awaited = continuation_awaited(types, first);
    if (!first)
        return task;
    return awaited ? awaited : async_object_task(types, first, leads_to, &leading);
}

/* What an operation awaits; 0: not known. */
static uint64_t find_awaited(struct async_operations *operations, uint64_t object)
{
    struct threading_types *types = &operations->types;
    struct async_method method;
    if (threading_type_of(types, object, true) == THREADING_RUNTIME_ASYNC)
        return find_awaited_by_runtime(operations, object);
    if (!async_method_find(types, object, &method) || !method.type)
        return 0;
    return async_method_awaiter(types, &method);
}

/* Adds the chain that begins with an operation. */
static bool add_chain(struct async_operations *operations, uint32_t first, bool is_cycle)
{
    struct async_chain chain = {.operation = first, .last = first, .is_cycle = is_cycle};
    uint32_t number = (uint32_t)operations->chains.count;
    for (uint32_t i = first; i != ASYNC_NONE && operations->items.items[i].chain == ASYNC_NONE;) {
        struct async_operation *item = &operations->items.items[i];
        item->chain = number;
        chain.last = i;
        chain.operation_count++;
        chain.frame_count += item->frame_count;
        chain.is_bounded |= item->is_bounded;
        i = item->next;
    }
    chain.is_cycle &= !chain.is_bounded;
    chain.awaited = find_awaited(operations, operations->items.items[first].object);
    return async_chain_list_append(&operations->chains, chain) || out_of_memory(operations);
}

/* Adds the chains with a begin, and then those that are rings. */
static bool add_chains(struct async_operations *operations)
{
    struct reader *reader = &operations->resolver->reader;
    for (uint32_t i = 0; i < operations->items.count && reader_step(reader, "async operations"); i++)
        if (!operations->items.items[i].is_awaited && !add_chain(operations, i, false))
            return false;
    for (uint32_t i = 0; i < operations->items.count && reader_step(reader, "async operations"); i++)
        if (operations->items.items[i].chain == ASYNC_NONE && !add_chain(operations, i, true))
            return false;
    return !reader_failed(reader);
}

bool async_operations_link(struct async_operations *operations)
{
    return add_operations(operations) && link_operations(operations) && add_chains(operations);
}

bool async_operations_find(struct async_operations *operations, const struct gc *gc)
{
    struct reader *reader = &operations->resolver->reader;
    struct gc_segments segments = {0};
    struct gc_holes holes = {0};
    bool is_read = gc_segments_read(reader, gc, operations->problems, &segments) &&
                   gc_holes_read(reader, gc, operations->problems, &holes) && read_heap(operations, &segments, &holes);
    gc_holes_deinit(&holes);
    gc_segments_deinit(&segments);
    if (!is_read || !async_operations_link(operations))
        return false;
    if (operations->is_full)
        gc_problem(operations->problems, "there are more async operations, or more types, than this build lists");
    if (!operations->types.reads_left)
        gc_problem(operations->problems, "there are too many objects to look at: async operations were left out");
    return true;
}

const struct async_frame *async_next_frame(struct async_chain_frames *frames)
{
    while (frames->operations_left && frames->operation != ASYNC_NONE) {
        const struct async_operation *item = &frames->operations->items.items[frames->operation];
        if (frames->frame < item->frame_count)
            return &frames->operations->frames.items[item->first_frame + frames->frame++];
        frames->frame = 0;
        frames->operation = item->next;
        frames->operations_left--;
    }
    return NULL;
}
