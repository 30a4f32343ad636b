#include <string.h>

#include "src/cli/report.h"
#include "src/cli/stack_writer.h"
#include "util/base.h"

enum { SIGNATURE_FRAMES = 5 };

struct signature {
    struct report *report;
    unsigned frames;
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
    output_literal(out, signature->frames++ ? " < " : ": ");
    if (method->name)
        write_name(out, method->name, method->name_length);
    else
        output_literal(out, "?");
}

static int write_exception_frame(const struct cdacq_exception_frame *frame, void *context)
{
    uint64_t *ips = context;
    if (ips[0] == SIGNATURE_FRAMES)
        return 1;
    ips[++ips[0]] = frame->ip;
    return 0;
}

/* The methods of the exception's own stack trace: those of the thread end where it was rethrown. False if it has none. */
static bool write_exception(struct signature *signature)
{
    struct report *report = signature->report;
    struct cdacq_exception exception = {.size = sizeof exception};
    uint64_t ips[1 + SIGNATURE_FRAMES] = {0}; /* their number, then they */
    if (cdacq_session_get_exception(report->session, report->exception, &exception, NULL) < 0)
        return false;
    output_literal(report->answers.out, " ");
    output_note(report->answers.out, exception.type ? exception.type : "?");
    (void)cdacq_session_visit_exception_frames(report->session, report->exception, write_exception_frame, ips, NULL);
    for (uint64_t i = 0; i < ips[0]; i++) {
        struct cdacq_method method = {.size = sizeof method};
        if (cdacq_session_method_at(report->session, ips[i + 1], &method, NULL) == CDACQ_OK)
            write_method(signature, &method);
    }
    return signature->frames > 0;
}

/* Frames of the C library, and of the runtime without a symbol, are how a thread died, not why. */
static void write_frames(struct signature *signature)
{
    const struct stack_frames *frames = &signature->report->dead->frames;
    struct output *out = signature->report->answers.out;
    for (size_t i = 0; i < frames->count && signature->frames < SIGNATURE_FRAMES; i++) {
        const struct cdacq_frame *frame = &frames->items[i].frame;
        if (frame->kind == CDACQ_FRAME_MANAGED || frame->kind == CDACQ_FRAME_FUNCLET) {
            write_method(signature, &frames->items[i].method);
        } else if (frame->kind == CDACQ_FRAME_NATIVE && frame->symbol) {
            output_literal(out, signature->frames++ ? " < " : ": ");
            output_text(out, frame->symbol);
        }
    }
}

void report_write_signature(struct report *report)
{
    struct signature signature = {.report = report};
    char cause[SIGNAL_TEXT_SIZE];
    output_literal(report->answers.out, report_cause_text(report, cause));
    if ((!report->exception || !write_exception(&signature)) && report->dead)
        write_frames(&signature);
    output_literal(report->answers.out, "\n");
}
