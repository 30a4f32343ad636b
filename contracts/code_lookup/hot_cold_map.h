/*
 * hot_cold_map.h: which cold code belongs to which hot code in a ReadyToRun image: unaligned pairs of runtime function
 * indexes {cold, hot}, sorted by both. All cold functions follow all hot ones; a cold part ends at the next pair's.
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

/* The first cold function; all later ones are cold too. function_count if the image is not split. */
uint32_t hot_cold_first_cold(const struct hot_cold_map *map);

/* The hot function that a cold one belongs to. False if no pair covers it, or the pair is not in order. */
bool hot_cold_hot_of(const struct hot_cold_map *map, uint32_t cold, uint32_t *ret_hot);

/*
 * The cold functions [begin, end) of the method that starts at `hot`. False if it has none, or its pair is not in
 * order.
 */
bool hot_cold_cold_of(const struct hot_cold_map *map, uint32_t hot, uint32_t *ret_begin, uint32_t *ret_end);

#endif
