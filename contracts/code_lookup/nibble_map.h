/*
 * nibble_map.h: what the two versions of the nibble map have in common. A map records where blocks start. Each bucket
 * of 32 bytes of code has a nibble: 0 if no block starts there, n from 1 to 8 if one starts at its n-th four-byte word.
 * Eight nibbles make a unit of 32 bits; the first bucket's is the most significant.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, "NibbleMap".
 */
#ifndef CDACQ_CONTRACTS_CODE_LOOKUP_NIBBLE_MAP_H
#define CDACQ_CONTRACTS_CODE_LOOKUP_NIBBLE_MAP_H

#include "target/reader.h"

enum {
    NIBBLE_BUCKET_SIZE = 32,
    NIBBLES_PER_UNIT = 8,
    NIBBLE_UNIT_SIZE = NIBBLE_BUCKET_SIZE * NIBBLES_PER_UNIT, /* bytes of code that a unit covers */
    NIBBLE_SPAN_MAX = 1024 * 1024 * 1024,                     /* bytes of code under one map; heaps have a few MB */
};

/* The map of one code heap. */
struct nibble_map {
    uint64_t base;       /* of the code: CodeHeapListNode.MapBase */
    uint64_t header_map; /* the units: CodeHeapListNode.HeaderMap */
};

/* One version of the map's format. */
struct nibble_map_version {
    /* The last start at or before `address` that the format shows; 0 if there is none or the reader fails. */
    uint64_t (*find)(struct reader *reader, const struct nibble_map *map, uint64_t address);
    /* Whether a unit holds no starts but a pointer to a block that begins before it. */
    bool (*is_pointer)(uint32_t unit);
    /* That pointer's block; 0, without failing, if the unit is corrupt. NULL: no unit is a pointer. */
    uint64_t (*pointer)(const struct nibble_map *map, uint32_t unit);
};

extern const struct nibble_map_version nibble_map_linear, nibble_map_constant;

static inline unsigned nibble_shift(uint64_t bucket)
{
    return 28 - 4 * (unsigned)(bucket % NIBBLES_PER_UNIT);
}

/* The start that the nibble of `bucket` records; the nibble is not 0. */
static inline uint64_t nibble_start(const struct nibble_map *map, uint64_t bucket, unsigned nibble)
{
    return map->base + bucket * NIBBLE_BUCKET_SIZE + (uint64_t)(nibble - 1) * 4;
}

/*
 * The last start in nibbles; that of `bucket` is the lowest. 0 if all are empty; also, and the reader fails, if the
 * nibble is above 8: a bucket has no more words.
 */
static inline uint64_t nibble_last_start(struct reader *reader, const struct nibble_map *map, uint32_t nibbles,
                                         uint64_t bucket)
{
    while (nibbles && !(nibbles & 15)) {
        nibbles >>= 4;
        bucket--;
    }
    if ((nibbles & 15) > NIBBLE_BUCKET_SIZE / 4)
        return reader_fail(reader, CDACQ_ERR_CORRUPT, map->header_map + bucket / NIBBLES_PER_UNIT * 4,
                           "nibble map: unit");
    return nibbles ? nibble_start(map, bucket, nibbles & 15) : 0;
}

static inline uint32_t nibble_unit(struct reader *reader, const struct nibble_map *map, uint64_t bucket)
{
    return read_u32(reader, map->header_map + bucket / NIBBLES_PER_UNIT * 4);
}

/* What nibble_map_each() visits. */
struct nibble_block {
    uint64_t start;
    uint64_t reach; /* `find` returns the start for every address in [start, reach), up to the next start */
    bool unknown;   /* no block: units that cannot be read begin here */
};

typedef bool nibble_block_visitor(const struct nibble_block *block, void *context);

/*
 * Calls `visit` for each start in [begin, end), ascending, and where units cannot be read. False if the reader fails or
 * `visit` returned false.
 */
bool nibble_map_each(struct reader *reader, const struct nibble_map_version *version, const struct nibble_map *map,
                     uint64_t begin, uint64_t end, nibble_block_visitor *visit, void *context);

#endif
