#include "src/cli/base/stack_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/cli/base/console.h"
#include "util/base.h"

/* signal(7), as on x86, ARM and s390: of the target, which need not be this machine's. */
static const char *const signal_names[] = {
    NULL,   "HUP",  "INT",  "QUIT", "ILL",    "TRAP",   "ABRT",  "BUS",  "FPE",  "KILL", "USR1",
    "SEGV", "USR2", "PIPE", "ALRM", "TERM",   "STKFLT", "CHLD",  "CONT", "STOP", "TSTP", "TTIN",
    "TTOU", "URG",  "XCPU", "XFSZ", "VTALRM", "PROF",   "WINCH", "POLL", "PWR",  "SYS",
};

const char *signal_text(int signal, char buffer[SIGNAL_TEXT_SIZE])
{
    const char *name = signal > 0 && (size_t)signal < ARRAY_SIZE(signal_names) ? signal_names[signal] : NULL;
    if (name)
        snprintf(buffer, SIGNAL_TEXT_SIZE, "SIG%s", name);
    else
        snprintf(buffer, SIGNAL_TEXT_SIZE, "signal %d", signal);
    return buffer;
}

const char *stack_funclet_text(enum cdacq_funclet_kind kind)
{
    static const char *const texts[] = {[CDACQ_FUNCLET_CATCH] = "catch",
                                        [CDACQ_FUNCLET_FILTER] = "filter",
                                        [CDACQ_FUNCLET_FINALLY] = "finally",
                                        [CDACQ_FUNCLET_FAULT] = "fault"};
    return (size_t)kind < ARRAY_SIZE(texts) ? texts[kind] : NULL;
}

static const char *source_text(enum cdacq_frame_source by)
{
    static const char *const texts[] = {
        [CDACQ_FRAME_BY_CONTEXT] = "context", [CDACQ_FRAME_BY_UNWIND] = "unwind", [CDACQ_FRAME_BY_CFI] = "cfi",
        [CDACQ_FRAME_BY_FRAME] = "frame",     [CDACQ_FRAME_BY_GUESS] = "guess",   [CDACQ_FRAME_BY_AWAIT] = "await"};
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
    if (frame->kind == CDACQ_FRAME_ASYNC) {
        output_literal(out, "     [async] ");
        answers_write_async(answers, &item->method);
        return;
    }
    bool is_guess = frame->by == CDACQ_FRAME_BY_GUESS;
    snprintf(number, sizeof number, "#%u%s", frame->index, is_guess ? "?" : "");
    if (is_guess)
        output_style(out, STYLE_DOUBT);
    output_printf(out, "%-4s ", number);
    if (is_guess)
        output_style(out, STYLE_NONE);
    const char *funclet = stack_funclet_text(frame->funclet);
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
    answers_write_members(answers, w, method, frame->kind == CDACQ_FRAME_ASYNC ? "async" : NULL);
    json_string(w, "by", source_text(frame->by));
    json_bool(w, "after_gap", frame->after_gap);
    json_string(w, "funclet", stack_funclet_text(frame->funclet));
    json_address(w, "cfa", frame->cfa);
    if (frame->kind == CDACQ_FRAME_ASYNC)
        json_address(w, "object", frame->object);
}

void stack_write_thread(struct output *out, const struct stack_thread *thread)
{
    char text[SIGNAL_TEXT_SIZE];
    output_printf(out, "%d", thread->tid);
    if (thread->name && thread->name[0])
        output_text_between(out, " \"", thread->name, "\"");
    if (thread->died)
        output_printf(out, ", died of %s", signal_text(thread->signal, text));
}

/* "TID 12 "worker", 13:" or "TID 12, died of SIGSEGV:" */
static void write_heading(struct output *out, const struct stack *stack)
{
    output_style(out, STYLE_HEADING);
    output_literal(out, "TID ");
    for (size_t i = 0; i < stack->threads.count; i++) {
        output_literal(out, i ? ", " : "");
        stack_write_thread(out, &stack->threads.items[i]);
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

enum { MODULES_SHOWN = 3 }; /* of native frames that are one line */

/* Adds a module to those of a row, unless it is there. */
static size_t add_module(const char **modules, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(modules[i], name) == 0)
            return count;
    modules[count] = name;
    return count + 1;
}

void stack_write_row(struct output *out, const struct stack *stack, size_t first, size_t count, const char *words)
{
    const char *modules[MODULES_SHOWN + 1];
    size_t known = 0, async = 0;
    for (size_t i = 0; i < count; i++) {
        const struct stack_frame *frame = stack->frames.items[first + i].shared;
        bool is_async = frame->frame.kind == CDACQ_FRAME_ASYNC;
        const char *module = is_async ? NULL : frame->frame.method ? frame->method.module : frame->frame.module;
        async += is_async;
        known = module && known <= MODULES_SHOWN ? add_module(modules, known, path_basename(module)) : known;
    }
    output_style(out, STYLE_MINOR);
    output_printf(out, "... %zu %s", count - async, words);
    for (size_t i = 0; i < MIN(known, (size_t)MODULES_SHOWN); i++)
        output_text_between(out, i ? ", " : " (", modules[i], "");
    if (known)
        output_literal(out, known > MODULES_SHOWN ? ", ...)" : ")");
    output_style(out, STYLE_NONE);
    output_literal(out, "\n");
}

/* The first frame that may be in a line with others. */
static size_t first_to_fold(const struct stack *stack, enum native_frames shown)
{
    size_t inner = shown == NATIVE_FRAMES_OF_INNER_ROW ? stack_native_row(stack, 0) : 0;
    return shown == NATIVE_FRAMES_ALL ? stack->frames.count : MAX(inner, (size_t)1);
}

/* How many frames from `first` on, and before `end`, are one line. 0: the first is a line of its own. */
static size_t row_of_one_line(const struct stack *stack, size_t first, size_t end, size_t fold_from)
{
    size_t count = first < fold_from ? 0 : MIN(stack_native_row(stack, first), end - first);
    return count > 1 ? count : 0;
}

/* The frames from `first` on, up to `end`. */
static void write_frames(struct answers *answers, const struct stack *stack, size_t first, size_t end, size_t fold_from)
{
    for (size_t i = first, row; i < end; i += row ? row : 1) {
        const struct stack_frame frame = stack_frame_at(stack, i);
        row = row_of_one_line(stack, i, end, fold_from);
        if (row) {
            output_literal(answers->out, "     ");
            stack_write_row(answers->out, stack, i, row, "native frames");
            continue;
        }
        if (frame.frame.after_gap)
            output_styled(answers->out, STYLE_DOUBT, "     ... frames may be missing here\n");
        write_frame(answers, &frame);
        if (stack->frames.items[i].variables)
            output_literal(answers->out, stack->frames.items[i].variables);
    }
}

void stack_write_repeats(struct output *out, const struct stack_run *run)
{
    output_printf(out, "... %zu frame%s above repeated %zu time%s more", run->period, plural(run->period),
                  run->count - 1, plural(run->count - 1));
}

/*
 * A line for the frames that only wait, and the async methods between them, which thus come before the method that
 * waits.
 */
static void write_waiting(struct answers *answers, const struct stack *stack, size_t count)
{
    output_literal(answers->out, "     ");
    stack_write_row(answers->out, stack, 0, count, "frames that only wait");
    for (size_t i = 0; i < count; i++) {
        const struct stack_frame frame = stack_frame_at(stack, i);
        if (frame.frame.kind == CDACQ_FRAME_ASYNC)
            write_frame(answers, &frame);
    }
}

void stack_write_text(struct answers *answers, const struct stack *stack, enum native_frames shown)
{
    struct output *out = answers->out;
    size_t fold_from = first_to_fold(stack, shown);
    write_heading(out, stack);
    size_t waiting = shown == NATIVE_FRAMES_FOLDED ? stack_waiting_row(stack) : 0;
    if (waiting)
        write_waiting(answers, stack, waiting);
    for (size_t i = waiting; i < stack->frames.count;) {
        const struct kept_frame *frames = stack->frames.items;
        size_t row = row_of_one_line(stack, i, stack->frames.count, fold_from);
        struct stack_run run = row ? (struct stack_run){i, row, 1} : stack_run_at(stack, i);
        write_frames(answers, stack, i, i + run.period, fold_from);
        i += run.period * run.count;
        if (run.count > 1) {
            output_literal(out, "     ");
            stack_write_repeats(out, &run);
            output_printf(out, ", up to #%u\n", frames[i - 1].index);
        }
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
