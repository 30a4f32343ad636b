#include <string.h>

#include "src/cli/report.h"
#include "src/cli/stack_writer.h"
#include "util/base.h"

enum { SIGNATURE_FRAMES = 5, EXCEPTION_FRAMES = 64 };

struct signature {
    struct report *report;
    unsigned frames;
    uint64_t last; /* the MethodDesc that was written last */
};

/*
 * Writes a method's name without what differs between builds and runtimes: parameters, type arguments (shared code has
 * none), and the numbers that compilers give ("<Run>b__3_0" becomes "<Run>b__").
 */
static void write_name(struct output *out, const char *name, size_t length)
{
    unsigned depth = 0;
    for (size_t i = 0; i < length && name[i] != '('; i++) {
        bool compiler = i == 0 || name[i - 1] == '.'; /* "<Run>b__3_0", "<>c": no type arguments */
        if (name[i] == '<' && compiler && !depth) {
            const char *end = memchr(name + i, '>', length - i);
            size_t n = end ? (size_t)(end - name) - i + 1 : length - i;
            output_escaped(out, name + i, n, ESCAPE_MESSAGE);
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
            output_escaped(out, name + i, 1, ESCAPE_MESSAGE);
        depth -= depth && (name[i] == '>' || name[i] == ']');
    }
}

static void write_method(struct signature *signature, const struct cdacq_method *method)
{
    struct output *out = signature->report->answers.out;
    bool known = method->name && method->name_length;
    if (known && method->method_desc && method->method_desc == signature->last)
        return; /* recursion, whose depth differs */
    signature->last = method->method_desc;
    output_literal(out, signature->frames++ ? " < " : ": ");
    if (known)
        write_name(out, method->name, method->name_length);
    else
        output_literal(out, "?");
}

static int write_exception_frame(const struct cdacq_exception_frame *frame, void *context)
{
    uint64_t *ips = context;
    if (ips[0] == EXCEPTION_FRAMES)
        return 1;
    ips[++ips[0]] = frame->ip;
    return 0;
}

/* How a thread begins, which depends on the runtime. */
static bool is_of_the_start(const struct cdacq_method *method)
{
    static const char start[] = "System.Threading.Thread.Start";
    return method->name && strncmp(method->name, start, sizeof start - 1) == 0;
}

/*
 * The methods of the exception's own stack trace: those of the thread end where it was rethrown. False if it has none.
 */
static bool write_exception(struct signature *signature)
{
    struct report *report = signature->report;
    struct cdacq_exception exception = {.size = sizeof exception};
    uint64_t ips[1 + EXCEPTION_FRAMES] = {0}; /* their number, then they */
    if (cdacq_session_get_exception(report->session, report->exception, &exception, NULL) < 0)
        return false;
    output_literal(report->answers.out, " ");
    output_note(report->answers.out, exception.type ? exception.type : "?");
    (void)cdacq_session_visit_exception_frames(report->session, report->exception, write_exception_frame, ips, NULL);
    for (uint64_t i = 0; i < ips[0] && signature->frames < SIGNATURE_FRAMES; i++) {
        struct cdacq_method method = {.size = sizeof method};
        bool found = cdacq_session_method_at(report->session, ips[i + 1], &method, NULL) == CDACQ_OK;
        if (found && !is_of_the_start(&method))
            write_method(signature, &method);
    }
    return signature->frames > 0;
}

/* How a thread dies, not why. */
static bool is_of_the_end(const char *name, size_t length)
{
    static const char *const ends[] = {"__pthread_kill",
                                       "pthread_kill",
                                       "raise",
                                       "gsignal",
                                       "__GI_",
                                       "abort",
                                       "System.Environment.FailFast",
                                       "System.Runtime.EH.",
                                       "System.Environment._FailFast"};
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
        if (length >= strlen(ends[i]) && strncmp(name, ends[i], strlen(ends[i])) == 0)
            return true;
    return false;
}

/* A symbol of the C library without the kind of processor that it is for: "memset" for "__memset_avx512_unaligned". */
static void write_symbol(struct signature *signature, const char *symbol)
{
    static const char *const kinds[] = {"_avx", "_evex", "_sse", "_erms"};
    struct output *out = signature->report->answers.out;
    size_t length = strlen(symbol);
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        const char *kind = strstr(symbol, kinds[i]);
        length = kind ? MIN(length, (size_t)(kind - symbol)) : length;
    }
    size_t underscores = length < strlen(symbol) ? strspn(symbol, "_") : 0;
    output_literal(out, signature->frames++ ? " < " : ": ");
    output_escaped(out, symbol + underscores, length - underscores, ESCAPE_MESSAGE);
}

/* The frames of the thread: native ones up to the first method, then methods. */
static void write_frames(struct signature *signature)
{
    const struct stack_frames *frames = &signature->report->dead->frames;
    bool managed = false;
    for (size_t i = 0; i < frames->count && signature->frames < SIGNATURE_FRAMES; i++) {
        const struct cdacq_frame *frame = &frames->items[i].shared->frame;
        const struct cdacq_method *method = &frames->items[i].shared->method;
        if (frame->kind == CDACQ_FRAME_MANAGED || frame->kind == CDACQ_FRAME_FUNCLET) {
            managed = true;
            if (!is_of_the_start(method) && (!method->name || !is_of_the_end(method->name, method->name_length)))
                write_method(signature, method);
        } else if (!managed && frame->kind == CDACQ_FRAME_NATIVE && frame->symbol &&
                   !is_of_the_end(frame->symbol, strlen(frame->symbol))) {
            write_symbol(signature, frame->symbol);
        }
    }
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
    static const char framework[] = "System.";
    for (size_t i = 0; stack && i < stack->frames.count; i++) {
        const struct cdacq_method *method = &stack->frames.items[i].shared->method;
        if (method->answer == CDACQ_ANSWER_MANAGED && method->name && method->name_length &&
            strncmp(method->name, framework, sizeof framework - 1) != 0)
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
    struct signature signature = {.report = report};
    char cause[SIGNAL_TEXT_SIZE];
    if (report->cause == REPORT_ALIVE && report->deadlocks.count)
        write_deadlock(report);
    else
        output_literal(report->answers.out, report_cause_text(report, cause));
    bool has_exception = report->cause == REPORT_UNHANDLED && write_exception(&signature);
    if (!has_exception && report->dead)
        write_frames(&signature);
}
