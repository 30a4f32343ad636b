#include "contracts/code_lookup/hot_cold_map.h"

#include "util/binary_search.h"

static uint32_t cold_at(const struct hot_cold_map *map, uint32_t pair)
{
    return load_u32(map->entries + (size_t)pair * 8, map->big_endian);
}

static uint32_t hot_at(const struct hot_cold_map *map, uint32_t pair)
{
    return load_u32(map->entries + (size_t)pair * 8 + 4, map->big_endian);
}

/* The last pair whose key is at or before `index`; UINT32_MAX if there is none. */
static uint32_t last_pair(const struct hot_cold_map *map, uint32_t index,
                          uint32_t (*key)(const struct hot_cold_map *map, uint32_t pair))
{
    uint32_t after = lower_bound(i, map->pair_count, key(map, i) <= index);
    return after ? after - 1 : UINT32_MAX;
}

/* Whether a pair is between its neighbours, by both indexes. If not, it may be that of another method. */
static bool is_in_order(const struct hot_cold_map *map, uint32_t pair)
{
    uint32_t before = pair ? pair - 1 : pair, after = pair + 1 < map->pair_count ? pair + 1 : pair;
    return (before == pair || (cold_at(map, before) < cold_at(map, pair) && hot_at(map, before) < hot_at(map, pair))) &&
           (after == pair || (cold_at(map, pair) < cold_at(map, after) && hot_at(map, pair) < hot_at(map, after)));
}

uint32_t hot_cold_first_cold(const struct hot_cold_map *map)
{
    return map->pair_count ? MIN(cold_at(map, 0), map->function_count) : map->function_count;
}

bool hot_cold_hot_of(const struct hot_cold_map *map, uint32_t cold, uint32_t *ret_hot)
{
    uint32_t pair = last_pair(map, cold, cold_at);
    if (pair == UINT32_MAX || hot_at(map, pair) >= hot_cold_first_cold(map) || !is_in_order(map, pair))
        return false;
    *ret_hot = hot_at(map, pair);
    return true;
}

bool hot_cold_cold_of(const struct hot_cold_map *map, uint32_t hot, uint32_t *ret_begin, uint32_t *ret_end)
{
    uint32_t pair = last_pair(map, hot, hot_at);
    if (pair == UINT32_MAX || hot_at(map, pair) != hot || !is_in_order(map, pair))
        return false;
    uint32_t begin = cold_at(map, pair);
    uint32_t end = pair + 1 < map->pair_count ? cold_at(map, pair + 1) : map->function_count;
    if (begin < hot_cold_first_cold(map) || end > map->function_count || begin >= end)
        return false;
    *ret_begin = begin;
    *ret_end = end;
    return true;
}
