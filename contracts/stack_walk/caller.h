/*
 * caller.h: from a frame to the registers of its caller, by what is known of the frame's code: the unwind data of
 * managed code, the call-frame information of native code, the form of a stub. Nothing here knows what came before in a
 * walk, or whether what is found makes sense; that is stack_walk.h.
 * Source: dotnet/runtime src/coreclr/vm/threadsuspend.cpp for return addresses that the runtime has replaced.
 */
#ifndef CDACQ_CONTRACTS_STACK_WALK_CALLER_H
#define CDACQ_CONTRACTS_STACK_WALK_CALLER_H

#include "cdacq/stack.h"
#include "contracts/execution_manager/block_function.h"
#include "contracts/thread.h"
#include "target/native/native_modules.h"

struct call_site;
struct execution_manager;
struct guess;
struct walk_machine;

/* What a walk has of a runtime of the process. */
struct stack_walk_runtime {
    struct execution_manager *manager;
    struct reader *reader;
    bool has_frames;           /* the runtime describes its Frames */
    struct thread_data thread; /* zero: none */
    uint64_t frame;            /* the next Frame of the walk; 0: there is none */
    uint64_t interrupted_frame;
};

enum { WALK_OTHERS_MAX = 15 }; /* runtimes besides one */

/* What the walk uses. */
struct stack_walk_host {
    struct execution_manager *manager;
    struct reader *reader;
    uint64_t *fuel;    /* what is left of FUEL_STACKS; several walks may share it */
    bool has_frames;   /* the runtime describes its Frames */
    bool is_innermost; /* the registers are those of the thread's innermost frame: no Frame is older than they are */
    /* As native_modules_step(). NULL: native code cannot be unwound. */
    enum native_step (*step)(void *context, struct reader *reader, bool interrupted, struct registers *registers,
                             struct native_frame_info *ret);
    bool (*is_native)(void *context, uint64_t address); /* whether native code may be there; NULL: not known */
    void *context;
    struct stack_walk_runtime
        *others; /* of the process: their code can be on the stack, too; manager to thread are set */
    size_t other_count;
};

/* The frame whose caller is wanted. */
struct caller_search {
    const struct stack_walk_host *host;
    const struct walk_machine *machine;
    const struct thread_data *thread;  /* zeroed: none */
    const struct registers *registers; /* of the frame: pc and sp are known */
    bool is_call;                      /* the program counter is a return address */
};

/* The code that a frame is in. */
struct code_at {
    bool is_known; /* the runtime's: a method or a stub */
    struct code_block block;
    struct block_function function; /* of a method */
};

/* The code at the program counter. The reader fails if that cannot be found out. */
void caller_find_code(const struct caller_search *search, struct code_at *ret);

/*
 * Finds the registers of the caller, whether or not they make sense. *caller are those of the frame at first. `info` is
 * zeroed, and set for native code. The reader fails if something cannot be read.
 */
enum native_step caller_find(const struct caller_search *search, struct code_at *code, struct registers *caller,
                             struct native_frame_info *info, enum cdacq_frame_source *ret_by);

/*
 * Finds what is the return address if the frame's code has put nothing on the stack: where the call put it. Where the
 * callee removes its arguments, that does not lead to the caller's stack pointer: false.
 */
bool caller_return_address(const struct caller_search *search, uint64_t *ret, struct call_site *ret_site);

/* Sets the registers of the caller for code that has put nothing on the stack and returns to `address`. */
void caller_return_to(const struct caller_search *search, uint64_t address, struct registers *caller);

/* What guesses about the frame rest on. */
struct guess caller_guess(const struct caller_search *search);

#endif
