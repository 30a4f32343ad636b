/* What of a stack the runtime folds as it ends the process. The cases are stacks as real processes printed them. */
#include "contracts/stack_walk/call_stack.h"
#include "tests/support/check_main.h"

/* A method is a letter. */
static struct call_stack_fold fold_of(const char *stack, bool first_only)
{
    struct method_list list = {0};
    for (const char *p = stack; *p; p++)
        ck_assert(method_list_append(&list, (uint64_t)*p));
    struct call_stack_fold fold = call_stack_find_fold(&list, first_only);
    method_list_deinit(&list);
    return fold;
}

static void check_fold(const char *stack, bool first_only, size_t start, size_t length, size_t count)
{
    struct call_stack_fold fold = fold_of(stack, first_only);
    ck_assert_uint_eq(fold.length, length);
    ck_assert_uint_eq(fold.start, start);
    ck_assert_uint_eq(fold.count, count);
}

START_TEST(folds_recursion_at_the_top)
{
    check_fold("ooooosm", false, 0, 1, 5);
    check_fold("toetoetoesm", false, 0, 3, 3);
    check_fold("toetoetotsm", false, 0, 3, 2); /* the rest begins a repetition and is no part of it */
    check_fold("ooooosm", true, 0, 1, 5);
}
END_TEST

START_TEST(folds_recursion_below_the_top_since_net_11)
{
    check_fold("lxoooooom", false, 2, 1, 6);
    check_fold("lxoooooom", true, 0, 0, 0);
}
END_TEST

START_TEST(leaves_short_repetitions)
{
    check_fold("aabm", false, 0, 0, 0);
    check_fold("abm", false, 0, 0, 0);
    check_fold("", false, 0, 0, 0);
    check_fold("aabm", true, 0, 1, 2); /* up to .NET 10, any are folded */
    check_fold("hhhhm", true, 0, 1, 4);
    check_fold("hhhm", true, 0, 1, 3);
    check_fold("hhhm", false, 0, 0, 0);
    check_fold("aaaa", false, 0, 0, 0); /* the runtime looks at what ends a repetition: nothing does */
}
END_TEST

/* A longer one counts only if it occurs twice. */
START_TEST(takes_the_last_that_repeats)
{
    check_fold("lLlLlbbb", false, 0, 2, 2);
    check_fold("aaaaxaaaaaay", false, 0, 1, 4);
}
END_TEST

START_TEST(ends_on_long_stacks_without_repetition)
{
    struct method_list list = {0};
    for (uint64_t i = 0; i < 300000; i++)
        ck_assert(method_list_append(&list, i));
    ck_assert_uint_eq(call_stack_find_fold(&list, false).length, 0);
    method_list_deinit(&list);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("call_stack");
    TCase *tc = tcase_create("call_stack");
    tcase_add_test(tc, folds_recursion_at_the_top);
    tcase_add_test(tc, folds_recursion_below_the_top_since_net_11);
    tcase_add_test(tc, leaves_short_repetitions);
    tcase_add_test(tc, takes_the_last_that_repeats);
    tcase_add_test(tc, ends_on_long_stacks_without_repetition);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
