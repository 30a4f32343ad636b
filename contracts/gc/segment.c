#include "contracts/gc/segment.h"

#include <inttypes.h>
#include <stdio.h>

#include "util/binary_search.h"
#include "util/hash_table.h"

enum { SEGMENT_READ_ONLY = 1 };

DEFINE_U64_SET(seen_segments);

struct lister {
    struct reader *reader;
    const struct gc *gc;
    struct gc_problems *problems;
    struct gc_segments *segments;
    struct seen_segments seen;
};

static bool append(struct lister *lister, struct gc_segment segment)
{
    bool done = lister->segments->count < GC_SEGMENT_MAX && gc_segments_append(lister->segments, segment);
    if (!done)
        reader_fail(lister->reader, CDACQ_ERR_NOMEM, segment.address, "segments of the heap");
    return done;
}

/* The ephemeral segment of a GC with segments: generation 2, then 1, then 0. */
static void add_ephemeral(struct lister *lister, const struct gc_heap *heap, struct gc_segment segment)
{
    uint64_t begin = segment.begin;
    for (int generation = GC_EPHEMERAL_COUNT; generation >= 0; generation--) {
        uint64_t end = segment.end;
        if (generation > 0)
            end = read_pointer(lister->reader, gc_generation(lister->gc, heap, (unsigned)generation - 1) +
                                                   lister->gc->generation.allocation_start);
        if (reader_failed(lister->reader))
            return;
        if (end < begin || end > segment.end) {
            gc_problem(lister->problems,
                       "the segment at 0x%" PRIx64 " was left out: generation %d begins at 0x%" PRIx64
                       ", which is not in its order",
                       segment.address, generation - 1, end);
            return;
        }
        struct gc_segment part = segment;
        part.begin = begin;
        part.end = end;
        part.committed = generation ? end : segment.committed;
        part.reserved = generation ? end : segment.reserved;
        part.generation = (enum cdacq_generation)generation;
        begin = end;
        if (part.begin < part.reserved && !append(lister, part))
            return;
    }
}

static bool is_seen(struct lister *lister, uint64_t address)
{
    bool added = false;
    if (!seen_segments_insert(&lister->seen, address, &added))
        reader_fail(lister->reader, CDACQ_ERR_NOMEM, address, "segments of the heap");
    return !added;
}

/* Adds the segment at `address`; *ret_next is the next one. False: the list ends here. */
static bool add_segment(struct lister *lister, uint32_t number, unsigned generation, uint64_t address,
                        uint64_t *ret_next)
{
    struct reader *reader = lister->reader;
    const struct gc_segment_fields *fields = &lister->gc->segment;
    const struct gc_heap *heap = &lister->gc->heaps.items[number];
    struct gc_segment segment = {
        .address = address,
        .begin = read_pointer(reader, address + fields->mem),
        .end = read_pointer(reader, address + fields->allocated),
        .committed = read_pointer(reader, address + fields->committed),
        .reserved = read_pointer(reader, address + fields->reserved),
        .generation = (enum cdacq_generation)generation,
        .heap = number,
    };
    uint64_t flags = read_pointer(reader, address + fields->flags);
    bool is_ephemeral = address == heap->ephemeral_segment;
    *ret_next = read_pointer(reader, address + fields->next);
    if (is_ephemeral)
        segment.end = heap->alloc_allocated;
    if (reader_failed(reader))
        return false;
    if (!segment.begin || segment.begin > segment.end || segment.end > segment.committed ||
        segment.committed > segment.reserved || segment.begin % reader->pointer_size) {
        gc_problem(lister->problems,
                   "the segment at 0x%" PRIx64 " was left out: its bounds 0x%" PRIx64 ", 0x%" PRIx64 ", 0x%" PRIx64
                   ", 0x%" PRIx64 " are not in their order",
                   address, segment.begin, segment.end, segment.committed, segment.reserved);
        return true;
    }
    if (flags & SEGMENT_READ_ONLY)
        segment.generation = CDACQ_GENERATION_FROZEN;
    else if (!lister->gc->has_regions && is_ephemeral) {
        add_ephemeral(lister, heap, segment);
        return true;
    }
    return append(lister, segment);
}

static void list_generation(struct lister *lister, uint32_t number, unsigned generation)
{
    struct reader *reader = lister->reader;
    uint64_t record = gc_generation(lister->gc, &lister->gc->heaps.items[number], generation);
    uint64_t address = read_pointer(reader, record + lister->gc->generation.start_segment), next;
    while (address && reader_step(reader, "segments of the heap")) {
        if (is_seen(lister, address)) {
            gc_problem(lister->problems,
                       "heap %" PRIu32 ", generation %u: the segment at 0x%" PRIx64
                       " is already in a list; the rest of this list was left out",
                       number, generation, address);
            return;
        }
        if (!add_segment(lister, number, generation, address, &next))
            return;
        address = next;
    }
}

static int by_address(const void *a, const void *b)
{
    const struct gc_segment *left = a, *right = b;
    return left->begin != right->begin ? (left->begin > right->begin) - (left->begin < right->begin)
                                       : (left->end > right->end) - (left->end < right->end);
}

static void sort(struct gc_segments *segments)
{
    if (segments->count)
        qsort(segments->items, segments->count, sizeof *segments->items, by_address);
}

bool gc_segments_have(const struct gc_segments *segments, uint64_t address)
{
    size_t after = lower_bound(i, segments->count, segments->items[i].begin <= address);
    return after && address < segments->items[after - 1].end;
}

/* Leaves out each segment whose objects another one has, too. The list is sorted. */
static void leave_out_overlaps(struct gc_problems *problems, struct gc_segments *segments)
{
    size_t kept = 0;
    uint64_t end = 0;
    for (size_t i = 0; i < segments->count; i++) {
        struct gc_segment segment = segments->items[i];
        if (segment.begin < end && segment.begin < segment.end)
            gc_problem(problems,
                       "the segment at 0x%" PRIx64 " was left out: its objects from 0x%" PRIx64
                       " on are in another segment",
                       segment.address, segment.begin);
        else {
            segments->items[kept++] = segment;
            end = MAX(end, segment.end);
        }
    }
    segments->count = kept;
}

bool gc_segments_read(struct reader *reader, const struct gc *gc, struct gc_problems *problems, struct gc_segments *ret)
{
    struct lister lister = {.reader = reader, .gc = gc, .problems = problems, .segments = ret};
    char prefix[64];
    bool good = true;
    *ret = (struct gc_segments){0};
    for (uint32_t heap = 0; heap < gc->heaps.count && good; heap++)
        for (unsigned generation = 0; generation < GC_GENERATION_MAX && good; generation++) {
            if (!gc->has_regions && generation < GC_EPHEMERAL_COUNT)
                continue; /* they are in the list of generation 2 */
            list_generation(&lister, heap, generation);
            snprintf(prefix, sizeof prefix, "heap %" PRIu32 ", generation %u", heap, generation);
            good = gc_problem_of_reader(problems, reader, prefix);
        }
    seen_segments_deinit(&lister.seen);
    sort(ret);
    leave_out_overlaps(problems, ret);
    return good;
}
