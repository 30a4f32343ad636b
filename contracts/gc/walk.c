#include "contracts/gc/walk.h"

#include <inttypes.h>
#include <stdio.h>

#include "contracts/gc/heap_memory.h"
#include "contracts/type_system/method_table_flags.h"
#include "target/core.h"
#include "util/binary_search.h"
#include "util/hash_table.h"

/* The pages of a core are unmapped after so many bytes of objects, so that a heap takes no memory of its own size. */
enum { BYTES_PER_RELEASE = 16 * 1024 * 1024 };

enum {
    RECENT_BITS = 12, /* most objects are of few types */
    RECENT_TYPES = 1 << RECENT_BITS,
    AHEAD = 1024,       /* bytes after an object, which are fetched while its size is found */
    TYPE_MAX = 1 << 22, /* MethodTables */
};

#define BASE_SIZE_MAX UINT32_C(0x7fffffff)

/* What the size of an object follows from. A base size of 0: it is no MethodTable. */
struct type_size {
    uint64_t method_table;
    uint32_t base_size, component_size;
};

DEFINE_U64_TABLE(type_sizes, struct type_size, method_table);

struct walker {
    struct reader *reader;
    const struct gc_segments *segments;
    const struct gc_holes *holes;
    struct gc_problems *problems;
    const struct gc_visitor *visitor;
    uint64_t unmask; /* bits of an object's first word that are no part of the address */
    struct type_sizes types;
    struct type_size recent[RECENT_TYPES];
    struct heap_block block;
    uint64_t walked, objects; /* bytes and objects since pages were unmapped */
    bool stopped;
};

enum { STEPS_OF_AN_OBJECT = 2 }; /* of work: who is told of it keeps up to 17 bytes for it */

/* Small objects take longer than the bytes that are read. False: no work is left. */
static bool count_walked(struct walker *walker, uint64_t size)
{
    struct target *target = walker->reader->target;
    walker->walked += size;
    walker->objects++;
    if (LIKELY(walker->walked < BYTES_PER_RELEASE))
        return true;
    bool is_left = work_take_steps(&target->work, STEPS_OF_AN_OBJECT * walker->objects);
    walker->walked = walker->objects = 0;
    if (target->kind == CDACQ_TARGET_CORE)
        core_release_pages(target);
    return is_left || reader_fail(walker->reader, CDACQ_ERR_FUEL, 0, "objects of the heap");
}

uint64_t gc_free_method_table(struct reader *reader)
{
    const struct layout *layout = reader->layout;
    uint64_t address = layout->global_present[G_FreeObjectMethodTable] ? layout->globals[G_FreeObjectMethodTable] : 0;
    return address ? read_pointer(reader, address) : 0;
}

/* ---- Types ---- */

/* Reads what a MethodTable says of sizes. The base size stays 0 if that cannot be right. */
static struct type_size read_type(struct walker *walker, uint64_t method_table)
{
    struct reader *reader = walker->reader;
    struct type_size type = {.method_table = method_table};
    if (!method_table || method_table % reader->pointer_size || gc_segments_have(walker->segments, method_table))
        return type;
    uint32_t flags = (uint32_t)read_field(reader, method_table, F_MethodTable_MTFlags);
    uint32_t base_size = (uint32_t)read_field(reader, method_table, F_MethodTable_BaseSize);
    if (reader_recover(reader, FAILURE(CDACQ_ERR_MEMORY)) || reader_failed(reader))
        return type;
    if (base_size >= 2u * reader->pointer_size && base_size <= BASE_SIZE_MAX)
        type.base_size = base_size;
    type.component_size = flags & MT_HAS_COMPONENT_SIZE ? flags & MT_COMPONENT_SIZE_MASK : 0;
    return type;
}

static struct type_size find_slowly(struct walker *walker, uint64_t method_table)
{
    const struct type_size *known = type_sizes_find(&walker->types, method_table);
    if (known)
        return *known;
    struct type_size type = read_type(walker, method_table);
    if (type.base_size && !reader_failed(walker->reader) &&
        (walker->types.count >= TYPE_MAX || !type_sizes_insert(&walker->types, type, NULL)))
        reader_fail(walker->reader, CDACQ_ERR_NOMEM, method_table, "types of the heap");
    return type;
}

static inline struct type_size find_type(struct walker *walker, uint64_t method_table)
{
    struct type_size *recent = &walker->recent[method_table * UINT64_C(0x9e3779b97f4a7c15) >> (64 - RECENT_BITS)];
    if (UNLIKELY(recent->method_table != method_table || !recent->base_size))
        *recent = find_slowly(walker, method_table);
    return *recent;
}

/* ---- Memory ---- */

/* An object's first word and its count of elements. False, and the reader fails, if they are missing. */
static inline bool read_header(struct walker *walker, uint64_t address, uint64_t end, uint64_t *ret_word,
                               uint32_t *ret_count)
{
    struct reader *reader = walker->reader;
    unsigned pointer = reader->pointer_size;
    if (LIKELY(heap_block_have(reader, &walker->block, address, end, 2 * (size_t)pointer))) {
        const uint8_t *bytes = walker->block.bytes + (address - walker->block.address);
        __builtin_prefetch((const void *)((uintptr_t)bytes + AHEAD));
        *ret_word = pointer == 8 ? load_u64(bytes, reader->big_endian) : load_u32(bytes, reader->big_endian);
        *ret_count = load_u32(bytes + pointer, reader->big_endian);
        return true;
    }
    *ret_word = read_pointer(reader, address);
    *ret_count = address + 2 * (uint64_t)pointer <= end ? read_u32(reader, address + pointer) : 0;
    return !reader_failed(reader);
}

/* ---- Objects ---- */

/* What is from an address to the end of a segment is left out. `why` ends with the mark before that. */
static void leave_out(struct walker *walker, const struct gc_segment *segment, uint64_t address, const char *why)
{
    gc_problem(walker->problems, "%s %" PRIu64 " bytes of generation %s from there on were left out", why,
               segment->end - address, cdacq_generation_text(segment->generation));
}

static void damaged(struct walker *walker, const struct gc_segment *segment, uint64_t address, const char *what,
                    uint64_t value)
{
    char why[128];
    snprintf(why, sizeof why, "the object at 0x%" PRIx64 ": its %s, 0x%" PRIx64 ", cannot be right;", address, what,
             value);
    leave_out(walker, segment, address, why);
}

static void missing(struct walker *walker, const struct gc_segment *segment, uint64_t address)
{
    char why[64];
    walker->problems->missing += segment->end - address;
    snprintf(why, sizeof why, "no memory at 0x%" PRIx64 ":", address);
    leave_out(walker, segment, address, why);
}

/* The limit of an allocation context is not in the segment that its pointer is in. */
static void beyond(struct walker *walker, const struct gc_segment *segment, uint64_t address)
{
    char why[128];
    snprintf(why, sizeof why, "the allocation context at 0x%" PRIx64 ": its limit cannot be right;", address);
    leave_out(walker, segment, address, why);
}

/* Visits the objects of a segment. False: the walk ends. */
static bool walk_segment(struct walker *walker, const struct gc_segment *segment)
{
    struct reader *reader = walker->reader;
    const struct gc_holes *holes = walker->holes;
    unsigned pointer = reader->pointer_size;
    uint64_t alignment = gc_generation_is_large(segment->generation) ? 8 : pointer, least = 3 * (uint64_t)pointer;
    uint64_t at = segment->begin, end = segment->end;
    size_t hole = lower_bound(i, holes->count, holes->items[i].begin < at);
    while (at < end) {
        while (hole < holes->count && holes->items[hole].begin < at)
            hole++;
        if (hole < holes->count && holes->items[hole].begin == at) {
            uint64_t hole_end = holes->items[hole].end;
            if (hole_end > end && hole_end - end > least)
                beyond(walker, segment, at);
            at = MIN(hole_end, end);
            continue;
        }
        uint64_t word;
        uint32_t count;
        if (!read_header(walker, at, end, &word, &count)) {
            if (!reader_recover(reader, FAILURE(CDACQ_ERR_MEMORY)))
                return false;
            missing(walker, segment, at);
            return true;
        }
        const uint64_t method_table = word & ~walker->unmask;
        struct type_size type = find_type(walker, method_table);
        if (UNLIKELY(!type.base_size)) {
            if (reader_failed(reader))
                return false;
            damaged(walker, segment, at, "MethodTable", method_table);
            return true;
        }
        const uint64_t size = MAX(type.base_size + (uint64_t)type.component_size * count, least);
        uint64_t aligned = (size + alignment - 1) & ~(alignment - 1);
        if (UNLIKELY(aligned > end - at)) {
            damaged(walker, segment, at, "size", size);
            return true;
        }
        if (!count_walked(walker, size))
            return false;
        const struct cdacq_heap_object object = {
            .address = at,
            .method_table = method_table,
            .byte_size = size,
            .generation = segment->generation,
            .is_free = method_table == walker->visitor->free_method_table,
        };
        if (UNLIKELY(!walker->visitor->object(walker->visitor->context, segment, &object))) {
            walker->stopped = true;
            return false;
        }
        at += aligned;
    }
    return !reader_failed(reader);
}

bool gc_walk(struct reader *reader, const struct gc_segments *segments, const struct gc_holes *holes,
             struct gc_problems *problems, const struct gc_visitor *visitor)
{
    struct walker *walker = calloc(1, sizeof *walker + HEAP_BLOCK_LAST);
    if (!walker) {
        reader_fail(reader, CDACQ_ERR_NOMEM, 0, "the walk of the heap");
        return false;
    }
    *walker = (struct walker){
        .reader = reader,
        .segments = segments,
        .holes = holes,
        .problems = problems,
        .visitor = visitor,
        .unmask = reader->layout->globals[G_ObjectToMethodTableUnmask],
        .block.buffer = (uint8_t *)(walker + 1),
    };
    bool good = true;
    for (size_t i = 0; i < segments->count && good; i++)
        good = walk_segment(walker, &segments->items[i]);
    type_sizes_deinit(&walker->types);
    free(walker);
    return good;
}
