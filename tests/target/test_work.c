/*
 * test_work.c: bounds on work and memory follow the size of the target; memory that is refused is not counted.
 */
#include <stdatomic.h>

#include "target/work.h"
#include "tests/support/check_main.h"

static const uint64_t smallest = 128 << 20; /* bytes up to which all cores have the same bounds */

START_TEST(bounds_grow_with_the_size)
{
    struct work small = {0}, twice = {0}, huge = {0}, given = {0};
    work_set(&small, WORK_BY_SIZE, WORK_BY_SIZE, 1);
    work_set(&twice, WORK_BY_SIZE, WORK_BY_SIZE, 2 * smallest);
    work_set(&huge, WORK_BY_SIZE, WORK_BY_SIZE, UINT64_MAX);
    work_set(&given, 5, 7, UINT64_MAX);
    ck_assert_uint_gt(small.steps_max, 0);
    ck_assert_uint_eq(twice.steps_max, 2 * small.steps_max);
    ck_assert_uint_eq(twice.memory_max, 2 * small.memory_max);
    ck_assert_uint_eq(huge.steps_max, UINT64_MAX); /* does not wrap */
    ck_assert_uint_eq(huge.memory_max, UINT64_MAX);
    ck_assert(given.steps_max == 5 && given.memory_max == 7);
}
END_TEST

START_TEST(refused_memory_is_not_taken)
{
    struct work work = {0};
    work_set(&work, 0, 100, 0);
    ck_assert(work_take_memory(&work, 60));
    ck_assert(!work_take_memory(&work, UINT64_MAX));
    ck_assert(!work_take_memory(&work, 41));
    ck_assert(work_take_memory(&work, 40));
    work_return_memory(&work, 100);
    ck_assert_uint_eq(atomic_load(&work.memory), 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("work");
    TCase *tcase = tcase_create("bounds");
    tcase_add_test(tcase, bounds_grow_with_the_size);
    tcase_add_test(tcase, refused_memory_is_not_taken);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
