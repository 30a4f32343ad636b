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

/* The methods of the exception's own stack trace: those of the thread end where it was rethrown. False if it has none. */
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
        const struct cdacq_frame *frame = &frames->items[i].frame;
        const struct cdacq_method *method = &frames->items[i].method;
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

void report_write_signature(struct report *report)
{
    struct signature signature = {.report = report};
    char cause[SIGNAL_TEXT_SIZE];
    output_literal(report->answers.out, report_cause_text(report, cause));
    bool has_exception = report->cause == REPORT_UNHANDLED && write_exception(&signature);
    if (!has_exception && report->dead)
        write_frames(&signature);
    output_literal(report->answers.out, "\n");
}
