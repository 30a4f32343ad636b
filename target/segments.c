#include "target/segments.h"

#include "util/binary_search.h"

bool segments_add(struct segments *segments, struct segment segment)
{
    return segment.begin >= segment.end || segments_append(segments, segment);
}

/* A segment by the index at which it was added. */
struct candidate {
    uint64_t begin; /* first, for compare_u64() */
    size_t order;
};

/* A binary max-heap of segments by their order: the top one wins at the current position. */
static void heap_push(size_t *heap, size_t *count, size_t order)
{
    size_t i = (*count)++;
    for (; i && heap[(i - 1) / 2] < order; i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = order;
}

static void heap_pop(size_t *heap, size_t *count)
{
    size_t order = heap[--*count], i = 0;
    for (size_t child; (child = 2 * i + 1) < *count; i = child) {
        if (child + 1 < *count && heap[child + 1] > heap[child])
            child++;
        if (heap[child] <= order)
            break;
        heap[i] = heap[child];
    }
    heap[i] = order;
}

static struct segment segment_slice(const struct segment *segment, uint64_t begin, uint64_t end)
{
    uint64_t skipped = begin - segment->begin;
    return (struct segment){
        .begin = begin,
        .end = end,
        .bytes = segment->bytes ? segment->bytes + skipped : NULL,
        .file = segment->file,
        .file_offset = segment->file_offset + skipped,
    };
}

/* The first segment from `i` on that begins before the one in front of it, or their number. */
static size_t run_end(const struct segments *segments, size_t i)
{
    do
        i++;
    while (i < segments->count && segments->items[i - 1].begin <= segments->items[i].begin);
    return MIN(i, segments->count);
}

/* Sorts the segments by begin. A core adds two lists that are in order, which are merged. */
static void sort_candidates(const struct segments *segments, struct candidate *ret)
{
    const struct segment *items = segments->items;
    size_t n = segments->count, a = 0, a_end = run_end(segments, 0), b = a_end, b_end = run_end(segments, b);
    for (size_t i = 0; i < b_end; i++) {
        size_t from = b == b_end || (a < a_end && items[a].begin <= items[b].begin) ? a++ : b++;
        ret[i] = (struct candidate){items[from].begin, from};
    }
    for (size_t i = b_end; i < n; i++)
        ret[i] = (struct candidate){items[i].begin, i};
    sort_u64(ret, n, sizeof *ret);
}

bool segments_seal(struct segments *segments)
{
    size_t n = segments->count, next = 0, active = 0;
    CLEANUP_FREE struct candidate *sorted = malloc((n + 1) * sizeof *sorted);
    CLEANUP_FREE size_t *heap = malloc((n + 1) * sizeof *heap);
    struct segments sealed = {0};
    if (!sorted || !heap || !segments_reserve(&sealed, n))
        return false;
    sort_candidates(segments, sorted);

    size_t previous = SIZE_MAX;
    uint64_t position = 0;
    while (next < n || active) {
        if (!active)
            position = MAX(position, sorted[next].begin);
        while (next < n && sorted[next].begin <= position)
            heap_push(heap, &active, sorted[next++].order);
        while (active && segments->items[heap[0]].end <= position)
            heap_pop(heap, &active);
        if (!active)
            continue;
        const struct segment *top = &segments->items[heap[0]];
        uint64_t end = next < n ? MIN(top->end, sorted[next].begin) : top->end;
        if (heap[0] == previous && sealed.items[sealed.count - 1].end == position) {
            sealed.items[sealed.count - 1].end = end;
        } else if (!segments_add(&sealed, segment_slice(top, position, end))) {
            segments_deinit(&sealed);
            return false;
        }
        previous = heap[0];
        position = end;
    }
    segments_deinit(segments);
    *segments = sealed;
    return true;
}

const struct segment *segments_next(const struct segments *segments, uint64_t address)
{
    size_t next = lower_bound(i, segments->count, segments->items[i].end <= address);
    return next < segments->count ? &segments->items[next] : NULL;
}

const struct segment *segments_find(const struct segments *segments, uint64_t address)
{
    const struct segment *segment = segments_next(segments, address);
    return segment && segment->begin <= address ? segment : NULL;
}
