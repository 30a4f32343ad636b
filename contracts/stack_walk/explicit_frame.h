/*
 * explicit_frame.h: the Frames that the runtime puts on stacks where managed code leaves to native code, throws, or is
 * stopped. A Frame can have the registers of managed code further up the stack. A kind of Frame is a row: its name, the
 * global that identifies it, how it leads to the caller.
 *
 * A Frame begins with a number that identifies its kind. Before .NET 10 it is the address of a vtable, which the
 * runtime's table for its debugger services (g_dacTable) has; the supplements' StackWalk "8.0" is this form.
 * Source: dotnet/runtime docs/design/datacontracts/StackWalk.md; src/coreclr/vm/{frames.h,frames.cpp,amd64/gmscpu.h}.
 */
#ifndef CDACQ_CONTRACTS_STACK_WALK_EXPLICIT_FRAME_H
#define CDACQ_CONTRACTS_STACK_WALK_EXPLICIT_FRAME_H

#include "descriptors/layout.h"
#include "target/registers.h"

struct walk_machine;

/* What a Frame knows of the code that it was made for. */
struct frame_caller {
    struct registers registers; /* the program counter and the stack pointer are known */
    bool interrupted; /* the code was stopped or faulted there; else the program counter is a return address */
};

struct frame_kind {
    const char *name; /* "InlinedCallFrame" */
    enum layout_global identifier;
    /*
     * The caller's registers. False if the Frame has none (it is not active) or, and the reader fails, if they cannot
     * be read. NULL: Frames of this kind have none.
     */
    bool (*caller)(struct reader *reader, const struct walk_machine *machine, uint64_t frame, struct frame_caller *ret);
    /*
     * The MethodDesc of the method that the Frame was made for, 0 if there is none. NULL: Frames of this kind have
     * none.
     */
    uint64_t (*method)(struct reader *reader, uint64_t frame);
    /*
     * The function that called the one that made the Frame is a stub that ran in place of a return. Its call-frame
     * information does not lead to the caller; the Frame does.
     */
    bool is_of_stub;
};

/* Whether a link leads to no further Frame: the runtime ends a list by -1. */
bool frame_is_last(const struct reader *reader, uint64_t frame);

/* The next Frame, as the list has it: it may lead anywhere. 0 at the end of the list, or if the reader fails. */
uint64_t frame_next(struct reader *reader, uint64_t frame);

/* The kind of a Frame. NULL if it is not known or the reader fails. */
const struct frame_kind *frame_kind_at(struct reader *reader, uint64_t frame);

/* The caller's registers. False as frame_kind.caller, and for a Frame of a kind that is not known. */
bool frame_caller(struct reader *reader, const struct walk_machine *machine, uint64_t frame, struct frame_caller *ret);

/*
 * The MethodDesc of the method that a Frame was made for, as the runtime's GetFunction; 0 if there is none or on
 * failure.
 */
uint64_t frame_method(struct reader *reader, uint64_t frame);

/* Whether a Frame is an InlinedCallFrame: one that managed code keeps and that is active while native code runs. */
bool frame_is_inlined_call(struct reader *reader, uint64_t frame);

/*
 * The objects that a function of the runtime has protected by its Frame, which are its arguments: .NET 8 only. Returns
 * their number, 0 if the Frame has none; null ones are 0.
 */
enum { FRAME_OBJECTS_MAX = 3 };
unsigned frame_objects(struct reader *reader, uint64_t frame, uint64_t ret[FRAME_OBJECTS_MAX]);

#endif
