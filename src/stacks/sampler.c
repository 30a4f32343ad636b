/*
 * sampler.c: the calls of cdacq/sample.h. What is read of the process stays from round to round, because code changes
 * seldom; a thread's stack and its Thread are read again for each visit. What else can change shows in the walk: an
 * address without an answer, code that may be freed, objects that do not hold. Then all is read anew.
 */
#include <sched.h>

#include "cdacq/sample.h"
#include "contracts/stack_walk/stack_walk.h"
#include "src/lookup/opened_session.h"
#include "src/lookup/opened_target.h"
#include "src/stacks/stack.h"
#include "target/thread_sampler.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/hash_table.h"

enum {
    ASKED_MAX = 4,           /* threads that wait for a processor, to stop then: the others are left for later rounds */
    THREAD_SIZE = 4096,      /* of the runtime's Thread, at most */
    STACK_SIZE = 256 * 1024, /* which is read again at once */
    SPIN_NS = 30 * 1000,     /* a thread that runs stops in so much time */
    FIRST_PAUSE_NS = 20 * 1000,        /* then the processor is left to it */
    LAST_PAUSE_NS = 1000 * 1000,       /* between looks at threads that wait for a processor */
    ANEW_NS = 1000 * 1000 * 1000,      /* after which all is read anew */
    ANEW_LEAST_NS = 100 * 1000 * 1000, /* and not more often where a stack asks for it, which may do so always */
};

struct known_thread {
    uint64_t os_id;
    struct thread_data data;
};

DEFINE_U64_TABLE(known_threads, struct known_thread, os_id);

struct cdacq_sampler {
    struct cdacq_session *session;
    struct thread_sampler threads;
    struct known_threads known; /* the runtime's Threads */
    struct session_sampling sampling;
    unsigned flags;
    uint64_t anew; /* when all was last read anew, in nanoseconds */
    uint64_t fuel;
    /* Of a round: */
    int (*visit)(const struct cdacq_sample *sample, void *context);
    void *context;
    bool stops;
    unsigned asked; /* threads that have yet to stop */
};

/* ---- Reading anew ---- */

static void note_threads(struct cdacq_sampler *sampler)
{
    struct thread_list list;
    known_threads_deinit(&sampler->known);
    (void)stack_runtime_threads(sampler->session, &list, NULL);
    for (size_t i = 0; i < list.count; i++)
        if (list.items[i].os_id)
            (void)known_threads_insert(&sampler->known, (struct known_thread){list.items[i].os_id, list.items[i]},
                                       NULL);
    thread_list_deinit(&list);
}

static void read_anew(struct cdacq_sampler *sampler)
{
    native_addresses_deinit(&sampler->sampling.native);
    target_owner(sampler->session->resolver.target)->refresh++;
    resolver_begin(&sampler->session->resolver);
    note_threads(sampler);
    sampler->anew = monotonic_ns();
}

/* ---- A thread ---- */

static void form_thread(const struct cdacq_sampler *sampler, const struct sampled_thread *thread,
                        struct cdacq_thread *ret)
{
    const struct known_thread *known = known_threads_find(&sampler->known, (uint64_t)thread->inner_tid);
    *ret = (struct cdacq_thread){
        .size = sizeof *ret,
        .tid = thread->tid,
        .thread = known ? known->data.address : 0,
        .managed_id = known ? known->data.id : 0,
        .name = thread->name[0] ? thread->name : NULL,
    };
}

/* Reads again what a walk of the stopped thread reads. */
static void renew(struct cdacq_sampler *sampler, const struct cdacq_thread *thread, uint64_t sp)
{
    struct resolver *resolver = &sampler->session->resolver;
    target_renew(resolver->target->memory, sp, add_saturated(sp, STACK_SIZE));
    if (thread->thread)
        target_renew(resolver->target->memory, thread->thread, add_saturated(thread->thread, THREAD_SIZE));
    reader_forget(&resolver->reader, resolver->reader.log);
    work_begin_anew(&resolver->target->memory->work);
    sampler->fuel = FUEL_STACKS;
}

static void visit_stopped(struct sampled_thread *sampled, const struct target_thread *stopped, void *context)
{
    struct cdacq_sampler *sampler = context;
    const struct register_machine *machine = register_machine_find(sampler->threads.target->elf_machine);
    struct cdacq_thread thread;
    struct cdacq_registers registers = stack_registers_of(&stopped->registers);
    struct cdacq_sample sample = {.size = sizeof sample, .thread = &thread, .rounds = 1 + sampled->rounds};
    bool is_last = monotonic_ns() - sampler->anew < ANEW_LEAST_NS;
    if (!sampled->is_known && !is_last && !known_threads_find(&sampler->known, (uint64_t)sampled->inner_tid))
        read_anew(sampler); /* it may be new */
    for (;;) {
        form_thread(sampler, sampled, &thread);
        thread.registers = &registers;
        thread.mode = stopped->mode;
        renew(sampler, &thread, stopped->registers.values[machine->sp]);
        struct session_sampling *found = &sampler->sampling;
        found->is_strict = sample.again;
        found->is_doubtful = found->has_changed = found->may_be_freed = false;
        sampler->stops = sampler->visit(&sample, sampler->context) != 0;
        (void)stack_objects_hold(sampler->session);
        bool is_void = found->has_changed || (found->is_doubtful && !is_last);
        if (sampler->stops || sample.again || !is_void)
            break;
        if (found->is_doubtful)
            read_anew(sampler);
        sample.again = true;
    }
    sampled->rounds = 0;
    if (sampler->sampling.may_be_freed)
        sampler->anew = 0;
}

static void visit_unchanged(struct cdacq_sampler *sampler, struct sampled_thread *sampled)
{
    struct cdacq_thread thread;
    form_thread(sampler, sampled, &thread);
    const struct cdacq_sample sample = {
        .size = sizeof sample, .thread = &thread, .rounds = 1 + sampled->rounds, .is_unchanged = true};
    sampled->rounds = 0;
    sampler->stops = sampler->visit(&sample, sampler->context) != 0;
}

/* ---- A round ---- */

/* Stops a thread, which most do at once where they run. */
static enum cdacq_status stop(struct cdacq_sampler *sampler, struct sampled_thread *thread, struct cdacq_error *err)
{
    enum cdacq_status status = thread_sampler_ask(&sampler->threads, thread, err);
    uint64_t end = monotonic_ns() + SPIN_NS;
    while (thread->is_asked && !thread_sampler_take(&sampler->threads, thread, visit_stopped, sampler) &&
           monotonic_ns() < end)
        ;
    return status;
}

/* Waits for the threads that were asked to stop and have not yet done so. */
static void wait_for_others(struct cdacq_sampler *sampler, uint64_t end)
{
    struct sampled_list *threads = &sampler->threads.threads;
    for (uint64_t pause = FIRST_PAUSE_NS;; pause = MIN(pause * 2, (uint64_t)LAST_PAUSE_NS)) {
        size_t left = 0;
        for (size_t i = 0; i < threads->count && !sampler->stops; i++)
            left += threads->items[i]->is_asked &&
                    !thread_sampler_take(&sampler->threads, threads->items[i], visit_stopped, sampler);
        uint64_t now = monotonic_ns();
        if (!left || sampler->stops || now >= end)
            return;
        nanosleep(&(struct timespec){.tv_nsec = (long)MIN(pause, end - now)}, NULL);
    }
}

static enum cdacq_status look_at(struct cdacq_sampler *sampler, struct sampled_thread *thread, struct cdacq_error *err)
{
    bool only_running = sampler->flags & CDACQ_SAMPLE_RUNNING;
    if (thread->is_asked || sampler->asked >= ASKED_MAX) {
        thread->rounds += !only_running;
        return CDACQ_OK;
    }
    enum thread_look look = thread_sampler_look(&sampler->threads, thread);
    if (look == THREAD_GONE || (only_running && look != THREAD_READY))
        return CDACQ_OK;
    if (look == THREAD_STILL && thread->is_known) {
        visit_unchanged(sampler, thread);
        return CDACQ_OK;
    }
    enum cdacq_status status = stop(sampler, thread, err);
    sampler->asked += thread->is_asked;
    return status;
}

enum cdacq_status cdacq_sampler_visit(struct cdacq_sampler *sampler, uint64_t patience_ns,
                                      int (*visit)(const struct cdacq_sample *sample, void *context), void *context,
                                      struct cdacq_error *err)
{
    if (!sampler || !visit)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "no sampler, or no function to call");
    struct cdacq_session *session = sampler->session;
    uint64_t now = monotonic_ns(), end = add_saturated(now, patience_ns);
    if (target_gone(session->resolver.target->memory))
        return CDACQ_DONE;
    if (now - sampler->anew >= ANEW_NS)
        read_anew(sampler);
    sampler->visit = visit;
    sampler->context = context;
    sampler->stops = false;
    session->sampling = &sampler->sampling;
    session->threads.fuel = &sampler->fuel;
    enum cdacq_status status = thread_sampler_begin(&sampler->threads, err);
    const struct sampled_list *threads = &sampler->threads.threads;
    sampler->asked = 0;
    for (size_t i = 0; i < threads->count; i++)
        sampler->asked += threads->items[i]->is_asked;
    for (size_t i = 0; i < threads->count && status >= 0 && !sampler->stops; i++) /* another one first each time */
        status = look_at(sampler, threads->items[(sampler->threads.rounds * ASKED_MAX + i) % threads->count], err);
    wait_for_others(sampler, end);
    session->sampling = NULL;
    session->threads.fuel = NULL;
    if (target_gone(session->resolver.target->memory))
        return CDACQ_DONE;
    return status < 0 ? status : sampler->stops ? CDACQ_STOPPED : CDACQ_OK;
}

/* ---- The handle ---- */

enum cdacq_status cdacq_sampler_create(struct cdacq_session *session, unsigned flags, struct cdacq_sampler **ret,
                                       struct cdacq_error *err)
{
    enum cdacq_status status = error_check_flags(flags, CDACQ_SAMPLE_RUNNING, err);
    if (status < 0)
        return status;
    const struct cdacq_target *target = session ? target_owner(session->resolver.target) : NULL;
    if (!target || target->memory->kind != CDACQ_TARGET_PROCESS || !target->memory->changes || !target->keep)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0,
                         "only a process that runs, opened with CDACQ_OPEN_KEEP, can be sampled");
    if (!register_machine_find(target->memory->elf_machine))
        return error_set(err, CDACQ_ERR_CONTRACT, 0, "this build does not walk stacks of the target's architecture");
    struct cdacq_sampler *sampler = calloc(1, sizeof *sampler);
    if (!sampler)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    status = thread_sampler_init(&sampler->threads, target->memory, err);
    if (status >= 0)
        status = target_list_mappings(target->memory, err);
    if (status < 0) {
        thread_sampler_deinit(&sampler->threads);
        free(sampler);
        return status;
    }
    sampler->session = session;
    sampler->flags = flags;
    session->resolver.records.text_users++;
    *ret = sampler;
    return CDACQ_OK;
}

void cdacq_sampler_let_go(struct cdacq_sampler *sampler)
{
    if (sampler)
        thread_sampler_let_go(&sampler->threads);
}

void cdacq_sampler_destroy(struct cdacq_sampler *sampler)
{
    if (!sampler)
        return;
    thread_sampler_deinit(&sampler->threads);
    sampler->session->resolver.records.text_users--;
    known_threads_deinit(&sampler->known);
    native_addresses_deinit(&sampler->sampling.native);
    read_log_deinit(&sampler->sampling.log);
    free(sampler);
}
