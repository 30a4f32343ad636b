/*
 * stack_walk.h: the StackWalk contract: from the registers of a thread, frame by frame, to the outermost. Unlike the
 * specified walk, which visits managed frames and Frames, this one visits every frame where it is on the stack:
 *
 *  - managed code is unwound by its unwind data (contracts/unwind), native code by the caller's own unwinder;
 *  - where native code cannot be unwound, the next Frame of the runtime has the registers further up;
 *  - the runtime's stubs have no unwind data; their forms are known;
 *  - last, the frame pointer, or a word of the stack that looks like a return address, is taken for what it seems. Such
 *    a frame, and those that rest on it, are marked until a Frame confirms the walk.
 *
 * Where a process has several runtimes, each frame is unwound by the runtime whose code it is. In native code, the
 * runtime with the nearest Frame goes on.
 *
 * A thread may have several stacks: those of signal handlers, and those to which native code switches (makecontext,
 * coroutines). A step that is certain, or a Frame, may lead to another one, wherever it is in memory. The walk never
 * goes back to a stack that it has left.
 *
 * Frames that the walk has gone past are dropped. Every step has its own fuel, and leads up the stack; all steps of the
 * walks that one task makes share a larger amount, since a forged stack can have frames without end.
 * Source: dotnet/runtime docs/design/datacontracts/StackWalk.md; src/coreclr/vm/{stackwalk.cpp,threadsuspend.cpp}.
 */
#ifndef CDACQ_CONTRACTS_STACK_WALK_STACK_WALK_H
#define CDACQ_CONTRACTS_STACK_WALK_STACK_WALK_H

#include "cdacq/stack.h"
#include "contracts/stack_walk/caller.h"
#include "contracts/stack_walk/explicit_frame.h"

#define FUEL_STACKS UINT64_C(0x100000000) /* of all walks that share it */

enum { FUEL_FRAME_MIN = 1024 }; /* what a frame takes of it at least; reading its method and names is not counted */

/* One frame. */
struct walk_frame {
    enum cdacq_frame_kind kind;
    enum cdacq_frame_source by;
    enum cdacq_funclet_kind funclet;
    bool is_call;
    struct registers registers; /* pc and sp are known; not of a Frame */
    uint64_t cfa;
    uint64_t frame; /* address of a Frame */
    const struct frame_kind *frame_kind;
    bool after_gap;  /* frames may be missing before it */
    bool unverified; /* the step to it rests on bytes of an unconfirmed file */
};

enum walk_result {
    WALK_FRAME,     /* *ret is the next frame */
    WALK_OUTERMOST, /* the frame before was the outermost */
    WALK_BROKEN,    /* the walk cannot go on; the reader has failed and says why */
};

enum { SWITCHES_MAX = 64 }; /* from one stack to another in a walk; signal handlers nest two or three deep */

/* A part of a stack that the walk has gone through. */
struct walked_range {
    uint64_t low, high;
};

/* The state of a walk. Its members are private to stack_walk.c. */
struct stack_walk {
    struct stack_walk_host host;
    const struct walk_machine *machine;
    struct thread_data thread;  /* zero: none */
    struct registers registers; /* of the next frame */
    enum cdacq_frame_source by; /* how these were found */
    bool is_call;
    bool visits_frames;
    bool guessed;    /* the walk rests on a guess */
    bool has_gap;    /* before the next frame */
    bool unverified; /* the step to the next frame */
    bool is_fault;   /* the current frame's code was interrupted; its stack pointer may be that of a handler */
    bool is_nowhere; /* a step led to an address without code; its stack pointer may be right */
    bool ended;
    bool no_caller;       /* it ended because no data lead further, and nothing looks like a return address */
    bool has_stub_caller; /* the next frame is a stub that a Frame leads out of */
    struct frame_caller stub_caller; /* to there */
    uint64_t frame;                  /* the next Frame of the runtime; 0: there is none */
    uint64_t interrupted_frame;      /* one that the walk has passed, but not the code that it is of; 0: none */
    uint64_t
        stack_low; /* where the walk came to the stack that it is on; 0: that may be far from its innermost frame */
    struct walked_range left[SWITCHES_MAX]; /* of the stacks that it has left */
    unsigned left_count;
    unsigned frame_switches_left;  /* of the list of Frames, to another stack */
    struct reader_failure failure; /* why the walk ended; status OK: it is complete */
};

/*
 * Begins a walk. `thread` may be NULL. `flags` are enum cdacq_frames_flags. False if the stacks of the architecture
 * cannot be walked, or the program counter or the stack pointer is not known.
 */
bool stack_walk_init(struct stack_walk *walk, const struct stack_walk_host *host, const struct thread_data *thread,
                     const struct registers *registers, unsigned flags);

/* The next frame. The reader begins a new task with each call. */
enum walk_result stack_walk_next(struct stack_walk *walk, struct walk_frame *ret);

#endif
