#include "contracts/code_lookup/nibble_map.h"

bool nibble_map_each(struct reader *reader, const struct nibble_map_version *version, const struct nibble_map *map,
                     uint64_t begin, uint64_t end, bool (*found)(uint64_t start, void *context), void *context)
{
    struct window units;
    if (begin < map->base || end <= begin)
        return true;
    uint64_t first = (begin - map->base) / NIBBLE_UNIT_SIZE;
    uint64_t last = (end - 1 - map->base) / NIBBLE_UNIT_SIZE;
    if (end - map->base > NIBBLE_SPAN_MAX)
        return reader_fail(reader, CDACQ_ERR_CORRUPT, map->base, "CodeHeapListNode: size of its code");
    if (!reader_window(reader, map->header_map + first * 4, (last - first + 1) * 4, "CodeHeapListNode.HeaderMap",
                       &units))
        return false;
    bool more = true;
    for (uint64_t i = 0; i <= last - first && more; i++) {
        uint32_t unit = load_u32(units.bytes + i * 4, reader->big_endian);
        if (!unit || version->is_pointer(unit))
            continue;
        for (unsigned n = 0; n < NIBBLES_PER_UNIT && more; n++) {
            uint64_t bucket = (first + i) * NIBBLES_PER_UNIT + n;
            unsigned nibble = unit >> nibble_shift(bucket) & 15;
            uint64_t start = nibble ? nibble_start(map, bucket, nibble) : 0;
            if (start >= begin && start < end && nibble <= 8)
                more = found(start, context);
        }
    }
    window_deinit(&units);
    return more && !reader_failed(reader);
}
