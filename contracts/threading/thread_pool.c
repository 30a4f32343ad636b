#include "contracts/threading/thread_pool.h"

enum {
    SEGMENTS_MAX = 64 * 1024, /* of all queues together; each but the first few of a queue has a million slots */
    ASSIGNED_MAX = 4096,      /* queues that belong to some workers */
    CACHE_LINE = 64,          /* bytes; the runtime keeps fields that change often on lines of their own */
    CACHE_LINE_ARM64 = 128,
};

static unsigned cache_line(const struct threading_types *types)
{
    return types->cache->reader->layout->architecture == ARCHITECTURE_ARM64 ? CACHE_LINE_ARM64 : CACHE_LINE;
}

bool thread_pool_read_limits(struct threading_types *types, uint64_t pool, struct thread_pool_limits *ret)
{
    uint64_t min, max;
    if (!threading_read(types, pool, THREADING_POOL_MIN, &min) ||
        !threading_read(types, pool, THREADING_POOL_MAX, &max))
        return false;
    *ret = (struct thread_pool_limits){.min = (uint32_t)min, .max = (uint32_t)max};
    return true;
}

/*
 * The goal is in ThreadCounts, after a cache line of padding: the numbers of workers that run and that exist, and the
 * goal, 16 bits each.
 */
bool thread_pool_read_goal(struct threading_types *types, uint64_t pool, uint32_t *ret)
{
    struct reader *reader = types->cache->reader;
    uint64_t counts;
    if (!threading_field_address(types, pool, THREADING_POOL_COUNTS, &counts))
        return false;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    uint64_t value = read_u64(reader, counts + cache_line(types));
    if (reader_leave(reader, &outer).status < 0 || !(value >> 32 & UINT16_MAX)) /* a goal is 1 or more */
        return false;
    *ret = value >> 32 & UINT16_MAX;
    return true;
}

/* Where the used slots of a segment begin, and how many there are. */
struct used_slots {
    uint32_t first, count, mask;
};

/*
 * Head and tail only count up; their low bits are the slot. When a segment is full, the runtime adds twice the number
 * of slots to its tail, so that nothing more is enqueued in it.
 */
static bool read_segment(struct threading_types *types, uint64_t segment, struct used_slots *ret)
{
    struct reader *reader = types->cache->reader;
    unsigned line = cache_line(types);
    uint64_t mask, ends;
    if (!threading_read(types, segment, THREADING_SEGMENT_MASK, &mask) ||
        !threading_field_address(types, segment, THREADING_SEGMENT_ENDS, &ends))
        return false;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    uint32_t head = read_u32(reader, ends + line), tail = read_u32(reader, ends + UINT64_C(2) * line);
    if (reader_leave(reader, &outer).status < 0 || mask > INT32_MAX || mask & (mask + 1))
        return false;
    uint32_t slots = (uint32_t)mask + 1;
    bool is_empty = head == tail || head == tail - slots * 2;
    uint32_t used = (tail - head) & (uint32_t)mask;
    *ret = (struct used_slots){.first = head, .count = is_empty ? 0 : used ? used : slots, .mask = (uint32_t)mask};
    return true;
}

/* What is done with the used slots of each segment; false ends it. */
struct segment_visitor {
    bool (*visit)(struct threading_types *types, uint64_t segment, const struct used_slots *used, void *context);
    void *context;
    unsigned segments_left;
};

static bool each_segment(struct threading_types *types, uint64_t queue, struct segment_visitor *visitor)
{
    uint64_t segment;
    struct used_slots used;
    if (!threading_read(types, queue, THREADING_QUEUE_HEAD, &segment))
        return false;
    while (segment) {
        if (!visitor->segments_left || !read_segment(types, segment, &used) ||
            !visitor->visit(types, segment, &used, visitor->context) ||
            !threading_read(types, segment, THREADING_SEGMENT_NEXT, &segment))
            return false;
        visitor->segments_left--;
    }
    return true;
}

/* Those of the queues that belong to some workers each, which machines with many processors have. */
static bool each_assigned(struct threading_types *types, uint64_t queues, struct segment_visitor *visitor)
{
    struct object_array array;
    uint64_t queue;
    if (!threading_array(types, queues, &array) || array.count > ASSIGNED_MAX)
        return false;
    for (uint32_t i = 0; i < array.count; i++)
        if (!threading_element(types, &array, i, &queue) || !each_segment(types, queue, visitor))
            return false;
    return true;
}

/* Those of all queues of the pool: false if one cannot be read. */
static bool each_of_pool(struct threading_types *types, uint64_t queue, struct segment_visitor *visitor)
{
    uint64_t normal, high, low, assigned;
    return threading_read(types, queue, THREADING_WORK_QUEUE_NORMAL, &normal) &&
           threading_read_optional(types, queue, THREADING_WORK_QUEUE_HIGH, &high) &&
           threading_read_optional(types, queue, THREADING_WORK_QUEUE_LOW, &low) &&
           threading_read_optional(types, queue, THREADING_WORK_QUEUE_ASSIGNED, &assigned) &&
           (!high || each_segment(types, high, visitor)) && each_segment(types, normal, visitor) &&
           (!low || each_segment(types, low, visitor)) && (!assigned || each_assigned(types, assigned, visitor));
}

static bool count_slots(struct threading_types *types, uint64_t segment, const struct used_slots *used, void *context)
{
    uint64_t *sum = context;
    (void)types;
    (void)segment;
    *sum += used->count;
    return true;
}

bool work_queue_count(struct threading_types *types, uint64_t queue, uint64_t *ret)
{
    uint64_t sum = 0;
    struct segment_visitor visitor = {count_slots, &sum, SEGMENTS_MAX};
    if (!each_of_pool(types, queue, &visitor))
        return false;
    *ret = sum;
    return true;
}

struct item_visit {
    bool (*visit)(void *context, uint64_t item);
    void *context;
};

/* A slot has a reference and, after it, a number that is 1 more than the position once the slot is filled. */
static bool visit_slots(struct threading_types *types, uint64_t segment, const struct used_slots *used, void *context)
{
    const struct item_visit *visit = context;
    struct reader *reader = types->cache->reader;
    struct object_array slots;
    uint64_t array;
    if (!threading_read(types, segment, THREADING_SEGMENT_SLOTS, &array))
        return false;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    bool is_array = object_array_read(reader, array, &slots);
    bool is_read = reader_leave(reader, &outer).status >= 0 && is_array && slots.count == used->mask + UINT64_C(1) &&
                   slots.element_size == 2 * reader->pointer_size;
    for (uint32_t i = 0; is_read && i < used->count; i++) {
        uint32_t position = used->first + i;
        uint64_t slot = slots.elements + (position & used->mask) * (uint64_t)slots.element_size;
        if (!types->reads_left)
            return false;
        types->reads_left--;
        outer = reader_enter(reader, FUEL_LOOKUP);
        uint64_t item = read_pointer(reader, slot);
        bool is_filled = read_u32(reader, slot + reader->pointer_size) == position + 1;
        is_read = reader_leave(reader, &outer).status >= 0;
        if (is_read && is_filled && item && !visit->visit(visit->context, item))
            return false;
    }
    return is_read;
}

bool work_queue_each(struct threading_types *types, uint64_t queue, bool (*visit)(void *context, uint64_t item),
                     void *context)
{
    struct item_visit items = {visit, context};
    struct segment_visitor visitor = {visit_slots, &items, SEGMENTS_MAX};
    return each_of_pool(types, queue, &visitor);
}

bool stealing_queue_each(struct threading_types *types, uint64_t queue, bool (*visit)(void *context, uint64_t item),
                         void *context)
{
    struct object_array array;
    uint64_t head, tail, mask, items, item;
    if (!threading_read(types, queue, THREADING_STEALING_HEAD, &head) ||
        !threading_read(types, queue, THREADING_STEALING_TAIL, &tail) ||
        !threading_read(types, queue, THREADING_STEALING_MASK, &mask) ||
        !threading_read(types, queue, THREADING_STEALING_ARRAY, &items) || !threading_array(types, items, &array) ||
        mask & (mask + 1) || mask >= array.count)
        return false;
    int32_t count = (int32_t)((uint32_t)tail - (uint32_t)head);
    for (int32_t i = 0; i < MIN(count, (int32_t)array.count); i++) {
        if (!threading_element(types, &array, ((uint32_t)head + (uint32_t)i) & (uint32_t)mask, &item))
            return false;
        if (item && !visit(context, item))
            return false;
    }
    return true;
}

bool worker_queue_count(struct threading_types *types, uint64_t locals, uint64_t *ret)
{
    uint64_t queue, head, tail;
    if (!threading_read(types, locals, THREADING_WORKER_QUEUE, &queue) ||
        !threading_read(types, queue, THREADING_STEALING_HEAD, &head) ||
        !threading_read(types, queue, THREADING_STEALING_TAIL, &tail))
        return false;
    int32_t count = (int32_t)((uint32_t)tail - (uint32_t)head); /* negative while the worker takes the last item */
    *ret = count > 0 ? (uint64_t)count : 0;
    return true;
}
