#include "src/cli/commands/name_pattern.c"

#include "tests/support/check_main.h"

START_TEST(patterns)
{
    static const struct {
        const char *name, *pattern;
        bool matches;
    } cases[] = {
        {"Demo.Program.Fib(int)", "Demo.Program.Fib", true},
        {"Demo.Program.Fib(int)", "Demo.Program.Fib(int)", true},
        {"Demo.Program.Fib(int)", "Demo.Program.Fi", false},
        {"Demo.Program.Fib(int)", "Demo.*", true},
        {"Demo.Program.Fib(int)", "*.Fib", true},
        {"Demo.Program.Fib(int)", "*Prog*Fib", true},
        {"Demo.Program.Fib(int)", "*(int)", true},
        {"Demo.Program.Fib(int)", "*.F?b", true},
        {"Demo.Program.Fib(int)", "?", false},
        {"Demo.Program.Fib(int)", "", false},
        {"Demo.Program.Fib(int)", "*", true},
        {"Demo.Program.Fib(int)", "**Fib**", true},
        {"A.M(int[])", "A.M(int[])", true},
        {"A.M(int[])", "A.M([int])", false},
        {"dynamicClass.", "dynamicClass.", true},
        {"", "*", true},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "*a*a*a*a*a*a*a*a*a*a*a*a*c", false}, /* at once */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(name_matches(cases[i].name, cases[i].pattern) == cases[i].matches, "%s, %s", cases[i].name,
                      cases[i].pattern);
}
END_TEST

static Suite *name_pattern_suite(void)
{
    Suite *suite = suite_create("name_pattern");
    TCase *tcase = tcase_create("name_pattern");
    tcase_add_test(tcase, patterns);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(name_pattern_suite)
