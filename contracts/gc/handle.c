#include "contracts/gc/handle.h"

#include <inttypes.h>
#include <stdio.h>

#include "util/hash_table.h"

enum {
    BLOCKS_MAX = 480, /* of a segment: those of the smallest handle */
    KINDS_MIN = 12,   /* of handles, with that of the second blocks of dependent handles */
    KINDS_MAX = 13,
    BYTES_FOR_A_KIND = 6, /* rgTail, rgHint, rgFreeCount */
    NO_BLOCK = 0xff,
};

DEFINE_U64_SET(seen_handles);

struct handle_walker {
    struct reader *reader;
    const struct gc *gc;
    struct gc_problems *problems;
    bool (*visit)(void *context, const struct gc_handle *handle);
    void *context;
    struct seen_handles seen; /* maps, tables and segments */
    uint32_t blocks;          /* of a segment */
    uint32_t kinds, segment_list, next_segment;
    bool stopped;
};

const char *cdacq_handle_kind_text(enum cdacq_handle_kind kind)
{
    static const char *const names[] = {"weak short",
                                        "weak long",
                                        "strong",
                                        "pinned",
                                        "variable",
                                        "refcounted",
                                        "dependent",
                                        "async pinned",
                                        "sized ref",
                                        "weak native COM",
                                        "weak interior pointer",
                                        "cross reference"};
    _Static_assert(ARRAY_SIZE(names) == CDACQ_HANDLE_COUNT, "a name for each");
    return (unsigned)kind < ARRAY_SIZE(names) ? names[kind] : "unknown";
}

static bool is_seen(struct handle_walker *walker, uint64_t address)
{
    bool added = false;
    if (walker->seen.count >= GC_HANDLE_SEGMENT_MAX || !seen_handles_insert(&walker->seen, address, &added))
        reader_fail(walker->reader, CDACQ_ERR_NOMEM, address, "handle tables");
    return !added;
}

/* ---- Segments ---- */

/* The handles of a block, and those of the second block of dependent handles; zeros where it cannot be read. */
static bool read_values(struct handle_walker *walker, uint64_t segment, uint32_t block, uint64_t ret[HANDLES_PER_BLOCK])
{
    struct reader *reader = walker->reader;
    unsigned pointer = reader->pointer_size;
    uint8_t bytes[HANDLES_PER_BLOCK * 8];
    uint64_t at = segment + walker->gc->handle.values + (uint64_t)block * HANDLES_PER_BLOCK * pointer;
    memset(ret, 0, HANDLES_PER_BLOCK * sizeof *ret);
    if (!reader_try_copy(reader, at, bytes, (size_t)HANDLES_PER_BLOCK * pointer))
        return false;
    for (unsigned i = 0; i < HANDLES_PER_BLOCK; i++)
        ret[i] =
            pointer == 8 ? load_u64(bytes + 8 * i, reader->big_endian) : load_u32(bytes + 4 * i, reader->big_endian);
    return true;
}

static bool visit_block(struct handle_walker *walker, uint64_t segment, uint32_t block, uint32_t kind,
                        uint32_t user_block)
{
    uint64_t values[HANDLES_PER_BLOCK], others[HANDLES_PER_BLOCK] = {0};
    uint64_t at = segment + walker->gc->handle.values;
    unsigned pointer = walker->reader->pointer_size;
    if (!read_values(walker, segment, block, values)) {
        gc_problem(walker->problems, "no memory of the handles at 0x%" PRIx64,
                   at + (uint64_t)block * HANDLES_PER_BLOCK * pointer);
        return !reader_failed(walker->reader);
    }
    if (kind == CDACQ_HANDLE_DEPENDENT && user_block < walker->blocks &&
        !read_values(walker, segment, user_block, others))
        gc_problem(walker->problems, "no memory of what depends on the handles at 0x%" PRIx64,
                   at + (uint64_t)block * HANDLES_PER_BLOCK * pointer);
    for (unsigned i = 0; i < HANDLES_PER_BLOCK && !reader_failed(walker->reader); i++) {
        const struct gc_handle handle = {.address = at + ((uint64_t)block * HANDLES_PER_BLOCK + i) * pointer,
                                         .object = values[i],
                                         .dependent = kind == CDACQ_HANDLE_DEPENDENT ? others[i] : 0,
                                         .kind = (enum cdacq_handle_kind)kind};
        if (handle.object && !walker->visit(walker->context, &handle)) {
            walker->stopped = true;
            return false;
        }
    }
    return !reader_failed(walker->reader);
}

/* Visits the handles of a segment. False: the walk ends. */
static bool visit_segment(struct handle_walker *walker, uint64_t segment)
{
    struct reader *reader = walker->reader;
    const struct gc_handle_fields *fields = &walker->gc->handle;
    uint8_t kinds[BLOCKS_MAX], users[BLOCKS_MAX];
    uint64_t kinds_at = segment + fields->user_data - walker->blocks; /* rgBlockType is in front of rgUserData */
    reader_copy(reader, kinds_at, kinds, walker->blocks);
    reader_copy(reader, segment + fields->user_data, users, walker->blocks);
    if (reader_failed(reader))
        return false;
    for (uint32_t i = 0; i < walker->blocks && reader_step(reader, "handles"); i++) {
        if (kinds[i] == NO_BLOCK || kinds[i] == walker->kinds - 1)
            continue;
        if (kinds[i] >= CDACQ_HANDLE_COUNT) {
            gc_problem(walker->problems, "handles of kind %u in the table at 0x%" PRIx64 " were left out", kinds[i],
                       segment);
            continue;
        }
        if (!visit_block(walker, segment, i, kinds[i], users[i]))
            return false;
    }
    return !reader_failed(reader);
}

/* ---- Tables ---- */

/* Whether a table with so many kinds of handles has a segment, which leads back to it. */
static bool has_kinds(struct handle_walker *walker, uint64_t table, uint32_t kinds)
{
    struct reader *reader = walker->reader;
    unsigned pointer = reader->pointer_size;
    uint32_t list = (kinds * (uint32_t)sizeof(uint32_t) + pointer - 1) & ~(pointer - 1);
    uint32_t next = walker->gc->handle.tail + kinds * BYTES_FOR_A_KIND;
    uint64_t segment = read_pointer(reader, table + list);
    bool leads_back = !reader_failed(reader) && segment && segment % HANDLE_SEGMENT_SIZE == 0 &&
                      read_pointer(reader, segment + next + pointer) == table && !reader_failed(reader);
    reader_recover(reader, FAILURE_BUT_FUEL);
    if (leads_back) {
        walker->kinds = kinds;
        walker->segment_list = list;
        walker->next_segment = next;
    }
    return leads_back;
}

/* Where a table of .NET 8 to 10 has its segments depends on how many kinds of handles there are. */
static bool find_kinds(struct handle_walker *walker, uint64_t table)
{
    if (walker->kinds)
        return true;
    if (walker->gc->handle.segment_list != GC_NO_FIELD) {
        walker->segment_list = walker->gc->handle.segment_list;
        walker->next_segment = walker->gc->handle.next_segment;
        walker->kinds = (walker->next_segment - walker->gc->handle.tail) / BYTES_FOR_A_KIND;
        return true;
    }
    for (uint32_t kinds = KINDS_MIN; kinds <= KINDS_MAX; kinds++)
        if (has_kinds(walker, table, kinds))
            return true;
    return false;
}

/* Visits the handles of a table. False: the walk ends. */
static bool visit_table(struct handle_walker *walker, uint64_t table)
{
    struct reader *reader = walker->reader;
    if (!find_kinds(walker, table)) {
        gc_problem(walker->problems, "the handle table at 0x%" PRIx64 " was left out: its segments were not found",
                   table);
        return !reader_failed(reader);
    }
    uint64_t segment = read_pointer(reader, table + walker->segment_list);
    while (segment && reader_step(reader, "segments of a handle table")) {
        if (is_seen(walker, segment)) {
            gc_problem(walker->problems, "the handles at 0x%" PRIx64 " are in two lists; the rest was left out",
                       segment);
            break;
        }
        if (!visit_segment(walker, segment))
            break;
        segment = read_pointer(reader, segment + walker->next_segment);
    }
    return !walker->stopped && gc_problem_of_reader(walker->problems, reader, "handles");
}

/* A bucket has a table for each processor or heap, and no number of them; those that heaps use come first. */
static bool visit_bucket(struct handle_walker *walker, uint64_t bucket)
{
    struct reader *reader = walker->reader;
    uint64_t tables = read_pointer(reader, bucket + walker->gc->handle.table);
    for (size_t i = 0; tables && i < walker->gc->heaps.count; i++) {
        uint64_t table = read_pointer(reader, tables + i * reader->pointer_size);
        if (reader_failed(reader))
            break;
        if (table && !is_seen(walker, table) && !visit_table(walker, table))
            return false;
    }
    return gc_problem_of_reader(walker->problems, reader, "a bucket of handle tables");
}

static bool visit_maps(struct handle_walker *walker)
{
    struct reader *reader = walker->reader;
    const struct gc_handle_fields *fields = &walker->gc->handle;
    uint64_t map = walker->gc->handle_table_map;
    for (uint32_t n = 0; map && n < GC_HANDLE_MAP_MAX; n++) {
        if (is_seen(walker, map)) {
            gc_problem(walker->problems, "the map of handle tables at 0x%" PRIx64 " is in the list twice", map);
            break;
        }
        uint64_t buckets = read_pointer(reader, map + fields->buckets),
                 next = read_pointer(reader, map + fields->next_map);
        for (unsigned i = 0; buckets && i < GC_HANDLE_BUCKETS; i++) {
            uint64_t bucket = read_pointer(reader, buckets + (uint64_t)i * reader->pointer_size);
            if (bucket && !reader_failed(reader) && !visit_bucket(walker, bucket))
                return false;
        }
        if (!gc_problem_of_reader(walker->problems, reader, "the map of handle tables"))
            return false;
        map = next;
    }
    return true;
}

static bool is_sound(const struct handle_walker *walker)
{
    const struct gc_handle_fields *fields = &walker->gc->handle;
    return walker->blocks && walker->blocks <= BLOCKS_MAX && fields->user_data > walker->blocks &&
           fields->tail >= fields->user_data && fields->values >= fields->tail &&
           fields->values <= HANDLE_SEGMENT_SIZE &&
           (fields->next_segment == GC_NO_FIELD || fields->next_segment > fields->tail);
}

bool gc_handles_visit(struct reader *reader, const struct gc *gc, struct gc_problems *problems,
                      bool (*visit)(void *context, const struct gc_handle *handle), void *context)
{
    struct handle_walker walker = {.reader = reader,
                                   .gc = gc,
                                   .problems = problems,
                                   .visit = visit,
                                   .context = context,
                                   .blocks = gc->handle.allocation / (uint32_t)sizeof(uint32_t)};
    bool good = true;
    if (!gc->handle_table_map || !is_sound(&walker))
        gc_problem(problems, "handles were left out: the runtime does not describe their tables");
    else
        good = visit_maps(&walker);
    seen_handles_deinit(&walker.seen);
    return good && !walker.stopped && !reader_failed(reader);
}
