#include "target/spans.h"

void spans_deinit(struct spans *spans)
{
    free(spans->items);
    *spans = (struct spans){0};
}

bool spans_add(struct spans *spans, struct span span)
{
    if (span.begin >= span.end)
        return true;
    if (spans->count == spans->capacity) {
        size_t capacity = MAX(spans->capacity * 2, (size_t)256);
        struct span *items = realloc(spans->items, capacity * sizeof *items);
        if (!items)
            return false;
        spans->items = items;
        spans->capacity = capacity;
    }
    spans->items[spans->count++] = span;
    return true;
}

/* A span on its way through the sweep; `order` is when it was added. */
struct candidate {
    struct span span;
    size_t order;
};

static int compare_begin(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return (x->span.begin > y->span.begin) - (x->span.begin < y->span.begin);
}

/* A binary max-heap of candidates by `order`: the top is the one that wins at the current position. */
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

/* The part [begin, end) of a span. */
static struct span span_slice(const struct span *span, uint64_t begin, uint64_t end)
{
    uint64_t skipped = begin - span->begin;
    return (struct span){
        .begin = begin,
        .end = end,
        .bytes = span->bytes ? span->bytes + skipped : NULL,
        .file = span->file,
        .file_offset = span->file_offset + skipped,
    };
}

bool spans_seal(struct spans *spans)
{
    size_t n = spans->count, next = 0, active = 0;
    CLEANUP_FREE struct candidate *sorted = calloc(n + 1, sizeof *sorted);
    CLEANUP_FREE const struct candidate **heap = calloc(n + 1, sizeof *heap);
    if (!sorted || !heap)
        return false;
    for (size_t i = 0; i < n; i++)
        sorted[i] = (struct candidate){spans->items[i], i};
    qsort(sorted, n, sizeof *sorted, compare_begin);

    spans->count = 0;
    const struct candidate *previous = NULL;
    uint64_t position = 0;
    while (next < n || active) {
        if (!active)
            position = MAX(position, sorted[next].span.begin);
        while (next < n && sorted[next].span.begin <= position)
            heap_push(heap, &active, &sorted[next++]);
        while (active && heap[0]->span.end <= position)
            heap_pop(heap, &active);
        if (!active)
            continue;
        const struct candidate *top = heap[0];
        uint64_t end = next < n ? MIN(top->span.end, sorted[next].span.begin) : top->span.end;
        if (top == previous && spans->items[spans->count - 1].end == position)
            spans->items[spans->count - 1].end = end;
        else if (!spans_add(spans, span_slice(&top->span, position, end)))
            return false;
        previous = top;
        position = end;
    }
    return true;
}

const struct span *spans_next(const struct spans *spans, uint64_t address)
{
    size_t low = 0, high = spans->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (spans->items[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < spans->count ? &spans->items[low] : NULL;
}

const struct span *spans_find(const struct spans *spans, uint64_t address)
{
    const struct span *span = spans_next(spans, address);
    return span && span->begin <= address ? span : NULL;
}
