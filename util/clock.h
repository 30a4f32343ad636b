/* clock.h: time that only grows, for durations. */
#ifndef CDACQ_UTIL_CLOCK_H
#define CDACQ_UTIL_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_SECOND UINT64_C(1000000000)

/* Nanoseconds since some moment before the process began. */
static inline uint64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

#endif
