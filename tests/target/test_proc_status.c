/*
 * test_proc_status.c: why a process must not be read: for each setting of the kernel, and of real processes.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/capability.h>

#include "target/proc_status.h"
#include "tests/support/check_main.h"
#include "util/base.h"
#include "util/file.h"

START_TEST(each_refusal_says_what_to_do)
{
    static const struct {
        struct proc_rights rights;
        const char *expected;
    } rows[] = {
        {{3, true, 0, 0}, "ptrace_scope is 3"},
        {{3, false, 1, 2}, "ptrace_scope is 3"},
        {{0, true, 0, 1}, "seccomp"},
        {{1, true, 1, 1}, "seccomp"},
        {{0, false, 0, 0}, "this root lacks"},
        {{1, false, 0, 1000}, "this root lacks"},
        {{0, false, 1000, 1001}, "another user"},
        {{1, false, 1000, 0}, "another user"},
        {{1, false, 1000, 1000}, "ptrace_scope is 1: be"},
        {{2, false, 1000, 1000}, "ptrace_scope is 2: be"},
        {{0, false, 1000, 1000}, "forbids it: be root"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const char *text = proc_refusal(&rows[i].rights);
        ck_assert_msg(strstr(text, rows[i].expected), "%zu: %s", i, text);
        ck_assert_uint_lt(strlen(text), PROC_REFUSAL_SIZE);
    }
}
END_TEST

/* Without CAP_SYS_PTRACE, even as root before. */
static void drop_capability(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &header, data) < 0)
        _exit(2);
    data[0].effective &= ~(1u << CAP_SYS_PTRACE);
    if (syscall(SYS_capset, &header, data) < 0)
        _exit(3);
}

START_TEST(rights_of_this_process)
{
    char text[PROC_REFUSAL_SIZE];
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (!child) {
        drop_capability();
        proc_describe_refusal(getppid(), text);
        const char *expected = getuid() ? "be root, or have CAP_SYS_PTRACE" : "this root lacks CAP_SYS_PTRACE";
        _exit(strstr(text, expected) || strstr(text, "ptrace_scope is 3") ? 0 : 4);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(errors_are_worded)
{
    struct cdacq_error error;
    char expected[100];
    errno = ENOENT;
    ck_assert_int_eq(proc_error(42, &error), CDACQ_ERR_IO);
    ck_assert_str_eq(error.message, "process 42: there is no such process");
    errno = EMFILE;
    ck_assert_int_eq(proc_error(42, &error), CDACQ_ERR_IO);
    snprintf(expected, sizeof expected, "process 42: %s", strerror(EMFILE));
    ck_assert_str_eq(error.message, expected);
    errno = EACCES;
    ck_assert_int_eq(proc_error(getpid(), &error), CDACQ_ERR_IO);
    ck_assert_ptr_nonnull(strstr(error.message, ": not permitted to read its memory ("));
}
END_TEST

/* Waits without end, as a process of which nothing else is asked. */
static void rest(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        pause();
}

/* Begins a pid namespace, whose first process tells its id outside when it has a child, and waits for its end. */
static void begin_namespace(int told)
{
    int ready[2];
    char byte;
    if (pipe(ready) < 0)
        _exit(2);
    pid_t inner = unshare(CLONE_NEWPID) < 0 ? -1 : fork();
    if (!inner) {
        if (fork() != 0)
            rest();
        (void)!write(ready[1], "", 1);
        rest();
    }
    if (inner > 0 && read(ready[0], &byte, 1) != 1)
        _exit(3);
    (void)!write(told, &inner, sizeof inner);
    _exit(inner < 0 || waitpid(inner, NULL, 0) != inner);
}

/* A process is 1 in its pid namespace and its child 2. That child has other ids outside. */
START_TEST(ids_of_another_namespace)
{
    int told[2], status;
    char text[4096], path[64];
    pid_t inner;
    ck_assert_int_eq(proc_outer_id(getpid(), 4194999), 4194999); /* one namespace has one id */
    ck_assert_int_eq(pipe(told), 0);
    pid_t outer = fork(); /* not this process: LeakSanitizer begins one, too */
    ck_assert_int_ge(outer, 0);
    if (!outer)
        begin_namespace(told[1]);
    ck_assert_int_eq(read(told[0], &inner, sizeof inner), sizeof inner);
    if (inner < 0)
        return; /* not permitted */
    ck_assert_int_eq(proc_outer_id(inner, 1), inner);
    int child = proc_outer_id(inner, 2);
    ck_assert_int_gt(child, 2);
    snprintf(path, sizeof path, "/proc/%d/status", child);
    ck_assert_uint_gt(file_read_text(AT_FDCWD, path, text, sizeof text), 0);
    ck_assert_int_eq(atoi(proc_status_value(text, "PPid")), inner);
    ck_assert_int_eq(proc_outer_id(inner, 3), 0);
    ck_assert_int_eq(proc_outer_id(inner, 0), 0);
    kill(inner, SIGKILL);
    ck_assert_int_eq(waitpid(outer, &status, 0), outer);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(proc_outer_id(inner, 2), 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("proc_status");
    TCase *tcase = tcase_create("proc_status");
    tcase_add_test(tcase, each_refusal_says_what_to_do);
    tcase_add_test(tcase, rights_of_this_process);
    tcase_add_test(tcase, errors_are_worded);
    tcase_add_test(tcase, ids_of_another_namespace);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
