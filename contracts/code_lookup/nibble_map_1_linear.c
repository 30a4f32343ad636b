/*
 * nibble_map_1_linear.c: NibbleMapLinearLookup, the map of ExecutionManager version 1 (.NET 8 and 9). Every unit holds
 * nibbles. A look-up goes back to the last start at or before the address, also from freed code and gaps.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, "NibbleMap" (whose example has a shift of 22
 * that must be 24).
 */
#include "contracts/code_lookup/nibble_map.h"

static bool is_pointer(uint32_t unit)
{
    (void)unit;
    return false;
}

static uint64_t find(struct reader *reader, const struct nibble_map *map, uint64_t address)
{
    if (address < map->base)
        return 0;
    uint64_t relative = address - map->base, bucket = relative / NIBBLE_BUCKET_SIZE;
    uint32_t nibbles = nibble_unit(reader, map, bucket) >> nibble_shift(bucket);
    /* A start in the address's own bucket does not count if it is after the address. */
    unsigned word = (unsigned)(relative % NIBBLE_BUCKET_SIZE / 4) + 1;
    if ((nibbles & 15) > word)
        nibbles &= ~UINT32_C(15);
    uint64_t start = nibble_last_start(reader, map, nibbles, bucket);
    while (!start && bucket >= NIBBLES_PER_UNIT && reader_step(reader, "nibble map")) {
        bucket = align_down(bucket, NIBBLES_PER_UNIT) - 1;
        start = nibble_last_start(reader, map, nibble_unit(reader, map, bucket), bucket);
    }
    return reader_failed(reader) ? 0 : start;
}

const struct nibble_map_version nibble_map_linear = {.find = find, .is_pointer = is_pointer, .pointer = NULL};
