#include "contracts/stack_walk/call_stack.h"

#include "contracts/stack_walk/explicit_frame.h"
#include "contracts/stack_walk/machine.h"
#include "contracts/type_system/method_desc.h"

enum {
    FRAMES_MAX = 1 << 20,      /* Frames in the list of one thread */
    FOLD_STARTS_MAX = 1000,    /* as .NET 11: a repetition begins at one of so many first methods */
    FOLD_METHODS_MIN = 4,      /* as .NET 11: a repetition of fewer methods is not folded */
    FOLD_WORK_MAX = 400000000, /* comparisons */
    USER_ADDRESS_BITS = 56,    /* of any architecture */
};

void call_stack_init(struct call_stack *stack, struct reader *reader, const struct walk_machine *machine,
                     uint64_t frame)
{
    *stack = (struct call_stack){
        .reader = reader,
        .machine = machine,
        .frame = frame_is_last(reader, frame) ? 0 : frame,
        .steps_left = FRAMES_MAX,
        .native = true,
    };
}

static void add_method(struct call_stack *stack, uint64_t method_desc)
{
    if (stack->skipping || stack->broken)
        return;
    stack->broken = stack->methods.count == CALL_STACK_MAX || !method_list_append(&stack->methods, method_desc);
}

static void next_frame(struct call_stack *stack)
{
    reader_begin(stack->reader, FUEL_LOOKUP);
    stack->frame = stack->steps_left ? frame_next(stack->reader, stack->frame) : 0;
    stack->steps_left -= stack->steps_left > 0;
}

/*
 * The method that the stub of a P/Invoke passes on. Stubs of delegates leave any value there, and the runtime lists
 * nothing for them. 0: it is no method, as far as that can be read.
 */
static uint64_t method_of_stub(struct call_stack *stack)
{
    struct reader *reader = stack->reader;
    struct method_desc desc;
    uint8_t byte;
    uint64_t method = read_optional(stack->reader, stack->frame, F_InlinedCallFrame_m_StubSecretArg);
    if (!method || method % reader->pointer_size || method >> USER_ADDRESS_BITS || reader_failed(reader))
        return 0;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    bool is_missing = !reader_try_copy(reader, method, &byte, 1);
    bool is_pinvoke = method_desc_read(stack->reader, method, &desc) && desc.classification == METHOD_PINVOKE;
    (void)reader_leave(reader, &outer);
    return is_missing || is_pinvoke ? method : 0;
}

/* Adds the method of the current Frame. */
static void add_frame(struct call_stack *stack, const struct call_stack_frame *of)
{
    reader_begin(stack->reader, FUEL_LOOKUP);
    uint64_t method = frame_method(stack->reader, stack->frame);
    if (!method && of && of->hidden && frame_is_inlined_call(stack->reader, stack->frame))
        method = method_of_stub(stack);
    if (method && !reader_failed(stack->reader))
        add_method(stack, method);
}

/*
 * Adds the Frames that lead from native code to a managed frame. An InlinedCallFrame stays the current one, so
 * call_stack_add() adds it a second time, as the runtime's walk does. If native code overflows the stack, the runtime
 * makes a Frame on the stack of its signal handler, which can be above that of the thread. That Frame leads to managed
 * code if the runtime could unwind the native code, and to a place below it otherwise.
 */
static void add_frames_of_native(struct call_stack *stack, const struct call_stack_frame *to)
{
    while (stack->frame && !stack->broken) {
        struct frame_caller caller;
        reader_begin(stack->reader, FUEL_LOOKUP);
        bool leads = frame_caller(stack->reader, stack->machine, stack->frame, &caller);
        uint64_t sp = leads && caller.interrupted ? caller.registers.values[stack->machine->sp] : UINT64_MAX;
        if (stack->frame >= to->cfa && sp >= to->cfa)
            return;
        add_frame(stack, NULL);
        reader_begin(stack->reader, FUEL_LOOKUP);
        if (leads && frame_is_inlined_call(stack->reader, stack->frame))
            return;
        next_frame(stack);
        if (leads && sp >= to->sp)
            return;
    }
}

void call_stack_add_native(struct call_stack *stack)
{
    stack->native = true;
}

void call_stack_add(struct call_stack *stack, const struct call_stack_frame *frame)
{
    if (stack->native && frame->cfa)
        add_frames_of_native(stack, frame);
    stack->native = false;
    while (stack->frame && stack->frame < frame->cfa && !stack->broken) {
        add_frame(stack, frame);
        next_frame(stack);
    }
    if (stack->skipping && !frame->funclet && frame->method_desc == stack->skip_method &&
        (!frame->fp || !stack->skip_fp || frame->fp == stack->skip_fp))
        stack->skipping = false;
    else if (frame->funclet && !frame->filter && !stack->skipping) {
        stack->skipping = true;
        stack->skip_method = frame->method_desc;
        stack->skip_fp = frame->fp;
    }
    if (!frame->hidden)
        add_method(stack, frame->method_desc);
}

/* Whether the current Frame is passed at `sp`: it is below, or on the stack of a signal handler entered there. */
static bool is_passed(struct call_stack *stack, uint64_t sp)
{
    struct frame_caller caller;
    reader_begin(stack->reader, FUEL_LOOKUP);
    return stack->frame < sp || (frame_caller(stack->reader, stack->machine, stack->frame, &caller) &&
                                 caller.interrupted && caller.registers.values[stack->machine->sp] <= sp);
}

void call_stack_restart(struct call_stack *stack, uint64_t sp)
{
    stack->methods.count = 0;
    stack->skipping = false;
    stack->native = false;
    while (stack->frame && is_passed(stack, sp))
        next_frame(stack);
}

/* The repetition that begins at `start`. If there are several, the last one, because that is what the runtime shows. */
static struct call_stack_fold find_fold_at(const struct method_list *methods, size_t start)
{
    struct call_stack_fold fold = {.start = start};
    size_t common = 0; /* where the methods may begin to repeat; 0: nowhere */
    for (size_t i = start; i < methods->count; i++) {
        uint64_t method = methods->items[i];
        if (common && methods->items[i - (common - start)] != method) {
            size_t count = (i - start) / (common - start);
            if (count >= 2) {
                fold.length = common - start;
                fold.count = count;
            }
            common = 0;
        }
        if (!common && i != start && method == methods->items[start])
            common = i;
    }
    return fold;
}

struct call_stack_fold call_stack_find_fold(const struct method_list *methods, bool first_only)
{
    struct call_stack_fold fold = {0};
    size_t starts = first_only ? MIN(methods->count, (size_t)1) : MIN(methods->count, (size_t)FOLD_STARTS_MAX);
    starts = MIN(starts, FOLD_WORK_MAX / (methods->count + 1) + 1);
    for (size_t start = 0; start < starts && !fold.length; start++)
        fold = find_fold_at(methods, start);
    if (!fold.length || (!first_only && fold.length * fold.count < FOLD_METHODS_MIN))
        return (struct call_stack_fold){0};
    return fold;
}
