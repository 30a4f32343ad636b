#include <string.h>

#include "src/cli/base/runtimes.h"
#include "src/cli/base/json_writer.h"
#include "src/cli/base/memory.h"
#include "src/cli/base/target.h"
#include "src/cli/report/other_process.h"
#include "src/cli/report/report_verdict.h"
#include "src/cli/base/stack_writer.h"
#include "util/base.h"
#include "util/vector.h"

DEFINE_VECTOR(byte_list, char);

static void write_signal(const struct report *report, struct json_writer *w)
{
    const struct cdacq_process_info *process = &report->process;
    char text[SIGNAL_TEXT_SIZE];
    if (!process->signal) {
        json_null(w, "signal");
        return;
    }
    json_begin_object(w, "signal");
    json_number(w, "number", (uint64_t)process->signal);
    json_string(w, "name", signal_text(process->signal, text));
    json_known_address(w, "address", process->has_signal_address, process->signal_address);
    json_string(w, "reason", report_signal_reason(report));
    json_known_number(w, "sender_pid", process->sender_pid > 0, (uint64_t)process->sender_pid);
    json_end_object(w);
}

static int append_piece(const char *bytes, size_t length, void *context)
{
    char *copy = byte_list_append_items(context, length);
    if (!copy)
        out_of_memory();
    memcpy(copy, bytes, length);
    return 0;
}

static void write_text_and_flaws(struct report *report, struct json_writer *w, struct byte_list *text, unsigned flaws)
{
    report->flaws |= flaws;
    if (report->tells_runtime)
        json_number(w, "runtime", report->facts.runtime);
    if (text->count)
        json_lines(w, "text", text->items, text->count);
    else
        json_null(w, "text");
    json_bool(w, "overridden", flaws & CDACQ_EXCEPTION_OVERRIDDEN);
    json_bool(w, "cut", flaws & CDACQ_EXCEPTION_CUT);
    json_bool(w, "missing", flaws & CDACQ_EXCEPTION_MISSING);
    json_bool(w, "inferred", flaws & CDACQ_EXCEPTION_INFERRED);
    json_bool(w, "unconfirmed", text->count && flaws & CDACQ_EXCEPTION_UNVERIFIED);
    byte_list_deinit(text);
}

static void write_last_words(struct report *report, struct json_writer *w)
{
    struct cdacq_error error;
    struct byte_list text = {0};
    unsigned flaws = 0;
    if (!report_has_last_words(report)) {
        json_null(w, "last_words");
        return;
    }
    enum cdacq_status status = cdacq_session_write_last_words(report->session, append_piece, &text, &flaws, &error);
    if (status < 0)
        report_fail(report, error.message);
    json_begin_object(w, "last_words");
    write_text_and_flaws(report, w, &text, flaws);
    json_note(w, "error", status < 0 ? error.message : NULL);
    json_end_object(w);
}

/* An object with the text of an exception; `key` is NULL in an array. */
static void write_exception(struct report *report, struct json_writer *w, const char *key, uint64_t object)
{
    struct cdacq_exception exception = {.size = sizeof exception};
    struct cdacq_error error;
    struct byte_list text = {0};
    unsigned flaws = 0;
    enum cdacq_status status = cdacq_session_get_exception(report->session, object, &exception, &error);
    if (status >= 0)
        status = cdacq_session_write_exception(report->session, object, append_piece, &text, &flaws, &error);
    if (status < 0)
        report_fail(report, error.message);
    json_begin_object(w, key);
    json_address(w, "address", object);
    bool is_end = report->cause == REPORT_UNHANDLED && object == report->exception;
    if (is_end || !report_may_be_printed(report))
        json_bool(w, "unhandled", is_end);
    else
        json_null(w, "unhandled");
    json_note(w, "type", exception.type);
    write_text_and_flaws(report, w, &text, flaws);
    json_note(w, "error", status < 0 ? error.message : NULL);
    json_end_object(w);
}

static void write_nested(struct report *report, struct json_writer *w)
{
    for (size_t i = 0; i < report->nested.count && !output_failed(w->out); i++)
        write_exception(report, w, NULL, report->nested.items[i].object);
}

static void write_exceptions(struct report *report, struct json_writer *w)
{
    if (report->exception)
        write_exception(report, w, "exception", report->exception);
    else
        json_null(w, "exception");
    json_begin_array(w, "nested_exceptions");
    write_nested(report, w);
    for (size_t i = 0; i < report->other_count; i++) {
        write_nested(&report->others[i], w);
        report->flaws |= report->others[i].flaws;
    }
    json_end_array(w);
    json_note(w, "nested_exceptions_problem", report->nested_problem);
}

static const char *mode_text(enum cdacq_thread_mode mode)
{
    return mode == CDACQ_MODE_USER ? "user" : mode == CDACQ_MODE_KERNEL ? "kernel" : NULL;
}

/* The system call that a thread was in, or null. */
static void write_call(struct json_writer *w, const struct report *report, const struct cdacq_system_call *call)
{
    if (!call) {
        json_null(w, "call");
        return;
    }
    json_begin_object(w, "call");
    json_number(w, "number", call->number);
    json_string(w, "name", call->name);
    json_known_number(w, "descriptor", call->descriptor >= 0, (uint64_t)call->descriptor);
    json_note(w, "file", call->file);
    json_note(w, "local", call->local);
    json_note(w, "peer", call->peer);
    other_process_write_members(w, report, "child", call->child);
    other_process_write_members(w, report, "holder", call->holder);
    json_end_object(w);
}

/* How busy a thread was, and in how many samples it ran the method of the program that it ran last. */
static void write_load(struct json_writer *w, const struct busy_threads *busy, int tid, const struct stack *stack)
{
    bool is_measured = busy && busy->measured;
    const struct busy_thread *thread = is_measured ? busy_find(busy, tid) : NULL;
    const struct cdacq_method *method = report_program_method(stack);
    bool is_sampled = thread && busy->samples && method;
    json_known_number(w, "processor_percent", is_measured, is_measured ? busy_percent(busy, tid) : 0);
    json_known_number(w, "delayed_percent", is_measured && busy->counts_runs,
                      is_measured ? busy_delayed(busy, tid) : 0);
    json_known_number(w, "samples", is_sampled, is_sampled ? busy->samples + UINT64_C(1) : 0);
    json_known_number(w, "samples_in_method", is_sampled, is_sampled ? busy_samples_in(thread, method->name) : 0);
}

static void write_limit(struct json_writer *w, const struct cdacq_processor_limit *limit)
{
    if (!limit->quota_ns) {
        json_null(w, "processor_limit");
        return;
    }
    json_begin_object(w, "processor_limit");
    json_number(w, "quota_us", limit->quota_ns / 1000);
    json_number(w, "period_us", limit->period_ns / 1000);
    json_number(w, "periods", limit->periods);
    json_number(w, "throttled_periods", limit->throttled_periods);
    json_number(w, "throttled_us", limit->throttled_time_ns / 1000);
    json_end_object(w);
}

/* What was measured of the process as it ran, or null. */
static void write_activity(struct json_writer *w, const struct busy_threads *busy)
{
    if (!busy || !busy->measured) {
        json_null(w, "activity");
        return;
    }
    const struct busy_runtime *runtime = &busy->runtime;
    const struct busy_causes causes = busy_find_causes(busy);
    json_begin_object(w, "activity");
    json_number(w, "milliseconds", (uint64_t)(busy->seconds * 1e3));
    json_number(w, "looks", runtime->looks);
    json_known_number(w, "suspended_percent", runtime->looks && runtime->suspension_known,
                      runtime->looks ? 100 * runtime->suspended_looks / runtime->looks : 0);
    json_bool(w, "suspended_at_least", runtime->suspension_partly);
    json_known_number(w, "exceptions_at_least", runtime->looks, runtime->thrown);
    write_limit(w, &busy->limit);
    json_string(w, "slowed_by", busy_cause_word(&causes));
    json_end_object(w);
}

static void write_stack(struct report *report, struct json_writer *w, const struct stack *stack)
{
    json_begin_object(w, NULL);
    json_begin_array(w, "threads");
    for (size_t i = 0; i < stack->threads.count; i++) {
        json_begin_object(w, NULL);
        json_number(w, "tid", (uint64_t)stack->threads.items[i].tid);
        json_string(w, "name", stack->threads.items[i].name);
        if (stack->threads.items[i].has_state)
            json_bool(w, "foreground", stack->threads.items[i].is_foreground);
        else
            json_null(w, "foreground");
        json_string(w, "mode", mode_text(stack->threads.items[i].mode));
        write_call(w, report, stack->threads.items[i].call);
        json_bool(w, "suspends_others", stack->threads.items[i].suspends_others);
        json_bool(w, "delays_suspension", stack->threads.items[i].delays_suspension);
        write_load(w, report->busy, stack->threads.items[i].tid, stack);
        json_end_object(w);
    }
    json_end_array(w);
    json_bool(w, "died", stack == report->dead);
    json_begin_array(w, "frames");
    for (size_t i = 0; i < stack->frames.count; i++) {
        const struct stack_frame frame = stack_frame_at(stack, i);
        json_begin_object(w, NULL);
        stack_frame_write_members(&report->answers, w, &frame.frame, &frame.method);
        json_end_object(w);
    }
    json_end_array(w);
    json_note(w, "problem", stack->problem);
    json_end_object(w);
}

static void write_step(const struct next_step *step, void *context)
{
    json_note(context, NULL, step->text);
}

/* The runtimes of the process; "runtime" is the version of the one that ended it, or else of the first. */
static void write_runtimes(const struct report *report, struct json_writer *w)
{
    const struct report *one;
    json_begin_array(w, "runtimes");
    for (size_t next = 0; (one = report_next_runtime(report, &next));) {
        json_begin_object(w, NULL);
        json_number(w, "number", one->facts.runtime);
        json_string(w, "version", runtime_version_of(&one->facts));
        json_string(w, "path", one->facts.runtime_path);
        json_bool(w, "ended_process", one->end.kind != CDACQ_END_NONE);
        json_end_object(w);
    }
    json_end_array(w);
}

/* What is known without a stack. */
static void write_summary(const struct report *report, struct json_writer *w)
{
    const struct cdacq_process_info *process = &report->process;
    char cause[SIGNAL_TEXT_SIZE];
    json_string(w, "target", report->target_name);
    json_string(w, "kind", report->facts.kind == CDACQ_TARGET_CORE ? "core" : "process");
    json_known_number(w, "pid", process->pid > 0, (uint64_t)process->pid);
    json_string(w, "program", process->program);
    json_string(w, "arguments", process->arguments);
    json_bool(w, "arguments_cut", process->arguments_cut);
    json_bool(w, "stopped", process->is_stopped);
    json_bool(w, "frozen", process->is_frozen);
    json_string(w, "writer", report->facts.writer);
    json_known_number(w, "time", process->time_s > 0, (uint64_t)process->time_s);
    json_string(w, "machine", report->facts.elf_machine);
    json_string(w, "runtime", runtime_version_of(&report->facts));
    if (report->tells_runtime)
        write_runtimes(report, w);
    json_string(w, "cause", report_cause_text(report, cause));
    write_signal(report, w);
    json_string(w, "abort_message", process->abort_message);
}

static void write_signature(struct report *report, struct json_writer *w)
{
    struct output text, *out = report->answers.out;
    output_open_memory(&text);
    report->answers.out = &text;
    report_write_signature(report);
    report->answers.out = out;
    *output_reserve(&text, 1) = '\0';
    json_note(w, "signature", text.data);
    output_abandon(&text);
}

void report_write_signature_json(struct report *report)
{
    struct cdacq_exception exception = {.size = sizeof exception};
    struct json_writer writer = json_begin_line(report->answers.out), *w = &writer;
    if (report->exception)
        cdacq_session_get_exception(report->session, report->exception, &exception, NULL);
    write_summary(report, w);
    json_note(w, "exception_type", exception.type);
    write_signature(report, w);
    json_bool(w, "complete", report_is_complete(report) && !report_misses_waits(report));
    if (report_misses_waits(report) || (report->cause == REPORT_ALIVE && !report->deadlocks.count))
        json_note(w, "waits_problem", report->waits_problem);
    json_end_line(w);
}

static void write_verdict(const struct report *report, struct json_writer *w)
{
    struct report_verdict verdict;
    report_verdict_form(report, &verdict);
    report_verdict_write_json(&verdict, report, w);
    report_verdict_release(&verdict);
}

void report_write_json(struct report *report)
{
    struct json_writer writer = json_begin_line(report->answers.out), *w = &writer;
    write_summary(report, w);
    write_verdict(report, w);
    json_known_number(w, "died_tid", report->dead != NULL, (uint64_t)report->thread.tid);
    write_last_words(report, w);
    write_exceptions(report, w);
    report_write_heap_json(report, w);
    report_write_async_json(report, w);
    report_write_waits_json(report, w);
    write_activity(w, report->busy);
    json_begin_array(w, "stacks");
    for (size_t i = 0; i < report->stacks.list.count && !output_failed(w->out); i++)
        write_stack(report, w, report->stacks.list.items[i]);
    json_end_array(w);
    json_begin_array(w, "next_steps");
    if (report_needs_more(report))
        next_steps_visit(report->target, report->options, 0, write_step, w);
    report_visit_missing_pdbs(report, write_step, w);
    json_end_array(w);
    write_signature(report, w);
    json_end_line(w);
}
