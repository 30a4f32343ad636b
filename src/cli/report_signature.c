#include <string.h>

#include "src/cli/memory.h"
#include "src/cli/report.h"
#include "src/cli/stack_writer.h"
#include "util/base.h"
#include "util/text.h"

enum {
    SIGNATURE_FRAMES = 5,
    COLLECTED_MAX = 1024,  /* frames of one exception, or at each end of a stack */
    WRAPPED_MAX = 4,       /* exceptions within each other */
    CYCLE_START_MAX = 32,  /* frames above a recursion */
    CYCLE_LENGTH_MAX = 64, /* methods of a recursion */
    CYCLE_COUNT_MIN = 4,   /* a recursion that fills a stack repeats more often */
    SYMBOL_LENGTH_MAX = 512,
};

/* A method or a native symbol as it is shown. */
struct signature_frame {
    struct text name;
    bool of_framework;
};

DEFINE_VECTOR(signature_frames, struct signature_frame);

/* ---- Names ---- */

/*
 * Forms a method's name without what differs between builds and runtimes: parameters, type arguments (shared code has
 * none), and the numbers that compilers give ("<Run>b__3_0" becomes "<Run>b__").
 */
static void form_name(struct text *ret, const char *name, size_t length)
{
    unsigned depth = 0;
    for (size_t i = 0; i < length && (depth || name[i] != '('); i++) { /* within type arguments, a tuple begins */
        bool compiler = i == 0 || name[i - 1] == '.';                  /* "<Run>b__3_0", "<>c": no type arguments */
        if (name[i] == '<' && compiler && !depth) {
            const char *end = memchr(name + i, '>', length - i);
            size_t n = end ? (size_t)(end - name) - i + 1 : length - i;
            text_append(ret, name + i, n);
            i += n - 1;
            continue;
        }
        depth += name[i] == '<' || name[i] == '[';
        bool is_number = name[i] >= '0' && name[i] <= '9' && i && (name[i - 1] == '_' || name[i - 1] == '|');
        if (!depth && is_number) {
            while (i + 1 < length && ((name[i + 1] >= '0' && name[i + 1] <= '9') || name[i + 1] == '_'))
                i++;
            continue;
        }
        if (!depth)
            text_putc(ret, name[i]);
        depth -= depth && (name[i] == '>' || name[i] == ']');
    }
}

/*
 * A symbol without its version, and one of the C library without the kind of processor that it is for: "memset" for
 * "__memset_avx512_unaligned".
 */
static void form_symbol(struct text *ret, const char *symbol)
{
    static const char *const kinds[] = {"_avx", "_evex", "_sse", "_erms"};
    size_t whole = MIN(strcspn(symbol, "@"), (size_t)SYMBOL_LENGTH_MAX), length = whole;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        const char *kind = strstr(symbol, kinds[i]);
        length = kind ? MIN(length, (size_t)(kind - symbol)) : length;
    }
    size_t underscores = strspn(symbol, "_");
    if (length == whole || length <= underscores) { /* it names no kind, or nothing else */
        underscores = 0;
        length = whole;
    }
    text_append(ret, symbol + underscores, length - underscores);
}

static bool begins_with_any(const char *name, size_t length, const char *const *prefixes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (length >= strlen(prefixes[i]) && memcmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

/* The methods between two of the program, and their names, depend on the runtime. */
static bool is_of_framework(const char *name, size_t length)
{
    static const char *const prefixes[] = {"System.", "Microsoft.", "Internal.", "Interop.", "dynamicClass.IL_STUB"};
    return begins_with_any(name, length, prefixes, ARRAY_SIZE(prefixes));
}

/* How a thread begins, which depends on the runtime; and how it dies, not why. */
static bool is_of_no_interest(const char *name, size_t length)
{
    static const char *const ends[] = {"System.Threading.Thread.Start",
                                       "__pthread_kill",
                                       "pthread_kill",
                                       "raise",
                                       "gsignal",
                                       "__GI_",
                                       "abort",
                                       "System.Environment.FailFast",
                                       "System.Runtime.EH.",
                                       "System.Environment._FailFast"};
    return begins_with_any(name, length, ends, ARRAY_SIZE(ends));
}

/* ---- Frames ---- */

static void add_frame(struct signature_frames *frames, struct text *name, bool of_framework)
{
    if (name->broken || !signature_frames_append(frames, (struct signature_frame){*name, of_framework}))
        out_of_memory();
}

static void add_method(struct signature_frames *frames, const struct cdacq_method *method)
{
    struct text name = {0};
    if (method->name && is_of_no_interest(method->name, method->name_length))
        return;
    if (method->name && method->name_length)
        form_name(&name, method->name, method->name_length);
    else
        text_putc(&name, '?');
    add_frame(frames, &name, method->name && is_of_framework(method->name, method->name_length));
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
    struct cdacq_exception exception = {.size = sizeof exception, .inner = report->exception};
    uint64_t wrapped[WRAPPED_MAX];
    unsigned count = 0;
    do {
        uint64_t address = exception.inner;
        if (cdacq_session_get_exception(report->session, address, &exception, NULL) < 0)
            break;
        output_literal(report->answers.out, count ? " of " : " ");
        output_note(report->answers.out, exception.type ? exception.type : "?");
        wrapped[count++] = address;
    } while (count < WRAPPED_MAX && wraps(&exception));
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
                   !is_of_no_interest(frame->symbol, strlen(frame->symbol))) {
            struct text name = {0};
            form_symbol(&name, frame->symbol);
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

static void write_name(struct output *out, const char *name, size_t length)
{
    struct text text = {0};
    form_name(&text, name, length);
    output_escaped(out, text.data ? text.data : "", text.length, ESCAPE_MESSAGE);
    text_deinit(&text);
}

/* ---- Deadlocks ---- */

/* The methods of the program that the threads of a deadlock wait in, sorted: which thread came first is chance. */
struct deadlocked {
    const struct cdacq_method *methods[SIGNATURE_FRAMES];
    unsigned count;
};

static const struct stack *stack_of(const struct report *report, int tid)
{
    for (size_t i = 0; i < report->stacks.list.count; i++) {
        const struct stack_threads *threads = &report->stacks.list.items[i]->threads;
        for (size_t k = 0; k < threads->count; k++)
            if (threads->items[k].tid == tid)
                return report->stacks.list.items[i];
    }
    return NULL;
}

/* The first method that is none of the framework's. */
static const struct cdacq_method *waiting_method(const struct stack *stack)
{
    for (size_t i = 0; stack && i < stack->frames.count; i++) {
        const struct cdacq_method *method = &stack->frames.items[i].shared->method;
        if (method->answer == CDACQ_ANSWER_MANAGED && method->name && method->name_length &&
            !is_of_framework(method->name, method->name_length))
            return method;
    }
    return NULL;
}

static struct deadlocked describe(const struct report *report, const struct cdacq_deadlock *deadlock)
{
    struct deadlocked ret = {.count = 0};
    for (size_t i = 0; i < deadlock->count && ret.count < SIGNATURE_FRAMES; i++) {
        const struct cdacq_method *method = waiting_method(stack_of(report, deadlock->waits[i]->tid));
        unsigned at = ret.count;
        if (!method)
            continue;
        for (; at && strcmp(method->name, ret.methods[at - 1]->name) < 0; at--)
            ret.methods[at] = ret.methods[at - 1];
        ret.methods[at] = method;
        ret.count++;
    }
    return ret;
}

static bool precedes(const struct deadlocked *a, const struct deadlocked *b)
{
    for (unsigned i = 0; i < a->count && i < b->count; i++) {
        int order = strcmp(a->methods[i]->name, b->methods[i]->name);
        if (order)
            return order < 0;
    }
    return a->count > b->count;
}

/* Of several deadlocks, the first by name. */
static void write_deadlock(struct report *report)
{
    struct output *out = report->answers.out;
    struct deadlocked first = describe(report, report->deadlocks.items[0]);
    for (size_t i = 1; i < report->deadlocks.count; i++) {
        struct deadlocked other = describe(report, report->deadlocks.items[i]);
        if (precedes(&other, &first))
            first = other;
    }
    output_literal(out, "deadlock");
    for (unsigned i = 0; i < first.count; i++) {
        output_literal(out, i ? " <> " : ": ");
        write_name(out, first.methods[i]->name, first.methods[i]->name_length);
    }
}

void report_write_signature(struct report *report)
{
    struct signature_frames frames = {0};
    char cause[SIGNAL_TEXT_SIZE];
    if (report->cause == REPORT_ALIVE && report->deadlocks.count)
        write_deadlock(report);
    else
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
