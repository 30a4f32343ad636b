#include "contracts/stack_walk/stack_walk.h"

#include "contracts/stack_walk/guess.h"

enum { FRAME_SIZE_MAX = 16 * 1024 }; /* of a function that calls code on another stack; its Frames are in it */

static uint64_t pc_of(const struct stack_walk *walk)
{
    return walk->registers.values[walk->machine->pc];
}

static uint64_t sp_of(const struct stack_walk *walk)
{
    return walk->registers.values[walk->machine->sp];
}

static struct reader *raw(const struct stack_walk *walk)
{
    return walk->host.reader;
}

/* What the search for the caller of the current frame needs. */
static struct caller_search search_of(const struct stack_walk *walk)
{
    return (struct caller_search){.host = &walk->host,
                                  .machine = walk->machine,
                                  .thread = &walk->thread,
                                  .registers = &walk->registers,
                                  .is_call = walk->is_call};
}

/* The innermost Frame of a thread; 0: there is none. */
static uint64_t first_frame(struct reader *reader, bool has_frames, const struct thread_data *thread)
{
    return thread->address && has_frames && !frame_is_last(reader, thread->frame) ? thread->frame : 0;
}

bool stack_walk_init(struct stack_walk *walk, const struct stack_walk_host *host, const struct thread_data *thread,
                     const struct registers *registers, unsigned flags)
{
    const struct walk_machine *machine = walk_machine_find(host->reader->layout->architecture);
    *walk = (struct stack_walk){
        .host = *host,
        .machine = machine,
        .registers = *registers,
        .by = CDACQ_FRAME_BY_CONTEXT,
        .is_call = flags & CDACQ_FRAMES_CALLER,
        .visits_frames = flags & CDACQ_FRAMES_EXPLICIT,
        .stack_low = host->is_innermost ? registers->values[machine ? machine->sp : 0] : 0,
        .frame_switches_left = SWITCHES_MAX,
    };
    if (thread)
        walk->thread = *thread;
    walk->frame = first_frame(host->reader, host->has_frames, &walk->thread);
    for (size_t i = 0; i < host->other_count; i++) {
        struct stack_walk_runtime *other = &host->others[i];
        other->frame = first_frame(other->reader, other->has_frames, &other->thread);
        other->interrupted_frame = 0;
    }
    return machine && register_is_known(registers, machine->pc) && register_is_known(registers, machine->sp);
}

/* Whether `sp` is on the thread's own stack, not on one for signal handlers. */
static bool on_own_stack(const struct stack_walk *walk, uint64_t sp)
{
    return !walk->thread.stack_base || sp <= walk->thread.stack_base;
}

/* Whether an address is on a stack that the walk has left. */
static bool is_left(const struct stack_walk *walk, uint64_t address)
{
    for (unsigned i = 0; i < walk->left_count; i++)
        if (address >= walk->left[i].low && address < walk->left[i].high)
            return true;
    return false;
}

/* Whether an address is on a stack to which the walk has yet to come, and which is lower in memory than this one. */
static bool is_on_lower_stack(const struct stack_walk *walk, uint64_t address)
{
    return address && address < walk->stack_low && walk->left_count < SWITCHES_MAX && !is_left(walk, address);
}

/* Goes on with another stack. What is left of the one before is the frame of the function that made the switch. */
static void leave_stack(struct stack_walk *walk, uint64_t from, uint64_t to)
{
    uint64_t low = walk->stack_low ? walk->stack_low : from;
    walk->left[walk->left_count++] = (struct walked_range){MIN(low, from), add_saturated(from, FRAME_SIZE_MAX)};
    walk->stack_low = to;
}

/*
 * Drops the current Frame. The list ends where it cannot be read. It leads up a stack, and from the stack of a signal
 * handler, or one that native code has made, to another one, which can be lower in memory.
 */
static void next_frame(struct stack_walk *walk)
{
    uint64_t frame = walk->frame, next = frame_next(walk->host.reader, frame);
    bool was_own = on_own_stack(walk, frame), is_own = on_own_stack(walk, next);
    bool is_switch = was_own == is_own ? next < frame : is_own;
    if (is_switch && next)
        walk->frame = walk->frame_switches_left ? (walk->frame_switches_left--, next) : 0;
    else
        walk->frame = was_own == is_own && next > frame ? next : 0;
    reader_recover(raw(walk), FAILURE_BUT_FUEL);
}

/* Whether the walk, at `sp`, has passed the current Frame. */
static bool is_passed(const struct stack_walk *walk, uint64_t sp)
{
    uint64_t frame = walk->frame;
    if (!frame || is_left(walk, frame))
        return frame != 0;
    return on_own_stack(walk, sp) && ((frame < sp && !is_on_lower_stack(walk, frame)) || !on_own_stack(walk, frame));
}

/* ---- Other runtimes of the process ---- */

#define SWAP(a, b)            \
    do {                      \
        __auto_type both = a; \
        a = b;                \
        b = both;             \
    } while (0)

/* Takes what the current task has used from the fuel of all walks. */
static void take_fuel(struct stack_walk *walk)
{
    uint32_t used = FUEL_LOOKUP - reader_fuel(raw(walk));
    *walk->host.fuel -= MIN(*walk->host.fuel, MAX(used, (uint32_t)FUEL_FRAME_MIN));
}

/*
 * Goes on with another runtime, whose place the one in use takes: each keeps what the walk has passed of it. The reader
 * begins a new task.
 */
static void swap_runtime(struct stack_walk *walk, size_t i)
{
    struct stack_walk_runtime *other = &walk->host.others[i];
    take_fuel(walk);
    SWAP(walk->host.manager, other->manager);
    SWAP(walk->host.reader, other->reader);
    SWAP(walk->host.has_frames, other->has_frames);
    SWAP(walk->thread, other->thread);
    SWAP(walk->frame, other->frame);
    SWAP(walk->interrupted_frame, other->interrupted_frame);
    reader_begin(raw(walk), FUEL_LOOKUP);
}

/* Goes on with the runtime that has the nearest Frame not yet passed, if the one in use has none nearer. */
static void take_nearest_frame(struct stack_walk *walk)
{
    uint64_t sp = sp_of(walk), nearest = walk->frame >= sp ? walk->frame : 0;
    size_t found = walk->host.other_count;
    for (size_t i = 0; i < walk->host.other_count; i++) {
        uint64_t frame = walk->host.others[i].frame;
        if (frame >= sp && (!nearest || frame < nearest)) {
            nearest = frame;
            found = i;
        }
    }
    if (found < walk->host.other_count)
        swap_runtime(walk, found);
}

/*
 * Finds out whether code that the runtime in use does not know is that of another one, and goes on with it. If it is of
 * none, it is native.
 */
static void find_other_code(struct stack_walk *walk, struct code_at *code)
{
    struct reader_failure failure = reader_failure(raw(walk));
    for (size_t i = 0; i < walk->host.other_count && !code->is_known; i++) {
        const struct caller_search search = search_of(walk);
        swap_runtime(walk, i);
        caller_find_code(&search, code);
        if (!code->is_known)
            swap_runtime(walk, i);
    }
    if (code->is_known) {
        while (is_passed(walk, sp_of(walk)) && !walk->visits_frames && reader_step(raw(walk), "Frames"))
            next_frame(walk);
    } else {
        (void)reader_fail_again(raw(walk), &failure);
        take_nearest_frame(walk);
    }
}

/* The registers of the caller that a Frame leads to. False: there is none. Fails the reader only if fuel runs out. */
static bool caller_of_frame(struct stack_walk *walk, uint64_t frame, struct frame_caller *ret)
{
    bool found = frame_caller(walk->host.reader, walk->machine, frame, ret);
    reader_recover(raw(walk), FAILURE_BUT_FUEL);
    return found && ret->registers.values[walk->machine->pc];
}

/* Ends the walk after the current frame, with the failure of the reader if it has failed. */
static void end(struct stack_walk *walk)
{
    walk->ended = true;
    walk->failure = reader_failure(raw(walk));
}

static void go_to(struct stack_walk *walk, const struct registers *caller, enum cdacq_frame_source by, bool is_call)
{
    walk->registers = *caller;
    registers_keep(&walk->registers, (UINT64_C(2) << walk->machine->pc) - 1); /* no floating-point registers */
    walk->registers.values[walk->machine->pc] = walk_machine_code_address(walk->machine, raw(walk), pc_of(walk));
    walk->is_call = is_call;
    walk->guessed = by == CDACQ_FRAME_BY_GUESS || (walk->guessed && by != CDACQ_FRAME_BY_FRAME);
    walk->by = walk->guessed ? CDACQ_FRAME_BY_GUESS : by;
}

/* Goes on with the registers of a Frame that no step has led to. */
static void go_by_frame(struct stack_walk *walk, const struct frame_caller *caller)
{
    walk->interrupted_frame = 0;
    walk->has_gap = true;
    go_to(walk, &caller->registers, CDACQ_FRAME_BY_FRAME, !caller->interrupted);
}

/*
 * Goes on at the nearest Frame that has registers from further up the stack. If the walk visits Frames, it keeps those
 * before that one, because it has passed them and visits them next.
 */
static bool go_to_frame(struct stack_walk *walk)
{
    uint64_t frame = walk->frame;
    struct frame_caller caller;
    while (walk->frame && reader_step(raw(walk), "Frames")) {
        bool found =
            !is_passed(walk, sp_of(walk)) && caller_of_frame(walk, walk->frame, &caller) &&
            (caller.registers.values[walk->machine->sp] >= sp_of(walk) + !walk->is_nowhere ||
             is_on_lower_stack(walk, caller.registers.values[walk->machine->sp]) || !on_own_stack(walk, sp_of(walk)));
        if (found) {
            walk->frame = walk->visits_frames ? frame : walk->frame;
            go_by_frame(walk, &caller);
            return true;
        }
        next_frame(walk);
    }
    walk->frame = frame;
    return false;
}

/*
 * Compares a step with a Frame that the walk has passed. True: the walk takes the Frame's registers.
 *
 * If the step leads to the same place, the Frame may have more registers, and it shows whether the code was
 * interrupted. If the step leads elsewhere, the Frame is right in three cases: the walk rests on a guess, it has gone
 * past interrupted code, or native code leads to the interrupted instruction with another stack pointer. The last case
 * is that of a fault, which the runtime handles on another stack with a copy of the return address. A Frame of
 * interrupted code that is further up is compared again after the next step.
 */
static bool compare_with_frame(struct stack_walk *walk, uint64_t frame, uint64_t old_sp)
{
    struct frame_caller caller;
    if (!caller_of_frame(walk, frame, &caller))
        return false;
    uint64_t sp = caller.registers.values[walk->machine->sp], known = caller.registers.known;
    bool same_pc = caller.registers.values[walk->machine->pc] == pc_of(walk), same = same_pc && sp == sp_of(walk);
    bool leaves_handler = !on_own_stack(walk, sp_of(walk)) && on_own_stack(walk, sp);
    bool is_lower = is_on_lower_stack(walk, sp);
    bool is_ahead = sp > sp_of(walk) || leaves_handler || is_lower;
    bool is_right = walk->guessed || (caller.interrupted && (!is_ahead || (same_pc && walk->by == CDACQ_FRAME_BY_CFI)));
    bool is_later = sp > old_sp || leaves_handler || is_lower || is_left(walk, old_sp);
    if (same || (is_later && is_right)) {
        enum cdacq_frame_source by = same && !walk->guessed ? walk->by : CDACQ_FRAME_BY_FRAME;
        /* The collector updates the registers that code saved and restores, but not the copies in every Frame. */
        bool is_exact = !walk->guessed && !caller.interrupted;
        for (unsigned i = 0; same && i < REGISTER_MAX; i++)
            if ((is_exact || !(known >> i & 1)) && register_is_known(&walk->registers, i))
                register_set(&caller.registers, i, walk->registers.values[i]);
        walk->has_gap = walk->guessed || !same_pc;
        walk->guessed = false;
        walk->interrupted_frame = 0;
        if (is_lower)
            leave_stack(walk, old_sp, sp);
        go_to(walk, &caller.registers, by, !caller.interrupted);
        return true;
    }
    const struct frame_kind *kind = frame_kind_at(walk->host.reader, frame);
    walk->has_stub_caller = kind && kind->is_of_stub;
    walk->stub_caller = caller;
    if (caller.interrupted)
        walk->interrupted_frame = is_ahead ? frame : 0;
    return false;
}

/* Whether the current Frame leads to the current frame: same program counter, same stack pointer. */
static bool frame_leads_here(struct stack_walk *walk)
{
    struct frame_caller caller;
    return walk->frame && caller_of_frame(walk, walk->frame, &caller) &&
           caller.registers.values[walk->machine->pc] == pc_of(walk) &&
           caller.registers.values[walk->machine->sp] == sp_of(walk);
}

/*
 * Compares a step with the Frames that it has passed. Before these, it is compared with a Frame that the walk has yet
 * to reach: one of interrupted code or, on the stack of a signal handler, the innermost one. Managed code that calls
 * native code directly has its Frame in its own frame, above its stack pointer. The walk has not passed that Frame yet,
 * but the Frame confirms a guess that leads to the same place.
 */
static void confirm(struct stack_walk *walk, uint64_t old_sp)
{
    uint64_t frame = walk->frame;
    bool on_handler_stack = frame && !on_own_stack(walk, frame) && !on_own_stack(walk, sp_of(walk));
    uint64_t ahead = walk->interrupted_frame ? walk->interrupted_frame : on_handler_stack ? frame : 0;
    bool is_compared = ahead && compare_with_frame(walk, ahead, old_sp);
    while (!is_compared && is_passed(walk, sp_of(walk)) && reader_step(raw(walk), "Frames")) {
        is_compared = compare_with_frame(walk, walk->frame, old_sp);
        if (!is_compared)
            next_frame(walk);
    }
    if (!is_compared && walk->guessed && frame_leads_here(walk))
        (void)compare_with_frame(walk, walk->frame, old_sp);
    if (walk->visits_frames)
        walk->frame = frame;
}

static bool go_by_guess(struct stack_walk *walk)
{
    const struct caller_search search = search_of(walk);
    struct guess guess = caller_guess(&search);
    struct registers caller = walk->registers;
    uint64_t old_sp = sp_of(walk);
    if (!guess_caller(&guess, !walk->is_call, &caller))
        return false;
    go_to(walk, &caller, CDACQ_FRAME_BY_GUESS, true);
    confirm(walk, old_sp);
    return true;
}

/* Whether code of a mapped file may be at an address, as far as is known. */
static bool is_native(struct stack_walk *walk, uint64_t address)
{
    return walk->host.is_native && walk->host.is_native(walk->host.context, address);
}

/* Whether, as far as is known, no file is mapped at an address and no memory is there. */
static bool has_no_memory(struct stack_walk *walk, uint64_t address)
{
    uint8_t byte;
    return walk->host.is_native && !is_native(walk, address) && !reader_try_copy(raw(walk), address, &byte, 1);
}

/*
 * Goes on after a jump to an address without memory, such as a call through a damaged pointer. No code has run there,
 * so the return address is where the call put it. The result is a guess, because the core may lack memory.
 */
static bool go_back_from_nowhere(struct stack_walk *walk, const struct code_at *code)
{
    const struct caller_search search = search_of(walk);
    struct call_site site;
    struct registers caller = walk->registers;
    uint64_t address, old_sp = sp_of(walk);
    if (walk->is_call || code->is_known || !has_no_memory(walk, pc_of(walk)))
        return false;
    bool found = caller_return_address(&search, &address, &site) && !site.target;
    reader_recover(raw(walk), FAILURE_BUT_FUEL);
    if (!found)
        return false;
    caller_return_to(&search, address, &caller);
    go_to(walk, &caller, CDACQ_FRAME_BY_GUESS, true);
    confirm(walk, old_sp);
    return true;
}

/*
 * Goes on where the code itself does not show how. If a Frame led to this code, the code is a function that managed
 * code called. Its caller is near, and the next Frame is too far up, so a guess is tried first.
 */
static bool go_on(struct stack_walk *walk, const struct code_at *code)
{
    if (go_back_from_nowhere(walk, code))
        return true;
    if (walk->by == CDACQ_FRAME_BY_FRAME)
        return go_by_guess(walk) || go_to_frame(walk);
    return go_to_frame(walk) || go_by_guess(walk);
}

/* Ends the walk only if no Frame is further up: otherwise, the data that led to the end of the stack are damaged. */
static void end_unless_frame(struct stack_walk *walk)
{
    if (!go_to_frame(walk))
        end(walk);
}

static bool by_step(const struct stack_walk *walk)
{
    return walk->by == CDACQ_FRAME_BY_CFI || walk->by == CDACQ_FRAME_BY_UNWIND;
}

/*
 * Whether the current frame is of code that a fault interrupted, although the walk has come to it by a return address.
 * The runtime lets the handler of a fault return to a copy of the interrupted address, which no call is before. The
 * trampoline of a signal looks the same.
 */
static bool is_interrupted(struct stack_walk *walk, const struct code_at *code)
{
    uint64_t pc = pc_of(walk);
    return walk->interrupted_frame && walk->is_call && by_step(walk) && (code->is_known || is_native(walk, pc)) &&
           guess_is_refuted(walk->machine, raw(walk), pc);
}

/*
 * Goes to the Frame of code that a fault interrupted, from the stack of the handler. The code's frame pointer was
 * copied there, but not its stack pointer, so a step to an address near `sp` is wrong.
 */
static bool leave_handler(struct stack_walk *walk, uint64_t sp)
{
    struct frame_caller caller;
    if (!walk->is_fault || sp - sp_of(walk) > FRAME_SIZE_MAX ||
        !caller_of_frame(walk, walk->interrupted_frame, &caller))
        return false;
    go_by_frame(walk, &caller);
    return true;
}

/* Leaves a stub that ran in place of a return, with the registers of its Frame. */
static bool leave_stub(struct stack_walk *walk, struct walk_frame *ret)
{
    uint64_t sp = walk->stub_caller.registers.values[walk->machine->sp];
    bool leaves = walk->has_stub_caller && sp > sp_of(walk);
    walk->has_stub_caller = false;
    if (leaves) { /* there are no frames between the stub and the caller */
        ret->cfa = sp;
        go_to(walk, &walk->stub_caller.registers, CDACQ_FRAME_BY_FRAME, !walk->stub_caller.interrupted);
    }
    return leaves;
}

/* Where the walk was before a step. */
struct position {
    uint64_t pc, sp;
    bool is_call;
};

static struct position position_of(const struct stack_walk *walk)
{
    return (struct position){pc_of(walk), sp_of(walk), walk->is_call};
}

/* Whether the registers that a step has found can be those of a caller. */
static bool leads_up(struct stack_walk *walk, const struct position *from, const struct registers *caller,
                     bool is_signal)
{
    uint64_t pc = caller->values[walk->machine->pc], sp = caller->values[walk->machine->sp];
    /* Code that has switched stacks goes back by a register that it has saved. */
    if (sp < from->sp && is_on_lower_stack(walk, sp)) {
        const struct caller_search search = search_of(walk);
        struct guess guess = caller_guess(&search);
        struct call_site site;
        if (guess_is_return_address(&guess, pc, &site))
            return true;
    }
    /* A leaf function whose return address is in a register may use no stack: its caller has the same stack pointer. */
    return sp > from->sp || is_signal || (sp == from->sp && !from->is_call && pc != from->pc);
}

/* Ends the walk where nothing leads further. The failure of the step, if it has one, is that of the walk. */
static void end_without_caller(struct stack_walk *walk, const struct reader_failure *failure)
{
    uint8_t byte;
    if (!reader_fail_again(raw(walk), failure)) {
        walk->no_caller = reader_try_copy(raw(walk), pc_of(walk), &byte, 1);
        reader_fail(raw(walk), CDACQ_ERR_MEMORY, pc_of(walk), "call-frame information");
    }
    end(walk);
}

/* Checks where a step or a Frame has led to. Ends the walk if that is no caller, or if there is no caller. */
static void check_caller(struct stack_walk *walk, const struct code_at *code, const struct position *from,
                         bool is_signal)
{
    uint64_t pc = pc_of(walk), sp = sp_of(walk);
    bool was_own = on_own_stack(walk, from->sp), is_own = on_own_stack(walk, sp), has_left = is_left(walk, from->sp);
    bool is_up =
        sp > from->sp || (sp == from->sp && (!from->is_call || walk->is_nowhere) && pc != from->pc) || has_left;
    bool may_switch = walk->left_count < SWITCHES_MAX;
    if (!is_up && !(may_switch && (is_signal || (!was_own && is_own) || is_on_lower_stack(walk, sp))))
        reader_fail(raw(walk), CDACQ_ERR_CORRUPT, sp, "stack frame that does not move up the stack");
    else if (!has_left && may_switch && (!is_up || (was_own && !is_own)))
        leave_stack(walk, from->sp, sp);
    /* Managed code is never outermost, because native code calls it. */
    bool is_outermost = !pc && walk->is_call;
    walk->is_nowhere = is_outermost;
    if (reader_failed(raw(walk)) || (is_outermost && !go_to_frame(walk))) {
        if (is_outermost && code->is_known)
            reader_fail(raw(walk), CDACQ_ERR_CORRUPT, sp_of(walk), "return address of managed code");
        end(walk);
    }
}

/* Steps to the caller of the frame that `code` and *ret describe. Sets the frame's CFA and, for a signal, its kind. */
static void step(struct stack_walk *walk, struct code_at *code, struct walk_frame *ret)
{
    const struct position from = position_of(walk);
    const struct caller_search search = search_of(walk);
    struct registers caller = walk->registers;
    struct native_frame_info info = {0};
    enum cdacq_frame_source by;
    if (leave_stub(walk, ret))
        return;
    enum native_step found = caller_find(&search, code, &caller, &info, &by);
    if (info.is_signal)
        ret->kind = CDACQ_FRAME_SIGNAL;
    if (found == NATIVE_OUTERMOST) {
        end_unless_frame(walk);
        return;
    }
    struct reader_failure failure = reader_failure(raw(walk));
    reader_recover(raw(walk), FAILURE_BUT_FUEL);
    if (!info.is_signal && leave_handler(walk, found == NATIVE_STEPPED ? caller.values[walk->machine->sp] : from.sp)) {
        check_caller(walk, code, &from, false);
        return;
    }
    if (found == NATIVE_STEPPED && leads_up(walk, &from, &caller, info.is_signal)) {
        ret->cfa = info.cfa ? info.cfa : caller.values[walk->machine->sp];
        if (is_on_lower_stack(walk, caller.values[walk->machine->sp]))
            leave_stack(walk, from.sp, caller.values[walk->machine->sp]);
        go_to(walk, &caller, by, !info.is_signal);
        confirm(walk, from.sp);
    } else if (!go_on(walk, code)) {
        end_without_caller(walk, &failure);
        return;
    }
    check_caller(walk, code, &from, info.is_signal);
}

static void describe(struct stack_walk *walk, const struct code_at *code, struct walk_frame *ret)
{
    static const uint8_t funclets[] = {
        [FUNCLET_NONE] = CDACQ_FUNCLET_NONE,     [FUNCLET_CATCH] = CDACQ_FUNCLET_CATCH,
        [FUNCLET_FILTER] = CDACQ_FUNCLET_FILTER, [FUNCLET_FINALLY] = CDACQ_FUNCLET_FINALLY,
        [FUNCLET_FAULT] = CDACQ_FUNCLET_FAULT,
    };
    bool is_funclet = false;
    enum funclet_kind funclet = FUNCLET_NONE;
    *ret = (struct walk_frame){
        .kind = CDACQ_FRAME_NATIVE,
        .by = walk->by,
        .is_call = walk->is_call,
        .registers = walk->registers,
        .after_gap = walk->has_gap,
        .unverified = walk->unverified,
    };
    if (!code->is_known)
        return;
    ret->kind = CDACQ_FRAME_STUB;
    if (!code_block_is_method(&code->block))
        return;
    block_funclet_kind(walk->host.reader, &code->block, &is_funclet, &funclet);
    ret->kind = is_funclet ? CDACQ_FRAME_FUNCLET : CDACQ_FRAME_MANAGED;
    ret->funclet = funclets[funclet];
}

/* The Frame to visit before the current frame: one that the walk has passed, or the one that leads to the frame. */
static bool visit_frame(struct stack_walk *walk, struct walk_frame *ret)
{
    if (!walk->frame || !walk->visits_frames)
        return false;
    bool leads_here = !is_passed(walk, sp_of(walk)) && walk->by != CDACQ_FRAME_BY_CONTEXT && frame_leads_here(walk);
    if (!leads_here && !is_passed(walk, sp_of(walk)))
        return false;
    *ret = (struct walk_frame){
        .kind = CDACQ_FRAME_EXPLICIT,
        .by = CDACQ_FRAME_BY_FRAME,
        .frame = walk->frame,
        .frame_kind = frame_kind_at(walk->host.reader, walk->frame),
    };
    next_frame(walk);
    return true;
}

/*
 * Whether the current frame cannot be a caller, although the last step led to it: the runtime has no code at its
 * address, and the address is on the stack itself, or has neither a mapped file nor memory. The stack of a signal
 * handler is often below the thread's own, with libraries between them, so code of a file is never on the stack.
 */
static bool is_nowhere(struct stack_walk *walk, const struct code_at *code)
{
    uint64_t address = pc_of(walk) - 1;
    if (!walk->is_call || !by_step(walk) || code->is_known || reader_failed(raw(walk)))
        return false;
    bool is_on_stack = address >= sp_of(walk) && address < walk->thread.stack_base && !is_native(walk, address);
    return is_on_stack || has_no_memory(walk, address);
}

static void find_code(struct stack_walk *walk, struct code_at *ret)
{
    const struct caller_search search = search_of(walk);
    *ret = (struct code_at){0};
    caller_find_code(&search, ret);
    if (walk->host.other_count && !ret->is_known)
        find_other_code(walk, ret);
}

/* The next frame of a walk that has not ended. */
static void next(struct stack_walk *walk, struct walk_frame *ret)
{
    struct code_at code;
    if (visit_frame(walk, ret))
        return;
    find_code(walk, &code);
    walk->is_nowhere = is_nowhere(walk, &code);
    if (walk->is_nowhere) { /* something has overwritten the return address, or the step was wrong */
        walk->guessed = true;
        walk->by = CDACQ_FRAME_BY_GUESS;
    }
    walk->is_fault = is_interrupted(walk, &code);
    if (walk->is_fault) {
        walk->is_call = false;
        find_code(walk, &code);
    }
    reader_recover(raw(walk), FAILURE_BUT_FUEL);
    describe(walk, &code, ret);
    reader_recover(raw(walk), FAILURE_BUT_FUEL);
    walk->has_gap = false;
    step(walk, &code, ret);
    walk->has_gap &= ret->kind != CDACQ_FRAME_STUB && ret->kind != CDACQ_FRAME_SIGNAL; /* a Frame is the way out */
    walk->unverified = reader_unverified(raw(walk));
}

enum walk_result stack_walk_next(struct stack_walk *walk, struct walk_frame *ret)
{
    reader_begin(raw(walk), FUEL_LOOKUP);
    if (!walk->ended && *walk->host.fuel < FUEL_FRAME_MIN) {
        reader_fail(raw(walk), CDACQ_ERR_FUEL, sp_of(walk), "frames of the stacks");
        end(walk);
    }
    if (walk->ended)
        return reader_fail_again(raw(walk), &walk->failure) ? WALK_BROKEN : WALK_OUTERMOST;
    next(walk, ret);
    take_fuel(walk);
    return WALK_FRAME;
}
