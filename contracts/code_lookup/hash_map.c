#include "contracts/code_lookup/hash_map.h"

enum { SLOTS_MAX = 16 }; /* real targets have 4 */

uint64_t hash_map_find(struct reader *reader, uint64_t map, uint64_t key)
{
    const struct layout *layout = reader->layout;
    uint64_t slots = layout->globals[G_HashMapSlotsPerBucket], mask = layout->globals[G_HashMapValueMask];
    uint64_t bucket_size = layout->sizes[T_Bucket], word = reader->pointer_size;
    uint64_t buckets = read_field(reader, map, F_HashMap_Buckets);
    uint64_t size = buckets ? read_u32(reader, buckets) : 0;
    if (!slots || slots > SLOTS_MAX)
        reader_fail(reader, CDACQ_ERR_CORRUPT, 0, "HashMapSlotsPerBucket");
    if (!size || reader_failed(reader))
        return HASH_MAP_NOT_FOUND;
    /* Both hashes take the low 32 bits of the shifted key. A map of one bucket has no next one. */
    uint32_t seed = (uint32_t)(key >> 2);
    uint32_t increment = size > 1 ? 1 + ((uint32_t)(key >> 5) + 1) % (uint32_t)(size - 1) : 0;
    for (uint64_t probe = 0; probe < size && reader_step(reader, "HashMap probes"); probe++, seed += increment) {
        uint64_t bucket = buckets + bucket_size * (1 + seed % size);
        uint64_t keys = field_address(reader, bucket, F_Bucket_Keys);
        uint64_t values = field_address(reader, bucket, F_Bucket_Values);
        for (uint64_t i = 0; i < slots; i++)
            if (read_pointer(reader, keys + i * word) == key && !reader_failed(reader))
                return read_pointer(reader, values + i * word) & mask;
        if (!(read_pointer(reader, values) & ~mask))
            break;
    }
    return HASH_MAP_NOT_FOUND;
}

uint64_t ptr_hash_map_find(struct reader *reader, uint64_t map, uint64_t key)
{
    /* 0 and 1 mark empty and deleted slots, so the runtime adds 100 to such keys. */
    uint64_t value = hash_map_find(reader, map, key > 1 ? key : key + 100);
    return value == HASH_MAP_NOT_FOUND || reader_failed(reader) ? 0 : value << 1;
}
