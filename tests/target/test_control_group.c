/*
 * test_control_group.c: which limits on processor time and memory a process has, by folders that are laid out as those
 * of the kernel, of both versions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/control_group.h"
#include "tests/support/check_main.h"
#include "util/base.h"

enum { MS = 1000 * 1000 };

static char folder[] = "/tmp/groups.XXXXXX";

static void write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *at = path + strlen(folder) + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = '\0';
        (void)mkdir(path, 0700);
    }
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void setup(void)
{
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    write_file("two/pod/cpu.max", "200000 100000\n");
    write_file("two/pod/cpu.stat", "usage_usec 1\nnr_periods 7\nnr_throttled 1\nthrottled_usec 10\n");
    write_file("two/pod/app/cpu.max", "50000 100000\n");
    write_file("two/pod/app/cpu.stat", "usage_usec 12\nnr_periods 40\nnr_throttled 30\nthrottled_usec 5000\n");
    write_file("two/pod/wide/cpu.max", "400000 100000\n");
    write_file("two/pod/free/cpu.max", "max 100000\n");
    write_file("two/free/cpu.max", "max 100000\n");
    write_file("two/zero/cpu.max", "0 0\n");
    write_file("two/huge/cpu.max", "18446744073709551615 18446744073709551615\n");
    write_file("two/silent/cpu.max", "10000 100000\n");
    write_file("one/cpu.cfs_quota_us", "-1\n");
    write_file("one/old/cpu.cfs_quota_us", "20000\n");
    write_file("one/old/cpu.cfs_period_us", "50000\n");
    write_file("one/old/cpu.stat", "nr_periods 9\nnr_throttled 8\nthrottled_time 700\nnr_bursts 0\n");
    write_file("one/none/cpu.cfs_quota_us", "-1\n");
    write_file("one/none/cpu.cfs_period_us", "100000\n");
    write_file("two/pod/memory.max", "1000000\n");
    write_file("two/pod/memory.current", "950000\n");
    write_file("two/pod/memory.stat", "anon 1\ninactive_file 50000\nactive_file 7\n");
    write_file("two/pod/app/memory.max", "500000\n");
    write_file("two/pod/app/memory.current", "100000\n");
    write_file("two/pod/full/memory.max", "500000\n");
    write_file("two/pod/full/memory.current", "499999\n");
    write_file("two/pod/cached/memory.max", "500000\n");
    write_file("two/pod/cached/memory.current", "499999\n");
    write_file("two/pod/cached/memory.stat", "inactive_file 18446744073709551615\n");
    write_file("two/free/memory.max", "max\n");
    write_file("two/free/memory.current", "5\n");
    write_file("one/old/memory.limit_in_bytes", "8192\n");
    write_file("one/old/memory.usage_in_bytes", "4096\n");
    write_file("one/old/memory.stat", "inactive_file 1\ntotal_inactive_file 96\n");
    write_file("one/none/memory.limit_in_bytes", "9223372036854771712\n");
    write_file("one/none/memory.usage_in_bytes", "4096\n");
}

static void teardown(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static const char both[] = "22 1 8:1 / / rw - ext4 /dev/sda rw\n"
                           "24 22 0:21 / /sets rw - cgroup cgroup rw,cpuset\n"
                           "25 22 0:22 / /one rw,nosuid shared:3 - cgroup cgroup rw,cpu,cpuacct\n"
                           "26 22 0:23 / /two rw shared:4 master:1 - cgroup2 cgroup2 rw\n";
static const char memory[] = "25 22 0:22 / /one rw - cgroup cgroup rw,memory\n"
                             "26 22 0:23 / /two rw - cgroup2 cgroup2 rw\n";
static const char below[] = "26 22 0:23 /pod /two/pod rw - cgroup2 cgroup2 rw\n";
static const char outer[] = "26 22 0:23 /outer /two/pod rw - cgroup2 cgroup2 rw\n";

static const struct {
    const char *groups, *mounts;
    struct cpu_limit limit; /* zeroed: none */
} rows[] = {
    {"0::/pod/app\n", both, {50 * MS, 100 * MS, 40, 30, 5 * MS}},
    {"0::/pod/app", both, {50 * MS, 100 * MS, 40, 30, 5 * MS}},
    {"0::/pod/app/inner\n", both, {50 * MS, 100 * MS, 40, 30, 5 * MS}}, /* which has no file */
    {"0::/pod/wide\n", both, {200 * MS, 100 * MS, 7, 1, 10 * 1000}},    /* of the group around it */
    {"0::/pod/free\n", both, {200 * MS, 100 * MS, 7, 1, 10 * 1000}},
    {"0::/pod/app\n", below, {50 * MS, 100 * MS, 40, 30, 5 * MS}},
    {"0::/pod\n", below, {200 * MS, 100 * MS, 7, 1, 10 * 1000}},
    {"0::/outer/app\n", outer, {50 * MS, 100 * MS, 40, 30, 5 * MS}}, /* in a container */
    {"0::/outer\n", outer, {200 * MS, 100 * MS, 7, 1, 10 * 1000}},
    {"0::/outers/app\n", outer, {0}},
    {"0::/silent\n", both, {10 * MS, 100 * MS, 0, 0, 0}},
    {"0::/free\n", both, {0}},
    {"0::/zero\n", both, {0}},
    {"0::/huge\n", both, {0}},
    {"0::/\n", both, {0}},
    {"0::/pod/../pod/app\n", both, {0}}, /* the kernel shows groups outside of the reader's namespace so */
    {"0::/..\n", both, {0}},
    {"0::/pod..\n", both, {0}},
    {"4:cpu,cpuacct:/old\n0::/\n", both, {20 * MS, 50 * MS, 9, 8, 700}},
    {"4:cpuacct,cpu:/old/inner\n0::/\n", both, {20 * MS, 50 * MS, 9, 8, 700}},
    {"4:cpuset:/old\n", both, {0}},
    {"4:cpu:/none\n0::/\n", both, {0}},
    {"4:cpu:/\n0::/\n", both, {0}},
    {"4:cpu:/old\n", below, {0}}, /* no mount has that controller */
    {"0::pod\n", both, {0}},
    {"0::/pod/app\n", "", {0}},
    {"0::/pod/app\n", "26 22 0:23 / /two rw\n26 22\n\n- - - - - - - -\n1 2 3 / /two - cgroup2\n", {0}},
    {"0::/pod/app\n", "26 22 0:23 / /tw\\157 rw - cgroup2 cgroup2 rw\n", {0}},
    {"", both, {0}},
};

START_TEST(limits)
{
    struct cpu_limit found = {0};
    ck_assert(cpu_limit_find(rows[_i].groups, rows[_i].mounts, folder, &found) == (rows[_i].limit.period != 0));
    ck_assert_uint_eq(found.quota, rows[_i].limit.quota);
    ck_assert_uint_eq(found.period, rows[_i].limit.period);
    ck_assert_uint_eq(found.periods, rows[_i].limit.periods);
    ck_assert_uint_eq(found.throttled_periods, rows[_i].limit.throttled_periods);
    ck_assert_uint_eq(found.throttled_time, rows[_i].limit.throttled_time);
}
END_TEST

static const struct {
    const char *groups;
    struct memory_limit limit; /* zeroed: none */
} memory_rows[] = {
    {"0::/pod\n", {1000000, 900000}},
    {"0::/pod/app\n", {1000000, 900000}}, /* of the group around it, which is nearer to its limit */
    {"0::/pod/full/inner\n", {500000, 499999}},
    {"0::/pod/cached\n", {1000000, 900000}},
    {"0::/free\n", {0, 0}},
    {"0::/\n", {0, 0}},
    {"4:memory:/old\n0::/\n", {8192, 4000}},
    {"4:cpu:/old\n0::/\n", {0, 0}},
    {"4:memory:/none\n", {0, 0}},
    {"0::/pod/..\n", {0, 0}},
};

START_TEST(memory_limits)
{
    struct memory_limit found = {0};
    ck_assert(memory_limit_find(memory_rows[_i].groups, memory, folder, &found) == (memory_rows[_i].limit.limit != 0));
    ck_assert_uint_eq(found.limit, memory_rows[_i].limit.limit);
    ck_assert_uint_eq(found.used, memory_rows[_i].limit.used);
}
END_TEST

START_TEST(long_texts)
{
    enum { LENGTH = 20000 };
    static char groups[LENGTH], mounts[2 * LENGTH];
    struct cpu_limit found;
    memset(groups, 'x', LENGTH - 1);
    memcpy(groups, "0::/", 4);
    ck_assert(!cpu_limit_find(groups, both, folder, &found));
    memset(groups + 4, '/', LENGTH - 5);
    ck_assert(!cpu_limit_find(groups, both, folder, &found));
    snprintf(mounts, sizeof mounts, "26 22 0:23 %s /two rw - cgroup2 cgroup2 rw\n", groups + 3);
    ck_assert(!cpu_limit_find(groups, mounts, folder, &found));
    for (size_t i = 0; i + 2 < 3000; i += 2) /* more levels than are looked at */
        memcpy(groups + 4 + i, "a/", 2);
    groups[3004] = '\0';
    ck_assert(!cpu_limit_find(groups, both, folder, &found));
}
END_TEST

/* What this machine sets, nobody knows; a process that does not exist has no limit. */
START_TEST(processes)
{
    struct cpu_limit found = {.period = 1};
    if (cpu_limit_read(getpid(), &found))
        ck_assert(found.quota && found.period && found.throttled_periods <= found.periods);
    ck_assert(!cpu_limit_read(4194999, &found));
    struct memory_limit memory_found;
    if (memory_limit_read(getpid(), &memory_found))
        ck_assert(memory_found.limit && memory_found.used);
    ck_assert(!memory_limit_read(4194999, &memory_found));
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("control_group");
    TCase *tcase = tcase_create("control_group");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, limits, 0, (int)ARRAY_SIZE(rows));
    tcase_add_loop_test(tcase, memory_limits, 0, (int)ARRAY_SIZE(memory_rows));
    tcase_add_test(tcase, long_texts);
    tcase_add_test(tcase, processes);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
