/*
 * cmd_stack.c: shows the frames of every thread. Text shows identical stacks once and folds recursion; JSON has every
 * frame of every thread.
 */
#include <inttypes.h>

#include "src/cli/commands.h"
#include "src/cli/complaints.h"
#include "src/cli/console.h"
#include "src/cli/stack_writer.h"
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
    struct stack_doubts doubts;
    bool has_gap; /* before frames that were left out, after the last one that was not */
    bool failed;  /* a thread could not even be listed */
};

static bool is_managed(const struct cdacq_frame *frame)
{
    return frame->kind == CDACQ_FRAME_MANAGED || frame->kind == CDACQ_FRAME_FUNCLET;
}

static void write_json(struct work *work, const struct cdacq_frame *frame, const struct cdacq_method *method)
{
    struct json_writer writer = json_begin(&work->out), *w = &writer;
    json_begin_object(w, NULL);
    if (work->invocation->is_one_of_several)
        json_string(w, "target", target_display_name(work->invocation->targets[0]));
    json_number(w, "tid", (uint64_t)work->tid);
    stack_frame_write_members(&work->answers, w, frame, method);
    json_end_object(w);
    json_end_line(w);
}

static int visit_frame(const struct cdacq_frame *visited, void *context)
{
    struct work *work = context;
    struct cdacq_frame frame = *visited;
    stack_doubts_add(&work->doubts, &frame);
    work->has_gap |= frame.after_gap;
    if (work->invocation->managed && !is_managed(&frame))
        return 0;
    frame.after_gap = work->has_gap;
    work->has_gap = false;
    if (work->answers.json) {
        const struct cdacq_method none = stack_frame_no_method(&frame);
        write_json(work, &frame, frame.method ? frame.method : &none);
        return output_failed(&work->out);
    }
    stack_add_frame(&work->stacks, work->stack, &frame);
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
    work->doubts.stacks++;
    work->tid = thread->tid;
    work->stack = work->answers.json ? NULL : stack_new();
    work->has_gap = false;
    enum cdacq_status status = cdacq_session_visit_frames(work->session, thread, NULL, 0, visit_frame, work, &error);
    work->doubts.ended += status < 0;
    if (work->answers.json && status < 0 && work->doubts.ended <= COMPLAINTS_MAX) {
        output_flush(&work->out);
        message("thread %d: cannot unwind further: %s", thread->tid, error.message);
    } else if (work->stack) {
        stacks_add(&work->stacks, work->stack, thread, status < 0 ? error.message : NULL,
                   thread->died || invocation->each);
    }
    progress_step(&work->progress, work->doubts.stacks);
    return output_failed(&work->out);
}

static void write_stacks(struct work *work)
{
    for (size_t i = 0; i < work->stacks.list.count && !output_failed(&work->out); i++) {
        if (i)
            output_literal(&work->out, "\n");
        stack_write_text(&work->answers, work->stacks.list.items[i]);
    }
}

static void tell_doubts(const struct work *work, uint64_t errors)
{
    struct stack_doubts doubts = work->doubts;
    if (work->answers.json && doubts.ended <= COMPLAINTS_MAX)
        doubts.ended = 0; /* a message told of each */
    stack_doubts_tell(&doubts, work->answers.json ? "\"by\":\"guess\"" : "'?'", errors);
}

static int list_stacks(const struct invocation *invocation, struct cdacq_target *target, struct cdacq_session *session)
{
    struct work work = {.invocation = invocation, .session = session};
    struct cdacq_error error;
    if (!output_open(&work.out, invocation->output))
        return EXIT_FAILED;
    answers_init(&work.answers, &work.out, invocation->json);
    progress_begin(&work.progress, "threads", work.out.fd);
    expect_threads(&work.progress, session);
    work.out.is_held = target_is_pid(invocation->targets[0]); /* a process is stopped */
    enum cdacq_status status = cdacq_session_visit_threads(session, visit_thread, &work, &error);
    cdacq_target_resume(target);
    work.out.is_held = false;
    progress_end(&work.progress);
    if (!work.answers.json)
        write_stacks(&work);
    bool written = output_close_if(&work.out, work.doubts.stacks);
    uint64_t errors = work.answers.errors;
    answers_deinit(&work.answers);
    stacks_deinit(&work.stacks);
    tell_doubts(&work, errors);
    answers_tell_unread(&work.answers.unread);
    answers_tell_unconfirmed(work.answers.unconfirmed, "frame");
    if (status < 0) {
        /* The last stack may have ended at the same bound. */
        if (status != CDACQ_ERR_FUEL || !message_was_shown(error.message))
            message("%s", error.message);
    } else if (!work.doubts.stacks && invocation->thread)
        message("%s: no thread %d", invocation->targets[0], invocation->thread);
    else if (!work.doubts.stacks)
        message("%s: it has no threads; take a core, or a snapshot with --stacks", invocation->targets[0]);
    if (!written)
        return EXIT_FAILED;
    return errors || stack_doubts_any(&work.doubts) || status < 0 ? EXIT_PARTLY : EXIT_ANSWERED;
}

int cmd_stack(const struct invocation *invocation)
{
    return target_run(invocation, CDACQ_OPEN_STOP, list_stacks);
}
