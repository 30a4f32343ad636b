/*
 * nibble_map_2_constant.c: NibbleMapConstantLookup, the map of ExecutionManager version 2 ("c1" of .NET 11). A unit
 * whose 256 bytes belong to one block holds a pointer to the block's start instead of nibbles: the offset from the
 * map's base, with bits 2 and 3 encoded as 9 to 12 in the lowest nibble. So a look-up reads at most two units: if
 * neither has a start or a pointer, there is no block. A unit whose lowest nibble is 13 to 15 is corrupt.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, "NibbleMap" (whose example has a slip: the
 * start 304 is encoded as 304 + 9 = 313).
 */
#include "contracts/code_lookup/nibble_map.h"

static bool is_pointer(uint32_t unit)
{
    return (unit & 15) > 8;
}

static uint64_t pointer(const struct nibble_map *map, uint32_t unit)
{
    return (unit & 15) > 12 ? 0 : map->base + (unit & ~UINT32_C(15)) + (uint64_t)((unit & 15) - 9) * 4;
}

/* The start that a pointer unit records; 0, and the reader fails, if the unit is corrupt. */
static uint64_t pointed_start(struct reader *reader, const struct nibble_map *map, uint32_t unit)
{
    if ((unit & 15) > 12)
        return reader_fail(reader, CDACQ_ERR_CORRUPT, map->header_map, "nibble map: unit");
    return pointer(map, unit);
}

static uint64_t find(struct reader *reader, const struct nibble_map *map, uint64_t address)
{
    if (address < map->base)
        return 0;
    uint64_t relative = address - map->base, bucket = relative / NIBBLE_BUCKET_SIZE;
    uint32_t unit = nibble_unit(reader, map, bucket);
    if (is_pointer(unit))
        return pointed_start(reader, map, unit);

    /* A start in the address's own bucket does not count if it is after the address. */
    uint32_t nibbles = unit >> nibble_shift(bucket);
    unsigned word = (unsigned)(relative % NIBBLE_BUCKET_SIZE / 4) + 1;
    if ((nibbles & 15) > word)
        nibbles &= ~UINT32_C(15);
    uint64_t start = nibble_last_start(reader, map, nibbles, bucket);
    if (start || bucket < NIBBLES_PER_UNIT)
        return start;

    bucket = align_down(bucket, NIBBLES_PER_UNIT) - 1;
    unit = nibble_unit(reader, map, bucket);
    return is_pointer(unit) ? pointed_start(reader, map, unit) : nibble_last_start(reader, map, unit, bucket);
}

const struct nibble_map_version nibble_map_constant = {.find = find, .is_pointer = is_pointer, .pointer = pointer};
