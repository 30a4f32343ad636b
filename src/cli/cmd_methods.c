/*
 * cmd_methods.c: lists the code of every method of the process by start address; with --follow, also what is compiled
 * later.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/answers.h"
#include "src/cli/code_progress.h"
#include "src/cli/commands.h"
#include "src/cli/complaints.h"
#include "src/cli/console.h"
#include "src/cli/follow.h"
#include "src/cli/memory.h"
#include "src/cli/name_pattern.h"
#include "src/cli/output.h"
#include "util/base.h"

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
    struct complaints complaints;
};

static unsigned flags_of(const struct invocation *invocation)
{
    return (invocation->stubs ? CDACQ_VISIT_STUBS : 0u) | (invocation->r2r == R2R_ALL ? CDACQ_VISIT_R2R_ALL : 0u);
}

static void init_patterns(struct work *work, const struct invocation *invocation)
{
    work->patterns = invocation->ips;
    work->pattern_count = invocation->ip_count;
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

/* With patterns, count_unread() has told of names. */
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
        complaints_add(&work->complaints, method->code_start, method->error);
    work->done++;
    if (work->follow)
        output_end_record(&work->out);
    return output_failed(&work->out) || (work->follow && follow_interrupted()); /* nothing more is to be written */
}

static enum cdacq_status list_new(struct cdacq_follower *follower, void *context)
{
    struct cdacq_error error;
    enum cdacq_status status = cdacq_follower_visit_methods(follower, list_method, context, &error);
    if (status < 0)
        message("%s", error.message);
    return status;
}

/* --follow: lists all methods, then those that are new, until the process ends. */
static int list_and_follow(const struct invocation *invocation, struct cdacq_target *target,
                           struct cdacq_session *session)
{
    (void)session;
    struct work work = {.follow = true};
    struct cdacq_follower *follower = follow_open(target, flags_of(invocation));
    if (!follower || !output_open_stream(&work.out, invocation->output)) {
        cdacq_follower_destroy(follower);
        return EXIT_FAILED;
    }
    answers_init(&work.answers, &work.out, invocation->json);
    init_patterns(&work, invocation);
    enum cdacq_status status = follow_process(follower, &work.out, list_new, &work);
    cdacq_follower_destroy(follower);
    complaints_end(&work.complaints, "element", "elements");
    tell_doubts(&work);
    bool written = output_close(&work.out), found = end_patterns(&work, status >= 0);
    answers_deinit(&work.answers);
    if (!written || (status < 0 && !work.done))
        return EXIT_FAILED;
    return status < 0 || work.answers.errors || work.unread || !found ? EXIT_PARTLY : EXIT_ANSWERED;
}

static int list_all(const struct invocation *invocation, struct cdacq_target *target, struct cdacq_session *session)
{
    struct work work = {0};
    struct cdacq_error error;
    if (!output_open(&work.out, invocation->output))
        return EXIT_FAILED;
    answers_init(&work.answers, &work.out, invocation->json);
    init_patterns(&work, invocation);
    code_progress_begin(&work.progress, session, flags_of(invocation), work.out.fd);
    work.out.is_held = stop_is_wanted(invocation);

    enum cdacq_status status = cdacq_session_visit_methods(session, flags_of(invocation), list_method, &work, &error);
    cdacq_target_resume(target);
    code_progress_end(&work.progress);
    complaints_end(&work.complaints, "element", "elements");
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

int cmd_methods(const struct invocation *invocation)
{
    if (!follow_is_possible(invocation))
        return EXIT_USAGE;
    return target_run(invocation, 0, invocation->follow ? list_and_follow : list_all);
}
