/*
 * cmd_stack.c: shows the frames of every thread. Text shows identical stacks once and folds recursion and native
 * frames; JSON has every frame of every thread.
 */
#include <inttypes.h>
#include <limits.h>

#include "src/cli/base/commands.h"
#include "src/cli/base/read_failures.h"
#include "src/cli/base/console.h"
#include "src/cli/base/stack_writer.h"
#include "src/cli/commands/call_profile.h"
#include "src/cli/commands/call_tree.h"
#include "src/cli/commands/variables.h"
#include "util/base.h"

enum { VARIABLE_BYTES_MAX = 256 * 1024 * 1024 };

struct stack_options {
    struct common_options common;
    int thread;    /* the only one to show; 0: all */
    bool managed;  /* no other frames */
    bool native;   /* a line for each native frame */
    bool no_async; /* without async methods that wait */
    bool each;     /* identical stacks are not merged */
    bool variables;
    bool tree; /* instead of each stack for itself */
};

struct work {
    const struct stack_options *options;
    const struct opened_target *opened;
    struct output out;
    struct answers answers;
    struct progress progress;
    struct stacks stacks; /* of text */
    struct stack *stack;  /* the one that is being visited, of text */
    int tid;
    struct stack_doubts doubts;
    bool has_gap; /* before frames that were left out, after the last one that was not */
    struct variable_counts variables;
    size_t variable_bytes; /* of text that is kept */
    bool is_cut;           /* a folded stack */
};

static bool is_managed(const struct cdacq_frame *frame)
{
    return frame->kind == CDACQ_FRAME_MANAGED || frame->kind == CDACQ_FRAME_FUNCLET || frame->kind == CDACQ_FRAME_ASYNC;
}

static void write_json(struct work *work, const struct cdacq_frame *frame, const struct cdacq_method *method)
{
    struct json_writer writer = json_begin_line(&work->out), *w = &writer;
    if (work->opened->is_one_of_several)
        json_string(w, "target", target_display_name(work->opened->name));
    json_number(w, "tid", (uint64_t)work->tid);
    stack_frame_write_members(&work->answers, w, frame, method);
    if (work->options->variables)
        variables_write_json(w, work->opened->session, frame, &work->variables);
    json_end_line(w);
}

/* Keeps the text about a frame's variables, which cannot be read once the process goes on. */
static void add_variables(struct work *work, const struct cdacq_frame *frame)
{
    struct output text;
    if (work->variable_bytes > VARIABLE_BYTES_MAX)
        return;
    output_open_memory(&text);
    text.colour = work->out.colour;
    variables_write_text(&text, work->opened->session, frame, &work->variables);
    if (text.length)
        stack_add_variables(&work->stacks, work->stack, text.data, text.length);
    work->variable_bytes += text.length;
    output_abandon(&text);
}

static int visit_frame(const struct cdacq_frame *visited, void *context)
{
    struct work *work = context;
    struct cdacq_frame frame = *visited;
    stack_doubts_add(&work->doubts, &frame);
    work->has_gap |= frame.after_gap;
    if (work->options->managed && !is_managed(&frame))
        return 0;
    frame.after_gap = work->has_gap;
    work->has_gap = false;
    if (work->answers.json) {
        const struct cdacq_method none = stack_frame_no_method(&frame);
        write_json(work, &frame, frame.method ? frame.method : &none);
        return output_failed(&work->out);
    }
    stack_add_frame(&work->stacks, work->stack, &frame);
    if (work->options->variables)
        add_variables(work, visited);
    return 0;
}

/* ---- Threads --------------------------------------------------------------------------------------------------- */

static int visit_thread(const struct cdacq_thread *thread, void *context)
{
    struct work *work = context;
    const struct stack_options *options = work->options;
    struct cdacq_error error;
    if (options->thread && options->thread != thread->tid)
        return 0;
    work->doubts.stacks++;
    work->tid = thread->tid;
    work->stack = work->answers.json ? NULL : stack_new();
    work->has_gap = false;
    unsigned flags = options->no_async ? 0 : CDACQ_FRAMES_ASYNC;
    enum cdacq_status status =
        cdacq_session_visit_frames(work->opened->session, thread, NULL, flags, visit_frame, work, &error);
    work->doubts.ended += status < 0;
    if (work->answers.json && status < 0 && work->doubts.ended <= READ_FAILURES_MAX) {
        output_flush(&work->out);
        message("thread %d: cannot unwind further: %s", thread->tid, error.message);
    } else if (work->stack) {
        stacks_add(&work->stacks, work->stack, thread, status < 0 ? error.message : NULL,
                   thread->died || options->each || options->variables);
    }
    progress_step(&work->progress, work->doubts.stacks);
    return output_failed(&work->out);
}

/* The frames in which a thread died are what the reader looks for. */
static enum native_frames native_frames_of(const struct work *work, const struct stack *stack)
{
    if (work->options->native)
        return NATIVE_FRAMES_ALL;
    return stack->threads.items[0].died ? NATIVE_FRAMES_OF_INNER_ROW : NATIVE_FRAMES_FOLDED;
}

static void write_stacks(struct work *work)
{
    for (size_t i = 0; i < work->stacks.list.count && !output_failed(&work->out); i++) {
        if (i)
            output_literal(&work->out, "\n");
        const struct stack *stack = work->stacks.list.items[i];
        stack_write_text(&work->answers, stack, native_frames_of(work, stack));
    }
}

/* All stacks at once, as what takes them apart by their outermost frames. */
static void write_paths(struct work *work)
{
    const struct stack_options *options = work->options;
    const char *name = target_display_name(work->opened->name);
    struct call_paths paths = {.tells_runtime = work->opened->tells_runtime, .has_offsets = options->tree};
    for (size_t i = 0; i < work->stacks.list.count; i++)
        call_paths_add_stack(&paths, &work->answers, work->stacks.list.items[i],
                             options->common.folded && work->opened->is_one_of_several ? name : NULL);
    if (options->tree)
        call_tree_write(&work->out, &paths, options->native);
    else
        work->is_cut = !call_profile_write(&work->out, &paths, &options->common, name, "threads");
    call_paths_deinit(&paths);
}

static bool has_paths(const struct stack_options *options)
{
    return options->tree || call_profile_is_wanted(&options->common);
}

static void write_results(struct work *work)
{
    if (work->answers.json || !work->doubts.stacks)
        return;
    if (has_paths(work->options))
        write_paths(work);
    else
        write_stacks(work);
}

static void tell_doubts(const struct work *work, uint64_t errors)
{
    struct stack_doubts doubts = work->doubts;
    const char *mark = work->answers.json ? "\"by\":\"guess\"" : has_paths(work->options) ? "[guess]" : "'?'";
    if (work->answers.json && doubts.ended <= READ_FAILURES_MAX)
        doubts.ended = 0; /* each had a message */
    stack_doubts_tell(&doubts, mark, errors);
}

static int list_stacks(const void *given, const struct opened_target *opened)
{
    const struct stack_options *options = given;
    struct work work = {.options = options, .opened = opened};
    struct cdacq_error error;
    if (!(options->variables ? output_open_private : output_open)(&work.out, options->common.output))
        return EXIT_FAILED;
    answers_init(&work.answers, &work.out, options->common.json);
    work.answers.tells_runtime = opened->tells_runtime;
    progress_begin(&work.progress, "threads", work.out.fd);
    expect_threads(&work.progress, opened->session);
    work.out.is_held = target_is_pid(opened->name); /* a process is stopped */
    struct cdacq_error layout;
    bool is_known = cdacq_session_check_layout(opened->session, &layout) >= 0;
    enum cdacq_status status = cdacq_session_visit_threads(opened->session, visit_thread, &work, &error);
    target_let_go(opened->target);
    work.out.is_held = false;
    progress_end(&work.progress);
    write_results(&work);
    bool written = output_close_if(&work.out, work.doubts.stacks);
    uint64_t errors = work.answers.errors;
    answers_deinit(&work.answers);
    stacks_deinit(&work.stacks);
    tell_doubts(&work, errors);
    answers_tell_unread(&work.answers.unread);
    answers_tell_unconfirmed(work.answers.unconfirmed, "frame");
    if (work.variable_bytes > VARIABLE_BYTES_MAX)
        message("there are too many variables: those of the last frames are left out");
    if (!is_known)
        message("%s", layout.message);
    if (!is_known && !work.doubts.stacks)
        return EXIT_FAILED;
    if (status < 0) {
        /* The last stack may have ended at the same bound. */
        if (status != CDACQ_ERR_FUEL || !message_was_shown(error.message))
            message("%s", error.message);
    } else if (!work.doubts.stacks && options->thread)
        message("%s: no thread %d", opened->name, options->thread);
    else if (!work.doubts.stacks)
        message("%s: it has no threads; take a core, or a snapshot with --stacks", opened->name);
    if (!written)
        return EXIT_FAILED;
    bool is_whole = !errors && !work.is_cut && !work.variables.problems && work.variable_bytes <= VARIABLE_BYTES_MAX;
    return !is_whole || stack_doubts_any(&work.doubts) || status < 0 || !is_known ? EXIT_PARTLY : EXIT_ANSWERED;
}

static bool check_options(const struct stack_options *options)
{
    const struct common_options *common = &options->common;
    int forms = common->json + options->tree + common->folded + common->speedscope + common->pprof;
    const char *problem = forms > 1 ? "give only one of --json, --tree, --folded, --speedscope and --pprof"
                          : has_paths(options) && (options->each || options->variables)
                              ? "--tree and the forms of profiles merge stacks: give no --each or --variables"
                          : options->native && call_profile_is_wanted(common)
                              ? "the forms of profiles have each native frame: give no --native"
                          : (common->speedscope || common->pprof) && common->targets.count > 1
                              ? "--speedscope and --pprof write one document: give one TARGET"
                              : NULL;
    if (problem)
        message("stack: %s", problem);
    return !problem;
}

static int run(const void *given)
{
    enum { FLAGS = CDACQ_OPEN_ALL_RUNTIMES | CDACQ_OPEN_STOP | CDACQ_OPEN_NATIVE };
    const struct stack_options *options = given;
    const struct target_use use = {.run = list_stacks, .flags = FLAGS, .no_heading = options->common.folded};
    return check_options(options) ? target_run(&options->common, &use) : EXIT_USAGE;
}

const struct option_row stack_rows[] = {
    {"thread", "TID", "show only the thread with this thread id", TO_NUMBER(struct stack_options, thread), .min = 1,
     .max = INT_MAX, .wrong = "not a thread id"},
    {"managed", NULL, "show only managed frames", TO_FLAG(struct stack_options, managed)},
    {"native", NULL, "show each native frame, also of several in a row", TO_FLAG(struct stack_options, native)},
    {"no-async", NULL, "leave out async methods that wait", TO_FLAG(struct stack_options, no_async)},
    {"each", NULL, "show the stack of each thread, also if several have the same", TO_FLAG(struct stack_options, each)},
    {"variables", NULL, "show the arguments and locals of each managed frame",
     TO_FLAG(struct stack_options, variables)},
    {"tree", NULL, "merge all stacks into one tree, with the threads of each branch",
     TO_FLAG(struct stack_options, tree)},
    {0},
};

const struct command command_stack = {
    .name = "stack",
    .section = SECTION_PROCESS,
    RUNS(run, struct stack_options),
    .operands = OPERANDS({TARGET_OPERAND, .repeats = true}),
    .options = OPTIONS(json_rows, output_rows, target_rows, names_rows, folded_rows, profile_rows, stack_rows),
    .summary = "show every thread's frames, managed and native",
    .details = "A process is stopped while it is read. Frames are numbered from the innermost; a frame's address is\n"
               "where execution continues. Threads with the same stack are shown together, and frames that repeat\n"
               "are shown once, with their count. Native frames in a row are one line, without --native. JSON has\n"
               "all frames of all threads. --tree begins with the outermost frames, and counts the threads of each\n"
               "branch. --variables shows a variable that optimized code no longer holds as <optimized out>. A '?'\n"
               "after a frame's number means that the frame rests on a guess:\n"
               "  #3   0x7f.. Demo.Program.Fib(int) +0x2f [jit Tier1] IL_0012 Program.cs:14 (Demo.dll)\n"
               "  #4   [catch] 0x7f.. Demo.Program.Run() +0x5c [jit Tier0] IL_0020 (Demo.dll)   in a catch block\n"
               "  #5   0x7f.. __poll +0x4f (libc.so.6)\n"
               "  #6?  0x7f.. libcoreclr.so+0x6315b5                                            no symbol is known\n",
    .exit_partly = "a stack is incomplete or rests on a guess, or a frame or a variable has no answer",
};
