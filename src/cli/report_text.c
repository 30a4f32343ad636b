#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/cli/report.h"
#include "src/cli/stack_writer.h"
#include "util/base.h"

const char *report_cause_text(const struct report *report, char buffer[SIGNAL_TEXT_SIZE])
{
    switch (report->cause) {
    case REPORT_UNHANDLED:
        return "unhandled";
    case REPORT_FATAL:
        return "fatal";
    case REPORT_SIGNAL:
        return signal_text(report->process.signal, buffer);
    default:
        return "alive";
    }
}

const char *report_signal_reason(const struct report *report)
{
    int code = report->process.signal_code;
    if (report->process.signal == SIGSEGV && code == SEGV_MAPERR)
        return "nothing is mapped there";
    if (report->process.signal == SIGSEGV && code == SEGV_ACCERR)
        return "the access is not permitted";
    if (report->process.signal == SIGSEGV && code == SI_KERNEL)
        return "of an address that no memory can have: a wild pointer or a damaged heap";
    if (report->process.signal == SIGBUS && code == BUS_ADRERR)
        return "beyond the end of a file that is mapped";
    if (report->process.signal == SIGFPE && code == FPE_INTDIV)
        return "integer division by zero";
    return NULL;
}

static void label(struct output *out, const char *text)
{
    output_style(out, STYLE_HEADING);
    output_printf(out, "%-12s", text);
    output_style(out, STYLE_NONE);
}

static void write_time(struct output *out, int64_t time)
{
    time_t seconds = (time_t)time;
    struct tm parts;
    char text[64];
    if (time && gmtime_r(&seconds, &parts) && strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts))
        output_printf(out, ", %s", text);
}

static void write_process(const struct report *report, struct output *out)
{
    const struct cdacq_process_info *process = &report->process;
    const char *shown = process->arguments ? process->arguments : process->program ? process->program : process->name;
    if (shown) {
        label(out, "program");
        output_text_between(out, "", shown, process->arguments_cut && process->arguments ? "...\n" : "\n");
    }
    label(out, report->facts.kind == CDACQ_TARGET_CORE ? "core" : "process");
    output_text(out, report->target_name);
    if (process->pid && report->facts.kind == CDACQ_TARGET_CORE)
        output_printf(out, ", of process %d", process->pid);
    if (report->facts.writer)
        output_printf(out, ", written by %s", report->facts.writer);
    write_time(out, process->time);
    output_literal(out, "\n");
    label(out, "runtime");
    output_literal(out, report->facts.runtime_version || report->facts.runtime_release ? ".NET " : "unknown");
    if (report->facts.runtime_version || report->facts.runtime_release)
        output_text(out, report->facts.runtime_version ? report->facts.runtime_version : report->facts.runtime_release);
    if (report->facts.elf_machine)
        output_text_between(out, ", ", report->facts.elf_machine, "");
    output_literal(out, "\n");
}

static void write_abort_message(const struct report *report, struct output *out)
{
    if (!report->process.abort_message)
        return;
    label(out, "abort");
    output_text(out, report->process.abort_message);
    output_literal(out, "\n");
}

/* The reason is outside of the program, whatever the stacks show. */
static void write_stopped(const struct report *report, struct output *out)
{
    if (report->process.is_frozen) {
        label(out, "state");
        output_styled(out, STYLE_ERROR, "frozen");
        output_literal(out, ": the freezer of its control group holds it, as 'docker pause' does\n");
    }
    if (!report->process.is_stopped)
        return;
    label(out, "state");
    output_styled(out, STYLE_ERROR, "stopped by a signal");
    output_printf(out, ": 'kill -CONT %d' lets it run\n", report->process.pid);
}

static void write_signal(const struct report *report, struct output *out)
{
    const struct cdacq_process_info *process = &report->process;
    const char *reason = report_signal_reason(report);
    char text[SIGNAL_TEXT_SIZE];
    if (!process->signal)
        return;
    label(out, "signal");
    output_styled(out, STYLE_ERROR, signal_text(process->signal, text));
    if (process->has_signal_address)
        output_printf(out, " at 0x%" PRIx64, process->signal_address);
    if (reason)
        output_printf(out, " (%s)", reason);
    if (process->sender_pid && process->sender_pid == process->pid)
        output_literal(out, ", sent by the process itself");
    else if (process->sender_pid)
        output_printf(out, ", sent by process %d of user %u", process->sender_pid, process->sender_uid);
    output_literal(out, "\n");
}

/* Lines are written as they are; what would change the terminal is escaped. */
static int write_piece(const char *bytes, size_t length, void *context)
{
    struct output *out = context;
    while (length) {
        const char *newline = memchr(bytes, '\n', length);
        size_t n = newline ? (size_t)(newline - bytes) : length;
        output_escaped(out, bytes, n, ESCAPE_MESSAGE);
        if (newline)
            output_literal(out, "\n");
        n += newline != NULL;
        bytes += n;
        length -= n;
    }
    return output_failed(out);
}

static void write_error(struct output *out, const char *problem)
{
    output_styled(out, STYLE_ERROR, "? [error] ");
    output_note_between(out, "", problem, "\n");
}

static void write_flaws(struct report *report, struct output *out, unsigned flaws)
{
    report->flaws |= flaws;
    bool verified = cdacq_session_text_verified(report->session);
    if (!flaws && verified)
        return;
    output_style(out, STYLE_DOUBT);
    if (flaws & CDACQ_EXCEPTION_OVERRIDDEN)
        output_literal(out, "(a type of the program makes its own text: stored fields are shown instead)\n");
    if (flaws & CDACQ_EXCEPTION_CUT)
        output_literal(out, "(the text is cut: it is too long, too deep or circular)\n");
    if (flaws & CDACQ_EXCEPTION_MISSING)
        output_literal(out, "(parts of the text are missing: they cannot be read)\n");
    if (flaws & CDACQ_EXCEPTION_INFERRED)
        output_literal(out, "(a part of the text was found by a search or depends on the culture: it can be wrong)\n");
    if (!verified)
        output_literal(out, "(names or lines come from files that the target cannot confirm)\n");
    output_style(out, STYLE_NONE);
}

/* Some of the runtime's texts do not end their last line. */
struct words {
    struct output *out;
    char last;
};

static int write_words_piece(const char *bytes, size_t length, void *context)
{
    struct words *words = context;
    words->last = length ? bytes[length - 1] : words->last;
    return write_piece(bytes, length, words->out);
}

bool report_has_last_words(const struct report *report)
{
    return report->end.kind != CDACQ_END_NONE && report->end.kind != CDACQ_END_TERMINATED;
}

static void write_last_words(struct report *report, struct output *out)
{
    struct words words = {.out = out, .last = '\n'};
    unsigned flaws = 0;
    struct cdacq_error error;
    if (!report_has_last_words(report))
        return;
    output_literal(out, "\n");
    if (cdacq_session_write_last_words(report->session, write_words_piece, &words, &flaws, &error) < 0) {
        write_error(out, error.message);
        report_fail(report, error.message);
    }
    if (words.last != '\n')
        output_literal(out, "\n");
    write_flaws(report, out, flaws);
}

bool report_may_be_printed(const struct report *report)
{
    const char *version = report->facts.runtime_version ? report->facts.runtime_version : report->facts.runtime_release;
    return report->cause != REPORT_ALIVE && !(version && strncmp(version, "8.", 2) == 0);
}

/* The exceptions in whose handling that happened. */
static void write_nested(struct report *report, struct output *out)
{
    for (size_t i = 0; i < report->nested.count && !output_failed(out); i++) {
        const struct report_nested *nested = &report->nested.items[i];
        struct cdacq_exception exception = {.size = sizeof exception};
        struct words words = {.out = out, .last = '\n'};
        struct cdacq_error error;
        unsigned flaws = 0;
        enum cdacq_status status = cdacq_session_get_exception(report->session, nested->object, &exception, &error);
        const char *type = status >= 0 && exception.type ? exception.type : "an exception";
        if (nested->shown) {
            output_note_between(out, "\nwhile ", type, ", an inner exception of the above, was handled\n");
            continue;
        }
        if (nested->is_last)
            output_note_between(out, "\nafter ", type,
                                ", the last exception of the thread, which may have been handled before:\n");
        else
            output_note_between(out, "\nwhile ", type,
                                report_may_be_printed(report) ? " was handled, or, unhandled, its finally blocks ran:\n"
                                                              : " was handled:\n");
        if (status >= 0)
            status = cdacq_session_write_exception(report->session, nested->object, write_words_piece, &words, &flaws,
                                                   &error);
        if (words.last != '\n' || status >= 0)
            output_literal(out, "\n");
        if (status < 0) {
            write_error(out, error.message);
            report_fail(report, error.message);
        } else {
            write_flaws(report, out, flaws);
        }
    }
    if (report->nested_problem)
        output_note_between(out, "\n(exceptions that the thread was handling may be missing: ", report->nested_problem,
                            ")\n");
}

static void write_stacks(struct report *report, struct output *out)
{
    struct ordered_stacks ordered = report_order_stacks(report);
    for (size_t i = 0; i < ordered.count && !output_failed(out); i++) {
        output_literal(out, "\n");
        stack_write_text(&report->answers, ordered.items[i].stack);
    }
    free(ordered.items);
}

static void write_dead_stack(struct report *report, struct output *out)
{
    if (!report->dead)
        return;
    output_literal(out, "\n");
    stack_write_text(&report->answers, report->dead);
}

/* In the text itself, which people pass on without the messages. */
static void write_unconfirmed(const struct report *report, struct output *out)
{
    if (!report->answers.unconfirmed)
        return;
    output_style(out, STYLE_DOUBT);
    output_printf(out, "\n(%" PRIu64 " frame%s files that the target cannot confirm: 'cdacq info' names the files)\n",
                  report->answers.unconfirmed, report->answers.unconfirmed == 1 ? " uses" : "s use");
    output_style(out, STYLE_NONE);
}

struct steps {
    struct output *out;
    unsigned count;
};

static void write_step(const struct next_step *step, void *context)
{
    struct steps *steps = context;
    struct output *out = steps->out;
    if (!steps->count++)
        output_literal(out, "\n");
    label(out, "next");
    output_note_between(out, "", step->text, "\n");
}

void report_write_text(struct report *report, bool brief)
{
    struct output *out = report->answers.out;
    if (!brief)
        write_process(report, out);
    write_stopped(report, out);
    write_signal(report, out);
    write_abort_message(report, out);
    write_last_words(report, out);
    write_nested(report, out);
    report_write_waits_text(report, brief);
    if (brief) {
        write_dead_stack(report, out);
    } else {
        report_write_suspension_text(report);
        report_write_busy_text(report);
        write_stacks(report, out);
    }
    write_unconfirmed(report, out);
    struct steps steps = {.out = out};
    if (!brief && report_needs_more(report))
        next_steps_visit(report->target, report->options, 0, write_step, &steps);
}
