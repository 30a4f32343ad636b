/* The hot/cold map: pairs {cold, hot} of runtime function numbers. */
#include "tests/support/check_main.h"
#include "contracts/code_lookup/hot_cold_map.h"
#include "tests/support/mock_support.h"

enum { PAIRS = 64 };

struct fixture {
    uint8_t bytes[1 + 8 * PAIRS];
    struct hot_cold_map map;
};

/* `big` also says whether the pairs are aligned: they need not be. */
static void fixture(struct fixture *f, int big, const uint32_t *numbers, uint32_t count, uint32_t functions)
{
    uint8_t *bytes = f->bytes + big;
    for (uint32_t i = 0; i < count; i++)
        store_u32(bytes + 4 * i, numbers[i], big);
    f->map = (struct hot_cold_map){bytes, count / 2, functions, big};
}

static uint32_t hot_of(const struct fixture *f, uint32_t cold)
{
    uint32_t hot;
    return hot_cold_hot_of(&f->map, cold, &hot) ? hot : UINT32_MAX;
}

static void assert_cold(const struct fixture *f, uint32_t hot, uint32_t begin, uint32_t end)
{
    uint32_t found_begin = UINT32_MAX, found_end = UINT32_MAX;
    bool found = hot_cold_cold_of(&f->map, hot, &found_begin, &found_end);
    ck_assert_msg(found == (begin < end), "hot %u", hot);
    ck_assert_uint_eq(found_begin, found ? begin : UINT32_MAX);
    ck_assert_uint_eq(found_end, found ? end : UINT32_MAX);
}

START_TEST(empty)
{
    struct fixture f;
    fixture(&f, _i, NULL, 0, 10);
    ck_assert_uint_eq(hot_cold_first_cold(&f.map), 10);
    for (uint32_t i = 0; i < 12; i++) {
        ck_assert_uint_eq(hot_of(&f, i), UINT32_MAX);
        assert_cold(&f, i, 0, 0);
    }
}
END_TEST

/* Functions 0 to 4 are hot; of them 0 (with a funclet 1), 2 and 4 are split; the cold part of 2 has a funclet. */
START_TEST(pairs)
{
    static const uint32_t numbers[] = {5, 0, 6, 2, 8, 4};
    struct fixture f;
    fixture(&f, _i, numbers, 6, 10);
    ck_assert_uint_eq(hot_cold_first_cold(&f.map), 5);
    ck_assert_uint_eq(hot_of(&f, 5), 0);
    ck_assert_uint_eq(hot_of(&f, 6), 2);
    ck_assert_uint_eq(hot_of(&f, 7), 2); /* a funclet among cold code */
    ck_assert_uint_eq(hot_of(&f, 8), 4);
    ck_assert_uint_eq(hot_of(&f, 9), 4);
    ck_assert_uint_eq(hot_of(&f, 4), UINT32_MAX); /* hot */
    assert_cold(&f, 0, 5, 6);
    assert_cold(&f, 1, 0, 0);
    assert_cold(&f, 2, 6, 8);
    assert_cold(&f, 3, 0, 0);
    assert_cold(&f, 4, 8, 10);
    assert_cold(&f, 5, 0, 0);
}
END_TEST

START_TEST(one_pair)
{
    static const uint32_t numbers[] = {3, 1};
    struct fixture f;
    fixture(&f, _i, numbers, 2, 4);
    ck_assert_uint_eq(hot_of(&f, 3), 1);
    ck_assert_uint_eq(hot_of(&f, 2), UINT32_MAX);
    assert_cold(&f, 1, 3, 4);
    assert_cold(&f, 0, 0, 0);
    assert_cold(&f, 2, 0, 0);
}
END_TEST

/*
 * Pairs whose hot functions were exchanged, so that each would be another method's: those between which the order
 * fails.
 */
START_TEST(exchanged)
{
    static const uint32_t numbers[] = {5, 2, 6, 0, 8, 3, 9, 4};
    struct fixture f;
    fixture(&f, _i, numbers, 8, 10);
    ck_assert_uint_eq(hot_of(&f, 5), UINT32_MAX);
    ck_assert_uint_eq(hot_of(&f, 6), UINT32_MAX);
    ck_assert_uint_eq(hot_of(&f, 7), UINT32_MAX);
    ck_assert_uint_eq(hot_of(&f, 9), 4);
    assert_cold(&f, 0, 0, 0);
    assert_cold(&f, 2, 0, 0);
    assert_cold(&f, 4, 9, 10);
}
END_TEST

/* Random maps, compared with a plain list of owners. */
START_TEST(random_maps)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct random random = {seed};
        uint32_t hot_count = 1 + (uint32_t)random_below(&random, 60), numbers[2 * PAIRS], count = 0, at = hot_count;
        uint32_t owner[4 * PAIRS], begin[PAIRS] = {0}, end[PAIRS] = {0};
        for (uint32_t hot = 0; hot < hot_count; hot++) {
            if (random_below(&random, 3))
                continue;
            numbers[count++] = at;
            numbers[count++] = hot;
            begin[hot] = at;
            for (uint32_t n = 1 + (uint32_t)random_below(&random, 3); n; n--)
                owner[at++] = hot;
            end[hot] = at;
        }
        struct fixture f;
        fixture(&f, _i, numbers, count, at);
        ck_assert_uint_eq(hot_cold_first_cold(&f.map), hot_count);
        for (uint32_t cold = hot_count; cold < at; cold++)
            ck_assert_uint_eq(hot_of(&f, cold), owner[cold]);
        for (uint32_t hot = 0; hot < hot_count; hot++)
            assert_cold(&f, hot, begin[hot], end[hot]);
    }
}
END_TEST

/* Pairs that contradict each other or the number of functions have no owner. */
START_TEST(malformed)
{
    static const uint32_t cases[][6] = {
        {5, 7, 6, 8, 7, 9},    /* a hot one after the first cold one */
        {12, 0, 13, 1, 14, 2}, /* cold ones that are not there */
        {9, 2, 7, 1, 5, 0},    /* not sorted */
        {5, 0, 5, 0, 5, 0},    /* one and the same */
        {0, 0, 0, 1, 0, 2},    /* everything is cold */
        {5, UINT32_MAX, UINT32_MAX, 0, UINT32_MAX, UINT32_MAX},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct fixture f;
        fixture(&f, _i, cases[i], 6, 10);
        uint32_t first = hot_cold_first_cold(&f.map);
        ck_assert_uint_le(first, 10);
        for (uint32_t n = 0; n < 12; n++) {
            uint32_t begin, end, hot = hot_of(&f, n);
            ck_assert(hot == UINT32_MAX || hot < first);
            if (hot_cold_cold_of(&f.map, n, &begin, &end)) {
                ck_assert_uint_ge(begin, first);
                ck_assert_uint_lt(begin, end);
                ck_assert_uint_le(end, 10);
            }
        }
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("hot_cold_map");
    TCase *tcase = tcase_create("hot_cold_map");
    tcase_add_loop_test(tcase, empty, 0, 2);
    tcase_add_loop_test(tcase, pairs, 0, 2);
    tcase_add_loop_test(tcase, one_pair, 0, 2);
    tcase_add_loop_test(tcase, exchanged, 0, 2);
    tcase_add_loop_test(tcase, random_maps, 0, 2);
    tcase_add_loop_test(tcase, malformed, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
