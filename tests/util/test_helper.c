/* test_helper.c: what another process answers, and what happens when it does not. */
#include "util/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "util/clock.h"
#include "util/file.h"
#include "tests/support/check_main.h"
#include "tests/support/emulation.h"

enum { NEVER = 1, DROPS = 2, FAIL = 3, DIE = 4, TOO_MUCH = 5, QUICK = 6 };

enum { LONG = 30 }; /* seconds: on a busy machine, too, what has a bound takes less */

static int work(const void *question, size_t size, int fd, struct helper_answer *ret)
{
    pid_t pid = getpid();
    switch (size ? *(const char *)question : 0) {
    case NEVER:
        for (;;)
            pause();
    case DROPS: /* each comes in time */
        for (int i = 0; i < 5 * LONG; i++) {
            usleep(200 * 1000);
            helper_progress(ret, 1);
        }
        return 0;
    case FAIL:
        ret->fd = fd; /* is not handed over */
        return ENOTDIR;
    case DIE:
        _exit(EXIT_FAILURE);
    case TOO_MUCH:
        for (int i = 0; i < 300; i++)
            helper_progress(ret, HELPER_UNIT);
        return ret->most ? EINVAL : 0;
    case QUICK:
        return 0;
    default:
        memcpy(ret->bytes, &pid, sizeof pid);
        ret->size = sizeof pid;
        ret->fd = fd >= 0 ? fd : file_in_memory("test");
        return ret->fd >= 0 ? 0 : errno;
    }
}

/* Asks with one byte, or none. Returns 0 or the errno. */
static int ask(char what, struct helper_call *ret, void *answer, size_t room)
{
    static char question;
    question = what;
    *ret = (struct helper_call){.work = work,
                                .question = &question,
                                .question_size = what != 0,
                                .question_fd = -1,
                                .answer = answer,
                                .answer_room = room};
    return helper_ask(ret) ? 0 : errno;
}

static pid_t helper_pid(void)
{
    struct helper_call call;
    pid_t pid = 0;
    ck_assert_int_eq(ask(0, &call, &pid, sizeof pid), 0);
    ck_assert_uint_eq(call.answer_size, sizeof pid);
    ck_assert_int_ge(call.answer_fd, 0);
    ck_assert_int_eq(fcntl(call.answer_fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    close(call.answer_fd);
    return pid;
}

static int count_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

START_TEST(answers)
{
    struct helper_call call;
    struct stat own, sent;
    pid_t pid = helper_pid();
    int before = count_descriptors();
    ck_assert_int_ne(pid, getpid());
    ck_assert_int_eq(helper_pid(), pid); /* the same process */
    CLEANUP_CLOSE int fd = file_in_memory("test");
    call = (struct helper_call){.work = work, .question_fd = fd, .answer = &pid, .answer_room = sizeof pid};
    ck_assert(helper_ask(&call));
    ck_assert(fstat(fd, &own) == 0 && fstat(call.answer_fd, &sent) == 0);
    ck_assert(own.st_ino == sent.st_ino && own.st_dev == sent.st_dev);
    close(call.answer_fd);
    ck_assert_int_eq(ask(FAIL, &call, NULL, 0), ENOTDIR);
    ck_assert_int_eq(call.answer_fd, -1);
    ck_assert_int_eq(ask(QUICK, &call, NULL, 0), 0);
    ck_assert_int_eq(call.answer_fd, -1);
    ck_assert_uint_eq(call.answer_size, 0);
    ck_assert_int_eq(count_descriptors(), before + 1);
}
END_TEST

/* It keeps no file of this process open, and is none of the children that wait() finds. */
START_TEST(is_not_noticed)
{
    int ends[2];
    char byte;
    ck_assert(pipe(ends) == 0);
    pid_t pid = helper_pid();
    close(ends[1]);
    ck_assert_int_eq(read(ends[0], &byte, 1), 0);
    close(ends[0]);
    ck_assert(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
    ck_assert_int_eq(kill(pid, SIGTERM), 0); /* it is blocked: a host may end its process group so */
    ck_assert_int_eq(helper_pid(), pid);
}
END_TEST

START_TEST(is_replaced_after_its_end)
{
    struct helper_call call;
    pid_t first = helper_pid();
    ck_assert_int_eq(ask(DIE, &call, NULL, 0), EIO);
    pid_t second = helper_pid();
    ck_assert_int_ne(first, second);
    for (int i = 0; i < 1000 && kill(first, 0) == 0; i++) { /* its end takes a moment after that of its socket */
        usleep(1000);
        ck_assert_int_eq(helper_pid(), second);
    }
    ck_assert_int_eq(kill(first, 0), -1); /* no zombie is left */
}
END_TEST

static double seconds_since(uint64_t begin)
{
    return (double)(monotonic_ns() - begin) / 1e9;
}

START_TEST(is_left_behind)
{
    struct helper_call call;
    pid_t first = helper_pid();
    uint64_t begin = monotonic_ns();
    ck_assert_int_eq(ask(NEVER, &call, NULL, 0), ETIMEDOUT);
    ck_assert(seconds_since(begin) > HELPER_SECONDS - 1 && seconds_since(begin) < LONG);
    begin = monotonic_ns();
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(ask(QUICK, &call, NULL, 0), ETIMEDOUT);
    ck_assert(seconds_since(begin) < LONG);
    helper_renew();
    ck_assert_int_ne(helper_pid(), first);
}
END_TEST

/* Drops of an answer do not make it long. */
START_TEST(drops_take_no_longer)
{
    struct helper_call call;
    uint64_t begin = monotonic_ns();
    ck_assert_int_eq(ask(DROPS, &call, NULL, 0), ETIMEDOUT);
    ck_assert(seconds_since(begin) < LONG);
}
END_TEST

/* Many quick answers never use up the time, and the bytes have a bound. */
START_TEST(counts)
{
    struct helper_call call;
    for (int i = 0; i < rounds(20000, 1000); i++)
        ck_assert_int_eq(ask(QUICK, &call, NULL, 0), 0);
    ck_assert_int_eq(ask(TOO_MUCH, &call, NULL, 0), 0);
}
END_TEST

/* A child that was forked has its own helper, and leaves that of its parent alone. */
START_TEST(serves_a_child)
{
    pid_t own = helper_pid(), child = fork();
    int status;
    if (child == 0) {
        bool is_other = helper_pid() != own;
        _exit(is_other ? 7 : 8);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    ck_assert_int_eq(helper_pid(), own);
}
END_TEST

static Suite *helper_suite(void)
{
    Suite *suite = suite_create("helper");
    TCase *tcase = tcase_create("helper");
    tcase_add_checked_fixture(tcase, helper_renew, NULL);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, answers);
    tcase_add_test(tcase, is_not_noticed);
    tcase_add_test(tcase, is_replaced_after_its_end);
    tcase_add_test(tcase, is_left_behind);
    tcase_add_test(tcase, drops_take_no_longer);
    tcase_add_test(tcase, counts);
    tcase_add_test(tcase, serves_a_child);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(helper_suite)
