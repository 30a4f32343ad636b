/*
 * busy_threads.h: how much of a processor each thread of a process used just before the process is stopped. One thread
 * at a time.
 */
#ifndef CDACQ_CLI_BUSY_THREADS_H
#define CDACQ_CLI_BUSY_THREADS_H

#include "util/vector.h"

/* A thread that used some percent of a processor, at least BUSY_LEAST. */
struct busy_thread {
    int tid;
    unsigned percent; /* 1 to 100 */
};

enum { BUSY_LEAST = 5 }; /* less is within the error of the kernel's clock */

DEFINE_VECTOR_TYPE(busy_list, struct busy_thread);

/* A zeroed struct is one of a target that was not measured. */
struct busy_threads {
    bool measured;
    double seconds;        /* for how long it was measured */
    struct busy_list list; /* the busiest first */
};

/* Measures a process that runs, which takes a fifth of a second. Replaces what *ret has. `pid` 0: there is none. */
void busy_threads_measure(int pid, struct busy_threads *ret);
void busy_threads_release(struct busy_threads *busy);

/* 0 for a thread that is not in the list. */
unsigned busy_percent(const struct busy_threads *busy, int tid);

#endif
