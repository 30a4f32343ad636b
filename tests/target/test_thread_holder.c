/*
 * test_thread_holder.c: a thread whose registers cannot be read. The kernel gives those of every thread that is held,
 * so the test lets the call fail.
 */
#include <errno.h>
#include <stdbool.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

/* PTRACE_GETREGSET of the thread `tid` fails with `error` or, if that is 0, gives `size` bytes. */
static struct {
    pid_t tid;
    int error;
    size_t size;
} fault;

static long ptrace_with_fault(int request, pid_t tid, void *address, void *data)
{
    bool is_it = request == PTRACE_GETREGSET && tid == fault.tid;
    if (is_it && fault.error) {
        errno = fault.error;
        return -1;
    }
    long ret = ptrace(request, tid, address, data);
    if (is_it)
        ((struct iovec *)data)->iov_len = fault.size;
    return ret;
}

#define ptrace ptrace_with_fault
#include "target/thread_holder.c"
#undef ptrace

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "target/live.h"
#include "tests/support/check_main.h"
#include "tests/support/emulation.h"

enum { THREADS = 3 };

static _Atomic int *tids; /* of the threads of the child but the first */
static pid_t child;

static void *note_itself(void *which)
{
    tids[(uintptr_t)which] = (int)syscall(SYS_gettid);
    for (;;)
        pause();
    return NULL;
}

static void setup(void)
{
    tids = mmap(NULL, sizeof *tids * THREADS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(tids, MAP_FAILED);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        pthread_t threads[THREADS];
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (uintptr_t i = 1; i < THREADS; i++)
            pthread_create(&threads[i], NULL, note_itself, (void *)i);
        for (;;)
            pause();
    }
    for (int i = 0; i < 20000 && !(tids[1] && tids[2]); i++)
        nanosleep(&(struct timespec){0, 1000 * 1000}, NULL);
    ck_assert(tids[1] && tids[2]);
}

static void teardown(void)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    munmap(tids, sizeof *tids * THREADS);
}

static const struct {
    int error;
    size_t size;
    const char *why; /* NULL: the thread is left out */
} rows[] = {{EIO, 0, "Input/output error"}, {0, 8, "the kernel has only some of them"}, {ESRCH, 0, NULL}};

START_TEST(registers_that_cannot_be_read)
{
    struct file_policy policy = {0};
    struct target *target;
    struct threads threads;
    struct cdacq_error error;
    pthread_mutex_init(&policy.lock, NULL);
    fault = (__typeof__(fault)){.tid = tids[1], .error = rows[_i].error, .size = rows[_i].size};
    ck_assert_msg(live_open(child, &policy, true, false, &target, &error) == CDACQ_OK, "%s", error.message);
    ck_assert_int_eq(target_threads(target, &threads, &error), rows[_i].why ? CDACQ_ERR_IO : CDACQ_OK);
    if (rows[_i].why) {
        char expected[128];
        snprintf(expected, sizeof expected, "process %d: the registers of thread %d cannot be read: %s", child,
                 fault.tid, rows[_i].why);
        ck_assert_str_eq(error.message, expected);
    }
    ck_assert_uint_eq(threads.count, rows[_i].why ? THREADS : THREADS - 1);
    for (size_t i = 0; i < threads.count; i++)
        ck_assert_int_eq(threads.items[i].registers.known != 0, threads.items[i].tid != fault.tid);
    threads_deinit(&threads);
    /* Nothing of it is left. */
    fault.tid = 0;
    ck_assert_int_eq(target_threads(target, &threads, &error), CDACQ_OK);
    ck_assert_uint_eq(threads.count, THREADS);
    threads_deinit(&threads);
    target_destroy(target);
    pthread_mutex_destroy(&policy.lock);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("thread_holder");
    if (left_out_emulated("stopping a process", "no ptrace"))
        return s;
    TCase *tc = tcase_create("thread_holder");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, registers_that_cannot_be_read, 0, ARRAY_SIZE(rows));
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
