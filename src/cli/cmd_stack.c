/*
 * cmd_stack.c: shows every thread's frames. libdwfl unwinds them and names the native ones.
 */
#include <inttypes.h>

#include "src/cli/answers.h"
#include "src/cli/commands.h"
#include "src/cli/console.h"
#include "src/cli/json_writer.h"
#include "src/cli/native_stack.h"
#include "util/base.h"

struct work {
    struct cdacq_session *session;
    struct output out;
    struct answers answers;
    uint64_t threads, unanswered;
};

static void begin_thread(pid_t tid, void *context)
{
    struct work *work = context;
    work->threads++;
    if (!work->answers.json)
        output_printf(&work->out, "%sTID %d:\n", work->threads > 1 ? "\n" : "", tid);
}

/*
 * Finds the method of a frame. A call that never returns may be a method's last instruction, so the byte before the
 * return address is looked up.
 */
static void look_up(struct work *work, const struct native_frame *frame, struct cdacq_method *ret)
{
    uint64_t ip = frame->pc - frame->is_call;
    cdacq_session_methods_at(work->session, &ip, 1, ret, NULL);
    ret->ip = frame->pc;
    if (ret->answer == CDACQ_ANSWER_MANAGED || ret->answer == CDACQ_ANSWER_STUB)
        ret->offset += frame->is_call;
}

static void write_text(struct work *work, const struct native_frame *frame, const struct cdacq_method *method)
{
    struct output *out = &work->out;
    output_printf(out, "#%-3u ", frame->index);
    if (method->answer != CDACQ_ANSWER_NONE || (!frame->symbol && !frame->module)) {
        answers_write(&work->answers, method);
        return;
    }
    output_printf(out, "0x%" PRIx64 " ", frame->pc);
    if (frame->symbol) {
        output_text(out, frame->symbol);
        output_printf(out, " +0x%" PRIx64, frame->symbol_offset);
    } else {
        output_literal(out, "-");
    }
    if (frame->module) {
        output_text_between(out, " (", path_basename(frame->module), ")");
    }
    output_literal(out, "\n");
}

static void write_json(struct work *work, pid_t tid, const struct native_frame *frame,
                       const struct cdacq_method *method)
{
    struct json_writer writer = json_begin(&work->out), *w = &writer;
    json_begin_object(w, NULL);
    json_number(w, "tid", (uint64_t)tid);
    json_number(w, "frame", frame->index);
    if (frame->symbol || frame->module) {
        json_begin_object(w, "native");
        json_string(w, "symbol", frame->symbol);
        json_number(w, "offset", frame->symbol_offset);
        json_string(w, "module", frame->module);
        json_end_object(w);
    } else {
        json_null(w, "native");
    }
    answers_write_members(&work->answers, w, method);
    json_end_object(w);
    json_end_line(w);
}

static void write_frame(pid_t tid, const struct native_frame *frame, void *context)
{
    struct work *work = context;
    struct cdacq_method method = {.size = sizeof method};
    look_up(work, frame, &method);
    if (work->answers.json)
        write_json(work, tid, frame, &method);
    else
        write_text(work, frame, &method);
}

static void end_broken(pid_t tid, const char *problem, void *context)
{
    struct work *work = context;
    work->unanswered++;
    output_flush(&work->out);
    message("thread %d: cannot unwind further: %s", tid, problem);
}

static int list_stacks(const struct invocation *invocation, struct cdacq_target *target, struct cdacq_session *session)
{
    struct work work = {.session = session};
    struct cdacq_target_info info = {.size = sizeof info};
    cdacq_target_get_info(target, &info, NULL);
    if (!output_open(&work.out, invocation->output))
        return EXIT_FAILED;
    answers_init(&work.answers, &work.out, invocation->json);
    struct native_stack_visitor visitor = {begin_thread, write_frame, end_broken, &work};
    const char *core = info.kind == CDACQ_TARGET_CORE ? invocation->targets[0] : NULL;
    bool visited = native_stack_visit(core, info.pid, &invocation->options, &visitor);
    bool written = output_close(&work.out);
    uint64_t errors = work.answers.errors;
    answers_deinit(&work.answers);
    if (!written || !visited || !work.threads)
        return EXIT_FAILED;
    return errors || work.unanswered ? EXIT_PARTLY : EXIT_ANSWERED;
}

int cmd_stack(const struct invocation *invocation)
{
    return target_run(invocation, 0, list_stacks);
}
