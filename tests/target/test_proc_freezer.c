/*
 * test_proc_freezer.c: whether a control group is frozen, by folders that are laid out as those of the kernel.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/proc_freezer.h"
#include "tests/support/check_main.h"
#include "util/base.h"

static char folder[] = "/tmp/freezer.XXXXXX";

static void make_folder(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    ck_assert_int_eq(mkdir(path, 0700), 0);
}

static void write_state(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void setup(void)
{
    static const char *const folders[] = {"app", "app/old", "freezer", "freezer/old", "unified", "unified/both"};
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
        make_folder(folders[i]);
    write_state("app/cgroup.events", "populated 1\nfrozen 1\n");
    write_state("app/old/cgroup.events", "populated 1\nfrozen 0\n");
    write_state("freezer/freezer.state", "THAWED\n");
    write_state("freezer/old/freezer.state", "FROZEN\n");
    write_state("unified/both/cgroup.events", "frozen 1");
    write_state("unified/cgroup.events", "xfrozen 1\nfrozen 10\n");
}

static void teardown(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static const struct {
    const char *groups;
    bool frozen;
} rows[] = {
    {"0::/app\n", true},
    {"0::/app", true},
    {"0::/app/old\n", false},
    {"0::/none\n", false},
    {"0::/\n", false},
    {"0::/both\n", true},
    {"6:freezer:/old\n0::/\n", true},
    {"9:cpu:/old\n6:cpuset,freezer,pids:/old\n", true},
    {"6:freezers:/old\n", false},
    {"6:cpu:/old\n", false},
    {"6:freezer:/\n", false},
    {"1:name=systemd:/app\n", false}, /* it has no freezer */
    {"0::app\n", false},
    {"0:\n0\n\n:::\n::", false},
    {"", false},
};

START_TEST(states)
{
    ck_assert(proc_freezer_holds(rows[_i].groups, folder) == rows[_i].frozen);
}
END_TEST

START_TEST(long_paths)
{
    char groups[20000] = "0::/";
    memset(groups + 4, 'x', sizeof groups - 5);
    ck_assert(!proc_freezer_holds(groups, folder));
    memcpy(groups, "0:freezer:/", 11);
    ck_assert(!proc_freezer_holds(groups, folder));
}
END_TEST

START_TEST(processes)
{
    ck_assert(!proc_is_frozen(getpid())); /* it runs */
    ck_assert(!proc_is_frozen(4194999));
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("proc_freezer");
    TCase *tcase = tcase_create("proc_freezer");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, states, 0, (int)ARRAY_SIZE(rows));
    tcase_add_test(tcase, long_paths);
    tcase_add_test(tcase, processes);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
