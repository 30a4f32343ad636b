/*
 * test_console.c: the progress line on a terminal: when it appears, what it says, and that nothing of it is left before
 * a message or a result.
 */
#include <poll.h>
#include <pty.h>
#include <stdlib.h>

#include "src/cli/base/console.c"
#include "tests/support/check_main.h"

enum {
    FIRST_MS = 150, /* until a line is shown */
    NEXT_MS = 20,
    NOTHING_MS = 50,  /* too short for a line */
    A_WHILE_MS = 400, /* long enough, even on a busy machine */
};

static char text[65536];

/* Runs a function with a terminal of 60 columns as standard error; `text` gets what it wrote there. */
static void run(void (*function)(void))
{
    struct winsize size = {.ws_row = 24, .ws_col = 60};
    int leader, terminal, before = dup(STDERR_FILENO);
    ck_assert_int_eq(openpty(&leader, &terminal, NULL, NULL, &size), 0);
    dup2(terminal, STDERR_FILENO);
    close(terminal);
    setenv("TERM", "dumb", 1);
    first_ms = FIRST_MS;
    next_ms = NEXT_MS;
    function();
    dup2(before, STDERR_FILENO);
    close(before);
    size_t length = 0;
    ssize_t n;
    while (length < sizeof text - 1 && (n = read(leader, text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)n;
    text[length] = '\0';
    close(leader);
}

/* All tests may run in one process. */
static void end_thread(void)
{
    if (!shown.has_thread)
        return;
    pthread_mutex_lock(&shown.lock); /* it writes nothing now, but waits for the lock, or for the next time */
    pthread_cancel(shown.thread);
    pthread_mutex_unlock(&shown.lock);
    pthread_join(shown.thread, NULL);
    shown.has_thread = false;
}

static void pass(int milliseconds)
{
    poll(NULL, 0, milliseconds);
}

static void short_work(void)
{
    struct progress progress;
    progress_begin(&progress, "things", -1);
    progress_step(&progress, 10);
    pass(NOTHING_MS);
    progress_end(&progress);
    pass(NOTHING_MS);
}

START_TEST(short_work_shows_nothing)
{
    run(short_work);
    ck_assert_str_eq(text, "");
}
END_TEST

static void nested_work(void)
{
    struct progress activity, counter;
    progress_begin_activity(&activity, "reading core.1");
    pass(A_WHILE_MS);
    progress_begin(&counter, "things", -1);
    progress_expect(&counter, 400);
    progress_step(&counter, 100);
    pass(A_WHILE_MS);
    message("a problem");
    progress_end(&counter);
    progress_end(&activity);
    notice("the end");
    pass(NOTHING_MS);
}

START_TEST(the_innermost_counter_is_shown)
{
    run(nested_work);
    ck_assert_ptr_nonnull(strstr(text, "\r\033[Kreading core.1, 0 s"));
    const char *counter = strstr(text, "\r\033[K100 of 400 things, ");
    ck_assert_ptr_nonnull(counter);
    ck_assert_ptr_nonnull(strstr(counter, "/s, "));
    ck_assert_ptr_nonnull(strstr(counter, " s left"));
    ck_assert_ptr_nonnull(strstr(counter, "\r\033[Kcdacq: a problem\r\n"));
    const char *end = strstr(counter, "cdacq: the end\r\n");
    ck_assert_ptr_nonnull(end);
    ck_assert_str_eq(end, "cdacq: the end\r\n");
}
END_TEST

static void estimated_work(void)
{
    struct progress counter;
    progress_begin(&counter, "things", -1);
    progress_estimate(&counter, 100, 1, 8);
    pass(A_WHILE_MS);
    progress_step(&counter, 900); /* more than was thought */
    pass(A_WHILE_MS);
    progress_estimate(&counter, 1000, 8, 8);
    pass(A_WHILE_MS);
    progress_estimate(&counter, 1, 0, 8);
    pass(A_WHILE_MS);
    progress_end(&counter);
}

START_TEST(an_estimated_end_is_called_one)
{
    run(estimated_work);
    const char *counter = strstr(text, "\r\033[K100 of ~800 things, ");
    ck_assert_ptr_nonnull(counter);
    ck_assert_ptr_nonnull(strstr(counter, " s left"));
    counter = strstr(counter, "\r\033[K900 of ~900 things, ");
    ck_assert_ptr_nonnull(counter);
    ck_assert_ptr_null(strstr(counter, " s left"));
    counter = strstr(counter, "\r\033[K1000 of 1000 things, ");
    ck_assert_ptr_nonnull(counter);
    ck_assert_ptr_nonnull(strstr(counter, "\r\033[K1 things, "));
}
END_TEST

static void waiting_work(void)
{
    struct progress activity;
    progress_begin_activity(&activity,
                            "a text that is much longer than the terminal, of which only the start is shown");
    progress_wait(true);
    pass(A_WHILE_MS);
    notice("has waited");
    progress_wait(false);
    pass(A_WHILE_MS);
    progress_end_all();
    notice("results");
    pass(NOTHING_MS);
    progress_end(&activity);
}

START_TEST(waits_and_results_end_the_line)
{
    run(waiting_work);
    ck_assert_int_eq(strncmp(text, "cdacq: has waited\r\n", 19), 0);
    const char *line = strstr(text, "\r\033[Ka text that is");
    ck_assert_ptr_nonnull(line);
    ck_assert_uint_lt(strcspn(line + 4, "\r"), 60);
    const char *end = strstr(text, "\r\033[Kcdacq: results\r\n");
    ck_assert_ptr_nonnull(end);
    ck_assert_str_eq(end, "\r\033[Kcdacq: results\r\n");
}
END_TEST

static void messages(void)
{
    message("the bound");
    for (unsigned i = 0; i < 50; i++)
        message("another, %u", i);
}

/* A bound is told once, however much there is to tell after it. */
START_TEST(messages_are_remembered)
{
    run(messages);
    ck_assert(message_was_shown("the bound"));
    ck_assert(message_was_shown("another, 49"));
    ck_assert(!message_was_shown("another, 50"));
}
END_TEST

static Suite *console_suite(void)
{
    Suite *suite = suite_create("console");
    TCase *tests = tcase_create("progress");
    tcase_add_checked_fixture(tests, NULL, end_thread);
    tcase_add_test(tests, short_work_shows_nothing);
    tcase_add_test(tests, the_innermost_counter_is_shown);
    tcase_add_test(tests, an_estimated_end_is_called_one);
    tcase_add_test(tests, waits_and_results_end_the_line);
    tcase_add_test(tests, messages_are_remembered);
    suite_add_tcase(suite, tests);
    return suite;
}

CHECK_MAIN(console_suite)
