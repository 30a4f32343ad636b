/*
 * test_target_open.c: the watchdog is on only while a process is read.
 */
#include "src/cli/base/target.c"
#include "src/cli/base/console.c"
#include "src/cli/base/memory.c"
#include "src/cli/base/spill.c"
#include "src/cli/base/output.c"
#include "src/cli/base/runtimes.c"
#include "src/cli/base/target_name.c"
#include "tests/support/check_main.h"

static int watched;
static unsigned times;

int watchdog_set(int pid)
{
    int last = watched;
    watched = pid;
    times += pid != 0;
    return last;
}

void watchdog_remove(int folder, const char *name)
{
    (void)folder;
    (void)name;
}

void watchdog_remove_now(void)
{
}

void watchdog_delay_stops(bool delay)
{
    (void)delay;
}

void watchdog_block_ends(sigset_t *ret_before)
{
    sigemptyset(ret_before);
}

static unsigned releases, watches;

void busy_threads_release(struct busy_threads *busy)
{
    *busy = (struct busy_threads){0};
    releases++;
}

static void watch(struct cdacq_target *target, int pid, struct busy_threads *ret)
{
    (void)target, (void)pid, (void)ret;
    watches++;
}

static const struct cdacq_options open_options = {.size = sizeof open_options};
static const char *const targets[] = {"4194999", "/nowhere"}; /* no kernel gives a process this id */

START_TEST(a_process_that_cannot_be_opened)
{
    const struct common_options options = {.open = open_options, .targets = {targets, 1}};
    ck_assert_int_eq(target_run(&options, &(const struct target_use){0}), EXIT_FAILED);
    ck_assert_uint_eq(times, 1);
    ck_assert_int_eq(watched, 0);
}
END_TEST

/* What was measured of the target before is forgotten, and what cannot be opened is not watched. */
START_TEST(a_process_that_is_measured)
{
    struct busy_threads busy = {.measured = true};
    struct common_options options = {.open = open_options, .targets = {targets, 1}};
    struct target_use use = {.watch = watch};
    ck_assert_int_eq(target_run(&options, &use), EXIT_FAILED);
    ck_assert_uint_eq(releases, 0);
    use.busy = &busy;
    ck_assert_int_eq(target_run(&options, &use), EXIT_FAILED);
    ck_assert_uint_eq(releases, 1);
    ck_assert(!busy.measured);
    options.targets.items++;
    ck_assert_int_eq(target_run(&options, &use), EXIT_FAILED);
    ck_assert_uint_eq(releases, 2);
    ck_assert_uint_eq(watches, 0);
}
END_TEST

START_TEST(a_file_after_a_process)
{
    ck_assert_ptr_null(target_open(targets[0], &open_options));
    ck_assert_ptr_null(target_open(targets[1], &open_options));
    ck_assert_uint_eq(times, 1);
    ck_assert_int_eq(watched, 0);
}
END_TEST

static void setup(void)
{
    watched = 0;
    times = 0;
    releases = watches = 0;
}

static Suite *suite(void)
{
    Suite *suite = suite_create("target_open");
    TCase *tcase = tcase_create("watchdog");
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, a_process_that_cannot_be_opened);
    tcase_add_test(tcase, a_process_that_is_measured);
    tcase_add_test(tcase, a_file_after_a_process);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
