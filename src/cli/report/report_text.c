#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/report/report.h"
#include "src/cli/report/report_verdict.h"
#include "src/cli/base/runtimes.h"
#include "src/cli/base/stack_writer.h"
#include "util/base.h"

enum { LINES_BEFORE_TRACE_MAX = 20 /* of the last words, on the first screen */, COLUMNS = 80 };

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

static void write_time(struct output *out, int64_t time)
{
    char text[OUTPUT_TIME_SIZE];
    if (time && output_form_time(time, text))
        output_printf(out, ", %s", text);
}

static void write_runtimes(const struct report *report, struct output *out)
{
    const struct report *one;
    for (size_t next = 0, count = 0; (one = report_next_runtime(report, &next)); count++) {
        output_label(out, count ? "" : report->tells_runtime ? "runtimes" : "runtime");
        if (report->tells_runtime)
            output_printf(out, "%u: ", one->facts.runtime);
        runtimes_put_version(out, &one->facts);
        if (one->facts.elf_machine)
            output_text_between(out, ", ", one->facts.elf_machine, "");
        output_literal(out, "\n");
    }
}

static void write_process(const struct report *report, struct output *out)
{
    const struct cdacq_process_info *process = &report->process;
    const char *shown = process->arguments ? process->arguments : process->program ? process->program : process->name;
    if (shown) {
        output_label(out, "program");
        output_text_between(out, "", shown, process->arguments_cut && process->arguments ? "...\n" : "\n");
    }
    output_label(out, report->facts.kind == CDACQ_TARGET_CORE ? "core" : "process");
    output_text(out, report->target_name);
    if (process->pid && report->facts.kind == CDACQ_TARGET_CORE)
        output_printf(out, ", of process %d", process->pid);
    if (report->facts.writer)
        output_printf(out, ", written by %s", report->facts.writer);
    write_time(out, process->time_s);
    output_literal(out, "\n");
    write_runtimes(report, out);
}

/* The runtime that ended the process, where there are several. */
static void write_culprit(const struct report *report, struct output *out)
{
    if (!report->tells_runtime || report->end.kind == CDACQ_END_NONE)
        return;
    output_label(out, "ended by");
    output_printf(out, "runtime %u, ", report->facts.runtime);
    runtimes_put_version(out, &report->facts);
    output_literal(out, "\n");
}

static void write_abort_message(const struct report *report, struct output *out)
{
    if (!report->process.abort_message)
        return;
    output_label(out, "abort");
    output_text(out, report->process.abort_message);
    output_literal(out, "\n");
}

/* The reason is outside of the program, whatever the stacks show. */
static void write_stopped(const struct report *report, struct output *out)
{
    if (report->process.is_frozen) {
        output_label(out, "state");
        output_styled(out, STYLE_ERROR, "frozen");
        output_literal(out, ": the freezer of its control group holds it, as 'docker pause' does\n");
    }
    if (!report->process.is_stopped)
        return;
    output_label(out, "state");
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
    output_label(out, "signal");
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

/* Tabs and lines are written as they are; what would change the terminal is escaped. */
static int write_piece(const char *bytes, size_t length, void *context)
{
    struct output *out = context;
    output_escaped(out, bytes, length, ESCAPE_TEXT);
    return output_failed(out);
}

static void write_error(struct output *out, const char *problem)
{
    output_styled(out, STYLE_ERROR, "? [error] ");
    output_note_between(out, "", problem, "\n");
}

static void write_doubt(struct output *out, bool is_there, const char *text)
{
    if (!is_there)
        return;
    output_styled(out, STYLE_DOUBT, text);
    output_literal(out, "\n");
}

static void write_flaws(struct report *report, struct output *out, unsigned flaws)
{
    report->flaws |= flaws;
    write_doubt(out, flaws & CDACQ_EXCEPTION_OVERRIDDEN,
                "(a type of the program makes its own text: stored fields are shown instead)");
    write_doubt(out, flaws & CDACQ_EXCEPTION_CUT, "(the text is cut: it is too long, too deep or circular)");
    write_doubt(out, flaws & CDACQ_EXCEPTION_MISSING, "(parts of the text are missing: they cannot be read)");
    write_doubt(
        out, flaws & CDACQ_EXCEPTION_INFERRED,
        "(a part of the text was found by a search, or depends on the culture or on resources: it can be wrong)");
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

/* The search for the first frame in a text of the runtime. */
struct trace_search {
    size_t lines, column, matched; /* lines as a terminal of usual width has them */
    bool found;
};

static int seek_trace(const char *bytes, size_t length, void *context)
{
    static const char frame[] = "   at ";
    struct trace_search *search = context;
    for (size_t i = 0; i < length && !search->found && search->lines <= LINES_BEFORE_TRACE_MAX; i++) {
        if (bytes[i] == '\n') {
            search->lines++;
            search->column = search->matched = 0;
            continue;
        }
        search->matched += search->matched == search->column && bytes[i] == frame[search->matched];
        search->found = search->matched == strlen(frame);
        search->lines += ++search->column % COLUMNS == 0;
    }
    return search->found || search->lines > LINES_BEFORE_TRACE_MAX;
}

/* Whether the last words have their first frame, if any, so far down that the first screen does not show it. */
static bool hides_its_trace(const struct report *report)
{
    struct trace_search search = {0};
    unsigned flaws;
    if (report->dead && report_has_last_words(report))
        (void)cdacq_session_write_last_words(report->session, seek_trace, &search, &flaws, NULL);
    return search.lines > LINES_BEFORE_TRACE_MAX;
}

bool report_may_be_printed(const struct report *report)
{
    const char *version = runtime_version_of(&report->facts);
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
        output_literal(out, "\n");
        if (report->tells_runtime)
            output_printf(out, "in runtime %u, ", report->facts.runtime);
        if (nested->shown) {
            output_note_between(out, "while ", type, ", an inner exception of the above, was handled\n");
            continue;
        }
        if (nested->is_last)
            output_note_between(out, "after ", type,
                                ", the last exception of the thread, which may have been handled before:\n");
        else
            output_note_between(out, "while ", type,
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

static void write_stack(struct report *report, struct output *out, const struct stack *stack)
{
    bool died_in_native_code = stack == report->dead && !report_has_last_words(report);
    output_literal(out, "\n");
    stack_write_text(&report->answers, stack, died_in_native_code ? NATIVE_FRAMES_OF_INNER_ROW : NATIVE_FRAMES_FOLDED);
}

/* The stacks from one rank to another. */
static void write_stacks(struct report *report, struct output *out, const struct ordered_stacks *ordered,
                         enum stack_rank from, enum stack_rank to)
{
    for (size_t i = 0; i < ordered->count && !output_failed(out); i++)
        if (ordered->items[i].rank >= from && ordered->items[i].rank <= to)
            write_stack(report, out, ordered->items[i].stack);
}

static void write_dead_stack(struct report *report, struct output *out)
{
    if (report->dead)
        write_stack(report, out, report->dead);
}

/* In the text itself, which people pass on without the messages; once, for stacks and exceptions. */
static void write_unconfirmed(const struct report *report, struct output *out)
{
    uint64_t count = report->answers.unconfirmed;
    if (!count && !(report->flaws & CDACQ_EXCEPTION_UNVERIFIED))
        return;
    output_style(out, STYLE_DOUBT);
    if (count)
        output_printf(out, "\n(%" PRIu64 " frame%s", count, count == 1 ? " uses" : "s use");
    else
        output_literal(out, "\n(the text of an exception uses");
    output_literal(out, " files that the target cannot confirm: 'cdacq info' names the files)\n"
                        "(names and lines are right if these are the files that the process ran, and can be wrong if "
                        "the program or\n its runtime was updated since)\n");
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
    output_label(out, "next");
    output_note_between(out, "", step->text, "\n");
}

static void write_verdict(struct report *report, struct output *out)
{
    struct report_verdict verdict;
    report_verdict_form(report, &verdict);
    report->verdict_tid = verdict.tid;
    report->verdict_holder = verdict.holder;
    report->tells_pending = verdict.tells_pending;
    report_verdict_write_text(&verdict, report, out);
    report_verdict_release(&verdict);
}

/*
 * The stacks that show why the process ended or hangs, without those that were shown already, then what all threads do,
 * then the other stacks.
 */
static void write_threads(struct report *report, struct output *out, enum stack_rank from)
{
    struct ordered_stacks ordered = report_order_stacks(report);
    write_stacks(report, out, &ordered, from, STACK_HANGS);
    report_write_waits_text(report, false);
    report_write_suspension_text(report);
    report_write_busy_text(report);
    write_stacks(report, out, &ordered, STACK_BUSY, STACK_OTHER);
    report_write_idle_text(report, &ordered);
    free(ordered.items);
}

void report_write_text(struct report *report, bool brief)
{
    struct output *out = report->answers.out;
    bool stack_first = !brief && hides_its_trace(report);
    if (!brief) {
        write_verdict(report, out);
        write_process(report, out);
    }
    write_stopped(report, out);
    write_signal(report, out);
    write_abort_message(report, out);
    write_culprit(report, out);
    if (stack_first)
        write_dead_stack(report, out);
    write_last_words(report, out);
    write_nested(report, out);
    for (size_t i = 0; i < report->other_count; i++) {
        write_nested(&report->others[i], out);
        report->flaws |= report->others[i].flaws;
    }
    report_write_heap_text(report, out);
    if (!brief)
        report_write_async_text(report, out);
    report_write_deadlocks_text(report, brief);
    if (brief) {
        report_write_waits_text(report, brief);
        write_dead_stack(report, out);
    } else {
        write_threads(report, out, stack_first ? STACK_HANGS : STACK_DEAD);
    }
    write_unconfirmed(report, out);
    struct steps steps = {.out = out};
    if (!brief && report_needs_more(report))
        next_steps_visit(report->target, report->options, 0, write_step, &steps);
    if (!brief)
        report_visit_missing_pdbs(report, write_step, &steps);
}
