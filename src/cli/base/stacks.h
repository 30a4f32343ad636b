/*
 * stacks.h: the stacks of a target's threads, each distinct one once with the threads that have it, and the runs of
 * frames that repeat in one. Two stacks are the same where every frame has the same address and was found in the same
 * way, and the walks ended alike.
 */
#ifndef CDACQ_CLI_BASE_STACKS_H
#define CDACQ_CLI_BASE_STACKS_H

#include "cdacq.h"
#include "util/arena.h"
#include "util/hash_table.h"
#include "util/vector.h"

/* A frame that outlives the visit: strings belong to the session or to the stacks. */
struct stack_frame {
    struct cdacq_frame frame; /* without registers; `method` is not its own: see below */
    struct cdacq_method method;
};

/* A frame of a stack. What it shares with all frames at its address is kept once: recursion has 300,000 frames. */
struct kept_frame {
    const struct stack_frame *shared; /* without cfa, sp and index */
    const char *variables;            /* lines of text, ready to be written; NULL: none */
    uint64_t cfa;
    uint32_t index;
};

struct stack_thread {
    int tid, signal;
    bool died, is_of_pool;
    bool is_foreground; /* the process does not end before it */
    bool has_state;     /* that is known */
    enum cdacq_thread_mode mode;
    bool suspends_others, delays_suspension;
    const char *name;                     /* NULL: not known */
    const struct cdacq_system_call *call; /* NULL: none, or not known */
};

DEFINE_VECTOR_TYPE(stack_frames, struct kept_frame);
DEFINE_VECTOR_TYPE(stack_threads, struct stack_thread);

struct stack {
    struct stack_frames frames;
    struct stack_threads threads; /* those that have it, in the order of the target */
    const char *problem;          /* why the walk ended before the outermost frame; NULL: it did not */
    uint64_t samples;             /* of a recording, which has no threads; else 0 */
};

DEFINE_VECTOR_TYPE(stack_list, struct stack *);
DEFINE_HASH_TABLE_TYPE(stack_table, struct stack *);
DEFINE_HASH_TABLE_TYPE(shared_frames, struct stack_frame *);

struct stacks {
    struct stack_list list; /* in the order of their first threads */
    struct stack_table by_content;
    struct shared_frames shared;
    struct arena strings; /* and shared frames */
};

void stacks_deinit(struct stacks *stacks);

/* A stack without frames, for the caller to fill and to give to stacks_add(). */
struct stack *stack_new(void);
void stack_free(struct stack *stack);

/* Appends a copy of a frame. */
void stack_add_frame(struct stacks *stacks, struct stack *stack, const struct cdacq_frame *frame);

/* Gives the last frame lines of text about its variables. Such a frame is the same as no other. */
void stack_add_variables(struct stacks *stacks, struct stack *stack, const char *text, size_t length);

/* The frame with that position in the list. */
struct stack_frame stack_frame_at(const struct stack *stack, size_t i);

/* What answers say of a frame that is no code of the runtime. */
struct cdacq_method stack_frame_no_method(const struct cdacq_frame *frame);

/*
 * Adds a stack that one thread has and takes ownership of it. With `alone` it is never merged with another. `problem`
 * may be NULL.
 */
void stacks_add(struct stacks *stacks, struct stack *stack, const struct cdacq_thread *thread, const char *problem,
                bool alone);

/* Adds a stack of a recording. Takes ownership of it, and returns the one that is kept. */
struct stack *stacks_add_sample(struct stacks *stacks, struct stack *stack, const char *problem, uint64_t samples);

/* Where a visit of the threads of all stacks is, stack by stack. A zeroed struct is before the first. */
struct stacks_cursor {
    const struct stack *stack;
    const struct stack_thread *thread; /* which has that stack */
    size_t stack_index, thread_count;  /* the stack, and how many of its threads were visited */
};

/* Moves to the next thread. False at the end. */
static inline bool stacks_next_thread(const struct stacks *stacks, struct stacks_cursor *cursor)
{
    for (; cursor->stack_index < stacks->list.count; cursor->stack_index++, cursor->thread_count = 0) {
        cursor->stack = stacks->list.items[cursor->stack_index];
        if (cursor->thread_count < cursor->stack->threads.count) {
            cursor->thread = &cursor->stack->threads.items[cursor->thread_count++];
            return true;
        }
    }
    return false;
}

/* Finds the thread with that id, and its stack. False if there is none. */
static inline bool stacks_find_thread(const struct stacks *stacks, int tid, struct stacks_cursor *ret)
{
    *ret = (struct stacks_cursor){0};
    while (stacks_next_thread(stacks, ret))
        if (ret->thread->tid == tid)
            return true;
    return false;
}

/* What makes stacks doubtful, counted while their frames are visited. */
struct stack_doubts {
    uint64_t guesses;       /* frames that rest on a guess */
    uint64_t gaps;          /* places where frames may be missing */
    uint64_t stacks, ended; /* ended: those that end before the outermost frame */
};

void stack_doubts_add(struct stack_doubts *doubts, const struct cdacq_frame *frame);

static inline bool stack_doubts_any(const struct stack_doubts *doubts)
{
    return doubts->guesses || doubts->gaps || doubts->ended;
}

/* A run of frames that begins at `first`: `period` frames that occur `count` times in a row. */
struct stack_run {
    size_t first, period, count;
};

/*
 * The run at `first`. A single frame is a run of period 1 and count 1. Recursion through up to STACK_PERIOD_MAX methods
 * is found; fewer than STACK_REPEATS_MIN repetitions are not folded.
 */
enum { STACK_PERIOD_MAX = 16, STACK_REPEATS_MIN = 4 };
struct stack_run stack_run_at(const struct stack *stack, size_t first);

/*
 * How many native frames in a row begin at `first`. A frame that is in doubt, the handler of a signal and code of no
 * known module are in no such row: a reader has to see them.
 */
size_t stack_native_row(const struct stack *stack, size_t first);

/*
 * How many frames, from the innermost on, only carry out the wait that the frame after them is: native code, and
 * methods of the framework that are named like what they wait for. Async methods that are waited for may be between
 * these. 0 if the thread runs, or waits in other code.
 */
size_t stack_waiting_row(const struct stack *stack);

#endif
