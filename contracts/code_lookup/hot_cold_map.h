/*
 * hot_cold_map.h: which cold code belongs to which hot code in a ReadyToRun image: pairs of runtime function indexes
 * {cold, hot}, sorted by both. All cold functions lie behind all hot ones; a cold part reaches up to the next pair's.
 * The image keeps the pairs unaligned, and counts single numbers, two for a pair.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, "HotCold"; readytorun-format.md, section 120.
 */
#ifndef CDACQ_CONTRACTS_CODE_LOOKUP_HOT_COLD_MAP_H
#define CDACQ_CONTRACTS_CODE_LOOKUP_HOT_COLD_MAP_H

#include "target/reader.h"

struct hot_cold_map {
    const uint8_t *entries;
    uint32_t pair_count;     /* 0: the image is not split */
    uint32_t function_count; /* of the image */
    bool big_endian;
};

/* The first cold function; all from there on are. function_count where the image is not split. */
uint32_t hot_cold_first_cold(const struct hot_cold_map *map);

/* The hot function that a cold one belongs to. False where no pair covers it. */
bool hot_cold_hot_of(const struct hot_cold_map *map, uint32_t cold, uint32_t *ret_hot);

/* The cold functions [begin, end) of the method that starts at `hot`. False where it has none. */
bool hot_cold_cold_of(const struct hot_cold_map *map, uint32_t hot, uint32_t *ret_begin, uint32_t *ret_end);

#endif
