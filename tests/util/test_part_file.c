/* test_part_file.c: what a killed run leaves is removed, and what another one writes is not. */
#include "util/part_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "util/file.h"
#include "tests/support/check_main.h"
#include "tests/support/elf_support.h"

static int folder;
static char name[PART_NAME_SIZE];

static void setup(void)
{
    test_file("other", "x", 1);
    folder = open(test_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(folder, 0);
}

static void teardown(void)
{
    close(folder);
    test_dir_remove();
}

static bool exists(const char *file)
{
    return faccessat(folder, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

START_TEST(what_is_held_stays)
{
    char second[PART_NAME_SIZE];
    int fd = part_file_create(folder, 0640, name), other = part_file_create(folder, 0600, second);
    struct stat st;
    ck_assert_int_ge(fd, 0);
    ck_assert_int_ge(other, 0);
    ck_assert_str_ne(name, second);
    ck_assert_int_eq(fstat(other, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    part_files_clean(folder);
    ck_assert(exists(name) && exists(second));
    close(fd); /* the second one stays behind a gap */
    part_files_clean(folder);
    ck_assert(!exists(name) && exists(second));
    close(other);
    errno = EXDEV;
    part_files_clean(folder);
    ck_assert_int_eq(errno, EXDEV);
    ck_assert(!exists(second) && exists("other"));
}
END_TEST

START_TEST(a_killed_process_holds_nothing)
{
    pid_t child = fork();
    if (!child)
        _exit(part_file_create(folder, 0600, name) < 0);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    int fd = part_file_create(folder, 0600, name);
    ck_assert_int_ge(fd, 0);
    part_files_clean(folder);
    ck_assert(exists(name));
    ck_assert_int_eq(unlinkat(folder, name, 0), 0);
    close(fd);
    part_files_clean(folder);
    char path[300];
    snprintf(path, sizeof path, "%s/.cdacq-part-%u-0", test_dir(), (unsigned)geteuid());
    ck_assert_int_eq(access(path, F_OK), -1);
}
END_TEST

/* The lock of a file without a name holds when it gets one. */
START_TEST(a_file_that_gets_a_name)
{
    int fd = openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0) {
        fprintf(stderr, "skipped: no O_TMPFILE\n");
        return;
    }
    part_file_lock(fd);
    ck_assert(part_file_link(fd, folder, name));
    part_files_clean(folder);
    ck_assert(exists(name));
    close(fd);
    part_files_clean(folder);
    ck_assert(!exists(name));
}
END_TEST

START_TEST(a_file_that_is_placed_at_once)
{
    struct new_file file;
    struct stat st;
    char path[300];
    snprintf(path, sizeof path, "%s", test_file("out", "old", 3));
    ck_assert_int_eq(chmod(path, 0644), 0);
    ck_assert(!file_create_directly(path, 0600, &file));
    ck_assert_int_eq(errno, EPERM);
    ck_assert_ptr_nonnull(file.problem);
    ck_assert(file_create_beside(path, 0600, &file));
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_size, 3);
    ck_assert(file_place(&file));
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_size, 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    ck_assert_int_eq(write(file.fd, "new!", 4), 4);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_size, 4);
    ck_assert(file_commit(&file));
    ck_assert(file_create_directly(path, 0600, &file)); /* nobody else may read it */
    ck_assert(file_commit(&file));
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_size, 0);
}
END_TEST

/* An own link is followed, also one to no file yet; the link stays. */
START_TEST(own_links)
{
    struct new_file file;
    struct stat st;
    char link[300];
    snprintf(link, sizeof link, "%s/link", test_dir());
    for (int round = 0; round < 2; round++) {
        ck_assert_int_eq(symlinkat(round ? "other" : "new", folder, "link"), 0);
        ck_assert(file_create(link, 0600, &file));
        ck_assert_int_eq(write(file.fd, "abc", 3), 3);
        ck_assert(file_commit(&file));
        ck_assert_int_eq(stat(test_path(round ? "other" : "new"), &st), 0);
        ck_assert_int_eq(st.st_size, 3);
        ck_assert_int_eq(lstat(link, &st), 0);
        ck_assert(S_ISLNK(st.st_mode));
        ck_assert_int_eq(unlink(link), 0);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("part_file");
    TCase *tcase = tcase_create("part_file");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, what_is_held_stays);
    tcase_add_test(tcase, a_killed_process_holds_nothing);
    tcase_add_test(tcase, a_file_that_gets_a_name);
    tcase_add_test(tcase, a_file_that_is_placed_at_once);
    tcase_add_test(tcase, own_links);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
