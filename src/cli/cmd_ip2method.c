/*
 * cmd_ip2method.c: names the method at each IP, from the command line or standard input. It streams: memory use is
 * constant, answers come in order, and a writer that waits for an answer gets it at once.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "src/cli/answers.h"
#include "src/cli/commands.h"
#include "src/cli/complaints.h"
#include "src/cli/console.h"
#include "src/cli/ips.h"
#include "src/cli/memory.h"
#include "src/cli/output.h"
#include "src/cli/places.h"
#include "src/cli/shared_batch.h"
#include "util/clock.h"

enum {
    BATCH = 1024,                   /* these answers fit the processor's cache */
    AHEAD = 8,                      /* a name is fetched this many answers before it is written */
    SESSION_MAX = 32 * 1024 * 1024, /* bytes of strings: a process may make new methods for days */
};

struct work {
    struct cdacq_target *target;
    struct cdacq_session *session;
    struct cdacq_session *own; /* the same, if it is not the first one */
    bool is_process;
    bool stopped;   /* there can be no more answers */
    bool ended;     /* the process has; the rest of the answers say so */
    bool found;     /* an answer that is no error */
    bool stops;     /* --stop: it is stopped for each batch */
    bool may_share; /* a second process can answer some of the first addresses */
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
    if (work->answers.errors <= COMPLAINTS_MAX && !work->ended)
        message("0x%" PRIx64 ": %s", method->ip, method->error ? method->error : "no reason is known");
}

static uint64_t seconds_now(void)
{
    return monotonic_ns() / 1000000000;
}

/* Takes another session when the strings of this one are many. */
static void renew_session(struct work *work)
{
    struct cdacq_session *session;
    if (cdacq_session_memory(work->session) <= SESSION_MAX || cdacq_session_create(work->target, &session, NULL) < 0)
        return;
    cdacq_session_destroy(work->own);
    answers_forget_strings(&work->answers);
    work->session = work->own = session;
}

/* A running process is read again for addresses that were asked for since it was last read, and every second. */
static void begin_question(void *context)
{
    struct work *work = context;
    work->asked = seconds_now();
    cdacq_target_refresh(work->target, NULL);
}

static void begin_batch(struct work *work)
{
    uint64_t now = seconds_now();
    if (!work->stops && now > work->asked)
        begin_question(work);
    if (work->is_process)
        renew_session(work);
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
        cdacq_target_resume(work->target);
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

/*
 * Answers when there are no more addresses for now. Two processes of the tool share the first ones. If more followed,
 * the names that the second one has formed would have to be formed again.
 */
static void answer_waiting(void *context)
{
    struct work *work = context;
    if (!work->may_share || work->stopped || work->done || work->pending < SHARED_BATCH_MIN) {
        answer_pending(work);
        return;
    }
    struct second_process second = {0};
    begin_batch(work);
    if (shared_batch_answer(&second, work->target, work->session, work->ips, work->pending, work->methods,
                            &work->answers)) {
        work->found = true;
        end_batch(work);
    } else {
        answer_pending(work);
    }
    output_flush(&work->out); /* whoever reads the answers need not wait for the end of the other process */
    second_process_end(&second);
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
    if (work->answers.errors <= COMPLAINTS_MAX)
        ips_complain(line, bad);
}

/* Messages about all answers, after the last one. */
static void tell_of_answers(const struct work *work)
{
    const struct answers *answers = &work->answers;
    uint64_t more = answers->errors > COMPLAINTS_MAX ? answers->errors - COMPLAINTS_MAX : 0;
    if (more && !work->ended)
        message("%" PRIu64 " more address%s could not be answered", more, more == 1 ? "" : "es");
    answers_tell_unread(&answers->unread);
    answers_tell_unconfirmed(answers->unconfirmed, "answer");
}

static int answer_all(const struct invocation *invocation, struct cdacq_target *target, struct cdacq_session *session)
{
    struct work *work = allocate(sizeof *work);
    work->target = target;
    work->session = session;
    work->is_process = target_is_pid(invocation->targets[0]);
    work->stops = stop_is_wanted(invocation);
    work->asked = seconds_now();
    work->ips = reallocate(NULL, BATCH * sizeof *work->ips);
    work->methods = reallocate(NULL, BATCH * sizeof *work->methods);
    if (!output_open_stream(&work->out, invocation->output)) {
        free(work->methods);
        free(work->ips);
        free(work);
        return EXIT_FAILED;
    }
    work->may_share = work->is_process && !work->stops && !work->out.is_terminal &&
                      !(invocation->options.flags & CDACQ_OPEN_DEBUGINFOD); /* which may show how much was fetched */
    answers_init(&work->answers, &work->out, invocation->json);
    progress_begin(&work->progress, "addresses", work->out.fd);

    struct places places = {.target = target, .session = session};
    struct ips_taker taker = {
        .context = work,
        .read_other = places_find,
        .other = &places,
        .take = ask,
        .take_bad = answer_bad,
        .pause = answer_waiting,
        .out = &work->out,
        .more = begin_question,
        .stopped = &work->stopped,
        .progress = &work->progress,
    };
    bool ok = ips_feed(invocation->ips, invocation->ip_count, &taker) && !work->stopped;

    progress_end(&work->progress);
    places_deinit(&places);
    uint64_t errors = work->answers.errors;
    ok &= !work->ended || work->found;
    tell_of_answers(work);
    ok = output_close(&work->out) && ok;
    answers_deinit(&work->answers);
    cdacq_session_destroy(work->own);
    free(work->methods);
    free(work->ips);
    free(work);
    return !ok ? EXIT_FAILED : errors ? EXIT_PARTLY : EXIT_ANSWERED;
}

int cmd_ip2method(const struct invocation *invocation)
{
    return target_run(invocation, CDACQ_OPEN_KEEP, answer_all);
}
