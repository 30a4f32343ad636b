#include "util/hash_table.h"
#include "tests/support/check_main.h"

struct entry {
    uint64_t key;
    size_t value;
};

static uint64_t entry_key(const struct entry *entry)
{
    return entry->key;
}

/* The worst case: all keys have one hash. */
static uint64_t hash_badly(uint64_t key, uint64_t seed)
{
    (void)key;
    (void)seed;
    return 42;
}

struct part {
    uint64_t start;
    bool cold;
};

static const struct part *part_key(const struct part *const *part)
{
    return *part;
}

static uint64_t hash_part(const struct part *part, uint64_t seed)
{
    return hash_u64(part->start, seed);
}

static bool equal_parts(const struct part *a, const struct part *b)
{
    return a->start == b->start && a->cold == b->cold;
}

static const char *string_key(const char *const *string)
{
    return *string;
}

DEFINE_HASH_TABLE(entries, struct entry, uint64_t, entry_key, hash_u64, equal_u64);
DEFINE_HASH_TABLE(collisions, struct entry, uint64_t, entry_key, hash_badly, equal_u64);
DEFINE_HASH_TABLE(parts, const struct part *, const struct part *, part_key, hash_part, equal_parts);
DEFINE_HASH_TABLE(strings, const char *, const char *, string_key, hash_string, equal_strings);

static struct entries entries;

static void teardown(void)
{
    entries_deinit(&entries);
}

START_TEST(an_empty_one_owns_nothing)
{
    entries_deinit(&entries);
    ck_assert_ptr_null(entries_find(&entries, 0));
    ck_assert_ptr_null(entries_next(&entries, NULL));
    ck_assert_ptr_null(entries.slots);
}
END_TEST

START_TEST(every_key_is_one_like_any_other)
{
    static const uint64_t keys[] = {0, 1, UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63, 1u << 31};
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        bool added = false;
        ck_assert_ptr_null(entries_find(&entries, keys[i]));
        ck_assert_ptr_nonnull(entries_insert(&entries, (struct entry){keys[i], i}, &added));
        ck_assert(added);
    }
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        ck_assert_uint_eq(entries_find(&entries, keys[i])->value, i);
    ck_assert_uint_eq(entries.count, ARRAY_SIZE(keys));
}
END_TEST

START_TEST(a_key_is_there_once)
{
    bool added = false;
    struct entry *entry = entries_insert(&entries, (struct entry){5, 1}, &added);
    ck_assert(added);
    ck_assert_ptr_eq(entries_insert(&entries, (struct entry){5, 2}, &added), entry);
    ck_assert(!added);
    ck_assert_uint_eq(entry->value, 1);
    ck_assert_ptr_eq(entries_insert(&entries, (struct entry){5, 3}, NULL), entry);
    ck_assert_uint_eq(entries.count, 1);
}
END_TEST

/* Keys in an order that makes tables without mixing bad: pages, and the same low or high bits. */
START_TEST(grows_and_finds_all_again)
{
    for (unsigned shift = 0; shift <= 44; shift += 11) {
        size_t found = 0; /* counted, because Check stores each assertion that passes */
        for (size_t i = 0; i < 50000; i++)
            found += entries_insert(&entries, (struct entry){(uint64_t)i << shift, i}, NULL) != NULL;
        ck_assert_uint_eq(found, 50000);
        ck_assert_uint_eq(entries.count, 50000);
        ck_assert_uint_gt(entries.capacity, entries.count);
        for (size_t i = 0; i < 50000; i++)
            found -= entries_find(&entries, (uint64_t)i << shift)->value == i;
        ck_assert_uint_eq(found, 0);
        ck_assert_ptr_null(entries_find(&entries, UINT64_C(50000) << shift));
        entries_deinit(&entries);
    }
}
END_TEST

START_TEST(lists_each_entry_once)
{
    enum { COUNT = 1000 };
    uint8_t seen[COUNT] = {0};
    for (size_t i = 0; i < COUNT; i++)
        ck_assert_ptr_nonnull(entries_insert(&entries, (struct entry){i * 7, i}, NULL));
    size_t count = 0;
    for (const struct entry *entry = NULL; (entry = entries_next(&entries, entry)); count++)
        ck_assert_uint_eq(seen[entry->value]++, 0);
    ck_assert_uint_eq(count, COUNT);
}
END_TEST

static int by_value(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    return (left->value > right->value) - (left->value < right->value);
}

START_TEST(copies_the_entries_in_order)
{
    enum { COUNT = 1000 };
    struct entry *sorted = entries_sorted(&entries, by_value);
    ck_assert_ptr_nonnull(sorted); /* of no entries */
    free(sorted);
    for (size_t i = 0; i < COUNT; i++)
        ck_assert_ptr_nonnull(entries_insert(&entries, (struct entry){i, COUNT - 1 - i}, NULL));
    sorted = entries_sorted(&entries, by_value);
    ck_assert_ptr_nonnull(sorted);
    for (size_t i = 0; i < COUNT; i++)
        ck_assert(sorted[i].value == i && sorted[i].key == COUNT - 1 - i);
    free(sorted);
}
END_TEST

START_TEST(keys_that_collide_are_distinguished)
{
    struct collisions collisions = {0};
    for (size_t i = 0; i < 500; i++)
        ck_assert_ptr_nonnull(collisions_insert(&collisions, (struct entry){i, i}, NULL));
    ck_assert_uint_eq(collisions.count, 500);
    for (size_t i = 0; i < 500; i++)
        ck_assert_uint_eq(collisions_find(&collisions, i)->value, i);
    ck_assert_ptr_null(collisions_find(&collisions, 500));
    collisions_deinit(&collisions);
}
END_TEST

/* The longest way to a key among those that differ in any few bits, for a seed that they were not chosen for. */
START_TEST(chosen_keys_do_not_collide)
{
    for (unsigned low = 0; low < 64; low += 4) {
        for (uint64_t i = 0; i < 4096; i++) {
            uint64_t key = i << low | (low > 52 ? i >> (64 - low) : 0);
            ck_assert_ptr_nonnull(entries_insert(&entries, (struct entry){key, 0}, NULL));
        }
        size_t run = 0, longest = 0;
        for (size_t i = 0; i < entries.capacity; i++) {
            run = entries.tags[i] ? run + 1 : 0;
            longest = MAX(longest, run);
        }
        ck_assert_uint_lt(longest, 400);
        entries_deinit(&entries);
    }
}
END_TEST

START_TEST(keys_are_what_their_functions_say)
{
    static const struct part all[] = {{1, false}, {1, true}, {2, false}};
    struct parts parts = {0};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        ck_assert_ptr_eq(*parts_insert(&parts, &all[i], NULL), &all[i]);
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        struct part copy = all[i];
        ck_assert_ptr_eq(*parts_find(&parts, &copy), &all[i]);
    }
    ck_assert_ptr_null(parts_find(&parts, &(struct part){2, true}));
    parts_deinit(&parts);
}
END_TEST

START_TEST(strings_are_keys)
{
    static const char *const all[] = {"", "a", "b", "ab", "ba", "abcdefgh", "abcdefghi", "abcdefgi", "\x01", "a\xff"};
    struct strings strings = {0};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        bool added = false;
        ck_assert_ptr_nonnull(strings_insert(&strings, all[i], &added));
        ck_assert(added);
    }
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        char copy[16];
        strcpy(copy, all[i]);
        ck_assert_ptr_eq(*strings_find(&strings, copy), all[i]);
    }
    ck_assert_ptr_null(strings_find(&strings, "abcdefg"));
    strings_deinit(&strings);
    ck_assert_uint_ne(hash_string("abcdefgh", 1), hash_string("abcdefgh", 2));
}
END_TEST

/* A capacity whose size does not fit: the table stays as it was. */
START_TEST(bytes_have_one_hash_however_they_come)
{
    uint64_t whole = hash_bytes(1, "abcdef", 6);
    ck_assert_uint_eq(hash_bytes(hash_bytes(1, "ab", 2), "cdef", 4), whole);
    ck_assert_uint_eq(hash_bytes(whole, NULL, 0), whole);
    ck_assert_uint_ne(hash_bytes(1, "abcdfe", 6), whole);
    ck_assert_uint_ne(hash_bytes(2, "abcdef", 6), whole);
    ck_assert_uint_ne(hash_bytes(1, "abcdef", 7), whole);
}
END_TEST

START_TEST(out_of_memory_changes_nothing)
{
    ck_assert_ptr_nonnull(entries_insert(&entries, (struct entry){1, 2}, NULL));
    struct entries full = entries;
    full.capacity = full.count = SIZE_MAX / 2 + 1;
    struct entries before = full;
    ck_assert_ptr_null(entries_insert(&full, (struct entry){3, 4}, NULL));
    ck_assert_mem_eq(&full, &before, sizeof full);
    full.capacity = full.count = SIZE_MAX / 8 + 1;
    before = full;
    ck_assert_ptr_null(entries_insert(&full, (struct entry){3, 4}, NULL));
    ck_assert_mem_eq(&full, &before, sizeof full);
}
END_TEST

static Suite *hash_table_suite(void)
{
    const TTest *const tests[] = {
        an_empty_one_owns_nothing,
        every_key_is_one_like_any_other,
        a_key_is_there_once,
        grows_and_finds_all_again,
        lists_each_entry_once,
        copies_the_entries_in_order,
        keys_that_collide_are_distinguished,
        chosen_keys_do_not_collide,
        keys_are_what_their_functions_say,
        strings_are_keys,
        bytes_have_one_hash_however_they_come,
        out_of_memory_changes_nothing,
    };
    Suite *suite = suite_create("hash_table");
    TCase *tcase = tcase_create("hash_table");
    tcase_add_checked_fixture(tcase, NULL, teardown);
    for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(hash_table_suite)
