/* HashMap and PtrHashMap: filled by the runtime's rule, and by hand. */
#include "tests/support/check_main.h"
#include "contracts/code_lookup/hash_map.h"
#include "tests/support/mock_support.h"

struct fixture {
    struct mock *mock;
    struct cdacq_target *target;
    uint64_t map;
};

static struct fixture fixture(int arch, uint64_t seed, uint32_t buckets)
{
    struct fixture fixture = {.mock = mock_of_arch(arch, seed)};
    fixture.map = mock_new(fixture.mock, "HashMap", 0);
    mock_hash_map_init(fixture.mock, fixture.map, buckets);
    return fixture;
}

static void close_fixture(struct fixture *fixture)
{
    cdacq_target_close(fixture->target);
    mock_destroy(fixture->mock);
}

static uint64_t find(const struct fixture *fixture, uint64_t key)
{
    struct reader reader = mock_reader(fixture->target);
    uint64_t value = hash_map_find(&reader, fixture->map, key);
    ck_assert_int_eq(reader_failure(&reader).status, CDACQ_OK);
    return value;
}

static uint64_t find_pointer(const struct fixture *fixture, uint64_t key)
{
    struct reader reader = mock_reader(fixture->target);
    uint64_t value = ptr_hash_map_find(&reader, fixture->map, key);
    ck_assert_int_eq(reader_failure(&reader).status, CDACQ_OK);
    return value;
}

START_TEST(plain_values)
{
    struct fixture f = fixture(_i, 1, 5);
    ck_assert(mock_hash_map_insert(f.mock, f.map, 0x100, 0x10));
    ck_assert(mock_hash_map_insert(f.mock, f.map, 0x200, 0x20));
    ck_assert(mock_hash_map_insert(f.mock, f.map, 0x300, 0x30));
    ck_assert(mock_hash_map_insert(f.mock, f.map, 0x400, 0x7fffffff)); /* all bits of a value on 32-bit targets */
    f.target = mock_publish_and_open(f.mock);
    ck_assert_uint_eq(find(&f, 0x100), 0x10);
    ck_assert_uint_eq(find(&f, 0x200), 0x20);
    ck_assert_uint_eq(find(&f, 0x300), 0x30);
    ck_assert_uint_eq(find(&f, 0x400), 0x7fffffff);
    ck_assert_uint_eq(find(&f, 0x500), HASH_MAP_NOT_FOUND);
    close_fixture(&f);
}
END_TEST

START_TEST(pointers)
{
    struct fixture f = fixture(_i, 2, 5);
    uint64_t pointer = _i & 1 ? UINT64_C(0xfedcba9876543210) : 0xfedcba90;
    ck_assert(mock_ptr_hash_map_insert(f.mock, f.map, 0x100, pointer));
    ck_assert(mock_ptr_hash_map_insert(f.mock, f.map, 0, 0x20)); /* keys that have another meaning in a slot */
    ck_assert(mock_ptr_hash_map_insert(f.mock, f.map, 1, 0x30));
    f.target = mock_publish_and_open(f.mock);
    ck_assert_uint_eq(find_pointer(&f, 0x100), pointer);
    ck_assert_uint_eq(find_pointer(&f, 0), 0x20);
    ck_assert_uint_eq(find_pointer(&f, 1), 0x30);
    ck_assert_uint_eq(find_pointer(&f, 100), 0x20); /* the key that stands in for 0 */
    ck_assert_uint_eq(find_pointer(&f, 0x104), 0);
    close_fixture(&f);
}
END_TEST

/* Keys of one seed: the fifth goes on to the next bucket of the sequence. The first of two equal keys counts. */
START_TEST(collisions)
{
    struct fixture f = fixture(_i, 3, 7);
    /* With seven buckets: same key >> 2 modulo 7, different increments. */
    for (uint64_t i = 0; i < 9; i++)
        ck_assert(mock_hash_map_insert(f.mock, f.map, 0x1000 + i * 28, 0x100 + i));
    ck_assert(mock_hash_map_insert(f.mock, f.map, 0x1000 + 28, 0x999));
    f.target = mock_publish_and_open(f.mock);
    for (uint64_t i = 0; i < 9; i++)
        ck_assert_uint_eq(find(&f, 0x1000 + i * 28), 0x100 + i);
    ck_assert_uint_eq(find(&f, 0x1000 + 9 * 28), HASH_MAP_NOT_FOUND);
    close_fixture(&f);
}
END_TEST

/* A bucket without a collision ends the search, although a later bucket holds the key. */
START_TEST(no_collision_ends_the_search)
{
    struct fixture f = fixture(_i, 4, 7);
    unsigned word = _i & 1 ? 8 : 4;
    uint64_t buckets = mock_get(f.mock, f.map, "HashMap.Buckets"), stride = mock_size_of(f.mock, "Bucket");
    uint64_t keys = mock_offset_of(f.mock, "Bucket.Keys"), values = mock_offset_of(f.mock, "Bucket.Values");
    uint64_t key = 0x1000, first = buckets + stride * (1 + (key >> 2) % 7);
    uint64_t next = buckets + stride * (1 + ((key >> 2) + 1 + ((key >> 5) + 1) % 6) % 7);
    mock_write_pointer(f.mock, next + keys, key);
    mock_write_pointer(f.mock, next + values, 0x42);
    f.target = mock_publish_and_open(f.mock);
    ck_assert_uint_eq(find(&f, key), HASH_MAP_NOT_FOUND);
    mock_write_pointer(f.mock, first + values, UINT64_C(1) << (8 * word - 1));
    ck_assert_uint_eq(find(&f, key), 0x42);
    close_fixture(&f);
}
END_TEST

START_TEST(small_maps)
{
    struct fixture empty = fixture(_i, 5, 0), one = fixture(_i, 5, 1);
    ck_assert(!mock_hash_map_insert(empty.mock, empty.map, 0x100, 1));
    for (uint64_t i = 0; i < 4; i++)
        ck_assert(mock_hash_map_insert(one.mock, one.map, 0x100 + i * 16, 0x10 + i));
    ck_assert(!mock_hash_map_insert(one.mock, one.map, 0x200, 1));
    empty.target = mock_publish_and_open(empty.mock);
    one.target = mock_publish_and_open(one.mock);
    ck_assert_uint_eq(find(&empty, 0x100), HASH_MAP_NOT_FOUND);
    for (uint64_t i = 0; i < 4; i++)
        ck_assert_uint_eq(find(&one, 0x100 + i * 16), 0x10 + i);
    ck_assert_uint_eq(find(&one, 0x200), HASH_MAP_NOT_FOUND);
    close_fixture(&empty);
    close_fixture(&one);
}
END_TEST

/* Buckets with other numbers of slots than the runtime's four; a global states the number. */
START_TEST(buckets_of_other_sizes)
{
    static const unsigned counts[] = {1, 2, 3, 5, 8, 16};
    for (size_t n = 0; n < ARRAY_SIZE(counts); n++) {
        struct fixture f = {
            .mock = mock_create(&(struct mock_options){
                .pointer_size = _i & 1 ? 8 : 4, .big_endian = _i & 2, .seed = n, .hash_slots = counts[n]})};
        uint64_t count = 0;
        f.map = mock_new(f.mock, "HashMap", 0);
        mock_hash_map_init(f.mock, f.map, 11);
        while (count < 11 * counts[n] * 2 / 3 + 1 &&
               mock_ptr_hash_map_insert(f.mock, f.map, 0x1000 + 16 * count, 2 * (count + 1)))
            count++;
        ck_assert_uint_gt(count, 4);
        f.target = mock_publish_and_open(f.mock);
        for (uint64_t i = 0; i < count; i++) {
            ck_assert_uint_eq(find_pointer(&f, 0x1000 + 16 * i), 2 * (i + 1));
            ck_assert_uint_eq(find_pointer(&f, 0x1004 + 16 * i), 0);
        }
        close_fixture(&f);
    }
}
END_TEST

/* No array at all, as in a map that was never used. */
START_TEST(no_buckets)
{
    struct fixture f = fixture(_i, 6, 5);
    mock_set(f.mock, f.map, "HashMap.Buckets", 0);
    f.target = mock_publish_and_open(f.mock);
    ck_assert_uint_eq(find(&f, 0x100), HASH_MAP_NOT_FOUND);
    ck_assert_uint_eq(find_pointer(&f, 0x100), 0);
    close_fixture(&f);
}
END_TEST

/* Maps of the runtime's prime sizes, from a quarter full to as full as they get. */
START_TEST(random_maps)
{
    static const uint32_t primes[] = {5, 11, 17, 23, 29, 37, 47};
    enum { KEYS = 200 };
    for (size_t n = 0; n < 2 * ARRAY_SIZE(primes); n++) {
        struct fixture f = fixture(_i, n, primes[n / 2]);
        struct random random = {n * 4 + (uint64_t)_i};
        uint64_t keys[KEYS], count = 0, top = _i & 1 ? UINT64_C(1) << 47 : UINT64_C(1) << 31;
        uint64_t wanted = n % 2 ? primes[n / 2] * 4 : primes[n / 2];
        /* Entry points: aligned, and near to each other. */
        for (uint64_t key = align_down(random_below(&random, top), 16); count < wanted && count < KEYS;
             key += 16 * (1 + random_below(&random, 9)))
            if (mock_ptr_hash_map_insert(f.mock, f.map, key, 2 * (count + 1)))
                keys[count++] = key;
            else if (n % 2)
                break; /* no bucket of its sequence is free: sequences need not reach all of them */
        f.target = mock_publish_and_open(f.mock);
        for (uint64_t i = 0; i < count; i++) {
            ck_assert_uint_eq(find_pointer(&f, keys[i]), 2 * (i + 1));
            ck_assert_uint_eq(find_pointer(&f, keys[i] + 4), 0);
        }
        close_fixture(&f);
    }
}
END_TEST

/* Every bucket full and marked, and a key that is in none: each bucket is read at most once. */
START_TEST(bounded)
{
    struct fixture f = fixture(_i, 7, 101);
    for (uint64_t key = 0x1000; mock_hash_map_insert(f.mock, f.map, key, 7) || key < 0x4000; key += 4)
        ;
    f.target = mock_publish_and_open(f.mock);
    struct reader reader = mock_reader(f.target);
    ck_assert_uint_eq(hash_map_find(&reader, f.map, 0x77777777), HASH_MAP_NOT_FOUND);
    ck_assert_int_eq(reader_failure(&reader).status, CDACQ_OK);
    ck_assert_uint_le(FUEL_LOOKUP - reader_fuel(&reader), 2 + 101 * 6);
    close_fixture(&f);
}
END_TEST

START_TEST(damage)
{
    static const uint64_t slots[] = {0, 17, UINT32_MAX};
    for (size_t i = 0; i < ARRAY_SIZE(slots); i++) {
        struct fixture f = fixture(_i, 8, 5);
        mock_global(f.mock, "HashMapSlotsPerBucket", slots[i]);
        f.target = mock_publish_and_open(f.mock);
        struct reader reader = mock_reader(f.target);
        ck_assert_uint_eq(hash_map_find(&reader, f.map, 0x100), HASH_MAP_NOT_FOUND);
        ck_assert_int_eq(reader_failure(&reader).status, CDACQ_ERR_CORRUPT);
        close_fixture(&f);
    }
    struct fixture f = fixture(_i, 9, 5);
    uint64_t buckets = mock_get(f.mock, f.map, "HashMap.Buckets");
    mock_unmap(f.mock, buckets + mock_size_of(f.mock, "Bucket"), 5 * mock_size_of(f.mock, "Bucket"));
    f.target = mock_publish_and_open(f.mock);
    struct reader reader = mock_reader(f.target);
    ck_assert_uint_eq(ptr_hash_map_find(&reader, f.map, 0x100), 0);
    ck_assert_int_eq(reader_failure(&reader).status, CDACQ_ERR_MEMORY);
    close_fixture(&f);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("hash_map");
    TCase *tcase = tcase_create("hash_map");
    tcase_add_loop_test(tcase, plain_values, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, pointers, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, collisions, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, no_collision_ends_the_search, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, small_maps, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, buckets_of_other_sizes, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, no_buckets, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, random_maps, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, bounded, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, damage, 0, ARCH_COUNT);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
