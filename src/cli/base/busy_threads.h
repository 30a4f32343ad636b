/*
 * busy_threads.h: how much of a processor each thread of a process used just before the process is stopped, which
 * threads did not run at all, and what the runtime and the limits of the process had them do meanwhile. One thread at a
 * time.
 */
#ifndef CDACQ_CLI_BASE_BUSY_THREADS_H
#define CDACQ_CLI_BASE_BUSY_THREADS_H

#include "cdacq.h"
#include "util/vector.h"

enum { BUSY_SAMPLES = 3 }; /* of the stack of a busy thread: the last is that of the report */

/* A thread that used some per cent of a processor, or would have; at least BUSY_LEAST. */
struct busy_thread {
    int tid;
    unsigned percent; /* 1 to 100 */
    unsigned delayed; /* for so many per cent of the time, it was ready to run, but had no processor */
    /* The methods that it ran when it was sampled before; NULL: not known. Freed with the list. */
    char *sampled[BUSY_SAMPLES - 1];
};

/* The per cent of a processor that a thread used or would have. */
static inline unsigned busy_wanted_by(const struct busy_thread *thread)
{
    return thread->percent + thread->delayed;
}

enum { BUSY_LEAST = 5 }; /* less is within the error of the kernel's clock */

DEFINE_VECTOR_TYPE(busy_list, struct busy_thread);
DEFINE_VECTOR_TYPE(still_list, int);

/* What the runtime did at several moments. */
struct busy_runtime {
    unsigned looks;           /* 0: it tells nothing */
    bool suspension_known;    /* whether its managed threads were suspended */
    bool suspension_partly;   /* only in the part of a collection that moves or frees objects */
    unsigned suspended_looks; /* at which they were suspended */
    uint64_t thrown;          /* at least so many exceptions were thrown */
};

/* A zeroed struct is one of a target that was not measured. */
struct busy_threads {
    bool measured;
    double seconds;          /* for how long it was measured */
    struct busy_list list;   /* the busiest first */
    bool counts_runs;        /* the kernel counts how often threads run, so that the next is known */
    struct still_list still; /* threads that waited all the time, by tid */
    struct busy_runtime runtime;
    struct cdacq_processor_limit limit; /* what it did meanwhile; without a quota: there is none */
    unsigned samples;                   /* of the stacks of busy threads, without that of the report */
};

/*
 * Measures a process that runs, which takes a fifth of a second. Replaces what *ret has. `session` is one of that
 * process, which runs; NULL: there is none.
 */
void busy_threads_measure(int pid, struct cdacq_session *session, struct busy_threads *ret);
void busy_threads_release(struct busy_threads *busy);

/* Of one that is taken out of the list. */
void busy_thread_release(struct busy_thread *thread);

/* NULL: the thread is not in the list. */
const struct busy_thread *busy_find(const struct busy_threads *busy, int tid);

/* 0 for a thread that is not in the list. */
unsigned busy_percent(const struct busy_threads *busy, int tid);

/* The same, with the time for which the thread had no processor. */
unsigned busy_wanted(const struct busy_threads *busy, int tid);

/* The per cent of the time for which the thread had no processor, though it was ready to run. */
unsigned busy_delayed(const struct busy_threads *busy, int tid);

/* In how many samples, that of the report included, a thread ran a method. `method` may be NULL. */
unsigned busy_samples_in(const struct busy_thread *thread, const char *method);

/* What keeps a process from being faster, as far as that is known: what is found is not 0. */
struct busy_causes {
    unsigned collection_percent;    /* of the time: managed threads were suspended, as for a garbage collection */
    uint64_t exceptions_per_second; /* at least */
    uint64_t throttled_periods;     /* in which its control group had used its quota */
    unsigned overload_percent;      /* of the time, for which a thread waited for a processor, with no quota */
};

struct busy_causes busy_find_causes(const struct busy_threads *busy);

/* A word for programs about the gravest of them: "garbage_collection"; NULL: there is none. */
const char *busy_cause_word(const struct busy_causes *causes);

/* Whether it is known that a thread waited all the time, without running once. */
bool busy_is_still(const struct busy_threads *busy, int tid);

#endif
