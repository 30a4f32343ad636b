#include "target/segments.h"

#include "util/binary_search.h"

bool segments_add(struct segments *segments, struct segment segment)
{
    return segment.begin >= segment.end || segments_append(segments, segment);
}

struct candidate {
    struct segment segment; /* first, for compare_u64() */
    size_t order;           /* the index at which it was added */
};

/* A binary max-heap of candidates by `order`: the top one wins at the current position. */
static void heap_push(const struct candidate **heap, size_t *count, const struct candidate *item)
{
    size_t i = (*count)++;
    for (; i && heap[(i - 1) / 2]->order < item->order; i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = item;
}

static void heap_pop(const struct candidate **heap, size_t *count)
{
    const struct candidate *item = heap[--*count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < *count; i = child) {
        if (child + 1 < *count && heap[child + 1]->order > heap[child]->order)
            child++;
        if (heap[child]->order <= item->order)
            break;
        heap[i] = heap[child];
    }
    heap[i] = item;
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

bool segments_seal(struct segments *segments)
{
    size_t n = segments->count, next = 0, active = 0;
    CLEANUP_FREE struct candidate *sorted = calloc(n + 1, sizeof *sorted);
    CLEANUP_FREE const struct candidate **heap = calloc(n + 1, sizeof *heap);
    if (!sorted || !heap)
        return false;
    for (size_t i = 0; i < n; i++)
        sorted[i] = (struct candidate){segments->items[i], i};
    qsort(sorted, n, sizeof *sorted, compare_u64);

    segments->count = 0;
    const struct candidate *previous = NULL;
    uint64_t position = 0;
    while (next < n || active) {
        if (!active)
            position = MAX(position, sorted[next].segment.begin);
        while (next < n && sorted[next].segment.begin <= position)
            heap_push(heap, &active, &sorted[next++]);
        while (active && heap[0]->segment.end <= position)
            heap_pop(heap, &active);
        if (!active)
            continue;
        const struct candidate *top = heap[0];
        uint64_t end = next < n ? MIN(top->segment.end, sorted[next].segment.begin) : top->segment.end;
        if (top == previous && segments->items[segments->count - 1].end == position)
            segments->items[segments->count - 1].end = end;
        else if (!segments_add(segments, segment_slice(&top->segment, position, end)))
            return false;
        previous = top;
        position = end;
    }
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
