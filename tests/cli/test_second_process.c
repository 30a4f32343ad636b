/*
 * test_second_process.c: results of a second process are used only if all of them have come.
 */
#include "src/cli/second_process.c"
#include "src/cli/console.c"
#include "src/cli/memory.c"
#include "src/cli/output.c"
#include "src/cli/watchdog.c"
#include "tests/support/check_main.h"

static struct second_process second;
static struct output results;

static bool write_all(void *context, struct output *out)
{
    output_literal(out, context);
    return true;
}

static bool write_unusable(void *context, struct output *out)
{
    output_literal(out, context);
    return false;
}

static bool write_and_be_killed(void *context, struct output *out)
{
    output_literal(out, context);
    output_flush(out);
    raise(SIGKILL);
    return true;
}

/* On one processor there is no second process: false. */
static bool begin_second(second_process_write *write_part, const char *text)
{
    char *context = strdup(text);
    bool begun = second_process_begin(&second, write_part, context);
    free(context);
    ck_assert_int_eq(begun, has_processors());
    return begun;
}

static void end_second(void)
{
    second_process_end(&second);
    ck_assert_int_lt(fcntl(second.results, F_GETFD), 0);
}

START_TEST(all_results_are_taken)
{
    static const char *const texts[] = {"", "a\n", "a.\n.\n"};
    if (!begin_second(write_all, texts[_i]))
        return;
    ck_assert(second_process_take(&second, &results));
    ck_assert_uint_eq(results.length, strlen(texts[_i]));
    ck_assert(!results.length || memcmp(results.data, texts[_i], results.length) == 0);
    output_abandon(&results);
    end_second();
    ck_assert_int_lt(waitpid(-1, NULL, 0), 0);
}
END_TEST

START_TEST(results_that_cannot_be_used)
{
    if (!begin_second(write_unusable, "a\n"))
        return;
    ck_assert(!second_process_take(&second, &results));
    end_second();
}
END_TEST

/* A write() to a pipe that is full is cut off anywhere when the process is killed. */
START_TEST(results_that_were_cut_off)
{
    static const char *const texts[] = {"", "a\n", "a\nb", "a\nSystem."};
    if (!begin_second(write_and_be_killed, texts[_i]))
        return;
    ck_assert(!second_process_take(&second, &results));
    end_second();
}
END_TEST

/* The caller may ignore SIGCHLD. Another process could then get the id of one that has ended, and be killed. */
START_TEST(its_id_is_its_own_until_the_end)
{
    siginfo_t info;
    signal(SIGCHLD, SIG_IGN);
    if (!begin_second(write_unusable, "a\n"))
        return;
    ck_assert_int_eq(waitid(P_PID, (id_t)second.pid, &info, WEXITED | WNOWAIT), 0);
    ck_assert(!second_process_take(&second, &results));
    end_second();
}
END_TEST

static Suite *suite(void)
{
    Suite *all = suite_create("second_process");
    TCase *tests = tcase_create("all");
    tcase_add_loop_test(tests, all_results_are_taken, 0, 3);
    tcase_add_test(tests, results_that_cannot_be_used);
    tcase_add_loop_test(tests, results_that_were_cut_off, 0, 4);
    tcase_add_test(tests, its_id_is_its_own_until_the_end);
    suite_add_tcase(all, tests);
    return all;
}

CHECK_MAIN(suite)
