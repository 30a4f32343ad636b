/*
 * cmd_perf_files.c: `perfmap` and `jitdump` write the code of the process in the two formats that perf reads. The
 * library forms the bytes.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/cli/commands.h"
#include "src/cli/console.h"
#include "src/cli/output.h"

enum { COMPLAINTS_MAX = 20 }; /* messages; a whole image may be missing */

struct work {
    struct output out;
    struct progress progress;
    uint64_t pieces, left_out;
};

static int take_bytes(const void *bytes, size_t size, void *context)
{
    struct work *work = context;
    char *p = output_reserve(&work->out, size);
    memcpy(p, bytes, size);
    output_commit(&work->out, p + size);
    if (++work->pieces % 4096 == 0)
        progress_step(&work->progress, work->pieces);
    return output_failed(&work->out); /* nothing more can be written */
}

static int report_left_out(const struct cdacq_method *method, void *context)
{
    struct work *work = context;
    if (work->left_out++ < COMPLAINTS_MAX)
        message("0x%" PRIx64 "%s%s: left out: %s", method->code_start, method->name ? " " : "",
                method->name ? method->name : "", method->error);
    return 0;
}

static void report_counts(const struct work *work, const struct cdacq_written *written)
{
    if (work->left_out > COMPLAINTS_MAX)
        message("%" PRIu64 " more methods or stubs are left out", work->left_out - COMPLAINTS_MAX);
    if (written->unverified)
        message("%" PRIu64 " methods or stubs use files that the target cannot confirm", written->unverified);
}

/* An incomplete file must not be used as a complete one. Pipes and devices stay. */
static void remove_incomplete(const char *path)
{
    struct stat file;
    if (path && lstat(path, &file) == 0 && S_ISREG(file.st_mode) && unlink(path) == 0)
        message("'%s' is incomplete and has been removed", path);
}

static unsigned flags_of(const struct invocation *invocation)
{
    static const unsigned r2r[] = {
        [R2R_DEFAULT] = CDACQ_VISIT_R2R_NONE, [R2R_PREPARED] = 0, [R2R_ALL] = CDACQ_VISIT_R2R_ALL};
    return r2r[invocation->r2r] | (invocation->stubs ? CDACQ_VISIT_STUBS : 0u);
}

static int write_file(const struct invocation *invocation, struct cdacq_target *target, struct cdacq_session *session)
{
    (void)target;
    struct work work = {0};
    struct cdacq_written written = {.size = sizeof written};
    struct cdacq_error error;
    if (!output_open(&work.out, invocation->output))
        return EXIT_FAILED;
    const struct cdacq_sink sink = {
        .size = sizeof sink, .context = &work, .write = take_bytes, .left_out = report_left_out};
    progress_begin(&work.progress, "pieces", work.out.fd);
    enum cdacq_status status =
        (invocation->command->run == cmd_jitdump ? cdacq_session_write_jitdump : cdacq_session_write_perf_map)(
            session, flags_of(invocation), &sink, &written, &error);
    progress_end(&work.progress);
    if (status < 0)
        message("%s", error.message);
    if (!output_close(&work.out) || status < 0) {
        remove_incomplete(invocation->output);
        return EXIT_FAILED;
    }
    report_counts(&work, &written);
    if (!work.left_out)
        return EXIT_ANSWERED;
    return written.methods || written.stubs ? EXIT_PARTLY : EXIT_FAILED;
}

int cmd_perfmap(const struct invocation *invocation)
{
    return target_run(invocation, 0, write_file);
}

int cmd_jitdump(const struct invocation *invocation)
{
    if (!invocation->output && isatty(STDOUT_FILENO)) {
        message("jitdump: binary data is not written to a terminal; give -o FILE");
        return EXIT_USAGE;
    }
    return target_run(invocation, 0, write_file);
}
