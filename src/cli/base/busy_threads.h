/*
 * busy_threads.h: how much of a processor each thread of a process used just before the process is stopped, and which
 * threads did not run at all. One thread at a time.
 */
#ifndef CDACQ_CLI_BASE_BUSY_THREADS_H
#define CDACQ_CLI_BASE_BUSY_THREADS_H

#include "util/vector.h"

/* A thread that used some per cent of a processor, or would have; at least BUSY_LEAST. */
struct busy_thread {
    int tid;
    unsigned percent; /* 1 to 100 */
    unsigned delayed; /* for so many per cent of the time, it was ready to run, but had no processor */
};

/* The per cent of a processor that a thread used or would have. */
static inline unsigned busy_wanted_by(const struct busy_thread *thread)
{
    return thread->percent + thread->delayed;
}

enum { BUSY_LEAST = 5 }; /* less is within the error of the kernel's clock */

DEFINE_VECTOR_TYPE(busy_list, struct busy_thread);
DEFINE_VECTOR_TYPE(still_list, int);

/* A zeroed struct is one of a target that was not measured. */
struct busy_threads {
    bool measured;
    double seconds;          /* for how long it was measured */
    struct busy_list list;   /* the busiest first */
    bool counts_runs;        /* the kernel counts how often threads run, so that the next is known */
    struct still_list still; /* threads that waited all the time, by tid */
};

/* Measures a process that runs, which takes a fifth of a second. Replaces what *ret has. `pid` 0: there is none. */
void busy_threads_measure(int pid, struct busy_threads *ret);
void busy_threads_release(struct busy_threads *busy);

/* 0 for a thread that is not in the list. */
unsigned busy_percent(const struct busy_threads *busy, int tid);

/* The same, with the time for which the thread had no processor. */
unsigned busy_wanted(const struct busy_threads *busy, int tid);

/* Whether it is known that a thread waited all the time, without running once. */
bool busy_is_still(const struct busy_threads *busy, int tid);

#endif
