/*
 * cmd_stack.c: shows every thread's frames, managed and native.
 */
#include <inttypes.h>

#include "src/cli/answers.h"
#include "src/cli/commands.h"
#include "src/cli/console.h"
#include "src/cli/json_writer.h"
#include "util/base.h"

struct work {
    struct cdacq_session *session;
    struct output out;
    struct answers answers;
    int tid;
    uint64_t threads, unanswered;
};

static const char *const sources[] = {
    [CDACQ_FRAME_BY_CONTEXT] = "context", [CDACQ_FRAME_BY_UNWIND] = "unwind", [CDACQ_FRAME_BY_CFI] = "cfi",
    [CDACQ_FRAME_BY_FRAME] = "frame",     [CDACQ_FRAME_BY_GUESS] = "guess",
};

static const char *const funclets[] = {
    [CDACQ_FUNCLET_NONE] = NULL,         [CDACQ_FUNCLET_CATCH] = "catch", [CDACQ_FUNCLET_FILTER] = "filter",
    [CDACQ_FUNCLET_FINALLY] = "finally", [CDACQ_FUNCLET_FAULT] = "fault",
};

static void write_native(struct output *out, const struct cdacq_frame *frame)
{
    output_printf(out, "0x%" PRIx64 " ", frame->pc);
    if (frame->symbol) {
        output_text(out, frame->symbol);
        output_printf(out, " +0x%" PRIx64, frame->symbol_offset);
        if (frame->module)
            output_text_between(out, " (", path_basename(frame->module), ")");
    } else {
        output_text(out, path_basename(frame->module));
        output_printf(out, "+0x%" PRIx64, frame->module_offset);
    }
    output_literal(out, "\n");
}

static void write_text(struct work *work, const struct cdacq_frame *frame, const struct cdacq_method *method)
{
    bool guessed = frame->by == CDACQ_FRAME_BY_GUESS;
    output_printf(&work->out, "#%u%s%*s ", frame->index, guessed ? "?" : "",
                  frame->index < 10 ? 2 - guessed : frame->index < 100 && !guessed, "");
    if (!frame->method && frame->module)
        write_native(&work->out, frame);
    else
        answers_write(&work->answers, method);
}

static void write_json(struct work *work, const struct cdacq_frame *frame, const struct cdacq_method *method)
{
    struct json_writer writer = json_begin(&work->out), *w = &writer;
    json_begin_object(w, NULL);
    json_number(w, "tid", (uint64_t)work->tid);
    json_number(w, "frame", frame->index);
    json_string(w, "by", sources[frame->by]);
    json_string(w, "funclet", funclets[frame->funclet]);
    json_address(w, "cfa", frame->cfa);
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
    json_end_object(w);
    json_end_line(w);
}

static int write_frame(const struct cdacq_frame *frame, void *context)
{
    struct work *work = context;
    struct cdacq_method none = {.size = sizeof none, .ip = frame->pc, .il_offset = CDACQ_OFFSET_UNKNOWN};
    const struct cdacq_method *method = frame->method ? frame->method : &none;
    if (work->answers.json)
        write_json(work, frame, method);
    else
        write_text(work, frame, method);
    return 0;
}

static int write_thread(const struct cdacq_thread *thread, void *context)
{
    struct work *work = context;
    struct cdacq_error error;
    work->tid = thread->tid;
    if (!work->answers.json)
        output_printf(&work->out, "%sTID %d:\n", work->threads ? "\n" : "", thread->tid);
    work->threads++;
    if (cdacq_session_visit_frames(work->session, thread, NULL, 0, write_frame, work, &error) >= 0)
        return 0;
    work->unanswered++;
    output_flush(&work->out);
    message("thread %d: cannot unwind further: %s", thread->tid, error.message);
    return 0;
}

static int list_stacks(const struct invocation *invocation, struct cdacq_target *target, struct cdacq_session *session)
{
    (void)target;
    struct work work = {.session = session};
    struct cdacq_error error;
    if (!output_open(&work.out, invocation->output))
        return EXIT_FAILED;
    answers_init(&work.answers, &work.out, invocation->json);
    if (cdacq_session_visit_threads(session, write_thread, &work, &error) < 0) {
        work.unanswered++;
        output_flush(&work.out);
        message("%s: %s", invocation->targets[0], error.message);
    }
    bool written = output_close(&work.out);
    uint64_t errors = work.answers.errors;
    answers_deinit(&work.answers);
    if (!written || !work.threads)
        return EXIT_FAILED;
    return errors || work.unanswered ? EXIT_PARTLY : EXIT_ANSWERED;
}

int cmd_stack(const struct invocation *invocation)
{
    return target_run(invocation, CDACQ_OPEN_STOP, list_stacks);
}
