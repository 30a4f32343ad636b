#include "src/cli/stack_writer.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "src/cli/console.h"
#include "util/base.h"

const char *signal_text(int signal, char buffer[SIGNAL_TEXT_SIZE])
{
    const char *name = sigabbrev_np(signal);
    if (name)
        snprintf(buffer, SIGNAL_TEXT_SIZE, "SIG%s", name);
    else
        snprintf(buffer, SIGNAL_TEXT_SIZE, "signal %d", signal);
    return buffer;
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

static void write_native_text(struct output *out, const struct cdacq_frame *frame)
{
    output_style(out, STYLE_MINOR);
    char address[24];
    snprintf(address, sizeof address, "0x%" PRIx64, frame->pc);
    output_printf(out, "%-*s ", out->is_terminal ? ANSWERS_ADDRESS_WIDTH : 0, address);
    if (frame->symbol) {
        output_text(out, frame->symbol);
        output_printf(out, " +0x%" PRIx64, frame->symbol_offset);
        if (frame->module)
            output_text_between(out, " (", path_basename(frame->module), ")");
    } else {
        output_text_between(out, "", path_basename(frame->module), "");
        output_printf(out, "+0x%" PRIx64, frame->module_offset);
    }
    output_literal(out, frame->kind == CDACQ_FRAME_SIGNAL ? " [signal]" : "");
    output_style(out, STYLE_NONE);
    output_literal(out, "\n");
}

static void write_frame(struct answers *answers, const struct stack_frame *item)
{
    struct output *out = answers->out;
    const struct cdacq_frame *frame = &item->frame;
    char number[24];
    bool is_guess = frame->by == CDACQ_FRAME_BY_GUESS;
    snprintf(number, sizeof number, "#%u%s", frame->index, is_guess ? "?" : "");
    if (is_guess)
        output_style(out, STYLE_DOUBT);
    output_printf(out, "%-4s ", number);
    if (is_guess)
        output_style(out, STYLE_NONE);
    const char *funclet = funclet_text(frame->funclet);
    if (funclet)
        output_printf(out, "[%s] ", funclet);
    if (frame->method || (!frame->symbol && !frame->module))
        answers_write(answers, &item->method);
    else
        write_native_text(out, frame);
}

void stack_frame_write_members(struct answers *answers, struct json_writer *w, const struct cdacq_frame *frame,
                               const struct cdacq_method *method)
{
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
    answers_write_members(answers, w, method);
    json_string(w, "by", source_text(frame->by));
    json_bool(w, "after_gap", frame->after_gap);
    json_string(w, "funclet", funclet_text(frame->funclet));
    json_address(w, "cfa", frame->cfa);
}

/* "TID 12 "worker", 13:" or "TID 12, died of SIGSEGV:" */
static void write_heading(struct output *out, const struct stack *stack)
{
    output_style(out, STYLE_HEADING);
    output_literal(out, "TID ");
    for (size_t i = 0; i < stack->threads.count; i++) {
        const struct stack_thread *thread = &stack->threads.items[i];
        output_printf(out, "%s%d", i ? ", " : "", thread->tid);
        if (thread->name && thread->name[0])
            output_text_between(out, " \"", thread->name, "\"");
        char text[SIGNAL_TEXT_SIZE];
        if (thread->died)
            output_printf(out, ", died of %s", signal_text(thread->signal, text));
    }
    if (stack->threads.count > 1)
        output_printf(out, " (%zu threads)", stack->threads.count);
    output_literal(out, ":");
    output_style(out, STYLE_NONE);
    output_literal(out, "\n");
}

static void write_end(struct output *out, const char *problem)
{
    output_styled(out, STYLE_DOUBT, "     ... cannot unwind further: ");
    output_note_between(out, "", problem, "\n");
}

void stack_write_text(struct answers *answers, const struct stack *stack)
{
    struct output *out = answers->out;
    write_heading(out, stack);
    for (size_t i = 0; i < stack->frames.count;) {
        const struct kept_frame *frames = stack->frames.items;
        struct stack_run run = stack_run_at(stack, i);
        for (size_t k = 0; k < run.period; k++) {
            const struct stack_frame frame = stack_frame_at(stack, i + k);
            if (frame.frame.after_gap)
                output_styled(out, STYLE_DOUBT, "     ... frames may be missing here\n");
            write_frame(answers, &frame);
        }
        i += run.period * run.count;
        if (run.count > 1)
            output_printf(out, "     ... %zu frame%s above repeated %zu time%s more, up to #%u\n", run.period,
                          plural(run.period), run.count - 1, plural(run.count - 1), frames[i - 1].index);
    }
    if (!stack->frames.count)
        output_literal(out, "     no such frames\n");
    if (stack->problem)
        write_end(out, stack->problem);
}

void stack_doubts_tell(const struct stack_doubts *doubts, const char *mark, uint64_t errors)
{
    if (doubts->guesses)
        message("%" PRIu64 " frame%s on a guess%s%s", doubts->guesses, doubts->guesses == 1 ? " rests" : "s rest",
                mark ? "; each is marked with " : "", mark ? mark : "");
    if (doubts->gaps)
        message("frames may be missing at %" PRIu64 " place%s, where the caller of code could not be found",
                doubts->gaps, plural(doubts->gaps));
    if (doubts->ended)
        message("%" PRIu64 " of %" PRIu64 " stack%s end%s before the outermost frame", doubts->ended, doubts->stacks,
                plural(doubts->stacks), doubts->ended == 1 ? "s" : "");
    if (errors)
        message("%" PRIu64 " frame%s no answer", errors, errors == 1 ? " has" : "s have");
}
