/* clock.h: time that only grows, for durations. */
#ifndef CDACQ_UTIL_CLOCK_H
#define CDACQ_UTIL_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since some moment before the process began. */
static inline uint64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#endif
