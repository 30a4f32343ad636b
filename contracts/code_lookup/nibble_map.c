#include "contracts/code_lookup/nibble_map.h"

enum { CHUNK = 1024 }; /* units that are read at a time, so that a missing page hides no more of the map */

struct walk {
    struct reader *reader;
    const struct nibble_map_version *version;
    const struct nibble_map *map;
    uint64_t begin, end;
    nibble_block_visitor *visit;
    void *context;
    struct nibble_block block; /* the last one; its reach grows. Its start is 0 if there is none */
    bool more;
};

static uint64_t unit_address(const struct walk *walk, uint64_t unit)
{
    return walk->map->base + unit * NIBBLE_UNIT_SIZE;
}

static void limit_reach(struct walk *walk, uint64_t address)
{
    walk->block.reach = MIN(walk->block.reach, address);
}

/* Visits the block, which ends at `end` at the latest. */
static void end_block(struct walk *walk, uint64_t end)
{
    limit_reach(walk, end);
    if (walk->block.start && walk->more)
        walk->more = walk->visit(&walk->block, walk->context);
    walk->block.start = 0;
}

static void begin_block(struct walk *walk, struct nibble_block block)
{
    end_block(walk, block.start);
    if (block.start >= walk->begin && block.start < walk->end)
        walk->block = block;
}

/*
 * A pointer to the block extends its reach: a look-up in the next unit also follows it. After units that cannot be
 * read, it may lead to a block that begins before or in them, so what is unknown goes on.
 */
static void take_pointer(struct walk *walk, uint64_t unit, uint32_t value)
{
    if (walk->block.start && walk->block.unknown)
        return;
    uint64_t address = unit_address(walk, unit);
    if (walk->version->pointer(walk->map, value) != walk->block.start)
        limit_reach(walk, address);
    else if (address < walk->block.reach)
        walk->block.reach = unit_address(walk, unit + 2);
}

static void take_nibbles(struct walk *walk, uint64_t unit, uint32_t value)
{
    /* In a constant map, a look-up finds a start from the start's own unit and from the next one. */
    uint64_t reach = walk->version->pointer ? unit_address(walk, unit + 2) : UINT64_MAX;
    for (unsigned n = 0; n < NIBBLES_PER_UNIT && walk->more; n++) {
        uint64_t bucket = unit * NIBBLES_PER_UNIT + n;
        unsigned nibble = value >> nibble_shift(bucket) & 15;
        if (nibble > NIBBLE_BUCKET_SIZE / 4) /* corrupt: look-ups of later addresses fail */
            limit_reach(walk, walk->map->base + bucket * NIBBLE_BUCKET_SIZE);
        else if (nibble)
            begin_block(walk, (struct nibble_block){nibble_start(walk->map, bucket, nibble), reach, false});
    }
}

static void take_units(struct walk *walk, uint64_t first, uint64_t count, const struct window *units)
{
    for (uint64_t i = 0; i < count && walk->more; i++) {
        uint32_t unit = load_u32(units->bytes + i * 4, walk->reader->big_endian);
        if (unit && walk->version->is_pointer(unit))
            take_pointer(walk, first + i, unit);
        else if (unit)
            take_nibbles(walk, first + i, unit);
    }
}

/* Units that cannot be read. */
static void skip_units(struct walk *walk, uint64_t first)
{
    uint64_t begin = MAX(unit_address(walk, first), walk->begin);
    if (!(walk->block.start && walk->block.unknown))
        begin_block(walk, (struct nibble_block){begin, UINT64_MAX, true});
}

/* The number of units from `first` on, at most `count`, up to the next multiple of `size` in the target's memory. */
static uint64_t units_to_boundary(const struct walk *walk, uint64_t first, uint64_t count, uint64_t size)
{
    return MIN(count, (size - (walk->map->header_map + first * 4) % size + 3) / 4);
}

/* Reads `count` units from `first` on. False, and the reader fails, unless memory is all that is missing. */
static bool take_chunk(struct walk *walk, uint64_t first, uint64_t count)
{
    struct window units;
    uint64_t map = walk->map->header_map;
    if (reader_window(walk->reader, map + first * 4, count * 4, "CodeHeapListNode.HeaderMap", &units)) {
        take_units(walk, first, count, &units);
        window_deinit(&units);
        return true;
    }
    if (!reader_recover(walk->reader, FAILURE(CDACQ_ERR_MEMORY)))
        return false;
    for (uint64_t done = 0, part; done < count && walk->more; done += part) {
        part = units_to_boundary(walk, first + done, count - done, LINE_SIZE); /* a snapshot has lines of a page */
        if (reader_window(walk->reader, map + (first + done) * 4, part * 4, "CodeHeapListNode.HeaderMap", &units)) {
            take_units(walk, first + done, part, &units);
            window_deinit(&units);
        } else if (reader_recover(walk->reader, FAILURE(CDACQ_ERR_MEMORY))) {
            skip_units(walk, first + done);
        } else {
            return false;
        }
    }
    return true;
}

bool nibble_map_each(struct reader *reader, const struct nibble_map_version *version, const struct nibble_map *map,
                     uint64_t begin, uint64_t end, nibble_block_visitor *visit, void *context)
{
    struct walk walk = {reader, version, map, begin, end, visit, context, .more = true};
    if (begin < map->base || end <= begin)
        return true;
    uint64_t unit = (begin - map->base) / NIBBLE_UNIT_SIZE;
    uint64_t units = (end - 1 - map->base) / NIBBLE_UNIT_SIZE + 1;
    if (end - map->base > NIBBLE_SPAN_MAX)
        return reader_fail(reader, CDACQ_ERR_CORRUPT, map->base, "CodeHeapListNode: size of its code");
    while (unit < units && walk.more) {
        uint64_t count = units_to_boundary(&walk, unit, MIN(units - unit, (uint64_t)CHUNK), PAGE_SIZE);
        if (!take_chunk(&walk, unit, count))
            return false;
        unit += count;
    }
    end_block(&walk, end);
    return walk.more && !reader_failed(reader);
}
