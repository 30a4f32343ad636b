#include "util/similar.h"

#include "tests/support/check_main.h"

static const char *best_of(const char *word)
{
    static const char *const known[] = {"stack", "stacks", "report", "records", "ip2method", "elf"};
    struct similar similar;
    similar_begin(&similar, word);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        similar_consider(&similar, known[i]);
    return similar.best ? similar.best : "";
}

START_TEST(distances)
{
    ck_assert_uint_eq(similar_distance("", ""), 0);
    ck_assert_uint_eq(similar_distance("", "abc"), 3);
    ck_assert_uint_eq(similar_distance("kitten", "sitting"), 3);
    ck_assert_uint_eq(similar_distance("reprot", "report"), 1); /* swapped */
    ck_assert_uint_eq(similar_distance("report", "reort"), 1);
    ck_assert_uint_eq(similar_distance("0123456789012345678901234567890", "0123456789012345678901234567891"), 1);
    ck_assert_uint_eq(similar_distance("01234567890123456789012345678901", "a"), SIMILAR_MAX);
}
END_TEST

START_TEST(choices)
{
    ck_assert_str_eq(best_of("stakc"), "stack");
    ck_assert_str_eq(best_of("stack"), "stack");
    ck_assert_str_eq(best_of("rep"), "report"); /* an abbreviation */
    ck_assert_str_eq(best_of("recrods"), "records");
    ck_assert_str_eq(best_of("efl"), "elf");
    ck_assert_str_eq(best_of("x"), "");
    ck_assert_str_eq(best_of(""), "");
    ck_assert_str_eq(best_of("frobnicate"), "");
}
END_TEST

static Suite *similar_suite(void)
{
    Suite *suite = suite_create("similar");
    TCase *tcase = tcase_create("similar");
    tcase_add_test(tcase, distances);
    tcase_add_test(tcase, choices);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(similar_suite)
