#include "util/vector.h"
#include "tests/support/check_main.h"

struct pair {
    uint64_t key;
    uint32_t value;
};

DEFINE_VECTOR(pairs, struct pair);
DEFINE_VECTOR(bytes, uint8_t);
struct wide {
    uint8_t bytes[4096];
};
DEFINE_VECTOR(wides, struct wide);

static struct pairs pairs;

static void teardown(void)
{
    pairs_deinit(&pairs);
}

START_TEST(an_empty_one_owns_nothing)
{
    pairs_deinit(&pairs);
    pairs_shrink(&pairs);
    ck_assert(pairs_reserve(&pairs, 0));
    ck_assert(pairs_resize(&pairs, 0));
    ck_assert_ptr_null(pairs.items);
    ck_assert_uint_eq(pairs.count, 0);
    ck_assert_uint_eq(pairs.capacity, 0);
}
END_TEST

START_TEST(keeps_what_is_appended)
{
    size_t moves = 0, capacity = 0;
    for (uint32_t i = 0; i < 100000; i++) {
        ck_assert(pairs_append(&pairs, (struct pair){i * UINT64_C(3), i}));
        ck_assert_uint_le(pairs.count, pairs.capacity);
        moves += pairs.capacity != capacity;
        capacity = pairs.capacity;
    }
    ck_assert_uint_eq(pairs.count, 100000);
    ck_assert_uint_lt(moves, 20);
    for (uint32_t i = 0; i < pairs.count; i++) {
        ck_assert_uint_eq(pairs.items[i].key, i * UINT64_C(3));
        ck_assert_uint_eq(pairs.items[i].value, i);
    }
}
END_TEST

START_TEST(appends_many_at_once)
{
    ck_assert(pairs_append(&pairs, (struct pair){7, 8}));
    struct pair *more = pairs_append_items(&pairs, 1000);
    ck_assert_ptr_eq(more, pairs.items + 1);
    memset(more, 0xff, 1000 * sizeof *more);
    ck_assert_uint_eq(pairs.count, 1001);
    ck_assert_uint_eq(pairs.items[0].key, 7);
    more = pairs_append_items(&pairs, 0);
    ck_assert_ptr_eq(more, pairs.items + 1001);
    ck_assert_uint_eq(pairs.count, 1001);
}
END_TEST

START_TEST(resizing_zeroes_what_is_new)
{
    struct pair *items = pairs_append_items(&pairs, 50);
    memset(items, 0xff, 50 * sizeof *items);
    ck_assert(pairs_resize(&pairs, 10));
    ck_assert(pairs_resize(&pairs, 1000));
    ck_assert_uint_eq(pairs.count, 1000);
    ck_assert_uint_eq(pairs.items[9].key, UINT64_MAX);
    for (size_t i = 10; i < 1000; i++) {
        ck_assert_uint_eq(pairs.items[i].key, 0);
        ck_assert_uint_eq(pairs.items[i].value, 0);
    }
}
END_TEST

START_TEST(reserved_room_does_not_move)
{
    ck_assert(pairs_reserve(&pairs, 1000));
    ck_assert_uint_ge(pairs.capacity, 1000);
    const struct pair *items = pairs.items;
    for (uint32_t i = 0; i < 1000; i++)
        ck_assert(pairs_append(&pairs, (struct pair){i, i}));
    ck_assert_ptr_eq(pairs.items, items);
    ck_assert(pairs_reserve(&pairs, 1));
    ck_assert_ptr_eq(pairs.items, items);
}
END_TEST

START_TEST(shrinks_to_what_is_used)
{
    for (uint32_t i = 0; i < 1000; i++)
        ck_assert(pairs_append(&pairs, (struct pair){i, i}));
    pairs_shrink(&pairs);
    ck_assert_uint_eq(pairs.capacity, 1000);
    ck_assert_uint_eq(pairs.items[999].key, 999);
    pairs_shrink(&pairs);
    ck_assert_uint_eq(pairs.capacity, 1000);
    ck_assert(pairs_append(&pairs, (struct pair){1, 2}));
    ck_assert_uint_ge(pairs.capacity, 2000);
    pairs.count = 0;
    pairs_shrink(&pairs);
    ck_assert_ptr_null(pairs.items);
    ck_assert_uint_eq(pairs.capacity, 0);
}
END_TEST

START_TEST(a_size_that_does_not_fit_changes_nothing)
{
    static const size_t too_many[] = {SIZE_MAX, SIZE_MAX / sizeof(struct pair), SIZE_MAX / sizeof(struct pair) + 1,
                                      (size_t)PTRDIFF_MAX / sizeof(struct pair) + 1};
    ck_assert(pairs_append(&pairs, (struct pair){1, 2}));
    struct pairs before = pairs;
    for (size_t i = 0; i < ARRAY_SIZE(too_many); i++) {
        ck_assert(!pairs_reserve(&pairs, too_many[i]));
        ck_assert(!pairs_resize(&pairs, too_many[i]));
        ck_assert_ptr_null(pairs_append_items(&pairs, too_many[i]));
        ck_assert_mem_eq(&pairs, &before, sizeof pairs);
    }
    struct bytes bytes = {0};
    ck_assert(bytes_append(&bytes, 1));
    ck_assert_ptr_null(bytes_append_items(&bytes, SIZE_MAX)); /* 1 + SIZE_MAX wraps to 0 */
    ck_assert(!bytes_reserve(&bytes, (size_t)PTRDIFF_MAX + 1));
    ck_assert_uint_eq(bytes.count, 1);
    bytes_deinit(&bytes);
}
END_TEST

START_TEST(large_items_do_not_take_more_than_a_few)
{
    struct wides wides = {0};
    ck_assert(wides_append(&wides, (struct wide){{1}}));
    ck_assert_uint_le(wides.capacity, 4);
    ck_assert_uint_eq(wides.items[0].bytes[0], 1);
    wides_deinit(&wides);
}
END_TEST

static Suite *vector_suite(void)
{
    const TTest *const tests[] = {
        an_empty_one_owns_nothing,
        keeps_what_is_appended,
        appends_many_at_once,
        resizing_zeroes_what_is_new,
        reserved_room_does_not_move,
        shrinks_to_what_is_used,
        a_size_that_does_not_fit_changes_nothing,
        large_items_do_not_take_more_than_a_few,
    };
    Suite *suite = suite_create("vector");
    TCase *tcase = tcase_create("vector");
    tcase_add_checked_fixture(tcase, NULL, teardown);
    for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(vector_suite)
