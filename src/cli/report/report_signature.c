#include <string.h>

#include "src/cli/base/memory.h"
#include "src/cli/report/report.h"
#include "src/cli/report/signature_names.h"
#include "src/cli/base/stack_writer.h"
#include "util/base.h"
#include "util/text.h"

enum {
    SIGNATURE_FRAMES = 5,
    COLLECTED_MAX = 1024,  /* frames of one exception, or at each end of a stack */
    WRAPPED_MAX = 4,       /* exceptions within each other */
    CYCLE_START_MAX = 32,  /* frames above a recursion */
    CYCLE_LENGTH_MAX = 64, /* methods of a recursion */
    CYCLE_COUNT_MIN = 4,   /* a recursion that fills a stack repeats more often */
};

/* A method or a native symbol as it is shown. */
struct signature_frame {
    struct text name;
    bool of_framework;
};

DEFINE_VECTOR(signature_frames, struct signature_frame);

/* ---- Frames ---- */

static void add_frame(struct signature_frames *frames, struct text *name, bool of_framework)
{
    if (name->broken || !signature_frames_append(frames, (struct signature_frame){*name, of_framework}))
        out_of_memory();
}

static void add_method(struct signature_frames *frames, const struct cdacq_method *method)
{
    struct text name = {0};
    if (method->async_thunk) /* other runtimes have none */
        return;
    if (method->name && signature_is_of_no_interest(method->name, method->name_length))
        return;
    if (method->name && method->name_length)
        signature_form_name(&name, method->name, method->name_length);
    else
        text_putc(&name, '?');
    add_frame(frames, &name, method->name && signature_is_of_framework(method->name, method->name_length));
}

struct ips {
    uint64_t items[COLLECTED_MAX];
    unsigned count;
};

static int add_ip(const struct cdacq_exception_frame *frame, void *context)
{
    struct ips *ips = context;
    if (!ips->count || ips->items[ips->count - 1] != frame->ip) /* not recursion */
        ips->items[ips->count++] = frame->ip;
    return ips->count == COLLECTED_MAX;
}

/* Exceptions that only wrap what a part of the program threw: their type and frames say little. */
static bool wraps(const struct cdacq_exception *exception)
{
    static const char *const types[] = {"System.Reflection.TargetInvocationException", "System.AggregateException",
                                        "System.TypeInitializationException"};
    for (size_t i = 0; i < ARRAY_SIZE(types) && exception->type && exception->inner; i++)
        if (strcmp(exception->type, types[i]) == 0)
            return true;
    return false;
}

/*
 * Writes the types of the exception and of what it wraps, and adds the methods of their own stack traces, the innermost
 * first: those of the thread end where it was rethrown.
 */
static void add_exception(struct report *report, struct signature_frames *frames)
{
    struct report_chain chain = {.exception.inner = report->exception};
    const struct cdacq_exception *exception = &chain.exception;
    uint64_t wrapped[WRAPPED_MAX];
    unsigned count = 0;
    while (count < WRAPPED_MAX && (!count || wraps(exception)) && report_next_inner(report, &chain)) {
        output_literal(report->answers.out, count ? " of " : " ");
        output_note(report->answers.out, exception->type ? exception->type : "?");
        wrapped[count++] = exception->address;
    }
    while (count--) {
        struct ips ips = {.count = 0};
        (void)cdacq_session_visit_exception_frames(report->session, wrapped[count], add_ip, &ips, NULL);
        for (unsigned i = 0; i < ips.count; i++) {
            struct cdacq_method method = {.size = sizeof method};
            if (cdacq_session_method_at(report->session, ips.items[i], &method, NULL) == CDACQ_OK)
                add_method(frames, &method);
        }
    }
}

/*
 * Where the body of a funclet's method goes on: what is between threw the exception, and only some runtimes keep it.
 * The frame after the funclet if there is none.
 */
static size_t skip_handled(const struct stack_frames *frames, size_t funclet)
{
    uint64_t method_desc = frames->items[funclet].shared->method.method_desc;
    for (size_t i = funclet + 1; method_desc && i < frames->count; i++)
        if (frames->items[i].shared->frame.kind == CDACQ_FRAME_MANAGED &&
            frames->items[i].shared->method.method_desc == method_desc)
            return i;
    return funclet + 1;
}

static bool is_of(const struct cdacq_frame *frame, const char *module)
{
    return frame->kind == CDACQ_FRAME_NATIVE && frame->module && module && strcmp(frame->module, module) == 0;
}

/* Whether the runtime waits for createdump, which writes the core. */
static bool waits_for_writer(const struct stack_frames *stack, const char *runtime)
{
    const struct cdacq_frame *frame = stack->count > 1 ? &stack->items[0].shared->frame : NULL;
    if (!frame || !frame->symbol || !is_of(&stack->items[1].shared->frame, runtime))
        return false;
    const char *name = frame->symbol + strspn(frame->symbol, "_");
    return strncmp(name, "wait4", 5) == 0 || strncmp(name, "waitpid", 7) == 0;
}

/*
 * The first frame that does not depend on how the core was written: below the runtime's handler of a signal. Another
 * handler may be what failed.
 */
static size_t skip_writer(const struct stack_frames *stack, const char *runtime)
{
    bool writer = waits_for_writer(stack, runtime);
    size_t begin = writer;
    for (size_t i = begin; i < MIN(stack->count, (size_t)COLLECTED_MAX); i++) {
        const struct cdacq_frame *frame = &stack->items[i].shared->frame;
        if (frame->kind == CDACQ_FRAME_MANAGED || frame->kind == CDACQ_FRAME_FUNCLET)
            break;
        if (frame->kind == CDACQ_FRAME_SIGNAL && i && (writer || is_of(&stack->items[i - 1].shared->frame, runtime)))
            begin = i + 1;
    }
    return begin;
}

/* The frames of the thread: native ones up to the first method, then methods. */
static void add_stack(const struct stack_frames *stack, const char *runtime, struct signature_frames *frames)
{
    bool managed = false;
    for (size_t i = skip_writer(stack, runtime); i < stack->count;) {
        if (i >= COLLECTED_MAX && i + COLLECTED_MAX < stack->count)
            i = stack->count - COLLECTED_MAX; /* what is between repeats */
        const struct cdacq_frame *frame = &stack->items[i].shared->frame;
        bool funclet = frame->kind == CDACQ_FRAME_FUNCLET;
        if (frame->kind == CDACQ_FRAME_MANAGED || funclet) {
            managed = true;
            add_method(frames, &stack->items[i].shared->method);
        } else if (!managed && frame->kind == CDACQ_FRAME_NATIVE && frame->symbol &&
                   !signature_is_of_no_interest(frame->symbol, strlen(frame->symbol))) {
            struct text name = {0};
            signature_form_symbol(&name, frame->symbol);
            add_frame(frames, &name, false);
        }
        i = funclet ? skip_handled(stack, i) : i + 1;
    }
}

/* Leaves the methods of the framework out, unless there are no others. */
static void leave_framework_out(struct signature_frames *frames)
{
    size_t kept = 0;
    for (size_t i = 0; i < frames->count; i++)
        kept += !frames->items[i].of_framework;
    if (!kept)
        return;
    kept = 0;
    for (size_t i = 0; i < frames->count; i++) {
        if (frames->items[i].of_framework)
            text_deinit(&frames->items[i].name);
        else
            frames->items[kept++] = frames->items[i];
    }
    frames->count = kept;
}

static int compare(const struct signature_frames *frames, size_t a, size_t b)
{
    const char *x = frames->items[a].name.data, *y = frames->items[b].name.data;
    return strcmp(x ? x : "", y ? y : "");
}

/* A recursion without end: the methods that repeat. */
struct cycle {
    size_t begin, length;
    size_t end; /* the first frame that is no part of it */
};

/* The first frame after the last that has one of the methods. */
static size_t end_of_cycle(const struct signature_frames *frames, size_t begin, size_t length)
{
    for (size_t end = frames->count; end > begin + length; end--)
        for (size_t i = 0; i < length; i++)
            if (compare(frames, begin + i, end - 1) == 0)
                return end;
    return begin + length;
}

static bool find_cycle(const struct signature_frames *frames, struct cycle *ret)
{
    for (size_t begin = 0; begin < CYCLE_START_MAX; begin++) {
        for (size_t length = 1; length <= CYCLE_LENGTH_MAX; length++) {
            size_t i = begin;
            while (i + length < frames->count && compare(frames, i, i + length) == 0)
                i++;
            if (i - begin >= length * (CYCLE_COUNT_MIN - 1)) {
                *ret = (struct cycle){begin, length, end_of_cycle(frames, begin, length)};
                return true;
            }
        }
    }
    return false;
}

/* Which of the methods of a cycle comes first is chance: it begins with the one that gives the least text. */
static size_t first_of_cycle(const struct signature_frames *frames, const struct cycle *cycle)
{
    size_t first = 0;
    for (size_t candidate = 1; candidate < cycle->length; candidate++) {
        int order = 0;
        for (size_t i = 0; i < cycle->length && !order; i++)
            order = compare(frames, cycle->begin + (candidate + i) % cycle->length,
                            cycle->begin + (first + i) % cycle->length);
        first = order < 0 ? candidate : first;
    }
    return first;
}

/* ---- The line ---- */

struct signature {
    struct output *out;
    const struct signature_frames *frames;
    unsigned written;
    size_t last; /* the frame that was written last */
};

static void write_frame(struct signature *signature, size_t i)
{
    const struct text *name = &signature->frames->items[i].name;
    bool recursion = signature->written && compare(signature->frames, signature->last, i) == 0; /* of any depth */
    if (recursion || signature->written == SIGNATURE_FRAMES)
        return;
    output_literal(signature->out, signature->written++ ? " < " : ": ");
    output_escaped(signature->out, name->data ? name->data : "", name->length, ESCAPE_MESSAGE);
    signature->last = i;
}

static void write_frames(struct output *out, const struct signature_frames *frames, bool overflow)
{
    struct signature signature = {.out = out, .frames = frames};
    struct cycle cycle = {0};
    if (overflow && find_cycle(frames, &cycle)) {
        size_t first = first_of_cycle(frames, &cycle);
        for (size_t i = 0; i < cycle.length; i++)
            write_frame(&signature, cycle.begin + (first + i) % cycle.length);
    }
    for (size_t i = cycle.end; i < frames->count; i++)
        write_frame(&signature, i);
}

void report_write_signature(struct report *report)
{
    struct signature_frames frames = {0};
    char cause[SIGNAL_TEXT_SIZE];
    if (report_may_hang(report) && report_write_hang(report))
        return;
    output_literal(report->answers.out, report_cause_text(report, cause));
    if (report->cause == REPORT_UNHANDLED)
        add_exception(report, &frames);
    if (!frames.count && report->dead)
        add_stack(&report->dead->frames, report->facts.runtime_path, &frames);
    leave_framework_out(&frames);
    write_frames(report->answers.out, &frames, report->end.kind == CDACQ_END_STACK_OVERFLOW);
    for (size_t i = 0; i < frames.count; i++)
        text_deinit(&frames.items[i].name);
    signature_frames_deinit(&frames);
}
