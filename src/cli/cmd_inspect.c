/*
 * cmd_inspect.c: shows all that the ExecutionManager contract provides for an IP. The reason for a missing answer is
 * shown together with the other answers.
 */
#include "src/cli/answers.h"
#include "src/cli/commands.h"
#include "src/cli/complaints.h"
#include "src/cli/console.h"
#include "src/cli/inspection.h"
#include "src/cli/ips.h"
#include "src/cli/output.h"
#include "src/cli/places.h"

struct work {
    struct cdacq_target *target;
    struct cdacq_session *session;
    struct output out;
    struct progress progress;
    struct inspection inspection;
    struct cdacq_target *stops; /* --stop: the process, which is stopped for each IP; or NULL */
    bool stopped;               /* it cannot be stopped any more */
    bool ended;                 /* the process has; the rest of the answers say so */
    bool found;                 /* an answer that is no error */
    bool json;
    uint64_t bad;                 /* texts that are not IPs */
    uint64_t done, errors;        /* IPs with a value that is not known */
    uint64_t unconfirmed;         /* of text: IPs that use a file that nothing confirms */
    struct answers_unread unread; /* of text */
};

/* Whether a failure is the end of the process. A message says so. */
static bool has_ended(const struct work *work)
{
    struct cdacq_error error;
    const struct inspection *inspection = &work->inspection;
    if ((inspection->method.answer != CDACQ_ANSWER_ERROR && !inspection->problem_count) ||
        cdacq_target_refresh(work->target, &error) >= 0)
        return false;
    message("%s", error.message);
    return true;
}

static void inspect(void *context, uint64_t ip)
{
    struct work *work = context;
    struct inspection *inspection = &work->inspection;
    if (work->stops && !target_stop(work->stops)) {
        work->stopped = true;
        return;
    }
    inspection_ask(inspection, work->session, ip);
    cdacq_target_resume(work->stops);
    work->ended = work->ended || has_ended(work);
    work->found |= inspection->method.answer != CDACQ_ANSWER_ERROR;
    work->errors += inspection->method.answer == CDACQ_ANSWER_ERROR || inspection->problem_count;
    work->unconfirmed += !work->json && !inspection->method.module_verified;
    if (work->json) {
        inspection_write_json(inspection, NULL, &work->out);
    } else {
        answers_count_unread(&work->unread, &inspection->method);
        inspection_write_text(inspection, &work->out);
    }
    if (++work->done % 256 == 0)
        progress_step(&work->progress, work->done);
}

/* Text that is not an IP gets a line, too. */
static void inspect_bad(void *context, uint64_t line, const struct bad_ip *bad)
{
    struct work *work = context;
    if (++work->bad <= COMPLAINTS_MAX)
        ips_complain(line, bad);
    work->errors++;
    if (work->json) {
        struct inspection nothing = {
            .method = {.answer = CDACQ_ANSWER_ERROR, .module_verified = true, .error = bad->problem},
            .source.il_offset = CDACQ_OFFSET_UNKNOWN};
        inspection_write_json(&nothing, bad, &work->out);
    } else {
        output_escaped(&work->out, bad->text, bad->length, ESCAPE_DATA);
        output_styled(&work->out, STYLE_ERROR, " ? [error] ");
        output_note_between(&work->out, "", bad->problem, "\n");
    }
}

static int inspect_all(const struct invocation *invocation, struct cdacq_target *target, struct cdacq_session *session)
{
    struct work work = {.target = target,
                        .session = session,
                        .json = invocation->json,
                        .stops = stop_is_wanted(invocation) ? target : NULL};
    struct places places = {.target = target, .session = session};
    struct ips_taker taker = {.context = &work,
                              .take = inspect,
                              .take_bad = inspect_bad,
                              .out = &work.out,
                              .stopped = &work.stopped,
                              .progress = &work.progress,
                              .read_other = places_find,
                              .other = &places};
    if (!output_open_stream(&work.out, invocation->output))
        return EXIT_FAILED;
    progress_begin(&work.progress, "addresses", work.out.fd);
    bool ok = ips_feed(invocation->ips, invocation->ip_count, &taker);
    progress_end(&work.progress);
    places_deinit(&places);
    inspection_deinit(&work.inspection);
    answers_tell_unread(&work.unread);
    answers_tell_unconfirmed(work.unconfirmed, "answer");
    ok = output_close(&work.out) && ok;
    ok &= !work.ended || work.found;
    return !ok || work.stopped ? EXIT_FAILED : work.errors ? EXIT_PARTLY : EXIT_ANSWERED;
}

int cmd_inspect(const struct invocation *invocation)
{
    return target_run(invocation, 0, inspect_all);
}
