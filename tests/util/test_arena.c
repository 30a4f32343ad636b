#include "util/arena.h"
#include "tests/support/check_main.h"

static struct arena arena;

static void teardown(void)
{
    arena_deinit(&arena);
}

START_TEST(allocations_do_not_overlap)
{
    static const size_t sizes[] = {0, 1, 7, 8, 9, 4000, 64 * 1024, 64 * 1024 + 1, 1000 * 1000, 3};
    uint8_t *all[ARRAY_SIZE(sizes) * 3];
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        size_t size = sizes[i % ARRAY_SIZE(sizes)];
        all[i] = arena_allocate(&arena, size);
        ck_assert_ptr_nonnull(all[i]);
        ck_assert_uint_eq((uintptr_t)all[i] % _Alignof(uint64_t), 0);
        memset(all[i], (int)i, size);
    }
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        size_t same = 0, size = sizes[i % ARRAY_SIZE(sizes)];
        for (size_t k = 0; k < size; k++)
            same += all[i][k] == i;
        ck_assert_uint_eq(same, size);
    }
}
END_TEST

START_TEST(strings_are_copied)
{
    char bytes[] = "ab\0cd";
    char *copy = arena_string(&arena, bytes, 5), *part = arena_string(&arena, bytes, 1);
    memset(bytes, 'x', sizeof bytes);
    ck_assert_mem_eq(copy, "ab\0cd", 6);
    ck_assert_str_eq(part, "a");
    ck_assert_str_eq(arena_string(&arena, "", 0), "");
}
END_TEST

START_TEST(can_be_used_again)
{
    arena_deinit(&arena);
    ck_assert_str_eq(arena_string(&arena, "a", 1), "a");
    arena_deinit(&arena);
    ck_assert_ptr_null(arena.chunks);
    ck_assert_str_eq(arena_string(&arena, "b", 1), "b");
}
END_TEST

START_TEST(a_size_that_does_not_fit_changes_nothing)
{
    char *kept = arena_string(&arena, "kept", 4);
    ck_assert_ptr_null(arena_allocate(&arena, SIZE_MAX));
    ck_assert_ptr_null(arena_allocate(&arena, SIZE_MAX - 7));
    ck_assert_ptr_null(arena_allocate(&arena, (size_t)PTRDIFF_MAX));
    ck_assert_ptr_null(arena_string(&arena, "", SIZE_MAX));
    ck_assert_str_eq(kept, "kept");
    ck_assert_str_eq(arena_string(&arena, "more", 4), "more");
}
END_TEST

static Suite *arena_suite(void)
{
    Suite *suite = suite_create("arena");
    TCase *tcase = tcase_create("arena");
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, allocations_do_not_overlap);
    tcase_add_test(tcase, strings_are_copied);
    tcase_add_test(tcase, can_be_used_again);
    tcase_add_test(tcase, a_size_that_does_not_fit_changes_nothing);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(arena_suite)
