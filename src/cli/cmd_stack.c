/*
 * cmd_stack.c: shows the frames of every thread. Text shows identical stacks once and folds recursion; JSON has every
 * frame of every thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/cli/answers.h"
#include "src/cli/commands.h"
#include "src/cli/console.h"
#include "src/cli/json_writer.h"
#include "src/cli/stacks.h"
#include "util/base.h"

struct work {
    const struct invocation *invocation;
    struct cdacq_session *session;
    struct output out;
    struct answers answers;
    struct progress progress;
    struct stacks stacks; /* of text */
    struct stack *stack;  /* the one that is being visited, of text */
    int tid;
    uint64_t threads, incomplete, guesses;
    bool failed; /* a thread could not even be listed */
};

/* ---- One frame ------------------------------------------------------------------------------------------------- */

static bool is_managed(const struct cdacq_frame *frame)
{
    return frame->kind == CDACQ_FRAME_MANAGED || frame->kind == CDACQ_FRAME_FUNCLET;
}

static const char *funclet_text(enum cdacq_funclet_kind kind)
{
    static const char *const texts[] = {[CDACQ_FUNCLET_CATCH] = "catch",
                                        [CDACQ_FUNCLET_FILTER] = "filter",
                                        [CDACQ_FUNCLET_FINALLY] = "finally",
                                        [CDACQ_FUNCLET_FAULT] = "fault"};
    return (size_t)kind < ARRAY_SIZE(texts) ? texts[kind] : NULL;
}

static const char *source_text(enum cdacq_frame_source by)
{
    static const char *const texts[] = {[CDACQ_FRAME_BY_CONTEXT] = "context",
                                        [CDACQ_FRAME_BY_UNWIND] = "unwind",
                                        [CDACQ_FRAME_BY_CFI] = "cfi",
                                        [CDACQ_FRAME_BY_FRAME] = "frame",
                                        [CDACQ_FRAME_BY_GUESS] = "guess"};
    return texts[by];
}

/* What the answer says of a frame that is no managed code. */
static struct cdacq_method no_method(const struct cdacq_frame *frame)
{
    return (struct cdacq_method){
        .size = sizeof(struct cdacq_method), .ip = frame->pc, .il_offset = CDACQ_OFFSET_UNKNOWN};
}

static void write_native_text(struct output *out, const struct cdacq_frame *frame)
{
    output_printf(out, "0x%" PRIx64 " ", frame->pc);
    if (frame->symbol) {
        output_text(out, frame->symbol);
        output_printf(out, " +0x%" PRIx64, frame->symbol_offset);
        if (frame->module)
            output_text_between(out, " (", path_basename(frame->module), ")");
    } else {
        output_text_between(out, "", path_basename(frame->module), "");
        output_printf(out, "+0x%" PRIx64, frame->module_offset);
    }
    output_literal(out, frame->kind == CDACQ_FRAME_SIGNAL ? " [signal]\n" : "\n");
}

static void write_text(struct work *work, const struct stack_frame *item)
{
    struct output *out = &work->out;
    const struct cdacq_frame *frame = &item->frame;
    char number[24];
    snprintf(number, sizeof number, "#%u%s", frame->index, frame->by == CDACQ_FRAME_BY_GUESS ? "?" : "");
    output_printf(out, "%-4s ", number);
    const char *funclet = funclet_text(frame->funclet);
    if (funclet)
        output_printf(out, "[%s] ", funclet);
    if (frame->method || (!frame->symbol && !frame->module))
        answers_write(&work->answers, &item->method);
    else
        write_native_text(out, frame);
}

static void write_json(struct work *work, const struct cdacq_frame *frame, const struct cdacq_method *method)
{
    struct json_writer writer = json_begin(&work->out), *w = &writer;
    json_begin_object(w, NULL);
    json_number(w, "tid", (uint64_t)work->tid);
    json_number(w, "frame", frame->index);
    if (frame->symbol || frame->module) {
        json_begin_object(w, "native");
        json_string(w, "symbol", frame->symbol);
        json_number(w, "offset", frame->symbol ? frame->symbol_offset : frame->module_offset);
        json_string(w, "module", frame->module);
        json_end_object(w);
    } else {
        json_null(w, "native");
    }
    answers_write_members(&work->answers, w, method);
    json_string(w, "by", source_text(frame->by));
    json_string(w, "funclet", funclet_text(frame->funclet));
    json_address(w, "cfa", frame->cfa);
    json_end_object(w);
    json_end_line(w);
}

static int visit_frame(const struct cdacq_frame *frame, void *context)
{
    struct work *work = context;
    work->guesses += frame->by == CDACQ_FRAME_BY_GUESS;
    if (work->invocation->managed && !is_managed(frame))
        return 0;
    struct cdacq_method none = no_method(frame);
    if (work->answers.json) {
        write_json(work, frame, frame->method ? frame->method : &none);
        return output_failed(&work->out);
    }
    stack_add_frame(&work->stacks, work->stack, frame);
    if (!frame->method)
        work->stack->frames.items[work->stack->frames.count - 1].method = none;
    return 0;
}

/* ---- Threads --------------------------------------------------------------------------------------------------- */

static int visit_thread(const struct cdacq_thread *thread, void *context)
{
    struct work *work = context;
    const struct invocation *invocation = work->invocation;
    struct cdacq_error error;
    if (invocation->thread && invocation->thread != thread->tid)
        return 0;
    work->threads++;
    work->tid = thread->tid;
    work->stack = work->answers.json ? NULL : stack_new();
    enum cdacq_status status = cdacq_session_visit_frames(work->session, thread, NULL, 0, visit_frame, work, &error);
    work->incomplete += status < 0;
    if (work->answers.json && status < 0) {
        output_flush(&work->out);
        message("thread %d: cannot unwind further: %s", thread->tid, error.message);
    } else if (work->stack) {
        stacks_add(&work->stacks, work->stack, thread, status < 0 ? error.message : NULL,
                   thread->died || invocation->each);
    }
    progress_step(&work->progress, work->threads);
    return output_failed(&work->out);
}

/* "TID 12 "worker", 13:" or "TID 12, died of SIGSEGV:" */
static void write_heading(struct output *out, const struct stack *stack)
{
    output_literal(out, "TID ");
    for (size_t i = 0; i < stack->threads.count; i++) {
        const struct stack_thread *thread = &stack->threads.items[i];
        output_printf(out, "%s%d", i ? ", " : "", thread->tid);
        if (thread->name && thread->name[0])
            output_text_between(out, " \"", thread->name, "\"");
        const char *signal = thread->died && thread->signal ? sigabbrev_np(thread->signal) : NULL;
        if (signal)
            output_printf(out, ", died of SIG%s", signal);
        else if (thread->died)
            output_printf(out, ", died of signal %d", thread->signal);
    }
    if (stack->threads.count > 1)
        output_printf(out, " (%zu threads)", stack->threads.count);
    output_literal(out, ":\n");
}

static void write_stack(struct work *work, const struct stack *stack)
{
    struct output *out = &work->out;
    write_heading(out, stack);
    for (size_t i = 0; i < stack->frames.count;) {
        struct stack_run run = stack_run_at(stack, i);
        for (size_t k = 0; k < run.period; k++)
            write_text(work, &stack->frames.items[i + k]);
        i += run.period * run.count;
        const char *plural = run.period > 1 ? "s" : "";
        if (run.count > 1)
            output_printf(out, "     ... %zu frame%s above repeated %zu times more, up to #%u\n", run.period, plural,
                          run.count - 1, stack->frames.items[i - 1].frame.index);
    }
    if (stack->problem) {
        output_note_between(out, "     ... cannot unwind further: ", stack->problem, "\n");
    }
}

static void write_stacks(struct work *work)
{
    for (size_t i = 0; i < work->stacks.list.count && !output_failed(&work->out); i++) {
        if (i)
            output_literal(&work->out, "\n");
        write_stack(work, work->stacks.list.items[i]);
    }
}

static void report_doubts(const struct work *work)
{
    if (work->guesses)
        message("%" PRIu64 " frames rest on a guess; each is marked with %s", work->guesses,
                work->answers.json ? "\"by\":\"guess\"" : "'?'");
    if (work->incomplete && !work->answers.json)
        message("%" PRIu64 " of %" PRIu64 " stacks end before the outermost frame", work->incomplete, work->threads);
}

static int list_stacks(const struct invocation *invocation, struct cdacq_target *target, struct cdacq_session *session)
{
    (void)target;
    struct work work = {.invocation = invocation, .session = session};
    struct cdacq_error error;
    if (!output_open(&work.out, invocation->output))
        return EXIT_FAILED;
    answers_init(&work.answers, &work.out, invocation->json);
    progress_begin(&work.progress, "threads", work.out.fd);
    enum cdacq_status status = cdacq_session_visit_threads(session, visit_thread, &work, &error);
    progress_end(&work.progress);
    if (!work.answers.json)
        write_stacks(&work);
    bool written = output_close(&work.out);
    uint64_t errors = work.answers.errors;
    answers_deinit(&work.answers);
    stacks_deinit(&work.stacks);
    report_doubts(&work);
    if (status < 0)
        message("%s", error.message);
    else if (!work.threads && invocation->thread)
        message("%s: no thread %d", invocation->targets[0], invocation->thread);
    else if (!work.threads)
        message("%s: it has no threads; take a core, or a snapshot with --stacks", invocation->targets[0]);
    if (!written || !work.threads)
        return EXIT_FAILED;
    return errors || work.incomplete || work.guesses || status < 0 ? EXIT_PARTLY : EXIT_ANSWERED;
}

int cmd_stack(const struct invocation *invocation)
{
    return target_run(invocation, CDACQ_OPEN_STOP, list_stacks);
}
