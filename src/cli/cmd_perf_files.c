/*
 * cmd_perf_files.c: `perfmap`, `jitdump` and `elf` write the code of the process in formats that perf, debuggers and
 * other tools read. The library forms the bytes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/answers.h"
#include "src/cli/code_progress.h"
#include "src/cli/commands.h"
#include "src/cli/console.h"
#include "src/cli/follow.h"
#include "src/cli/memory.h"
#include "src/cli/output.h"

enum { COMPLAINTS_MAX = 20 }; /* messages; a whole image may be missing */

struct work {
    const struct cdacq_target *target;
    struct output out;
    struct code_progress progress; /* not if it follows */
    uint64_t left_out;
    /* Held back until it is known whether anything was written. The last place is for what has no address. */
    char *complaints[COMPLAINTS_MAX + 1];
    uint64_t complaint_count; /* also those that are told at once */
    bool follow;
    struct cdacq_sink sink;
    struct cdacq_written written;
};

static int take_bytes(const void *bytes, size_t size, void *context)
{
    struct work *work = context;
    char *p = output_reserve(&work->out, size);
    memcpy(p, bytes, size);
    output_commit(&work->out, p + size);
    return output_failed(&work->out); /* nothing more can be written */
}

static void count_method(const struct cdacq_method *method, void *context)
{
    struct work *work = context;
    code_progress_step(&work->progress, method);
}

/* The pieces of a file that is followed are whole records. */
static int take_records(const void *bytes, size_t size, void *context)
{
    struct work *work = context;
    int result = take_bytes(bytes, size, context);
    output_end_record(&work->out);
    return result || follow_interrupted();
}

static int report_left_out(const struct cdacq_method *method, void *context)
{
    struct work *work = context;
    char bound[160], *text;
    uint64_t number = method->code_start ? MIN(work->left_out, (uint64_t)COMPLAINTS_MAX) : COMPLAINTS_MAX;
    work->left_out++;
    if ((number == COMPLAINTS_MAX && method->code_start) ||
        cdacq_target_bound_reached(work->target, bound, sizeof bound))
        return 0;
    int length = method->code_start ? asprintf(&text, "0x%" PRIx64 "%s%s: left out: %s", method->code_start,
                                               method->name ? " " : "", method->name ? method->name : "", method->error)
                                    : asprintf(&text, "%s", method->error);
    if (length < 0)
        return 0;
    work->complaint_count++;
    if (work->follow)
        message("%s", text);
    if (work->follow || work->complaints[number])
        free(text);
    else
        work->complaints[number] = text;
    return 0;
}

/* One line, not several, where nothing is written: `problem` says why, unless all was left out. */
static void report_complaints(struct work *work, bool none, const char *problem)
{
    const char *first = work->complaints[0] ? work->complaints[0] : work->complaints[COMPLAINTS_MAX];
    if (none && !problem)
        message("nothing can be written: %" PRIu64 " methods or stubs are left out%s%s", work->left_out,
                first ? "; the first: " : "", first ? first : "");
    for (size_t i = 0; i < ARRAY_SIZE(work->complaints); i++) {
        if (work->complaints[i] && !none)
            message("%s", work->complaints[i]);
        free(work->complaints[i]);
    }
    if (problem)
        message("%s", problem);
}

static void report_counts(const struct work *work, const struct cdacq_written *written)
{
    if (work->left_out > COMPLAINTS_MAX && work->left_out > work->complaint_count)
        message("%" PRIu64 " more methods or stubs are left out", work->left_out - work->complaint_count);
    answers_tell_unconfirmed(written->unverified, "methods or stubs");
    if (written->functions_left_out)
        message("%" PRIu64 " functions have no call-frame information: their unwind data cannot be read",
                written->functions_left_out);
    if (written->without_epilogs)
        message("%" PRIu64 " functions have no call-frame information in epilogs: their code is missing",
                written->without_epilogs);
}

static unsigned flags_of(const struct invocation *invocation)
{
    static const unsigned r2r[] = {
        [R2R_DEFAULT] = CDACQ_VISIT_R2R_NONE, [R2R_PREPARED] = 0, [R2R_ALL] = CDACQ_VISIT_R2R_ALL};
    bool is_elf = invocation->command->run == cmd_elf;
    unsigned which = is_elf && invocation->r2r == R2R_DEFAULT ? 0 : r2r[invocation->r2r];
    if (invocation->command->run == cmd_jitdump)
        which |= (unsigned)CDACQ_WRITE_DEBUG | (invocation->samply ? (unsigned)CDACQ_WRITE_SAMPLY : 0u);
    return which | (invocation->stubs ? CDACQ_VISIT_STUBS : 0u) | (invocation->code ? (unsigned)CDACQ_ELF_CODE : 0u);
}

typedef enum cdacq_status writer(struct cdacq_session *session, unsigned flags, const struct cdacq_sink *sink,
                                 struct cdacq_written *ret, struct cdacq_error *err);

static int write_with(const struct invocation *invocation, struct cdacq_target *target, struct cdacq_session *session,
                      writer *write)
{
    struct work work = {.target = target};
    struct cdacq_written written = {.size = sizeof written};
    struct cdacq_error error;
    if (!output_open(&work.out, invocation->output))
        return EXIT_FAILED;
    const struct cdacq_sink sink = {.size = sizeof sink,
                                    .context = &work,
                                    .write = take_bytes,
                                    .left_out = report_left_out,
                                    .visited = count_method};
    code_progress_begin(&work.progress, session, flags_of(invocation), work.out.fd);
    work.out.is_held = stop_is_wanted(invocation);
    enum cdacq_status status = write(session, flags_of(invocation), &sink, &written, &error);
    cdacq_target_resume(target);
    code_progress_end(&work.progress);
    bool any = written.methods || written.stubs;
    bool none = status < 0 ? status != CDACQ_ERR_FUEL || !any : work.left_out && !any;
    report_complaints(&work, none, status < 0 ? error.message : NULL);
    if (none)
        output_abandon(&work.out); /* an incomplete file must not be used as a complete one */
    if (!none && !output_close(&work.out))
        return EXIT_FAILED;
    if (!none)
        report_counts(&work, &written);
    bool partly = status < 0 || work.left_out || written.functions_left_out;
    return none ? EXIT_FAILED : partly ? EXIT_PARTLY : EXIT_ANSWERED;
}

static int write_perf_map(const struct invocation *invocation, struct cdacq_target *target,
                          struct cdacq_session *session)
{
    return write_with(invocation, target, session, cdacq_session_write_perf_map);
}

static enum cdacq_status write_new(struct cdacq_follower *follower, void *context)
{
    struct work *work = context;
    struct cdacq_error error;
    enum cdacq_status status = cdacq_follower_write_jitdump(follower, &work->sink, &work->written, &error);
    if (status < 0)
        message("%s", error.message);
    return status;
}

/* --follow: a jitdump that grows until the process ends. Its readers see it from the start. */
static int follow_jitdump(const struct invocation *invocation, struct cdacq_target *target,
                          struct cdacq_session *session)
{
    (void)session;
    struct work work = {.target = target, .follow = true, .written = {.size = sizeof work.written}};
    struct cdacq_error error;
    struct cdacq_follower *follower = follow_open(target, flags_of(invocation));
    if (!follower || !output_open_stream(&work.out, invocation->output)) {
        cdacq_follower_destroy(follower);
        return EXIT_FAILED;
    }
    work.sink = (struct cdacq_sink){.size = sizeof work.sink,
                                    .context = &work,
                                    .write = take_records,
                                    .left_out = report_left_out,
                                    .visited = NULL};
    enum cdacq_status status = follow_process(follower, &work.out, write_new, &work);
    work.sink.write = take_bytes; /* an interrupt does not stop the end of the file */
    enum cdacq_status end =
        output_failed(&work.out) ? CDACQ_OK : cdacq_follower_close_jitdump(follower, &work.sink, &work.written, &error);
    if (end < 0 && status >= 0)
        message("%s", error.message);
    status = MIN(status, end);
    cdacq_follower_destroy(follower);
    if (!output_close(&work.out) || (status < 0 && !work.written.methods && !work.written.stubs))
        return EXIT_FAILED;
    report_counts(&work, &work.written);
    return status < 0 || work.left_out ? EXIT_PARTLY : EXIT_ANSWERED;
}

static int write_jitdump(const struct invocation *invocation, struct cdacq_target *target,
                         struct cdacq_session *session)
{
    return write_with(invocation, target, session, cdacq_session_write_jitdump);
}

static int write_elf(const struct invocation *invocation, struct cdacq_target *target, struct cdacq_session *session)
{
    return write_with(invocation, target, session, cdacq_session_write_elf);
}

/* Whether standard output takes binary data; a message says if it does not. */
static bool takes_binary(const struct invocation *invocation)
{
    if (invocation->output || !isatty(STDOUT_FILENO))
        return true;
    message("%s: binary data is not written to a terminal; give -o FILE", invocation->command->name);
    return false;
}

int cmd_perfmap(const struct invocation *invocation)
{
    return target_run(invocation, 0, write_perf_map);
}

int cmd_jitdump(const struct invocation *invocation)
{
    if (!takes_binary(invocation) || !follow_is_possible(invocation))
        return EXIT_USAGE;
    return target_run(invocation, 0, invocation->follow ? follow_jitdump : write_jitdump);
}

int cmd_elf(const struct invocation *invocation)
{
    return takes_binary(invocation) ? target_run(invocation, 0, write_elf) : EXIT_USAGE;
}
