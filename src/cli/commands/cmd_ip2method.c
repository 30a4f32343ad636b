/*
 * cmd_ip2method.c: names the method at each IP, from the command line or standard input. It streams: memory use is
 * constant, answers come in order, and a writer that waits for an answer gets it at once.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "src/cli/base/answers.h"
#include "src/cli/base/commands.h"
#include "src/cli/base/read_failures.h"
#include "src/cli/base/console.h"
#include "src/cli/commands/ip_input.h"
#include "src/cli/base/memory.h"
#include "src/cli/base/output.h"
#include "src/cli/commands/named_addresses.h"
#include "util/clock.h"

enum {
    BATCH = 1024, /* these answers fit the processor's cache */
    AHEAD = 8,    /* a name is fetched this many answers before it is written */
};

struct work {
    struct cdacq_target *target;
    struct cdacq_session *session;
    bool stopped;   /* there can be no more answers */
    bool ended;     /* the process has; the rest of the answers say so */
    bool found;     /* an answer that is no error */
    bool stops;     /* --stop: it is stopped for each batch */
    uint64_t asked; /* the second (of monotonic_ns) in which the question about a running process began */
    struct output out;
    struct answers answers;
    struct progress progress;
    uint64_t done;
    size_t pending;
    uint64_t *ips; /* BATCH of each, not zeroed */
    struct cdacq_method *methods;
};

static void complain_of_answer(const struct work *work, const struct cdacq_method *method)
{
    if (work->answers.errors <= READ_FAILURES_MAX && !work->ended)
        message("0x%" PRIx64 ": %s", method->ip, method->error ? method->error : "no reason is known");
}

static uint64_t seconds_now(void)
{
    return monotonic_ns() / NS_PER_SECOND;
}

/* A running process is read again for addresses that were asked for since it was last read, and every second. */
static void begin_question(void *context)
{
    struct work *work = context;
    work->asked = seconds_now();
    answers_forget_strings(&work->answers); /* those of a running process are valid until then */
    cdacq_target_refresh(work->target, NULL);
}

static void begin_batch(struct work *work)
{
    uint64_t now = seconds_now();
    if (work->stops)
        answers_forget_strings(&work->answers);
    else if (now > work->asked)
        begin_question(work);
}

static void end_batch(struct work *work)
{
    work->done += work->pending;
    work->pending = 0;
    progress_step(&work->progress, work->done);
}

static void answer_pending(void *context)
{
    struct work *work = context;
    struct cdacq_error error;
    if (!work->pending || work->stopped)
        return;
    if (work->stops && !target_stop(work->target)) {
        work->stopped = true;
        return;
    }
    begin_batch(work);
    work->methods->size = sizeof *work->methods;
    enum cdacq_status status = cdacq_session_methods_at(work->session, work->ips, work->pending, work->methods, &error);
    if (work->stops)
        target_let_go(work->target);
    if (status < 0 && !work->ended)
        message("%s", error.message);
    work->ended |= status == CDACQ_ERR_IO;
    work->stopped = status < 0 && !work->ended;
    if (work->stopped)
        return;
    for (size_t i = 0; i < work->pending; i++) {
        /* A name is seldom in the cache, and copying it takes most of the time. */
        __builtin_prefetch(work->methods[i + AHEAD < work->pending ? i + AHEAD : i].name);
        answers_write(&work->answers, &work->methods[i]);
        work->found |= work->methods[i].answer != CDACQ_ANSWER_ERROR;
        if (work->methods[i].answer == CDACQ_ANSWER_ERROR)
            complain_of_answer(work, &work->methods[i]);
    }
    end_batch(work);
}

static void ask(void *context, uint64_t ip)
{
    struct work *work = context;
    work->ips[work->pending++] = ip;
    if (work->pending == BATCH)
        answer_pending(work);
}

/* Text that is not an IP gets a line of output, too, in order. */
static void answer_bad(void *context, uint64_t line, const struct bad_ip *bad)
{
    struct work *work = context;
    answer_pending(work);
    answers_write_bad(&work->answers, bad);
    if (work->answers.errors <= READ_FAILURES_MAX)
        ip_complain(line, bad);
}

/* Messages about all answers, after the last one. */
static void tell_of_answers(const struct work *work)
{
    const struct answers *answers = &work->answers;
    uint64_t more = answers->errors > READ_FAILURES_MAX ? answers->errors - READ_FAILURES_MAX : 0;
    if (more && !work->ended)
        message("%" PRIu64 " more address%s could not be answered", more, more == 1 ? "" : "es");
    answers_tell_unread(&answers->unread);
    answers_tell_unconfirmed(answers->unconfirmed, "answer");
}

static int answer_all(const void *given, const struct opened_target *opened)
{
    const struct address_options *options = given;
    struct work *work = allocate(sizeof *work);
    work->target = opened->target;
    work->session = opened->session;
    work->stops = stop_is_wanted(&options->common, opened->name);
    work->asked = seconds_now();
    work->ips = reallocate(NULL, BATCH * sizeof *work->ips);
    work->methods = reallocate(NULL, BATCH * sizeof *work->methods);
    if (!output_open_stream(&work->out, options->common.output)) {
        free(work->methods);
        free(work->ips);
        free(work);
        return EXIT_FAILED;
    }
    answers_init(&work->answers, &work->out, options->common.json);
    work->answers.tells_runtime = opened->tells_runtime;
    progress_begin(&work->progress, "addresses", work->out.fd);

    struct named_addresses places = {.target = opened->target, .session = opened->session};
    struct ip_taker taker = {
        .context = work,
        .read_other = named_addresses_find,
        .other = &places,
        .take = ask,
        .take_bad = answer_bad,
        .pause = answer_pending,
        .out = &work->out,
        .more = begin_question,
        .stopped = &work->stopped,
        .progress = &work->progress,
    };
    bool ok = ip_feed(options->ips.items, options->ips.count, &taker) && !work->stopped;

    progress_end(&work->progress);
    named_addresses_deinit(&places);
    uint64_t errors = work->answers.errors;
    ok &= !work->ended || work->found;
    tell_of_answers(work);
    ok = output_close(&work->out) && ok;
    answers_deinit(&work->answers);
    free(work->methods);
    free(work->ips);
    free(work);
    return !ok ? EXIT_FAILED : errors ? EXIT_PARTLY : EXIT_ANSWERED;
}

static int run(const void *options)
{
    enum { FLAGS = CDACQ_OPEN_ALL_RUNTIMES | CDACQ_OPEN_KEEP };
    return target_run(options, &(const struct target_use){.run = answer_all, .flags = FLAGS, .stops_itself = true});
}

const struct command command_ip2method = {
    .name = "ip2method",
    .section = SECTION_ADDRESSES,
    RUNS(run, struct address_options),
    .operands = OPERANDS({TARGET_OPERAND}, {IP_OPERAND, .or_stdin = true}),
    .options = OPTIONS(json_rows, output_rows, target_rows, names_rows),
    .summary = "name the method that owns each IP",
    .details = "An IP is up to 16 hex digits, 0x optional; METHOD+0x10, where METHOD may lack its parameters; or\n"
               "FILE!0x1234 in a mapped file. Without IPs they are read from standard input, one a line. Every IP\n"
               "gives one line, in order:\n"
               "  0x7f.. Demo.Program.Fib(int) +0x2f [jit Tier1] IL_0012 Program.cs:14 (Demo.dll)   a method\n"
               "  0x7f.. - [stub FixupPrecode]   the runtime's own code\n"
               "  0x7f.. - [none]                anything else\n"
               "  0x7f.. ? [error] MESSAGE       the answer could not be found\n",
};
