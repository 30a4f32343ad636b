/*
 * Where the jitdump and the perf map of a running process are looked for. tests/cli/test_records.py has the jitdumps
 * that a process maps, and those of other processes.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cdacq/jitdump.h"
#include "cdacq/perf.h"

#include "tests/support/check_main.h"

static pid_t child;
static char folder[64], path[128], found[256];
static struct cdacq_error error;

static void setup(void)
{
    child = 0;
    strcpy(folder, "/tmp/test_process_files.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    path[0] = '\0';
}

static void teardown(void)
{
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    if (path[0])
        unlink(path);
    rmdir(folder);
}

/* Starts a program with one variable in its environment, which names the folder. */
static void start_with(const char *variable)
{
    char setting[128];
    int ends[2];
    snprintf(setting, sizeof setting, "%s=%s", variable, folder);
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execle("/bin/sleep", "sleep", "1000", (char *)NULL, (char *[]){setting, NULL});
        _exit(1);
    }
    close(ends[1]);
    ck_assert_int_eq(read(ends[0], setting, 1), 0); /* closed by exec */
    close(ends[0]);
}

static void write_file(const char *prefix, const char *suffix)
{
    snprintf(path, sizeof path, "%s/%s-%d.%s", folder, prefix, (int)child, suffix);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("7f0000001000 10 f\n", file);
    fclose(file);
}

START_TEST(a_perf_map_where_the_environment_says)
{
    static const char *const variables[] = {"DOTNET_PerfMapJitDumpPath", "COMPlus_PerfMapJitDumpPath", "TMPDIR"};
    start_with(variables[_i]);
    ck_assert_int_eq(cdacq_perf_map_find_file(child, found, sizeof found, &error), CDACQ_NOT_MANAGED);
    ck_assert_msg(strstr(error.message, "has no perf map: there is no perf-"), "%s", error.message);
    write_file("perf", "map");
    ck_assert_int_eq(cdacq_perf_map_find_file(child, found, sizeof found, &error), CDACQ_OK);
    ck_assert_str_eq(found, path);
    ck_assert_int_eq(cdacq_jitdump_find_file(child, found, sizeof found, &error), CDACQ_NOT_MANAGED);
}
END_TEST

START_TEST(a_perf_map_of_an_earlier_process)
{
    static const struct timespec times[] = {{1000, 0}, {1000, 0}};
    start_with("TMPDIR");
    write_file("perf", "map");
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    ck_assert_int_eq(cdacq_perf_map_find_file(child, found, sizeof found, &error), CDACQ_NOT_MANAGED);
    ck_assert_msg(strstr(error.message, path), "%s", error.message);
    ck_assert_msg(strstr(error.message, "is older than the process"), "%s", error.message);
}
END_TEST

static bool put(const char *name, const char *format, unsigned id)
{
    FILE *file = fopen(name, "w");
    return file && fprintf(file, format, id, id) > 0 && fclose(file) == 0;
}

/* In the process: mounts its own folder, with a perf map, over that of the test. */
static bool mount_folder(const char *directory)
{
    char name[128];
    unsigned uid = getuid(), gid = getgid();
    snprintf(name, sizeof name, "%s/perf-%d.map", directory, (int)getpid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && put("/proc/self/setgroups", "deny", 0) &&
           put("/proc/self/uid_map", "%u %u 1", uid) && put("/proc/self/gid_map", "%u %u 1", gid) &&
           mount("none", directory, "tmpfs", 0, NULL) == 0 && put(name, "7f0000001000 10 f\n", 0);
}

/* A service with PrivateTmp has the root directory of the machine, but another /tmp. */
START_TEST(another_mount_below_the_same_root)
{
    char setting[128], byte, expected[192];
    int ends[2];
    snprintf(setting, sizeof setting, "TMPDIR=%s", folder);
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!mount_folder(folder) || write(ends[1], "", 1) != 1)
            _exit(1);
        execle("/bin/sleep", "sleep", "1000", (char *)NULL, (char *[]){setting, NULL});
        _exit(1);
    }
    close(ends[1]);
    bool mounted = read(ends[0], &byte, 1) == 1;
    ck_assert_int_eq(read(ends[0], &byte, 1), 0); /* closed by exec */
    close(ends[0]);
    if (!mounted) /* not permitted here */
        return;
    snprintf(expected, sizeof expected, "/proc/%d/root%s/perf-%d.map", (int)child, folder, (int)child);
    ck_assert_msg(cdacq_perf_map_find_file(child, found, sizeof found, &error) == CDACQ_OK, "%s", error.message);
    ck_assert_str_eq(found, expected);
}
END_TEST

START_TEST(no_room_for_the_path)
{
    start_with("TMPDIR");
    write_file("perf", "map");
    size_t length = strlen(path);
    ck_assert_int_eq(cdacq_perf_map_find_file(child, found, length, &error), CDACQ_NOT_MANAGED);
    ck_assert_int_eq(cdacq_perf_map_find_file(child, found, length + 1, &error), CDACQ_OK);
}
END_TEST

START_TEST(of_no_process)
{
    ck_assert_int_eq(cdacq_perf_map_find_file(0, found, sizeof found, &error), CDACQ_ERR_IO);
    ck_assert_int_eq(cdacq_perf_map_find_file(-1, found, sizeof found, &error), CDACQ_ERR_IO);
    ck_assert_int_eq(cdacq_jitdump_find_file(0, found, sizeof found, &error), CDACQ_ERR_IO);
    ck_assert_str_eq(error.message, "there is no process 0");
}
END_TEST

/* Overwrites the NUL that ends the environment as /proc shows it. */
static void body_with_an_environment(int ready)
{
    char stat[1024];
    unsigned long end = 0;
    FILE *own = fopen("/proc/self/stat", "r");
    size_t n = own ? fread(stat, 1, sizeof stat - 1, own) : 0;
    stat[n] = '\0';
    char *field = strrchr(stat, ')');
    for (int i = 2; field && i < 51; i++) /* env_end is field 51, the name is field 2 */
        field = strchr(field + 1, ' ');
    if (field)
        end = strtoul(field, NULL, 10);
    if (end)
        ((char *)end)[-1] = 'x';
    (void)!write(ready, "", 1);
    for (;;)
        pause();
}

START_TEST(an_environment_without_an_end)
{
    char byte;
    int ends[2];
    if (getenv("CDACQ_VALGRIND")) /* under which the stack is not the kernel's */
        return;
    ck_assert_int_eq(pipe(ends), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        body_with_an_environment(ends[1]);
    }
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    close(ends[1]);
    ck_assert_int_eq(cdacq_jitdump_find_file(child, found, sizeof found, &error), CDACQ_NOT_MANAGED);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("process_files");
    TCase *tc = tcase_create("process_files");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, a_perf_map_where_the_environment_says, 0, 3);
    tcase_add_test(tc, a_perf_map_of_an_earlier_process);
    tcase_add_test(tc, another_mount_below_the_same_root);
    tcase_add_test(tc, no_room_for_the_path);
    tcase_add_test(tc, of_no_process);
    tcase_add_test(tc, an_environment_without_an_end);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
