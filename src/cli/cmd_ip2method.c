/*
 * cmd_ip2method.c: names the method at each IP, from the command line or from standard input. It streams: memory stays
 * constant, answers come in order, and whoever writes one address and waits for it gets its answer at once.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/answers.h"
#include "src/cli/cli.h"
#include "src/cli/console.h"
#include "src/cli/ips.h"
#include "src/cli/output.h"

enum {
    BATCH = 512,         /* as many answers as stay in the processor's cache */
    AHEAD = 8,           /* answers that a name is fetched before it is written */
    COMPLAINTS_MAX = 20, /* lines on standard error: each answer tells its problem anyway */
    QUOTED_MAX = 80,
};

struct work {
    struct cdacq_session *session;
    struct output out;
    struct answers answers;
    struct progress progress;
    uint64_t done;
    size_t pending;
    uint64_t *ips; /* BATCH of each: not in the struct, which is zeroed */
    struct cdacq_method *methods;
};

/* `line` is 0 for an IP of the command line. */
static void complain_of_input(const struct work *work, uint64_t line, const struct bad_ip *bad)
{
    int length = bad->length < QUOTED_MAX ? (int)bad->length : QUOTED_MAX;
    const char *dots = bad->length > QUOTED_MAX ? "..." : "";
    if (work->answers.errors > COMPLAINTS_MAX)
        return;
    if (line)
        message("line %" PRIu64 ": '%.*s%s': %s", line, length, bad->text, dots, bad->problem);
    else
        message("'%.*s%s': %s", length, bad->text, dots, bad->problem);
}

static void complain_of_answer(const struct work *work, const struct cdacq_method *method)
{
    if (work->answers.errors <= COMPLAINTS_MAX)
        message("0x%" PRIx64 ": %s", method->ip, method->error ? method->error : "no reason is known");
}

static void answer_pending(struct work *work)
{
    if (!work->pending)
        return;
    cdacq_methods_at(work->session, work->ips, work->pending, work->methods);
    for (size_t i = 0; i < work->pending; i++) {
        /* A name is seldom in the cache, and copying it is most of the work. */
        __builtin_prefetch(work->methods[i + AHEAD < work->pending ? i + AHEAD : i].name);
        answers_write(&work->answers, &work->methods[i]);
        if (work->methods[i].answer == CDACQ_ANSWER_ERROR)
            complain_of_answer(work, &work->methods[i]);
    }
    work->done += work->pending;
    work->pending = 0;
    progress_step(&work->progress, work->done);
}

static inline void ask(struct work *work, uint64_t ip)
{
    work->ips[work->pending++] = ip;
    if (work->pending == BATCH)
        answer_pending(work);
}

/* Something that is no IP gets its line of output too, behind those that were asked before it. */
static void answer_bad(struct work *work, uint64_t line, const struct bad_ip *bad)
{
    answer_pending(work);
    answers_write_bad(&work->answers, bad);
    complain_of_input(work, line, bad);
}

static void answer_list(struct work *work, const char *const *ips, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t ip;
        struct bad_ip bad;
        if (ips_parse(ips[i], strlen(ips[i]), &ip, &bad))
            ask(work, ip);
        else
            answer_bad(work, 0, &bad);
    }
    answer_pending(work);
}

/* False where standard input cannot be read. */
static bool answer_stream(struct work *work, struct ips_reader *reader)
{
    while (!output_failed(&work->out)) {
        uint64_t ip;
        switch (ips_take(reader, &ip)) {
        case IPS_GOOD:
            ask(work, ip);
            break;
        case IPS_BAD:
            answer_bad(work, reader->line, &reader->bad);
            break;
        case IPS_MORE:
            answer_pending(work);
            if (ips_would_block(reader))
                output_flush(&work->out);
            if (!ips_fill(reader)) {
                message("cannot read standard input: %s", strerror(errno));
                return false;
            }
            break;
        case IPS_END:
            answer_pending(work);
            return true;
        }
    }
    return true; /* output_close tells what is wrong */
}

static bool answer_stdin(struct work *work)
{
    struct ips_reader reader;
    ips_reader_init(&reader, STDIN_FILENO);
    bool ok = answer_stream(work, &reader);
    ips_reader_deinit(&reader);
    return ok;
}

static int answer_all(const struct invocation *invocation, struct cdacq *target, struct cdacq_session *session)
{
    (void)target;
    struct work *work = allocate(sizeof *work);
    work->session = session;
    work->ips = reallocate(NULL, BATCH * sizeof *work->ips);
    work->methods = reallocate(NULL, BATCH * sizeof *work->methods);
    if (!output_open(&work->out, invocation->output)) {
        free(work->methods);
        free(work->ips);
        free(work);
        return EXIT_FAILED;
    }
    answers_init(&work->answers, &work->out, invocation->json);
    progress_begin(&work->progress, "addresses", work->out.fd);

    bool ok = true;
    if (invocation->ip_count)
        answer_list(work, invocation->ips, invocation->ip_count);
    else
        ok = answer_stdin(work);

    progress_end(&work->progress);
    uint64_t errors = work->answers.errors;
    if (errors > COMPLAINTS_MAX)
        message("%" PRIu64 " more could not be answered", errors - COMPLAINTS_MAX);
    ok = output_close(&work->out) && ok;
    answers_deinit(&work->answers);
    free(work->methods);
    free(work->ips);
    free(work);
    return !ok ? EXIT_FAILED : errors ? EXIT_PARTLY : EXIT_ANSWERED;
}

int cmd_ip2method(const struct invocation *invocation)
{
    return target_run(invocation, 0, answer_all);
}
