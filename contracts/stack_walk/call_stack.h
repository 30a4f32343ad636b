/*
 * call_stack.h: the methods of a stack as the runtime lists them when it ends the process: which frames count, and
 * which of them repeat. A list has the MethodDesc of each, the innermost first.
 *
 * The runtime visits its Frames and the managed frames between them. A Frame counts if it belongs to a method; an
 * active InlinedCallFrame counts where native code ends and again in the method that has made it. Stubs in IL do not
 * count. A handler does not either, nor what is on the stack up to the method that it belongs to.
 * Source: dotnet/runtime src/coreclr/vm/{stackwalk,eepolicy}.cpp.
 */
#ifndef CDACQ_CONTRACTS_STACK_WALK_CALL_STACK_H
#define CDACQ_CONTRACTS_STACK_WALK_CALL_STACK_H

#include "util/vector.h"

struct reader;
struct walk_machine;

DEFINE_VECTOR(method_list, uint64_t);

enum { CALL_STACK_MAX = 16 * 1024 * 1024 }; /* methods; a thread of 8 MiB has some 300,000 */

/* A managed frame of a walk. */
struct call_stack_frame {
    uint64_t method_desc; /* 0: not known */
    uint64_t sp, cfa, fp; /* fp: 0 if not known */
    bool funclet, filter, hidden;
};

struct call_stack {
    struct reader *reader;
    const struct walk_machine *machine;
    struct method_list methods;
    uint64_t frame;      /* the next Frame of the runtime; 0: there is none */
    uint32_t steps_left; /* through the list of Frames, which may be a cycle */
    bool native;         /* the frames before the next one are native */
    bool skipping;       /* to the method that a handler belongs to */
    uint64_t skip_method, skip_fp;
    bool broken; /* out of memory, or too many methods */
};

/* `frame` is the innermost Frame of the thread. The caller frees `methods`. */
void call_stack_init(struct call_stack *stack, struct reader *reader, const struct walk_machine *machine,
                     uint64_t frame);

/* The next frame, outwards. */
void call_stack_add_native(struct call_stack *stack);
void call_stack_add(struct call_stack *stack, const struct call_stack_frame *frame);

/* Forgets the methods so far and the Frames below `sp`. */
void call_stack_restart(struct call_stack *stack, uint64_t sp);

/* `length` methods from `start` occur `count` times in a row. Nothing is folded if `length` is 0. */
struct call_stack_fold {
    size_t start, length, count;
};

/* What the runtime folds. `first_only`: only at the start of the list, but however few, as up to .NET 10. */
struct call_stack_fold call_stack_find_fold(const struct method_list *methods, bool first_only);

#endif
