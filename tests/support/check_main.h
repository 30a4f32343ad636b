/*
 * check_main.h: main() of a Check program. Each test runs in a process of its own, so that a crash, or a leak that
 * LeakSanitizer sees at that process's end, fails that test alone. CK_FORK=no in the environment keeps everything in
 * one process, for a debugger or valgrind; CK_RUN_CASE picks a test case.
 */
#ifndef CDACQ_TESTS_SUPPORT_CHECK_MAIN_H
#define CDACQ_TESTS_SUPPORT_CHECK_MAIN_H

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Check's own limit of 4 seconds a test is wall-clock time: too short under sanitizers on a busy machine. */
#define CHECK_MAIN(suite_fn)                          \
    int main(void)                                    \
    {                                                 \
        setenv("CK_DEFAULT_TIMEOUT", "120", 0);       \
        SRunner *runner = srunner_create(suite_fn()); \
        srunner_run_all(runner, CK_NORMAL);           \
        int failed = srunner_ntests_failed(runner);   \
        srunner_free(runner);                         \
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;  \
    }

/* How many rounds to run: `all`, or `few` under valgrind and qemu-user, which are tens of times slower. */
static inline int rounds(int all, int few)
{
    return getenv("CDACQ_VALGRIND") || getenv("CDACQ_EMULATED") ? few : all;
}

/*
 * Whether this program runs under qemu-user, where no process can read another one's memory or stop it. Prints which
 * tests are left out if it does; scripts/test-host collects the lines.
 */
static inline bool left_out_emulated(const char *tests, const char *why)
{
    const char *emulated = getenv("CDACQ_EMULATED");
    if (emulated)
        printf("left out under qemu-user: %s: %s\n", tests, why);
    return emulated != NULL;
}

#endif
