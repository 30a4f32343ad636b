/*
 * nibble_map.h: what the two versions of the nibble map have in common. A map says where code blocks start: each
 * 32-byte bucket of the code region has a nibble, 0 for "no start here", 1 to 8 for a start at that many words of four
 * bytes, less one, into the bucket. Eight nibbles make a unit of 32 bits; the first bucket's is the most significant.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, "NibbleMap".
 */
#ifndef CDACQ_CONTRACTS_CODE_LOOKUP_NIBBLE_MAP_H
#define CDACQ_CONTRACTS_CODE_LOOKUP_NIBBLE_MAP_H

#include "target/reader.h"

enum {
    NIBBLE_BUCKET_SIZE = 32,
    NIBBLES_PER_UNIT = 8,
    NIBBLE_UNIT_SIZE = NIBBLE_BUCKET_SIZE * NIBBLES_PER_UNIT, /* bytes of code that a unit speaks of */
    NIBBLE_SPAN_MAX = 1024 * 1024 * 1024,                     /* bytes of code under one map; heaps have a few MB */
};

/* One region of code and its map. */
struct nibble_map {
    uint64_t base;       /* of the code region: CodeHeapListNode.MapBase */
    uint64_t header_map; /* of the units: CodeHeapListNode.HeaderMap */
};

/* One version of the map's format. */
struct nibble_map_version {
    /*
     * The start of the last block that begins at or before `address`, as far as the format tells; 0 where there is
     * none, or when the reader fails. Where that block ends the map does not know.
     */
    uint64_t (*find)(struct reader *reader, const struct nibble_map *map, uint64_t address);
    /* Whether a unit holds a pointer to a block that begins before it, and no starts. */
    bool (*is_pointer)(uint32_t unit);
};

extern const struct nibble_map_version nibble_map_linear, nibble_map_constant;

static inline unsigned nibble_shift(uint64_t bucket)
{
    return 28 - 4 * (unsigned)(bucket % NIBBLES_PER_UNIT);
}

/* The start that the nibble of `bucket` tells, which is not 0. */
static inline uint64_t nibble_start(const struct nibble_map *map, uint64_t bucket, unsigned nibble)
{
    return map->base + bucket * NIBBLE_BUCKET_SIZE + (uint64_t)(nibble - 1) * 4;
}

/*
 * The last start in nibbles that have been shifted so that `bucket`'s is the lowest. 0 when all are empty; also, and
 * the reader fails, when it is above 8: a bucket has no more words.
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

/*
 * Calls `found` for each start in [begin, end), ascending, until it returns false. False when the reader fails or
 * `found` ended it.
 */
bool nibble_map_each(struct reader *reader, const struct nibble_map_version *version, const struct nibble_map *map,
                     uint64_t begin, uint64_t end, bool (*found)(uint64_t start, void *context), void *context);

#endif
