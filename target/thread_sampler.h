/*
 * thread_sampler.h: stops the threads of a running process one by one, again and again, each for as long as it takes to
 * read its stack. A thread that has not run since is not stopped again: the kernel counts how often each was given a
 * processor. A stop itself makes a thread run that waits in a system call, so that one is compared without a stop: it
 * has not moved if the kernel names the same call, and the stack has the same bytes.
 *
 * The thread that made the sampler does all of it, because only the tracer may let a thread go.
 * Source: ptrace(2); proc(5); Linux Documentation/scheduler/sched-stats.rst.
 */
#ifndef CDACQ_TARGET_THREAD_SAMPLER_H
#define CDACQ_TARGET_THREAD_SAMPLER_H

#include "target/threads.h"

enum {
    SAMPLED_STACK_MAX = 16 * 1024, /* bytes of a waiting thread's stack that are compared */
    SAMPLED_CALL_SIZE = 192,
};

struct sampled_thread {
    pid_t tid, inner_tid; /* as struct target_thread */
    char name[THREAD_NAME_MAX + 1];
    int counts;                   /* /proc/PID/task/TID/schedstat; -1: it is opened each time */
    char schedule[64];            /* its text when it was last read */
    char call[SAMPLED_CALL_SIZE]; /* where it waited when it was last stopped; "": it ran, or was not stopped */
    uint8_t *stack;               /* what it had there from `sp` on */
    uint64_t sp;
    size_t stack_size;
    uint64_t asked;   /* when it did not stand still yet, in nanoseconds: after it was asked to stop */
    uint64_t rounds;  /* in which it was not visited, since the last visit */
    uint64_t listing; /* the last one that has it */
    bool is_asked;    /* to stop: it is traced */
    bool is_known;    /* it was stopped at least once */
    bool waited;      /* when it was last looked at */
};

DEFINE_VECTOR_TYPE(sampled_list, struct sampled_thread *);

struct thread_sampler {
    struct target *target;
    struct sampled_list threads; /* in the order in which they were found */
    int tasks;                   /* /proc/PID/task */
    uint64_t listed_links;       /* of that folder when it was last listed */
    uint64_t listing, open_files;
    uint64_t rounds;
    bool is_inside, has_ended; /* inside another pid namespace; a thread has, since the last listing */
    uint64_t pac_mask;
};

/* What a thread has done since it was last looked at. */
enum thread_look {
    THREAD_STILL, /* it has not run, or waits where it waited when it was last stopped */
    THREAD_WAITS, /* it waits, and may do so elsewhere */
    THREAD_READY, /* it has run, and runs or is ready to run */
    THREAD_GONE,
};

/* Fails with IO or NOMEM. */
enum cdacq_status thread_sampler_init(struct thread_sampler *sampler, struct target *target, struct cdacq_error *err);

/* Waits, at most 5 seconds, for threads that were asked to stop, and lets them go. */
void thread_sampler_let_go(struct thread_sampler *sampler);

/* The same, and frees the sampler. */
void thread_sampler_deinit(struct thread_sampler *sampler);

/* Begins a round: lists the threads if there may be others. IO: the process has ended. */
enum cdacq_status thread_sampler_begin(struct thread_sampler *sampler, struct cdacq_error *err);

/* Looks at a thread that was not asked to stop. */
enum thread_look thread_sampler_look(struct thread_sampler *sampler, struct sampled_thread *thread);

/* Asks a thread to stop. OK also if it has ended. */
enum cdacq_status thread_sampler_ask(struct thread_sampler *sampler, struct sampled_thread *thread,
                                     struct cdacq_error *err);

/*
 * Calls `visit` if the thread, which was asked to stop, has done so, and lets it go then. Notes where it waits. False:
 * it still runs.
 */
bool thread_sampler_take(struct thread_sampler *sampler, struct sampled_thread *thread,
                         void (*visit)(struct sampled_thread *thread, const struct target_thread *stopped,
                                       void *context),
                         void *context);

#endif
