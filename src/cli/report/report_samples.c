/*
 * report_samples.c: which method the busiest threads run, at moments before that of the report: one stack alone can
 * show what takes little of the time.
 */
#include <string.h>
#include <time.h>

#include "src/cli/report/report.h"
#include "src/cli/report/report_samples.h"
#include "util/base.h"

enum {
    SAMPLED_MAX = 8,             /* threads */
    SAMPLED_LEAST = 20,          /* per cent of a processor */
    PAUSE_NS = 30 * 1000 * 1000, /* between samples */
    NAME_MAX_LENGTH = 64 * 1024, /* of a method; a longer one is not kept */
};

struct sampling {
    struct cdacq_session *session;
    struct busy_threads *busy;
    unsigned sample;            /* its number */
    struct busy_thread *thread; /* whose frames are visited */
};

/* Keeps the innermost method of the program. */
static int sample_frame(const struct cdacq_frame *frame, void *context)
{
    struct sampling *sampling = context;
    const struct cdacq_method *method = frame->method;
    if (!method || !method->name || !method->name_length || method->name_length > NAME_MAX_LENGTH ||
        !report_is_of_program(method))
        return 0;
    sampling->thread->sampled[sampling->sample] = strdup(method->name);
    return 1;
}

static int sample_thread(const struct cdacq_thread *thread, void *context)
{
    struct sampling *sampling = context;
    const struct busy_list *list = &sampling->busy->list;
    for (size_t i = 0; i < MIN(list->count, (size_t)SAMPLED_MAX); i++) { /* the busiest first */
        if (list->items[i].tid != thread->tid || busy_wanted_by(&list->items[i]) < SAMPLED_LEAST)
            continue;
        sampling->thread = &list->items[i];
        (void)cdacq_session_visit_frames(sampling->session, thread, NULL, 0, sample_frame, sampling, NULL);
    }
    return 0;
}

static void take_samples(struct cdacq_target *target, struct cdacq_session *session, struct busy_threads *busy)
{
    struct sampling sampling = {.session = session, .busy = busy};
    if (!busy->list.count || busy_wanted_by(&busy->list.items[0]) < SAMPLED_LEAST)
        return;
    for (; sampling.sample < BUSY_SAMPLES - 1; sampling.sample++) {
        if (cdacq_target_stop(target, NULL) < 0)
            return; /* the report says why it cannot be stopped */
        (void)cdacq_session_visit_threads(session, sample_thread, &sampling, NULL);
        cdacq_target_resume(target);
        busy->samples++;
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
}

void report_watch(struct cdacq_target *target, int pid, struct busy_threads *ret)
{
    struct cdacq_session *session = NULL;
    (void)cdacq_session_create(target, &session, NULL);
    busy_threads_measure(pid, session, ret);
    if (session)
        take_samples(target, session, ret);
    cdacq_session_destroy(session);
}
