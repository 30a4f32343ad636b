/*
 * cmd_record.c: samples the stacks of a running process for a time, and writes what was seen how often: folded, for
 * speedscope or pprof, or as a flame graph. Each thread is stopped for itself (cdacq/sample.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "src/cli/base/commands.h"
#include "src/cli/base/console.h"
#include "src/cli/base/memory.h"
#include "src/cli/base/stack_writer.h"
#include "src/cli/base/watchdog.h"
#include "src/cli/commands/call_profile.h"
#include "src/cli/commands/flame.h"
#include "src/cli/commands/follow.h"
#include "util/base.h"
#include "util/clock.h"

enum {
    RATE = 100,
    RATE_MAX = 1000,
    SECONDS = 10,
    SECONDS_MAX = 24 * 60 * 60,
    NICE = -10,
    SLICE_NS = 100 * 1000, /* the shortest that the kernel gives */
};

struct record_options {
    struct common_options common;
    int rate, seconds; /* 0: not given */
    bool wall, cpu;
    bool flame;
};

/* The stack that a thread had last. */
struct last_stack {
    int tid;
    struct stack *stack;
};

DEFINE_U64_TABLE(last_stacks, struct last_stack, tid);

struct work {
    const struct record_options *options;
    struct cdacq_session *session;
    struct answers answers;
    struct stacks stacks;
    struct last_stacks last;
    struct stack *stack;                /* the one that is being visited */
    struct stack_doubts doubts, before; /* all, and those before the last sample */
    uint64_t samples, rounds;
    /* The last sample, which may be void. */
    struct stack *kept;
    uint64_t kept_rounds;
};

static int visit_frame(const struct cdacq_frame *frame, void *context)
{
    struct work *work = context;
    stack_doubts_add(&work->doubts, frame);
    stack_add_frame(&work->stacks, work->stack, frame);
    return 0;
}

/* The last sample is visited once more. */
static void take_back(struct work *work)
{
    work->kept->samples -= work->kept_rounds;
    work->samples -= work->kept_rounds;
    work->doubts = work->before;
}

static int visit_sample(const struct cdacq_sample *sample, void *context)
{
    struct work *work = context;
    struct cdacq_error error;
    struct last_stack *last = last_stacks_insert(&work->last, (struct last_stack){.tid = sample->thread->tid}, NULL);
    if (!last)
        out_of_memory();
    if (sample->again)
        take_back(work);
    work->before = work->doubts;
    work->doubts.stacks++;
    if (sample->is_unchanged) {
        work->kept = last->stack;
        work->kept->samples += sample->rounds;
    } else {
        work->stack = stack_new();
        enum cdacq_status status = cdacq_session_visit_frames(work->session, sample->thread, NULL, CDACQ_FRAMES_ASYNC,
                                                              visit_frame, work, &error);
        work->doubts.ended += status < 0;
        work->kept = stacks_add_sample(&work->stacks, work->stack, status < 0 ? error.message : NULL, sample->rounds);
        last->stack = work->kept;
    }
    work->kept_rounds = sample->rounds;
    work->samples += sample->rounds;
    return 0;
}

/*
 * Has the kernel run the tool soon after it wakes, where others use the processors: a thread may have stopped, and
 * waits for it. Since Linux 6.12, one with a short slice of time goes first. Source: sched_setattr(2).
 */
static void hurry(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attributes = {.size = sizeof attributes, .nice = getpriority(PRIO_PROCESS, 0), .runtime = SLICE_NS};
    (void)syscall(SYS_sched_setattr, 0, &attributes, 0u);
    (void)setpriority(PRIO_PROCESS, 0, NICE); /* where that is allowed */
    (void)prctl(PR_SET_TIMERSLACK, 1000UL);
}

/* Lets the tool be suspended. Threads that were asked to stop would wait with it. */
static void suspend_if_asked(struct cdacq_sampler *sampler)
{
    if (!watchdog_stop_waits())
        return;
    cdacq_sampler_let_go(sampler);
    watchdog_delay_stops(false);
    watchdog_delay_stops(true);
}

/* Sleeps until a moment. False if an interrupt ended that. */
static bool sleep_until(uint64_t moment)
{
    const struct timespec until = {.tv_sec = (time_t)(moment / NS_PER_SECOND),
                                   .tv_nsec = (long)(moment % NS_PER_SECOND)};
    while (!follow_interrupted() && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
    return !follow_interrupted();
}

/* Samples until the time is over, the process ends or the user interrupts. Returns for how long, in nanoseconds. */
static uint64_t record(struct work *work, struct cdacq_sampler *sampler, enum cdacq_status *ret_status,
                       struct cdacq_error *err)
{
    const struct record_options *options = work->options;
    uint64_t period = NS_PER_SECOND / (uint64_t)(options->rate ? options->rate : RATE);
    uint64_t began = monotonic_ns(), next = began;
    uint64_t end = began + (uint64_t)(options->seconds ? options->seconds : SECONDS) * NS_PER_SECOND;
    do {
        uint64_t now = monotonic_ns();
        next += period * (1 + (now > next ? (now - next) / period : 0)); /* rounds that were missed are left out */
        *ret_status = cdacq_sampler_visit(sampler, next - now, visit_sample, work, err);
        work->rounds++;
        suspend_if_asked(sampler);
    } while (*ret_status == CDACQ_OK && next < end && sleep_until(next));
    return monotonic_ns() - began;
}

static void tell_cost(const struct work *work, struct cdacq_target *target, uint64_t time)
{
    struct cdacq_stops stops = {.size = sizeof stops};
    (void)cdacq_target_get_stops(target, &stops, NULL);
    notice("%" PRIu64 " samples in %.1f s, %.1f rounds a second; threads were stopped %" PRIu64
           " times, for %.0f us each, %.0f us at most",
           work->samples, (double)time / 1e9, (double)work->rounds * 1e9 / (double)time, stops.count,
           stops.count ? (double)stops.total_ns / 1e3 / (double)stops.count : 0.0, (double)stops.longest_ns / 1e3);
}

/* ---- Writing ---- */

/* By the ending of the file, unless an option says it. */
static void choose_form(struct common_options *common, bool *flame)
{
    static const char *const endings[] = {".json", ".pb.gz", ".pprof", ".svg"};
    bool is_ending[ARRAY_SIZE(endings)] = {false};
    size_t length = common->output ? strlen(common->output) : 0;
    if (call_profile_is_wanted(common) || *flame)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(endings); i++)
        is_ending[i] =
            length >= strlen(endings[i]) && !strcmp(common->output + length - strlen(endings[i]), endings[i]);
    common->speedscope = is_ending[0];
    common->pprof = is_ending[1] || is_ending[2];
    *flame = is_ending[3];
}

/* Draws the folded stacks, through a file in memory. */
static int write_flame(const struct common_options *common, struct call_paths *paths, const char *name)
{
    struct output folded;
    int fd = memfd_create("folded", MFD_CLOEXEC);
    if (fd < 0) {
        message("no room for folded stacks: %s", strerror(errno));
        return EXIT_FAILED;
    }
    output_open_fd(&folded, dup(fd), "folded stacks");
    bool is_whole = call_profile_write(&folded, paths, common, name, "samples");
    int status =
        output_close(&folded) && lseek(fd, 0, SEEK_SET) == 0 ? flame_draw(common->output, name, fd) : EXIT_FAILED;
    close(fd);
    return status == EXIT_ANSWERED && !is_whole ? EXIT_PARTLY : status;
}

static int write_result(struct work *work, const struct opened_target *opened)
{
    struct common_options common = work->options->common;
    bool flame = work->options->flame;
    struct call_paths paths = {.tells_runtime = opened->tells_runtime};
    struct output out;
    int status = EXIT_FAILED;
    choose_form(&common, &flame);
    for (size_t i = 0; i < work->stacks.list.count; i++)
        if (work->stacks.list.items[i]->samples) /* else its only sample was void */
            call_paths_add_stack(&paths, &work->answers, work->stacks.list.items[i], NULL);
    if (flame)
        status = write_flame(&common, &paths, target_display_name(opened->name));
    else if (output_open(&out, common.output)) {
        bool is_whole = call_profile_write(&out, &paths, &common, target_display_name(opened->name), "samples");
        status = !output_close(&out) ? EXIT_FAILED : is_whole ? EXIT_ANSWERED : EXIT_PARTLY;
    }
    call_paths_deinit(&paths);
    return status;
}

static int record_process(const void *given, const struct opened_target *opened)
{
    struct work work = {.options = given, .session = opened->session};
    const struct record_options *options = given;
    struct cdacq_sampler *sampler = NULL;
    struct cdacq_error error;
    struct output unused;
    enum cdacq_status status = CDACQ_OK;
    if (!target_is_pid(opened->name)) {
        message("record needs a running process, not a core");
        return EXIT_USAGE;
    }
    if (cdacq_sampler_create(opened->session, options->wall ? 0 : CDACQ_SAMPLE_RUNNING, &sampler, &error) < 0) {
        message("%s", error.message);
        return EXIT_FAILED;
    }
    output_open_memory(&unused);
    answers_init(&work.answers, &unused, false);
    progress_end_all();
    follow_begin();
    hurry();
    watchdog_delay_stops(true);
    uint64_t time = record(&work, sampler, &status, &error);
    cdacq_sampler_destroy(sampler);
    watchdog_delay_stops(false);
    tell_cost(&work, opened->target, time);
    if (status < 0)
        message("%s", error.message);
    if (!work.samples && status >= 0)
        message("process %s: no thread has run; --wall also records threads that wait", opened->name);
    int code = work.samples ? write_result(&work, opened) : EXIT_FAILED;
    uint64_t errors = work.answers.errors;
    stack_doubts_tell(&work.doubts, "[guess]", errors);
    answers_tell_unread(&work.answers.unread);
    answers_tell_unconfirmed(work.answers.unconfirmed, "frame");
    answers_deinit(&work.answers);
    output_abandon(&unused);
    stacks_deinit(&work.stacks);
    last_stacks_deinit(&work.last);
    bool is_whole = status >= 0 && !errors && !stack_doubts_any(&work.doubts);
    return code == EXIT_ANSWERED && !is_whole ? EXIT_PARTLY : code;
}

static int run(const void *given)
{
    const struct record_options *options = given;
    const struct common_options *common = &options->common;
    const char *problem = options->wall && options->cpu ? "give only one of --wall and --cpu"
                          : common->folded + common->speedscope + common->pprof + options->flame > 1
                              ? "give only one of --folded, --speedscope, --pprof and --flame"
                          : common->open.flags & CDACQ_OPEN_STOP ? "threads are stopped one by one: give no --stop"
                                                                 : NULL;
    if (problem) {
        message("record: %s", problem);
        return EXIT_USAGE;
    }
    return target_run(common, &(const struct target_use){.run = record_process, .flags = CDACQ_OPEN_KEEP});
}

const struct option_row record_rows[] = {
    {"rate", "N", "take samples N times a second (100)", TO_NUMBER(struct record_options, rate), .min = 1,
     .max = RATE_MAX, .wrong = "not a number from 1 to 1000"},
    {"duration", "SECONDS", "record for so long (10)", TO_NUMBER(struct record_options, seconds), .min = 1,
     .max = SECONDS_MAX, .wrong = "not a number of seconds"},
    {"cpu", NULL, "record threads only while they use a processor, or are ready to (the default)",
     TO_FLAG(struct record_options, cpu)},
    {"wall", NULL, "record all threads, also those that wait", TO_FLAG(struct record_options, wall)},
    {"flame", NULL, "draw a flame graph, as 'flame' does", TO_FLAG(struct record_options, flame)},
    {0},
};

const struct command command_record = {
    .name = "record",
    .section = SECTION_PROCESS,
    RUNS(run, struct record_options),
    .operands = OPERANDS({"PID", OPERAND_TARGET, TO_WORDS(struct common_options, targets)}),
    .options = OPTIONS(output_rows, target_rows, names_rows, folded_rows, profile_rows, record_rows),
    .summary = "sample the stacks of a running process",
    .details =
        "Needs neither perf nor a privilege beyond that to ptrace the process. Each thread is stopped alone, for\n"
        "as long as reading its stack takes; a message says how long that was. Ends after the time, with the\n"
        "process, or at an interrupt (Ctrl-C), and writes what there is: folded stacks, or by the ending of\n"
        "the file: .json for speedscope, .pb.gz or .pprof for pprof, .svg a flame graph.\n",
    .exit_partly = "a stack is incomplete or rests on a guess, or a frame has no answer",
};
