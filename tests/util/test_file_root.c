/*
 * test_file_root.c: files that a target names are opened below its root, whatever somebody puts there. Each test runs
 * with openat2(2), without it (a filter answers ENOSYS or EPERM), and as root for another user, where directories and
 * modes are looked at.
 */
#include "util/file_root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "tests/support/emulation.h"
#include "tests/support/check_main.h"
#include "tests/support/elf_support.h"

static struct file_root root;
static struct stat st;
static char folder[256];

/* Lets openat2(2) fail in this process, as an old kernel does, or a container with an old filter. */
static void forbid_openat2(unsigned error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 437, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = ARRAY_SIZE(filter), .filter = filter};
    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
    ck_assert_int_eq(syscall(437, -1, "", NULL, (size_t)0), -1);
    /* valgrind does not know the call, and runs all tests in one process: the first filter stays. */
    ck_assert(errno == (int)error || (getenv("CDACQ_VALGRIND") && errno == ENOSYS));
}

static const unsigned ways[] = {0, ENOSYS, EPERM}; /* 0: as the kernel has it */

static void begin(int way)
{
    snprintf(folder, sizeof folder, "%s/root", test_dir());
    test_file("root/dir/file", "inside", 6);
    test_file("outside/file", "outside!", 8);
    if (ways[way])
        forbid_openat2(ways[way]);
    ck_assert(file_root_open(&root, folder, true));
}

static void teardown(void)
{
    file_root_close(&root);
    test_dir_remove();
}

static void link_to(const char *to, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    ck_assert_int_eq(symlink(to, path), 0);
}

static void check_opened(const struct file_root *from, const char *path, const char *contents)
{
    char bytes[16] = "";
    int fd = file_root_open_file(from, path, &st);
    ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
    ck_assert_int_eq(st.st_size, (int)strlen(contents));
    ck_assert_int_eq(read(fd, bytes, sizeof bytes - 1), (int)strlen(contents));
    ck_assert_str_eq(bytes, contents);
    ck_assert_int_eq(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    close(fd);
}

static void check_refused(const struct file_root *from, const char *path, int error)
{
    errno = 0;
    int fd = file_root_open_file(from, path, &st);
    ck_assert_msg(fd == -1 && errno == error, "%s: %d, %s", path, fd, strerror(errno));
}

START_TEST(links_lead_below_the_root)
{
    begin(_i);
    link_to("/dir/file", "absolute");
    link_to("/dir", "folder");
    link_to("../../../../../../dir/file", "up");
    link_to("dir/../dir/./file", "down");
    link_to("absolute", "twice");
    check_opened(&root, "/dir/file", "inside");
    check_opened(&root, "dir//file", "inside");
    check_opened(&root, "/../../dir/../dir/file", "inside");
    check_opened(&root, "/absolute", "inside");
    check_opened(&root, "/folder/file", "inside");
    check_opened(&root, "/folder/../dir/file", "inside");
    check_opened(&root, "/up", "inside");
    check_opened(&root, "/down", "inside");
    check_opened(&root, "/twice", "inside");
}
END_TEST

START_TEST(nothing_leads_out_of_the_root)
{
    begin(_i);
    char outside[300], up[300];
    snprintf(outside, sizeof outside, "%s/outside/file", test_dir());
    snprintf(up, sizeof up, "/../outside/file");
    link_to(outside, "absolute");
    link_to("../outside/file", "up");
    link_to("/", "slash");
    check_refused(&root, outside, ENOENT);
    check_refused(&root, up, ENOENT);
    check_refused(&root, "/absolute", ENOENT);
    check_refused(&root, "/up", ENOENT);
    check_refused(&root, "/slash/../../outside/file", ENOENT);
    check_refused(&root, "/dir/../../outside/file", ENOENT);
}
END_TEST

/* The user fills a module directory, whose links may lead to the rest of the machine. */
START_TEST(links_lead_out_of_a_directory)
{
    begin(_i);
    struct file_root directory;
    char outside[300];
    snprintf(outside, sizeof outside, "%s/outside/file", test_dir());
    link_to(outside, "absolute");
    link_to("../outside/file", "up");
    ck_assert(file_root_open(&directory, folder, false));
    check_opened(&directory, "/dir/file", "inside");
    check_opened(&directory, "/absolute", "outside!");
    check_opened(&directory, "/up", "outside!");
    check_opened(&directory, "/dir/../up", "outside!");
    check_opened(&file_root_machine, outside, "outside!");
    check_refused(&directory, "/", ENOENT);
    file_root_close(&directory);
    check_refused(&directory, "/dir/file", ENOENT);
    ck_assert(!file_root_open(&directory, outside, true));
    check_refused(&directory, "/", ENOENT);
}
END_TEST

START_TEST(only_regular_files_are_opened)
{
    begin(_i);
    char path[300];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(path, sizeof path, "%s/fifo", folder);
    ck_assert_int_eq(mkfifo(path, 0666), 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%.90s/socket", folder);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    link_to("fifo", "to-fifo");
    check_refused(&root, "/fifo", EINVAL);
    check_refused(&root, "/to-fifo", EINVAL);
    check_refused(&root, "/socket", EINVAL);
    check_refused(&root, "/dir", EINVAL);
    check_refused(&root, "/", EINVAL);
    check_refused(&root, "/none", ENOENT);
    check_refused(&root, "", ENOENT);
    check_refused(&root, "/dir/file/below", ENOTDIR);
    check_refused(&file_root_machine, "/dev/null", EINVAL);
    check_refused(&file_root_machine, "/dev/ptmx", EINVAL);
    snprintf(path, sizeof path, "%s/fifo", folder);
    ck_assert_int_eq(open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC), -1); /* nobody opened it */
    ck_assert_int_eq(errno, ENXIO);
    close(fd);
}
END_TEST

/* They lead to what somebody has opened, wherever that is; and files of the kernel may have effects. */
START_TEST(files_and_links_of_the_kernel)
{
    begin(_i);
    char path[64];
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ck_assert_int_eq(file_root_open_file(&file_root_machine, path, &st), -1);
    ck_assert_int_eq(errno, ELOOP);
    check_refused(&file_root_machine, "/proc/self/exe", ELOOP);
    link_to(path, "magic");
    snprintf(path, sizeof path, "%.40s/magic", folder);
    check_refused(&file_root_machine, path, ELOOP);
    snprintf(path, sizeof path, "/proc/%d/status", (int)getpid());
    check_refused(&file_root_machine, path, EINVAL);
    check_refused(&file_root_machine, "/sys/kernel/notes", EINVAL);
    close(fd);
}
END_TEST

START_TEST(links_and_names_have_bounds)
{
    begin(_i);
    char name[8192], deep[600] = "";
    link_to("loop", "loop");
    link_to("b", "a");
    link_to("a", "b");
    check_refused(&root, "/loop", ELOOP);
    check_refused(&root, "/a/x", ELOOP);
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    name[0] = '/';
    check_refused(&root, name, ENAMETOOLONG);
    name[300] = '\0';
    check_refused(&root, name, ENAMETOOLONG);
    for (int i = 0; i < 60; i++)
        strcat(deep, "/dir/..");
    strcat(deep, "/dir/file");
    check_opened(&root, deep, "inside");
}
END_TEST

static atomic_bool ends;
static char swapped[300], spare[300];

/* Puts the file, a link to a file outside and a FIFO in each other's place. */
static void *swap(void *context)
{
    (void)context;
    while (!atomic_load(&ends)) {
        unlink(spare);
        (void)!symlink("../outside/file", spare);
        rename(spare, swapped);
        mkfifo(spare, 0666);
        rename(spare, swapped);
        int fd = open(spare, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        (void)!write(fd, "inside", 6);
        close(fd);
        rename(spare, swapped);
    }
    return NULL;
}

START_TEST(what_was_looked_at_is_what_is_opened)
{
    begin(_i);
    pthread_t thread;
    unsigned opened = 0;
    snprintf(swapped, sizeof swapped, "%s/swapped", folder);
    snprintf(spare, sizeof spare, "%s/spare", folder);
    atomic_store(&ends, false);
    ck_assert_int_eq(pthread_create(&thread, NULL, swap, NULL), 0);
    for (int i = 0; i < rounds(20000, 200) || !opened; i++) {
        int fd = file_root_open_file(&root, "/swapped", &st);
        char bytes[16] = "";
        if (fd < 0)
            continue;
        opened++;
        ck_assert(S_ISREG(st.st_mode));
        ck_assert_int_ge(read(fd, bytes, sizeof bytes - 1), 0);
        ck_assert_msg(strcmp(bytes, "inside") == 0, "%s", bytes);
        close(fd);
    }
    atomic_store(&ends, true);
    pthread_join(thread, NULL);
}
END_TEST

/* What the user of a process may not read is not opened for it, except what the process maps. */
static pid_t start_as_nobody(int ready[2])
{
    ck_assert_int_eq(pipe(ready), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (syscall(SYS_setgroups, 0UL, NULL) < 0 || setresgid(65534, 65534, 65534) < 0 ||
            setresuid(65534, 65534, 65534) < 0 || write(ready[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    char byte;
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    return pid;
}

static bool is_known(const struct stat *found, const void *context)
{
    return found->st_ino == *(const ino_t *)context;
}

START_TEST(the_user_of_a_process_decides)
{
    int ready[2];
    char path[300], secret[300], below[400];
    if (geteuid() != 0) {
        fprintf(stderr, "skipped: another user's process needs root\n");
        return;
    }
    begin(_i);
    ck_assert_int_eq(chmod(test_dir(), 0755), 0);
    snprintf(secret, sizeof secret, "%s", test_file("secret", "secret", 6));
    ck_assert_int_eq(chmod(secret, 0600), 0);
    snprintf(path, sizeof path, "%s/dir/file", folder);
    ck_assert_int_eq(chmod(path, 0644), 0);
    pid_t pid = start_as_nobody(ready);
    struct file_root own;
    ck_assert(file_root_open_process(&own, pid));
    ck_assert_ptr_nonnull(own.reader);
    ck_assert_ptr_null(own.outside);
    check_opened(&own, path, "inside");
    check_refused(&own, secret, EACCES);
    link_to(secret, "to-secret");
    snprintf(below, sizeof below, "%s/to-secret", folder);
    check_refused(&own, below, EACCES);
    ck_assert_int_eq(stat(secret, &st), 0);
    const ino_t inode = st.st_ino;
    int fd = file_root_open_known(&own, secret, is_known, &inode, &st);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_int_eq(chown(secret, 65534, 0), 0);
    check_opened(&own, secret, "secret");
    ck_assert_int_eq(chmod(secret, 0040), 0);
    check_refused(&own, secret, EACCES);
    ck_assert_int_eq(chown(secret, 0, 65534), 0);
    check_opened(&own, secret, "secret");
    ck_assert_int_eq(chmod(folder, 0700), 0);
    check_refused(&own, path, EACCES); /* a directory on the way */
    snprintf(below, sizeof below, "/proc/%d/root%s", (int)pid, secret);
    ck_assert_int_eq(chmod(secret, 0600), 0);
    ck_assert_int_eq(file_open_regular(below, &st), -1);
    ck_assert_int_eq(errno, EACCES);
    ck_assert(!file_root_is_own(&own, pid));
    file_root_close(&own);
    ck_assert(file_root_open_process(&own, (int)getpid()));
    ck_assert_ptr_null(own.reader);
    ck_assert(file_root_is_own(&own, (int)getpid()));
    check_opened(&own, secret, "secret");
    file_root_close(&own);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    ck_assert(!file_root_open_process(&own, pid));
    check_refused(&own, path, ENOENT);
    file_root_close(&own);
}
END_TEST

/* The kernel puts the path of a jail before the paths of the process in it. */
START_TEST(a_process_in_a_jail)
{
    int ready[2];
    char byte, path[300];
    if (geteuid() != 0) {
        fprintf(stderr, "skipped: chroot() needs root\n");
        return;
    }
    begin(_i);
    link_to("/dir/file", "absolute");
    ck_assert_int_eq(pipe(ready), 0);
    pid_t pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (chroot(folder) < 0 || write(ready[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    struct file_root own;
    ck_assert(file_root_open_process(&own, pid));
    ck_assert_str_eq(own.outside, folder);
    snprintf(path, sizeof path, "%s/absolute", folder);
    ck_assert_str_eq(file_root_inside(&own, path), "/absolute");
    check_opened(&own, file_root_inside(&own, path), "inside");
    ck_assert(!file_root_is_own(&own, pid));
    snprintf(path, sizeof path, "/proc/%d/root/absolute", (int)pid);
    int fd = file_open_regular(path, &st); /* as a user names it */
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(st.st_size, 6);
    close(fd);
    file_root_close(&own);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}
END_TEST

START_TEST(the_path_without_links)
{
    begin(_i);
    char real[300], expected[300];
    link_to("/dir/file", "absolute");
    int fd = file_root_open_file(&root, "/absolute", &st);
    ck_assert_int_ge(fd, 0);
    snprintf(expected, sizeof expected, "%s/dir/file", folder);
    ck_assert(file_real_path(fd, real, sizeof real));
    ck_assert_str_eq(real, expected);
    ck_assert(!file_real_path(fd, real, strlen(expected)));
    ck_assert_int_eq(unlink(expected), 0);
    ck_assert(!file_real_path(fd, real, sizeof real));
    close(fd);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("file_root");
    TCase *tcase = tcase_create("file_root");
    const int count = left_out_emulated("file_root: without openat2", "no seccomp") ? 1 : ARRAY_SIZE(ways);
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_loop_test(tcase, links_lead_below_the_root, 0, count);
    tcase_add_loop_test(tcase, nothing_leads_out_of_the_root, 0, count);
    tcase_add_loop_test(tcase, links_lead_out_of_a_directory, 0, count);
    tcase_add_loop_test(tcase, only_regular_files_are_opened, 0, count);
    tcase_add_loop_test(tcase, files_and_links_of_the_kernel, 0, count);
    tcase_add_loop_test(tcase, links_and_names_have_bounds, 0, count);
    tcase_add_loop_test(tcase, what_was_looked_at_is_what_is_opened, 0, count);
    tcase_add_loop_test(tcase, the_user_of_a_process_decides, 0, count);
    tcase_add_loop_test(tcase, a_process_in_a_jail, 0, count);
    tcase_add_loop_test(tcase, the_path_without_links, 0, count);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
