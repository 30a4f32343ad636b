/*
 * check_main.h: main() of a Check program. Each test runs in a process of its own, so that a crash, or a leak that
 * LeakSanitizer sees at that process's end, fails that test alone. CK_FORK=no in the environment keeps everything in
 * one process, for a debugger or valgrind; CK_RUN_CASE picks a test case.
 */
#ifndef CDACQ_TESTS_SUPPORT_CHECK_MAIN_H
#define CDACQ_TESTS_SUPPORT_CHECK_MAIN_H

#include <check.h>
#include <stdlib.h>

#include "tests/support/emulation.h"

/* Check's own limit of 4 seconds a test is wall-clock time: too short under sanitizers on a busy machine. */
#define CHECK_MAIN(suite_fn)                          \
    int main(void)                                    \
    {                                                 \
        setenv("CK_DEFAULT_TIMEOUT", "600", 0);       \
        SRunner *runner = srunner_create(suite_fn()); \
        srunner_run_all(runner, CK_NORMAL);           \
        int failed = srunner_ntests_failed(runner);   \
        srunner_free(runner);                         \
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;  \
    }

#endif
