/*
 * cmd_methods.c: lists the code of every method of the process by start address; with --follow, also what is compiled
 * later.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/base/answers.h"
#include "src/cli/commands/code_progress.h"
#include "src/cli/base/commands.h"
#include "src/cli/base/read_failures.h"
#include "src/cli/base/console.h"
#include "src/cli/commands/follow.h"
#include "src/cli/base/memory.h"
#include "src/cli/commands/name_pattern.h"
#include "src/cli/base/output.h"
#include "src/cli/base/runtimes.h"
#include "util/base.h"

struct methods_options {
    struct method_options which;
    struct word_list names; /* of those that are listed; none: all are */
};

struct work {
    struct output out;
    struct answers answers;
    struct code_progress progress; /* not if it follows */
    uint64_t done;
    bool follow;
    const char *const *patterns; /* of names; what matches none is not listed */
    size_t pattern_count;
    bool *matched;   /* for each pattern, whether it has matched */
    uint64_t unread; /* with patterns: elements whose names are not known */
    struct read_failures complaints;
};

static void init_patterns(struct work *work, const struct methods_options *options)
{
    work->patterns = options->names.items;
    work->pattern_count = options->names.count;
    work->matched = allocate(work->pattern_count + 1);
}

/* Returns whether every pattern has matched. Messages name those that have not, unless the listing has ended early. */
static bool end_patterns(struct work *work, bool is_complete)
{
    bool all = true;
    for (size_t i = 0; i < work->pattern_count; i++) {
        const char *pattern = work->patterns[i];
        if (!work->matched[i] && is_complete)
            message("no method%s is named '%s'%s", work->unread ? " that can be read" : "", pattern,
                    strchr(pattern, '*') ? "" : "; a '*' in it stands for any text");
        all &= work->matched[i];
    }
    free(work->matched);
    return all;
}

/* Counts code that may be what a pattern means, but cannot be read. One message stands for all of it. */
static void count_unread(struct work *work, const struct cdacq_method *method)
{
    const char *reason = method->error ? method->error : "no reason is known";
    if (!work->pattern_count || !answers_doubt_name(method) || method->answer == CDACQ_ANSWER_STUB)
        return;
    if (!method->code_start)
        message("%s", reason);
    else if (!work->unread)
        message("some names cannot be read, at 0x%" PRIx64 " first: %s", method->code_start, reason);
    work->unread++;
}

static bool is_wanted(const struct work *work, const struct cdacq_method *method)
{
    bool wanted = !work->pattern_count;
    for (size_t i = 0; method->name && i < work->pattern_count; i++)
        if (name_matches(method->name, work->patterns[i]))
            wanted = work->matched[i] = true;
    return wanted;
}

/* With patterns, count_unread() has reported names. */
static void tell_doubts(const struct work *work)
{
    if (!work->pattern_count)
        answers_tell_unread(&work->answers.unread);
    answers_tell_unconfirmed(work->answers.unconfirmed, "method");
}

static int list_method(const struct cdacq_method *method, void *context)
{
    struct work *work = context;
    code_progress_step(&work->progress, method);
    count_unread(work, method);
    if (!is_wanted(work, method))
        return work->follow && follow_interrupted();
    answers_write_method(&work->answers, method);
    if (method->answer == CDACQ_ANSWER_ERROR)
        read_failures_add(&work->complaints, method->code_start, method->error);
    work->done++;
    if (work->follow)
        output_end_record(&work->out);
    return output_failed(&work->out) || (work->follow && follow_interrupted()); /* nothing more is to be written */
}

static enum cdacq_status list_new(struct cdacq_follower *follower, void *context)
{
    struct work *work = context;
    struct cdacq_error error;
    answers_forget_strings(&work->answers); /* each list is of an epoch of its own */
    enum cdacq_status status = cdacq_follower_visit_methods(follower, list_method, work, &error);
    if (status < 0)
        message("%s", error.message);
    return status;
}

/* --follow: lists all methods, then those that are new, until the process ends. */
static int list_and_follow(const void *given, const struct opened_target *opened)
{
    const struct methods_options *options = given;
    struct work work = {.follow = true};
    struct cdacq_follower *follower = follow_open(opened->target, method_flags(&options->which, R2R_PREPARED));
    if (!follower || !output_open_stream(&work.out, options->which.common.output)) {
        cdacq_follower_destroy(follower);
        return EXIT_FAILED;
    }
    answers_init(&work.answers, &work.out, options->which.common.json);
    work.answers.tells_runtime = opened->tells_runtime;
    init_patterns(&work, options);
    enum cdacq_status status = follow_process(follower, &work.out, list_new, &work);
    cdacq_follower_destroy(follower);
    read_failures_end(&work.complaints, "element", "elements");
    tell_doubts(&work);
    bool written = output_close(&work.out), found = end_patterns(&work, status >= 0);
    answers_deinit(&work.answers);
    if (!written || (status < 0 && !work.done))
        return EXIT_FAILED;
    return status < 0 || work.answers.errors || work.unread || !found ? EXIT_PARTLY : EXIT_ANSWERED;
}

/* Runtime by runtime. */
static enum cdacq_status list_of_all(struct cdacq_session *session, unsigned flags, struct work *work,
                                     struct cdacq_error *err)
{
    enum cdacq_status status = CDACQ_OK;
    struct cdacq_session *one;
    for (unsigned next = 0; status == CDACQ_OK && (one = runtimes_next(session, &next));)
        status = cdacq_session_visit_methods(one, flags, list_method, work, err);
    return status;
}

static int list_all(const void *given, const struct opened_target *opened)
{
    const struct methods_options *options = given;
    unsigned flags = method_flags(&options->which, R2R_PREPARED);
    struct work work = {0};
    struct cdacq_error error;
    if (!output_open(&work.out, options->which.common.output))
        return EXIT_FAILED;
    answers_init(&work.answers, &work.out, options->which.common.json);
    work.answers.tells_runtime = opened->tells_runtime;
    init_patterns(&work, options);
    code_progress_begin(&work.progress, opened->session, flags, work.out.fd);
    work.out.is_held = stop_is_wanted(&options->which.common, opened->name);

    enum cdacq_status status = list_of_all(opened->session, flags, &work, &error);
    target_let_go(opened->target);
    code_progress_end(&work.progress);
    read_failures_end(&work.complaints, "element", "elements");
    tell_doubts(&work);
    if (status < 0)
        message("%s", error.message);
    bool found = end_patterns(&work, status >= 0), none = status < 0 && !work.done;
    if (none)
        output_abandon(&work.out);
    bool written = none || output_close(&work.out);
    answers_deinit(&work.answers);
    if (!written || none)
        return EXIT_FAILED;
    return status < 0 || work.answers.errors || work.unread || !found ? EXIT_PARTLY : EXIT_ANSWERED;
}

static int run(const void *options)
{
    const struct common_options *common = options;
    const struct target_use all = {.run = list_all, .flags = CDACQ_OPEN_ALL_RUNTIMES},
                            follow = {.run = list_and_follow};
    return !follow_is_possible(common) ? EXIT_USAGE : target_run(common, common->follow ? &follow : &all);
}

const struct command command_methods = {
    .name = "methods",
    .section = SECTION_ADDRESSES,
    RUNS(run, struct methods_options),
    .operands = OPERANDS({TARGET_OPERAND},
                         {"NAME", OPERAND_NAME, OPTIONAL, .repeats = true, TO_WORDS(struct methods_options, names)}),
    .options = OPTIONS(json_rows, output_rows, target_rows, names_rows, stubs_rows, r2r_rows, follow_rows),
    .summary = "list the code of every method",
    .details = "One line for each, by start address. Without --r2r, only prepared ReadyToRun methods are listed. With\n"
               "NAME, only methods of that name, which need not have its parameters; '*' is any text, '?' any one\n"
               "character. If names cannot be read, one message says so.\n"
               "  0x7f.. +0x123 Demo.Program.Fib(int) [jit Tier1] (Demo.dll)   start, size, name, kind\n"
               "With --follow, lines for methods that a process compiles later follow until it ends or SIGINT\n"
               "arrives. A method that is freed gets no line.\n",
};
