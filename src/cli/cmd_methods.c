/*
 * cmd_methods.c: lists the code of every method of the process by start address.
 */
#include <inttypes.h>

#include "src/cli/answers.h"
#include "src/cli/commands.h"
#include "src/cli/console.h"
#include "src/cli/output.h"

enum { COMPLAINTS_MAX = 100 }; /* messages; all of a damaged heap may be unreadable */

struct work {
    struct output out;
    struct answers answers;
    struct progress progress;
    uint64_t done;
};

static int list_method(const struct cdacq_method *method, void *context)
{
    struct work *work = context;
    answers_write_method(&work->answers, method);
    if (method->answer == CDACQ_ANSWER_ERROR && work->answers.errors <= COMPLAINTS_MAX)
        message("0x%" PRIx64 ": %s", method->code_start, method->error ? method->error : "no reason is known");
    if (++work->done % 256 == 0)
        progress_step(&work->progress, work->done);
    return output_failed(&work->out); /* nothing more can be written */
}

static int list_all(const struct invocation *invocation, struct cdacq_target *target, struct cdacq_session *session)
{
    (void)target;
    struct work work = {0};
    struct cdacq_error error;
    unsigned flags =
        (invocation->stubs ? CDACQ_VISIT_STUBS : 0u) | (invocation->r2r == R2R_ALL ? CDACQ_VISIT_R2R_ALL : 0u);
    if (!output_open(&work.out, invocation->output))
        return EXIT_FAILED;
    answers_init(&work.answers, &work.out, invocation->json);
    progress_begin(&work.progress, "methods", work.out.fd);

    enum cdacq_status status = cdacq_session_visit_methods(session, flags, list_method, &work, &error);
    progress_end(&work.progress);
    if (work.answers.errors > COMPLAINTS_MAX)
        message("%" PRIu64 " more elements cannot be read", work.answers.errors - COMPLAINTS_MAX);
    if (status < 0)
        message("%s", error.message);
    bool none = status < 0 && !work.done;
    if (none)
        output_abandon(&work.out);
    bool written = none || output_close(&work.out);
    answers_deinit(&work.answers);
    if (!written || none)
        return EXIT_FAILED;
    return status < 0 || work.answers.errors ? EXIT_PARTLY : EXIT_ANSWERED;
}

int cmd_methods(const struct invocation *invocation)
{
    return target_run(invocation, 0, list_all);
}
