#include "util/library.h"

#include "tests/support/check_main.h"

struct functions {
    double (*cos)(double);
    double (*floor)(double);
};

static char why[120];

START_TEST(loads_functions_in_order)
{
    static const char *const names[] = {"cos", "floor", NULL};
    struct functions functions = {0};
    ck_assert(library_load(&(struct library){"libm.so.6", "libc6", names}, &functions, why, sizeof why));
    ck_assert_double_eq(functions.cos(0), 1);
    ck_assert_double_eq(functions.floor(2.5), 2);
}
END_TEST

START_TEST(missing_library_names_its_package)
{
    static const char *const names[] = {NULL};
    struct functions functions = {0};
    ck_assert(!library_load(&(struct library){"libnone.so.9", "libnone9", names}, &functions, why, sizeof why));
    ck_assert_str_eq(why, "libnone.so.9 (Debian package libnone9) cannot be loaded");
}
END_TEST

START_TEST(missing_function_is_named)
{
    static const char *const names[] = {"cos", "no_such_function", NULL};
    struct functions functions = {0};
    ck_assert(!library_load(&(struct library){"libm.so.6", "libc6", names}, &functions, why, sizeof why));
    ck_assert_str_eq(why, "libm.so.6 is too old: it lacks no_such_function");
}
END_TEST

static Suite *library_suite(void)
{
    Suite *suite = suite_create("library");
    TCase *tcase = tcase_create("library");
    tcase_add_test(tcase, loads_functions_in_order);
    tcase_add_test(tcase, missing_library_names_its_package);
    tcase_add_test(tcase, missing_function_is_named);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(library_suite)
