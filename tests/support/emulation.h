/*
 * emulation.h: what a test does otherwise under qemu-user, which scripts/test-host says with CDACQ_EMULATED, or under
 * valgrind (CDACQ_VALGRIND).
 */
#ifndef CDACQ_TESTS_SUPPORT_EMULATION_H
#define CDACQ_TESTS_SUPPORT_EMULATION_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline bool is_emulated(void)
{
    return getenv("CDACQ_EMULATED") != NULL;
}

/* How many rounds to run: `all`, or `few` under valgrind and qemu-user, which are tens of times slower. */
static inline int rounds(int all, int few)
{
    return getenv("CDACQ_VALGRIND") || is_emulated() ? few : all;
}

/* The processor time that this process has taken, in seconds. */
static inline double cpu_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* A bound on time: `seconds`, on every real machine, or 20 times that under valgrind and qemu-user. */
static inline double time_bound(double seconds)
{
    return getenv("CDACQ_VALGRIND") || is_emulated() ? 20 * seconds : seconds;
}

/*
 * Whether this program runs under qemu-user, where no process can read another one's memory or stop it. Prints which
 * tests are left out if it does; scripts/test-host collects the lines.
 */
static inline bool left_out_emulated(const char *tests, const char *why)
{
    if (is_emulated())
        printf("left out under qemu-user: %s: %s\n", tests, why);
    return is_emulated();
}

#endif
