/*
 * test_thread_times.c: the processor time of this process's own threads, compared with what the C library says of them.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <time.h>

#include "src/api/thread_times.c"
#include "tests/support/check_main.h"

enum { TICK_NS = 20 * 1000 * 1000, USED_NS = 100 * 1000 * 1000 };

static struct cdacq_error error;

struct worker {
    pthread_t thread;
    sem_t ready, end;
    int tid;
    uint64_t used; /* what the C library says */
    bool works;
};

static uint64_t own_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void *work(void *context)
{
    struct worker *worker = context;
    while (worker->works && own_time() < USED_NS)
        ;
    worker->tid = (int)syscall(SYS_gettid);
    worker->used = own_time();
    sem_post(&worker->ready);
    sem_wait(&worker->end);
    return NULL;
}

static void begin(struct worker *worker)
{
    sem_init(&worker->ready, 0, 0);
    sem_init(&worker->end, 0, 0);
    ck_assert_int_eq(pthread_create(&worker->thread, NULL, work, worker), 0);
    sem_wait(&worker->ready);
}

static void end(struct worker *worker)
{
    sem_post(&worker->end);
    pthread_join(worker->thread, NULL);
    sem_destroy(&worker->ready);
    sem_destroy(&worker->end);
}

struct found {
    int tid;
    uint64_t time;
    unsigned threads;
    bool ready;
};

static int take_time(const struct cdacq_thread_time *time, void *context)
{
    struct found *found = context;
    ck_assert_uint_eq(time->size, sizeof *time);
    found->threads++;
    if (time->tid == found->tid) {
        found->time = time->processor_time_ns;
        found->ready = time->ready;
    }
    return 0;
}

static int stop(const struct cdacq_thread_time *time, void *context)
{
    (void)time;
    ++*(unsigned *)context;
    return 1;
}

START_TEST(a_busy_thread_and_an_idle_one)
{
    struct worker busy = {.works = true}, idle = {0};
    begin(&busy);
    begin(&idle);
    struct found of_busy = {.tid = busy.tid}, of_idle = {.tid = idle.tid};
    ck_assert_int_eq(cdacq_visit_thread_times(getpid(), take_time, &of_busy, &error), CDACQ_OK);
    ck_assert_int_eq(cdacq_visit_thread_times(getpid(), take_time, &of_idle, &error), CDACQ_OK);
    ck_assert_uint_ge(of_busy.threads, 3);
    ck_assert_uint_ge(of_busy.time + TICK_NS, busy.used);
    ck_assert_uint_ge(of_busy.time, of_idle.time);
    struct found own = {.tid = (int)syscall(SYS_gettid)};
    ck_assert_int_eq(cdacq_visit_thread_times(getpid(), take_time, &own, &error), CDACQ_OK);
    ck_assert(own.ready); /* it reads its own state, and the others will wait soon, if they do not yet */
    for (of_idle.ready = true; of_idle.ready; sched_yield())
        ck_assert_int_eq(cdacq_visit_thread_times(getpid(), take_time, &of_idle, &error), CDACQ_OK);
    end(&busy);
    end(&idle);
}
END_TEST

/* What a kernel that counts no nanoseconds has: the same time, to a tick for each of the two numbers. */
START_TEST(ticks)
{
    struct worker busy = {.works = true};
    char tid[16];
    struct cdacq_thread_time exact = {.size = sizeof exact};
    struct cdacq_thread_time by_ticks = {.size = sizeof by_ticks};
    begin(&busy);
    CLEANUP_CLOSE int task = open("/proc/self/task", O_RDONLY | O_CLOEXEC);
    snprintf(tid, sizeof tid, "%d", busy.tid);
    ck_assert(read_ticks(task, tid, &by_ticks) && read_times(task, tid, &exact));
    ck_assert_uint_ge(exact.processor_time_ns + 2 * TICK_NS, by_ticks.processor_time_ns);
    ck_assert_uint_ge(by_ticks.processor_time_ns + 2 * TICK_NS, exact.processor_time_ns);
    end(&busy);
}
END_TEST

START_TEST(threads_that_are_not_there)
{
    unsigned visits = 0;
    struct cdacq_thread_time time = {.size = sizeof time};
    ck_assert_int_eq(cdacq_visit_thread_times(0, stop, &visits, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(cdacq_visit_thread_times(-1, stop, &visits, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(cdacq_visit_thread_times(getpid(), NULL, NULL, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(cdacq_visit_thread_times(4194999, stop, &visits, &error), CDACQ_ERR_IO);
    ck_assert_uint_eq(visits, 0);
    ck_assert_int_eq(cdacq_visit_thread_times(getpid(), stop, &visits, &error), CDACQ_STOPPED);
    ck_assert_uint_eq(visits, 1);
    CLEANUP_CLOSE int task = open("/proc/self/task", O_RDONLY | O_CLOEXEC);
    ck_assert(!read_times(task, "4194999", &time));
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("thread_times");
    TCase *tcase = tcase_create("thread_times");
    tcase_add_test(tcase, a_busy_thread_and_an_idle_one);
    tcase_add_test(tcase, ticks);
    tcase_add_test(tcase, threads_that_are_not_there);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
