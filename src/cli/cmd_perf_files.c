/*
 * cmd_perf_files.c: `perfmap`, `jitdump` and `elf` write the code of the process in formats that perf, debuggers and
 * other tools read. The library forms the bytes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/code_progress.h"
#include "src/cli/commands.h"
#include "src/cli/complaints.h"
#include "src/cli/console.h"
#include "src/cli/follow.h"
#include "src/cli/left_out.h"
#include "src/cli/memory.h"
#include "src/cli/output.h"

struct work {
    struct output out;
    struct code_progress progress; /* not if it follows */
    struct left_out left_out;
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
    return left_out_take(&work->left_out, method);
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
    struct work work = {.left_out.target = target};
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
    bool is_cut = status == CDACQ_ERR_FUEL || status == CDACQ_ERR_IO; /* a bound, or the end of the process */
    bool none = status < 0 ? !is_cut || !any : work.left_out.count && !any;
    left_out_tell(&work.left_out, none, status < 0 ? error.message : NULL);
    if (none)
        output_abandon(&work.out); /* an incomplete file must not be used as a complete one */
    if (!none && !output_close(&work.out))
        return EXIT_FAILED;
    if (!none)
        left_out_tell_counts(&work.left_out, &written);
    bool partly = status < 0 || work.left_out.count || written.functions_left_out;
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
    struct work work = {.left_out = {.target = target, .at_once = true}, .written = {.size = sizeof work.written}};
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
    left_out_tell_counts(&work.left_out, &work.written);
    return status < 0 || work.left_out.count ? EXIT_PARTLY : EXIT_ANSWERED;
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
