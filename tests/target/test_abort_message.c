/*
 * test_abort_message.c: the C library of a child process fails an assertion, and its handler of SIGABRT waits.
 */
#include "target/abort_message.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/live.h"
#include "tests/support/check_main.h"

static struct file_policy policy;
static struct target *target;
static struct cdacq_error error;
static pid_t child;
static atomic_int *state; /* of the child: 1: it runs, 2: it aborts */

static enum file_match match;

static enum file_match compare(struct target *of, const struct mapped_file *mapped, struct file_candidate *candidate,
                               char *why, size_t why_size)
{
    (void)of, (void)mapped, (void)candidate, (void)why, (void)why_size;
    return match;
}

static void setup(void)
{
    state = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(state, MAP_FAILED);
    policy = (struct file_policy){.compare = compare};
    match = FILE_MATCHES;
    pthread_mutex_init(&policy.lock, NULL);
}

static void teardown(void)
{
    target_destroy(target);
    target = NULL;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    munmap(state, sizeof *state);
}

static void wait_aborted(int number)
{
    (void)number;
    atomic_store(state, 2);
    for (;;)
        pause();
}

static void open_child(void (*body)(void), int awaited)
{
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        signal(SIGABRT, wait_aborted);
        body();
        _exit(0);
    }
    while (atomic_load(state) != awaited)
        usleep(1000);
    ck_assert_int_eq(live_open(child, &policy, false, false, &target, &error), CDACQ_OK);
}

_Noreturn void __assert_fail(const char *assertion, const char *file, unsigned line, const char *function);

static void fail_assertion(void)
{
    __assert_fail("count > 0", "native.c", 12, "work");
}

static void run(void)
{
    atomic_store(state, 1);
    for (;;)
        pause();
}

START_TEST(an_assertion)
{
    char text[256], small[16];
    open_child(fail_assertion, 2);
#ifdef __GLIBC__
    ck_assert(abort_message_read(target, text, sizeof text));
    const char *end = strstr(text, ": native.c:12: work: Assertion `count > 0' failed.");
    ck_assert_msg(end && !strchr(text, '\n'), "%s", text);
    ck_assert(!abort_message_read(target, small, sizeof small)); /* no part of it */
#else
    ck_assert(!abort_message_read(target, text, sizeof text));
    (void)small;
#endif
}
END_TEST

/* The variable may be elsewhere in the library that the process has. */
START_TEST(another_build)
{
    char text[256];
    match = FILE_UNKNOWN;
    open_child(fail_assertion, 2);
    ck_assert(!abort_message_read(target, text, sizeof text));
}
END_TEST

START_TEST(nothing_printed)
{
    char text[256];
    open_child(run, 1);
    ck_assert(!abort_message_read(target, text, sizeof text));
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("abort_message");
    TCase *tcase = tcase_create("glibc");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, an_assertion);
    tcase_add_test(tcase, another_build);
    tcase_add_test(tcase, nothing_printed);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
