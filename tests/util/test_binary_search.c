#include "util/binary_search.h"
#include "util/base.h"
#include "tests/support/check_main.h"

START_TEST(finds_what_a_walk_finds)
{
    enum { COUNT = 40 };
    int items[COUNT];
    for (int count = 0; count <= COUNT; count++) {
        for (int i = 0; i < count; i++)
            items[i] = i / 3 * 2; /* duplicates and gaps */
        for (int wanted = -1; wanted <= COUNT + 1; wanted++) {
            size_t first = 0, after = 0;
            while (first < (size_t)count && items[first] < wanted)
                first++;
            while (after < (size_t)count && items[after] <= wanted)
                after++;
            ck_assert_uint_eq(lower_bound(i, (size_t)count, items[i] < wanted), first);
            ck_assert_uint_eq(lower_bound(i, (size_t)count, items[i] <= wanted), after);
            ck_assert_uint_eq(lower_bound_in_memory(i, (size_t)count, items[i] < wanted), first);
            ck_assert_uint_eq(lower_bound_in_memory(i, (size_t)count, items[i] <= wanted), after);
        }
    }
}
END_TEST

START_TEST(has_the_type_of_the_count)
{
    const uint32_t small = 3;
    const uint64_t large = UINT64_C(1) << 40;
    _Static_assert(sizeof(lower_bound(i, (uint32_t)3, i < 1)) == 4, "32 bits");
    ck_assert_uint_eq(lower_bound(i, small, true), 3);
    ck_assert_uint_eq(lower_bound(i, small, false), 0);
    ck_assert_uint_eq(lower_bound(i, large, i < UINT64_C(0x123456789)), UINT64_C(0x123456789));
    ck_assert_uint_eq(lower_bound(i, UINT32_MAX, i < UINT32_MAX - 1), UINT32_MAX - 1);
    ck_assert_uint_eq(lower_bound(i, SIZE_MAX, true), SIZE_MAX);
    _Static_assert(sizeof(lower_bound_in_memory(i, (uint32_t)3, i < 1)) == 4, "32 bits");
    ck_assert_uint_eq(lower_bound_in_memory(i, small, true), 3);
    ck_assert_uint_eq(lower_bound_in_memory(i, small, false), 0);
    ck_assert_uint_eq(lower_bound_in_memory(i, large, i < UINT64_C(0x123456789)), UINT64_C(0x123456789));
    ck_assert_uint_eq(lower_bound_in_memory(i, UINT32_MAX, i < UINT32_MAX - 1), UINT32_MAX - 1);
    ck_assert_uint_eq(lower_bound_in_memory(i, SIZE_MAX, true), SIZE_MAX);
}
END_TEST

START_TEST(asks_only_within_the_count)
{
    unsigned asked = 0;
    ck_assert_uint_eq(lower_bound(i, (size_t)0, (asked++, true)), 0);
    ck_assert_uint_eq(asked, 0);
    /* Not sorted at all. */
    size_t found = lower_bound(i, (size_t)1000, (asked++, i < 1000 && i * 7919 % 1000 < 500));
    ck_assert_uint_le(found, 1000);
    ck_assert_uint_le(asked, 10);
    asked = 0;
    ck_assert_uint_eq(lower_bound_in_memory(i, (size_t)0, (asked++, true)), 0);
    ck_assert_uint_eq(asked, 0);
    found = lower_bound_in_memory(i, (size_t)1000, (asked++, i < 1000 && i * 7919 % 1000 < 500));
    ck_assert_uint_le(found, 1000);
    ck_assert_uint_le(asked, 10);
}
END_TEST

static Suite *binary_search_suite(void)
{
    Suite *suite = suite_create("binary_search");
    TCase *tcase = tcase_create("binary_search");
    tcase_add_test(tcase, finds_what_a_walk_finds);
    tcase_add_test(tcase, has_the_type_of_the_count);
    tcase_add_test(tcase, asks_only_within_the_count);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(binary_search_suite)
