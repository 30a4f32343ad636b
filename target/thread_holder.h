/*
 * thread_holder.h: holds the threads of a running process stopped, and reads their registers. A thread of the library
 * does it: only the thread that attached with ptrace may read registers and detach, and a target may be used and
 * destroyed by another thread than opened it. When a tracer ends, the kernel detaches for it: the process runs on.
 * Source: ptrace(2).
 */
#ifndef CDACQ_TARGET_THREAD_HOLDER_H
#define CDACQ_TARGET_THREAD_HOLDER_H

#include <pthread.h>
#include <semaphore.h>

#include "util/hash_table.h"
#include "util/vector.h"
#include "cdacq/error.h"

struct held_thread {
    pid_t tid;
    int signal; /* intercepted when the thread stopped; delivered when it resumes */
};

DEFINE_VECTOR_TYPE(held_threads, struct held_thread);
DEFINE_HASH_TABLE_TYPE(thread_ids, uint64_t);

struct target;
struct threads;

/*
 * Begins to trace a thread, and has it stop. False: it cannot be traced, and errno says why; ESRCH also if it has
 * ended.
 */
bool thread_interrupt(int pid, pid_t tid);

/* Why thread_interrupt() has failed, by its errno. */
enum cdacq_status thread_refused(int pid, pid_t tid, int failure, struct cdacq_error *err);

enum thread_stop { THREAD_RUNS, THREAD_STOPPED, THREAD_ENDED };

/*
 * Whether a traced thread has stopped. *ret_signal: what it was about to get, which thread_let_go() gives it; 0: none.
 * *ret_process: a signal such as SIGSTOP had stopped the process before.
 */
enum thread_stop thread_stopped(pid_t tid, int *ret_signal, bool *ret_process);

/* Lets a stopped thread run untraced. */
void thread_let_go(pid_t tid, int signal);

/* A zeroed struct holds nothing. */
struct thread_holder {
    pthread_t thread;
    bool started;
    int pid;
    sem_t wake;    /* there is a task: fill `list` or, if that is NULL, resume the threads and end */
    sem_t settled; /* all threads are held, or that failed; the list is filled */
    const struct target *target;
    struct threads *list;
    struct held_threads held;
    struct thread_ids ids;    /* of them */
    uint64_t pac_mask;        /* of arm64: as target->pac_mask */
    bool is_stopped;          /* a signal such as SIGSTOP had stopped the process before */
    enum cdacq_status status; /* of the last task */
    struct cdacq_error error;
    uint64_t began; /* when it began to hold, in nanoseconds */
};

/*
 * Stops all threads of a process. Fails with IO or NOMEM: some may be held then, so release it in any case.
 */
enum cdacq_status thread_holder_hold(struct thread_holder *holder, int pid, struct cdacq_error *err);

/*
 * Appends the held threads of the target with their registers, without those that were killed meanwhile. IO: there are
 * threads whose registers cannot be read; none of theirs is known. NOMEM: *ret is as it was.
 */
enum cdacq_status thread_holder_list(struct thread_holder *holder, const struct target *target, struct threads *ret,
                                     struct cdacq_error *err);

/*
 * Appends a stopped thread with its registers, and learns the target's pac_mask; *pac_mask is 0 until it is known. IO:
 * they cannot be read; it is in the list all the same, unless it was killed. There must be room.
 */
enum cdacq_status thread_list_stopped(const struct target *target, pid_t tid, uint64_t *pac_mask, struct threads *ret,
                                      struct cdacq_error *err);

/* Lets the threads run. Returns for how many nanoseconds they were held; 0 if none were. */
uint64_t thread_holder_release(struct thread_holder *holder);

#endif
