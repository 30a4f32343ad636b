/*
 * hash_map.c: HashMap and PtrHashMap by the runtime's insertion rule. The first bucket of the array holds only the
 * number of buckets. A key goes into the first bucket of its probe sequence that has a free slot, and each full bucket
 * on the way is marked: the top bit of its first value says that a search must continue.
 * Source: src/coreclr/vm/hash.{h,cpp}, Bucket::InsertValue, HashMap::PutEntry, HashMap::HashFunction.
 */
#include "mocktarget/mock.h"

static uint64_t flag_bit(const struct mock *mock)
{
    return UINT64_C(1) << (8 * mock->word - 1);
}

void mock_hash_map_init(struct mock *mock, uint64_t map, uint32_t bucket_count)
{
    uint64_t stride = mock->sizes[T_Bucket];
    uint64_t buckets = mock_alloc(mock, (bucket_count + 1) * stride, 8);
    mock_write_uint(mock, buckets, 4, bucket_count);
    mock_put(mock, map, F_HashMap_Buckets, buckets);
}

static bool insert_into(struct mock *mock, uint64_t bucket, uint64_t key, uint64_t value)
{
    uint64_t keys = mock_address_of(mock, bucket, F_Bucket_Keys),
             values = mock_address_of(mock, bucket, F_Bucket_Values);
    for (unsigned i = 0; i < mock->options.hash_slots; i++) {
        if (mock_read_pointer(mock, keys + i * mock->word) != 0)
            continue;
        uint64_t flag = mock_read_pointer(mock, values + i * mock->word) & flag_bit(mock);
        mock_write_pointer(mock, values + i * mock->word, value | flag);
        mock_write_pointer(mock, keys + i * mock->word, key);
        return true;
    }
    mock_write_pointer(mock, values, mock_read_pointer(mock, values) | flag_bit(mock));
    return false;
}

bool mock_hash_map_insert(struct mock *mock, uint64_t map, uint64_t key, uint64_t value)
{
    uint64_t buckets = mock_fetch(mock, map, F_HashMap_Buckets);
    uint32_t size = (uint32_t)mock_read_uint(mock, buckets, 4);
    uint32_t seed = (uint32_t)(key >> 2);
    uint32_t increment = size > 1 ? 1 + ((uint32_t)(key >> 5) + 1) % (size - 1) : 0;
    if (value & flag_bit(mock))
        return mock_fail(mock, "the value %#llx is too large for a HashMap", (unsigned long long)value);
    for (uint32_t probe = 0; probe < size && !mock->failed; probe++, seed += increment)
        if (insert_into(mock, buckets + mock->sizes[T_Bucket] * (1 + (uint64_t)(seed % size)), key, value))
            return !mock->failed;
    return false;
}

bool mock_ptr_hash_map_insert(struct mock *mock, uint64_t map, uint64_t key, uint64_t pointer)
{
    return mock_hash_map_insert(mock, map, key > 1 ? key : key + 100, pointer >> 1);
}
