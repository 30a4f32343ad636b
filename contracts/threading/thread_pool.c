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

/*
 * Counts the used slots of a segment. Head and tail only count up; their low bits are the slot. When a segment is full,
 * the runtime adds twice the number of slots to its tail, so that nothing more is enqueued in it.
 */
static bool count_segment(struct threading_types *types, uint64_t segment, uint64_t *ret)
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
    *ret = is_empty ? 0 : used ? used : slots;
    return true;
}

/* Adds the items of a queue to *sum. */
static bool add_queue(struct threading_types *types, uint64_t queue, unsigned *segments_left, uint64_t *sum)
{
    uint64_t segment, count;
    if (!threading_read(types, queue, THREADING_QUEUE_HEAD, &segment))
        return false;
    while (segment) {
        if (!*segments_left || !count_segment(types, segment, &count) ||
            !threading_read(types, segment, THREADING_SEGMENT_NEXT, &segment))
            return false;
        --*segments_left;
        *sum += count;
    }
    return true;
}

/* Adds the items of the queues that belong to some workers each, which machines with many processors have. */
static bool add_assigned(struct threading_types *types, uint64_t queues, unsigned *segments_left, uint64_t *sum)
{
    struct object_array array;
    uint64_t queue;
    if (!threading_array(types, queues, &array) || array.count > ASSIGNED_MAX)
        return false;
    for (uint32_t i = 0; i < array.count; i++)
        if (!threading_element(types, &array, i, &queue) || !add_queue(types, queue, segments_left, sum))
            return false;
    return true;
}

bool work_queue_count(struct threading_types *types, uint64_t queue, uint64_t *ret)
{
    uint64_t normal, high, low, assigned, sum = 0;
    unsigned segments_left = SEGMENTS_MAX;
    if (!threading_read(types, queue, THREADING_WORK_QUEUE_NORMAL, &normal) ||
        !threading_read_optional(types, queue, THREADING_WORK_QUEUE_HIGH, &high) ||
        !threading_read_optional(types, queue, THREADING_WORK_QUEUE_LOW, &low) ||
        !threading_read_optional(types, queue, THREADING_WORK_QUEUE_ASSIGNED, &assigned))
        return false;
    if (!add_queue(types, normal, &segments_left, &sum) || (high && !add_queue(types, high, &segments_left, &sum)) ||
        (low && !add_queue(types, low, &segments_left, &sum)) ||
        (assigned && !add_assigned(types, assigned, &segments_left, &sum)))
        return false;
    *ret = sum;
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
