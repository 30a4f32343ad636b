/*
 * cmd_inspect.c: shows all that the ExecutionManager contract provides for an IP. The reason for a missing answer is
 * shown together with the other answers.
 */
#include "src/cli/base/answers.h"
#include "src/cli/base/commands.h"
#include "src/cli/base/read_failures.h"
#include "src/cli/base/console.h"
#include "src/cli/commands/inspection.h"
#include "src/cli/commands/ip_input.h"
#include "src/cli/base/output.h"
#include "src/cli/commands/named_addresses.h"

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
    if (!work->stops)
        cdacq_target_refresh(work->target, NULL); /* all that is asked about an address is of one epoch */
    inspection_ask(inspection, work->session, ip);
    target_let_go(work->stops);
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
    if (++work->bad <= READ_FAILURES_MAX)
        ip_complain(line, bad);
    work->errors++;
    if (work->json) {
        struct inspection nothing = {
            .tells_runtime = work->inspection.tells_runtime,
            .method = {.answer = CDACQ_ANSWER_ERROR, .module_verified = true, .error = bad->problem},
            .source.il_offset = CDACQ_OFFSET_UNKNOWN};
        inspection_write_json(&nothing, bad, &work->out);
    } else {
        output_escaped(&work->out, bad->text, bad->length, ESCAPE_DATA);
        output_styled(&work->out, STYLE_ERROR, " ? [error] ");
        output_note_between(&work->out, "", bad->problem, "\n");
    }
}

static int inspect_all(const void *given, const struct opened_target *opened)
{
    const struct address_options *options = given;
    struct work work = {.target = opened->target,
                        .session = opened->session,
                        .json = options->common.json,
                        .inspection.tells_runtime = opened->tells_runtime,
                        .stops = stop_is_wanted(&options->common, opened->name) ? opened->target : NULL};
    struct named_addresses places = {.target = opened->target, .session = opened->session};
    struct ip_taker taker = {.context = &work,
                             .take = inspect,
                             .take_bad = inspect_bad,
                             .out = &work.out,
                             .stopped = &work.stopped,
                             .progress = &work.progress,
                             .read_other = named_addresses_find,
                             .other = &places};
    if (!output_open_stream(&work.out, options->common.output))
        return EXIT_FAILED;
    progress_begin(&work.progress, "addresses", work.out.fd);
    bool ok = ip_feed(options->ips.items, options->ips.count, &taker);
    progress_end(&work.progress);
    named_addresses_deinit(&places);
    inspection_deinit(&work.inspection);
    answers_tell_unread(&work.unread);
    answers_tell_unconfirmed(work.unconfirmed, "answer");
    ok = output_close(&work.out) && ok;
    ok &= !work.ended || work.found;
    return !ok || work.stopped ? EXIT_FAILED : work.errors ? EXIT_PARTLY : EXIT_ANSWERED;
}

static int run(const void *options)
{
    const struct target_use use = {
        .run = inspect_all, .flags = CDACQ_OPEN_ALL_RUNTIMES | CDACQ_OPEN_KEEP, .stops_itself = true};
    return target_run(options, &use);
}

const struct command command_inspect = {
    .name = "inspect",
    .section = SECTION_ADDRESSES,
    RUNS(run, struct address_options),
    .operands = OPERANDS({TARGET_OPERAND}, {IP_OPERAND, .or_stdin = true}),
    .options = OPTIONS(json_rows, output_rows, target_rows, names_rows),
    .summary = "show all that the ExecutionManager contract provides for each IP",
    .details = "IPs as for ip2method. Shows the method's start, its hot and cold parts, the funclet, the entry of\n"
               "the unwind table, where debug info and GC info are, the exception clauses, the source line, and where\n"
               "the arguments and locals are.\n"
               "If a value cannot be read, the reason is shown in its place.\n",
};
