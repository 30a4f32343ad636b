#include "src/cli/base/stacks.h"

#include <string.h>

#include "src/cli/base/memory.h"
#include "util/text.h"

DEFINE_VECTOR_FUNCTIONS(stack_frames, struct kept_frame);
DEFINE_VECTOR_FUNCTIONS(stack_threads, struct stack_thread);
DEFINE_VECTOR_FUNCTIONS(stack_list, struct stack *);

static const struct stack *stack_key(struct stack *const *stack)
{
    return *stack;
}

/* Of all frames by the table's seed: who writes a core must not be able to choose stacks of one hash. */
static uint64_t hash_stack(const struct stack *stack, uint64_t seed)
{
    for (size_t i = 0; i < stack->frames.count; i++)
        seed = hash_u64(stack->frames.items[i].shared->frame.pc, seed);
    return hash_u64(stack->frames.count, seed);
}

static bool equal_frames(const struct kept_frame *a, const struct kept_frame *b)
{
    return a->shared == b->shared && !a->variables && !b->variables;
}

static bool equal_stacks(const struct stack *a, const struct stack *b)
{
    if (a->frames.count != b->frames.count || !a->problem != !b->problem ||
        (a->problem && strcmp(a->problem, b->problem) != 0))
        return false;
    for (size_t i = 0; i < a->frames.count; i++)
        if (!equal_frames(&a->frames.items[i], &b->frames.items[i]))
            return false;
    return true;
}

DEFINE_HASH_TABLE_FUNCTIONS(stack_table, struct stack *, const struct stack *, stack_key, hash_stack, equal_stacks);

/* ---- What frames at one address share ---- */

static const struct cdacq_frame *shared_key(struct stack_frame *const *frame)
{
    return &(*frame)->frame;
}

static uint64_t hash_frame(const struct cdacq_frame *frame, uint64_t seed)
{
    return hash_u64(frame->pc ? frame->pc : frame->method ? frame->method->token : 0, seed);
}

/*
 * Whether two methods read alike. An async one with a state machine has no address, and in a process that runs, other
 * code can come to an address.
 */
static bool is_same_method(const struct cdacq_method *a, const struct cdacq_method *b)
{
    return a->code_start == b->code_start && a->answer == b->answer && a->token == b->token &&
           a->il_offset == b->il_offset && a->line == b->line && a->name_length == b->name_length &&
           !a->name == !b->name && (!a->name || memcmp(a->name, b->name, a->name_length) == 0);
}

static bool is_same_frame(const struct cdacq_frame *a, const struct cdacq_frame *b)
{
    return a->pc == b->pc && a->by == b->by && a->kind == b->kind && a->funclet == b->funclet &&
           a->is_call == b->is_call && a->after_gap == b->after_gap && a->files_verified == b->files_verified &&
           !a->method == !b->method && (!a->method || is_same_method(a->method, b->method));
}

DEFINE_HASH_TABLE_FUNCTIONS(shared_frames, struct stack_frame *, const struct cdacq_frame *, shared_key, hash_frame,
                            is_same_frame);

struct stack *stack_new(void)
{
    return allocate(sizeof(struct stack));
}

void stack_free(struct stack *stack)
{
    stack_frames_deinit(&stack->frames);
    stack_threads_deinit(&stack->threads);
    free(stack);
}

void stacks_deinit(struct stacks *stacks)
{
    for (size_t i = 0; i < stacks->list.count; i++)
        stack_free(stacks->list.items[i]);
    stack_list_deinit(&stacks->list);
    stack_table_deinit(&stacks->by_content);
    shared_frames_deinit(&stacks->shared);
    arena_deinit(&stacks->strings);
}

static const char *keep_string(struct stacks *stacks, const char *string)
{
    char *copy = string ? arena_string(&stacks->strings, string, strlen(string)) : NULL;
    if (string && !copy)
        out_of_memory();
    return copy;
}

struct cdacq_method stack_frame_no_method(const struct cdacq_frame *frame)
{
    return (struct cdacq_method){.size = sizeof(struct cdacq_method),
                                 .ip = frame->pc,
                                 .il_offset = CDACQ_OFFSET_UNKNOWN,
                                 .module_verified = frame->files_verified};
}

static const struct stack_frame *share_frame(struct stacks *stacks, const struct cdacq_frame *frame)
{
    struct stack_frame *const *known = shared_frames_find(&stacks->shared, frame);
    if (known)
        return *known;
    struct stack_frame *shared = arena_allocate(&stacks->strings, sizeof *shared);
    if (!shared)
        out_of_memory();
    *shared = (struct stack_frame){.frame = *frame, .method = stack_frame_no_method(frame)};
    if (frame->method)
        shared->method = *frame->method;
    shared->method.error = keep_string(stacks, shared->method.error); /* which is valid until the next look-up only */
    shared->frame.symbol = keep_string(stacks, frame->symbol);        /* which a process may unload with its module */
    shared->frame.module = keep_string(stacks, frame->module);
    shared->frame.registers = NULL;
    shared->frame.method = frame->method ? &shared->method : NULL;
    if (!shared_frames_insert(&stacks->shared, shared, NULL))
        out_of_memory();
    return shared;
}

void stack_add_frame(struct stacks *stacks, struct stack *stack, const struct cdacq_frame *frame)
{
    const struct kept_frame kept = {.shared = share_frame(stacks, frame), .cfa = frame->cfa, .index = frame->index};
    if (!stack_frames_append(&stack->frames, kept))
        out_of_memory();
}

void stack_add_variables(struct stacks *stacks, struct stack *stack, const char *text, size_t length)
{
    char *copy = arena_string(&stacks->strings, text, length);
    if (!copy)
        out_of_memory();
    stack->frames.items[stack->frames.count - 1].variables = copy;
}

struct stack_frame stack_frame_at(const struct stack *stack, size_t i)
{
    const struct kept_frame *kept = &stack->frames.items[i];
    struct stack_frame frame = *kept->shared;
    frame.frame.cfa = kept->cfa;
    frame.frame.index = kept->index;
    frame.frame.sp = 0;
    return frame;
}

static const struct cdacq_system_call *keep_call(struct stacks *stacks, const struct cdacq_system_call *call)
{
    struct cdacq_system_call *copy = call ? arena_allocate(&stacks->strings, sizeof *copy) : NULL;
    if (call && !copy)
        out_of_memory();
    if (copy) {
        *copy = *call;
        copy->file = keep_string(stacks, call->file);
        copy->local = keep_string(stacks, call->local);
        copy->peer = keep_string(stacks, call->peer);
    }
    return copy;
}

/* Takes ownership of a stack, and returns the one that is kept. */
static struct stack *keep_stack(struct stacks *stacks, struct stack *stack, const char *problem, bool alone)
{
    struct stack **known = &stack;
    bool added = true;
    stack->problem = keep_string(stacks, problem);
    if (!alone && !(known = stack_table_insert(&stacks->by_content, stack, &added)))
        out_of_memory();
    if (added && !stack_list_append(&stacks->list, stack))
        out_of_memory();
    if (!added)
        stack_free(stack);
    return *known;
}

struct stack *stacks_add_sample(struct stacks *stacks, struct stack *stack, const char *problem, uint64_t samples)
{
    struct stack *kept = keep_stack(stacks, stack, problem, false);
    kept->samples += samples;
    return kept;
}

void stacks_add(struct stacks *stacks, struct stack *stack, const struct cdacq_thread *thread, const char *problem,
                bool alone)
{
    struct stack *kept = keep_stack(stacks, stack, problem, alone);
    const struct stack_thread item = {.tid = thread->tid,
                                      .signal = thread->signal,
                                      .died = thread->died,
                                      .is_of_pool = thread->state & CDACQ_THREAD_POOL,
                                      .is_foreground =
                                          thread->thread && thread->state && !(thread->state & CDACQ_THREAD_BACKGROUND),
                                      .has_state = !thread->thread || thread->state,
                                      .mode = thread->mode,
                                      .suspends_others = thread->suspends_others,
                                      .delays_suspension = thread->delays_suspension,
                                      .name = keep_string(stacks, thread->name),
                                      .call = keep_call(stacks, thread->call)};
    if (!stack_threads_append(&kept->threads, item))
        out_of_memory();
}

/* How often the `period` frames at `first` occur in a row. */
static size_t count_repeats(const struct stack *stack, size_t first, size_t period)
{
    const struct kept_frame *frames = stack->frames.items + first;
    size_t left = stack->frames.count - first, same = 0;
    while (period + same < left && equal_frames(&frames[same], &frames[period + same]))
        same++;
    return 1 + same / period;
}

void stack_doubts_add(struct stack_doubts *doubts, const struct cdacq_frame *frame)
{
    doubts->guesses += frame->by == CDACQ_FRAME_BY_GUESS;
    doubts->gaps += frame->after_gap;
}

struct stack_run stack_run_at(const struct stack *stack, size_t first)
{
    size_t left = stack->frames.count - first;
    for (size_t period = 1; period <= STACK_PERIOD_MAX && period < left; period++) {
        size_t count = count_repeats(stack, first, period);
        if (count >= STACK_REPEATS_MIN)
            return (struct stack_run){first, period, count};
    }
    return (struct stack_run){first, 1, 1};
}

static bool is_in_native_row(const struct kept_frame *kept)
{
    const struct cdacq_frame *frame = &kept->shared->frame;
    bool is_native = !frame->method && (frame->symbol || frame->module);
    return is_native && frame->kind == CDACQ_FRAME_NATIVE && frame->by != CDACQ_FRAME_BY_GUESS && !frame->after_gap;
}

size_t stack_native_row(const struct stack *stack, size_t first)
{
    size_t end = first;
    while (end < stack->frames.count && is_in_native_row(&stack->frames.items[end]))
        end++;
    return end - first;
}

/* Methods by which threads of managed code wait, and what these call. */
static bool is_waiting_method(const struct stack_frame *frame)
{
    static const char *const names[] = {
        "Interop.Sys.<LowLevelFutex_",
        "Interop.Sys.<LowLevelMonitor_",
        "Interop.Sys.LowLevelCrossProcessMutex_",
        "Interop.Sys.LowLevelFutex_",
        "Interop.Sys.LowLevelMonitor_",
        "Interop.Sys.WaitForSocketEvents(",
        "System.GC.<WaitForPendingFinalizers",
        "System.GC.<_WaitForPendingFinalizers",
        "System.GC.WaitForPendingFinalizers(",
        "System.GC._WaitForPendingFinalizers(",
        "System.Runtime.CompilerServices.TaskAwaiter",
        "System.Threading.Barrier.SignalAndWait(",
        "System.Threading.Condition.",
        "System.Threading.CountdownEvent.Wait(",
        "System.Threading.Lock.",
        "System.Threading.LowLevelLifoSemaphore.",
        "System.Threading.LowLevelLock.",
        "System.Threading.LowLevelMonitor.",
        "System.Threading.LowLevelThreadBlocker.",
        "System.Threading.ManualResetEventSlim.Wait(",
        "System.Threading.Monitor.",
        "System.Threading.NamedMutex",
        "System.Threading.ObjectHeader.",
        "System.Threading.ReaderWriterLockSlim.",
        "System.Threading.SemaphoreSlim.Wait",
        "System.Threading.SynchronizationContext.",
        "System.Threading.Tasks.Task.InternalWait",
        "System.Threading.Tasks.Task.SpinThenBlockingWait(",
        "System.Threading.Tasks.Task.Wait",
        "System.Threading.Tasks.Task<",
        "System.Threading.Thread.<Join>",
        "System.Threading.Thread.<Sleep",
        "System.Threading.Thread.Join",
        "System.Threading.Thread.Sleep",
        "System.Threading.WaitHandle.",
        "System.Threading.WaitSubsystem.",
    };
    if (frame->frame.kind != CDACQ_FRAME_MANAGED || frame->frame.by == CDACQ_FRAME_BY_GUESS || frame->frame.after_gap)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (frame->method.name_length && string_begins_with(frame->method.name, names[i]))
            return true;
    return false;
}

size_t stack_waiting_row(const struct stack *stack)
{
    size_t native = stack_native_row(stack, 0), row = 0;
    for (size_t i = 0; i < stack->threads.count; i++)
        native = stack->threads.items[i].mode == CDACQ_MODE_USER ? 0 : native;
    for (size_t i = native; native && i < stack->frames.count; i++) {
        const struct stack_frame *frame = stack->frames.items[i].shared;
        if (is_waiting_method(frame))
            row = i;
        else if (frame->frame.kind != CDACQ_FRAME_ASYNC)
            break;
    }
    return row > 1 ? row : 0;
}
