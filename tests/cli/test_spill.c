/*
 * test_spill.c: arrays keep what is in them as they grow, in memory and beyond its bound in files; a disk without room
 * is an error, and the array stays.
 */
#include <signal.h>
#include <stdio.h>

#include "src/cli/base/spill.c"
#include "tests/cli/mock_console.h"
#include "tests/support/check_main.h"

enum { MIB = 1 << 20 };

DEFINE_SPILLING_VECTOR(numbers, uint32_t);

static void fill(struct numbers *v, size_t count)
{
    while (v->count < count && numbers_append(v, (uint32_t)v->count * 2654435761u))
        ;
    ck_assert_uint_eq(v->count, count);
}

static void expect(const struct numbers *v, size_t count)
{
    size_t same = 0;
    while (same < v->count && v->items[same] == (uint32_t)same * 2654435761u)
        same++;
    ck_assert_uint_eq(v->count, count);
    ck_assert_uint_eq(same, count);
}

START_TEST(below_the_bound)
{
    struct numbers v = {0};
    spill_set_bound(64 * MIB);
    fill(&v, 3 * MIB);
    expect(&v, 3 * MIB);
    ck_assert_uint_eq(spill_size(), 0);
    numbers_deinit(&v);
    ck_assert_uint_eq(spill.count, 0);
}
END_TEST

START_TEST(beyond_the_bound)
{
    struct numbers first = {0}, second = {0};
    spill_set_bound(4 * MIB);
    fill(&first, MIB / 2); /* 2 MiB, in memory */
    fill(&second, 3 * MIB);
    ck_assert_uint_ge(spill_size(), 12 * MIB);
    expect(&first, MIB / 2);
    expect(&second, 3 * MIB);
    numbers_deinit(&second);
    ck_assert_uint_eq(spill_size(), 0);
    uint32_t *zero = spill_resize(NULL, 0, 8 * MIB);
    ck_assert_uint_ge(spill_size(), 8 * MIB);
    ck_assert(!zero[0] && memcmp(zero, zero + 1, 8 * MIB - sizeof *zero) == 0);
    spill_free(zero);
    numbers_deinit(&first);
    ck_assert_uint_eq(spill.count, 0);
}
END_TEST

START_TEST(small_arrays)
{
    uint8_t *items = spill_resize(NULL, 0, 10);
    ck_assert_mem_eq(items, "\0\0\0\0\0\0\0\0\0\0", 10);
    memcpy(items, "0123456789", 10);
    items = spill_resize(items, 10, 2 * MIB);
    ck_assert_mem_eq(items, "0123456789\0", 11);
    ck_assert_uint_eq(items[2 * MIB - 1], 0);
    spill_free(items);
    spill_free(NULL);
    ck_assert_ptr_null(spill_resize(NULL, 0, UINT64_MAX));
}
END_TEST

START_TEST(no_folder_for_files)
{
    struct numbers v = {0};
    setenv("TMPDIR", "/nonexistent", 1);
    spill_set_bound(2 * MIB);
    fill(&v, MIB / 4);
    size_t count = v.count;
    while (numbers_append(&v, (uint32_t)v.count * 2654435761u))
        count++;
    ck_assert_uint_lt(count, MIB);
    expect(&v, count);
    ck_assert_msg(strstr(spill_failure(), "it takes more memory than 2 MiB, and a file of "), "%s", spill_failure());
    ck_assert_msg(strstr(spill_failure(), "cannot be written in /nonexistent (TMPDIR): No such file"), "%s",
                  spill_failure());
    numbers_deinit(&v);
}
END_TEST

/* As on a full disk: no signal ends the process. */
START_TEST(no_room_in_files)
{
    struct numbers v = {0};
    struct rlimit before;
    spill_set_bound(0);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){3 * MIB, before.rlim_max}), 0);
    while (numbers_append(&v, (uint32_t)v.count * 2654435761u))
        ;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_uint_ge(v.count, MIB / 4);
    expect(&v, v.count);
    ck_assert_msg(strstr(spill_failure(), "File too large"), "%s", spill_failure());
    numbers_deinit(&v);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("spill");
    TCase *tc = tcase_create("spill");
    tcase_add_test(tc, below_the_bound);
    tcase_add_test(tc, beyond_the_bound);
    tcase_add_test(tc, small_arrays);
    tcase_add_test(tc, no_folder_for_files);
    tcase_add_test(tc, no_room_in_files);
    suite_add_tcase(suite, tc);
    return suite;
}

CHECK_MAIN(suite)
