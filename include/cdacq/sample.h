/*
 * cdacq/sample.h: samples the stacks of a running process, many times a second.
 */
#ifndef CDACQ_SAMPLE_H
#define CDACQ_SAMPLE_H

#include <cdacq/stack.h>

CDACQ_BEGIN_DECLS

/*
 * What samples the threads of a process. Each thread is stopped alone, for as long as its visit takes; the others run
 * on. So a stack is that of one moment, and the stacks of two threads are not of the same one. A thread that has not
 * run since its last visit is not stopped again. All calls on a sampler, and on its session meanwhile, are made by the
 * thread that created it: only that one can let threads go.
 */
struct cdacq_sampler;

enum cdacq_sampler_flags {
    CDACQ_SAMPLE_RUNNING = 1 << 0, /* only threads that run or are ready to, and have run since the last round */
};

/* A thread in a round. The library sets `size`. */
struct cdacq_sample {
    size_t size;
    /*
     * For cdacq_session_visit_frames, which is to be called at once. Has `tid`, `thread`, `managed_id`, `state`, the
     * kernel's `name`, `mode` and `registers`; of a thread that is not stopped, no registers, mode and state.
     */
    const struct cdacq_thread *thread;
    uint64_t rounds;   /* that it stands for: more than 1 where it took longer until the thread could stop */
    bool is_unchanged; /* the thread is where it was at its last visit, and is not stopped: its frames are the same */
    bool again;        /* the last call for this thread read what had changed meanwhile: what it gave is void */
};

/*
 * Samples the process of a session, which outlives the sampler. Its target must be a running process, opened with
 * CDACQ_OPEN_KEEP. What the runtime says of its code is read anew once a second, and where a stack shows that it has
 * changed. Texts of the session stay until the sampler is destroyed. Fails with ARGUMENT, NOMEM, or IO.
 */
CDACQ_API enum cdacq_status cdacq_sampler_create(struct cdacq_session *session, unsigned flags,
                                                 struct cdacq_sampler **ret, struct cdacq_error *err);

/*
 * Lets all threads go, and frees the sampler. A thread that waits for a device without an end may not stop within 5
 * seconds; it is let go when the calling thread ends. NULL is allowed.
 */
CDACQ_API void cdacq_sampler_destroy(struct cdacq_sampler *sampler);

/*
 * Lets the threads go that a round has asked to stop and that have not stopped yet, as before the program is suspended.
 * A thread that waits for a device without an end may not stop within 5 seconds. NULL is allowed.
 */
CDACQ_API void cdacq_sampler_let_go(struct cdacq_sampler *sampler);

/*
 * Does one round: calls `visit` for each thread that can be stopped within `patience_ns`; the others are
 * visited in a later round. A thread that waits for a processor stops when it gets one. At most 4,096 threads are
 * sampled. CDACQ_STOPPED: `visit` returned non-zero. CDACQ_DONE: the process has ended or executed another program.
 * Fails with IO where a thread must not be traced, or NOMEM. cdacq_target_get_stops tells for how long threads were
 * stopped, one by one. Source: ptrace(2); proc(5).
 */
CDACQ_API enum cdacq_status cdacq_sampler_visit(struct cdacq_sampler *sampler, uint64_t patience_ns,
                                                int (*visit)(const struct cdacq_sample *sample, void *context),
                                                void *context, struct cdacq_error *err);

CDACQ_END_DECLS

#endif
