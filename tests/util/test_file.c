#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>

#include "util/file_root.h"
#include "tests/support/check_main.h"

static char path[] = "/tmp/cdacq_test_file.XXXXXX";
static int fd;

static void setup(void)
{
    strcpy(path + sizeof path - 7, "XXXXXX");
    fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
}

static void teardown(void)
{
    close(fd);
    unlink(path);
}

START_TEST(opens_and_says_what_it_is)
{
    struct stat st;
    ck_assert_int_eq(write(fd, "abc", 3), 3);
    int opened = file_open(path, &st);
    ck_assert_int_ge(opened, 0);
    ck_assert(S_ISREG(st.st_mode));
    ck_assert_int_eq(st.st_size, 3);
    ck_assert_int_eq(fcntl(opened, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    close(opened);
}
END_TEST

START_TEST(opening_never_blocks)
{
    struct stat st;
    unlink(path);
    ck_assert_int_eq(file_open(path, &st), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_eq(mkfifo(path, 0600), 0); /* without a writer */
    int opened = file_open(path, &st);
    ck_assert_int_ge(opened, 0);
    ck_assert(S_ISFIFO(st.st_mode));
    close(opened);
}
END_TEST

START_TEST(only_regular_files_are_opened)
{
    struct stat st;
    ck_assert_int_eq(write(fd, "abc", 3), 3);
    int opened = file_open_regular(path, &st);
    ck_assert_int_ge(opened, 0);
    ck_assert_int_eq(st.st_size, 3);
    ck_assert_int_eq(fcntl(opened, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    ck_assert_int_eq(fcntl(opened, F_GETFL) & O_ACCMODE, O_RDONLY);
    char byte;
    ck_assert_int_eq(pread(opened, &byte, 1, 1), 1);
    ck_assert_int_eq(byte, 'b');
    close(opened);
    ck_assert_int_eq(chmod(path, 0), 0);
    opened = file_open_regular(path, &st);
    ck_assert_int_eq(opened < 0, geteuid() != 0); /* as open() has it */
    if (opened >= 0)
        close(opened);
    unlink(path);
    ck_assert_int_eq(file_open_regular(path, &st), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    int writer_without_reader = open(path, O_WRONLY | O_NONBLOCK);
    ck_assert_int_eq(writer_without_reader, -1);
    ck_assert_int_eq(file_open_regular(path, &st), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(file_open_regular("/dev/null", &st), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(file_open_regular("/", &st), -1);
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

START_TEST(reads_at_an_offset)
{
    char buffer[8] = "........";
    ck_assert_int_eq(write(fd, "0123456789", 10), 10);
    ck_assert_uint_eq(file_read_at(fd, 2, buffer, 4), 4);
    ck_assert_mem_eq(buffer, "2345....", 8);
    ck_assert_uint_eq(file_read_at(fd, 10, buffer, 0), 0);
    ck_assert_int_eq(errno, 0);
    errno = EIO;
    ck_assert_uint_eq(file_read_at(fd, 7, buffer, sizeof buffer), 3); /* to the end: no failure */
    ck_assert_int_eq(errno, 0);
    ck_assert_mem_eq(buffer, "7895....", 8);
    ck_assert_uint_eq(file_read_at(fd, 10, buffer, sizeof buffer), 0);
    ck_assert_int_eq(errno, 0);
    ck_assert_uint_eq(file_read_at(fd, (uint64_t)INT64_MAX + 1, buffer, sizeof buffer), 0);
    ck_assert_uint_eq(file_read_at(fd, UINT64_MAX, buffer, sizeof buffer), 0);
}
END_TEST

START_TEST(a_failure_is_not_an_end)
{
    char buffer[8];
    int directory = open("/", O_RDONLY | O_DIRECTORY);
    ck_assert_uint_eq(file_read_at(directory, 0, buffer, sizeof buffer), 0);
    ck_assert_int_eq(errno, EISDIR);
    size_t length;
    errno = 0;
    ck_assert_ptr_null(file_read_all(directory, SIZE_MAX, &length));
    ck_assert_int_eq(errno, EISDIR);
    close(directory);
    ck_assert_uint_eq(file_read_at(-1, 0, buffer, sizeof buffer), 0);
    ck_assert_int_eq(errno, EBADF);
}
END_TEST

START_TEST(passes_holes)
{
    enum { SIZE = 1 << 20, AT = 300 * 1000 };
    uint8_t *bytes = calloc(1, SIZE);
    ck_assert_int_eq(ftruncate(fd, SIZE), 0);
    ck_assert_uint_eq(file_read_sparse_at(fd, 0, bytes, SIZE), SIZE);
    ck_assert_uint_eq(file_read_sparse_at(fd, 100, bytes, SIZE), SIZE - 100); /* to the end */
    ck_assert_int_eq(errno, 0);
    ck_assert_uint_eq(file_read_sparse_at(fd, SIZE, bytes, SIZE), 0);
    ck_assert_int_eq(pwrite(fd, "abc", 3, AT), 3);
    ck_assert_uint_eq(file_read_sparse_at(fd, 0, bytes, SIZE), SIZE);
    for (size_t i = 0; i < SIZE; i++)
        ck_assert_uint_eq(bytes[i], i >= AT && i < AT + 3 ? (uint8_t) "abc"[i - AT] : 0);
    memset(bytes, 0, SIZE);
    ck_assert_uint_eq(file_read_sparse_at(fd, AT + 1, bytes, 5), 5);
    ck_assert_mem_eq(bytes, "bc\0\0\0", 5);
    ck_assert_uint_le(file_find_data(fd, 0), AT);
    ck_assert_uint_eq(file_find_data(fd, SIZE), UINT64_MAX);
    ck_assert_uint_ge(file_find_hole(fd, AT), AT);
    ck_assert_uint_le(file_find_hole(fd, AT), SIZE);
    ck_assert_uint_eq(file_find_hole(fd, SIZE), UINT64_MAX);
    errno = 0;
    ck_assert_uint_eq(file_find_data(fd, (uint64_t)INT64_MAX + 1), UINT64_MAX);
    ck_assert_int_eq(ftruncate(fd, AT + 2), 0);
    ck_assert_uint_eq(file_read_sparse_at(fd, AT - 10, bytes, SIZE), 12);
    ck_assert_uint_eq(file_read_sparse_at(-1, 0, bytes, SIZE), 0);
    ck_assert_int_eq(errno, EBADF);
    free(bytes);
}
END_TEST

START_TEST(reads_all)
{
    enum { SIZE = 300 * 1000 };
    size_t length = 1;
    char *all = file_read_all(fd, 0, &length);
    ck_assert_str_eq(all, "");
    ck_assert_uint_eq(length, 0);
    free(all);
    char *bytes = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 7);
    ck_assert_int_eq(write(fd, bytes, SIZE), SIZE);
    all = file_read_all(fd, SIZE, &length);
    ck_assert_uint_eq(length, SIZE);
    ck_assert_mem_eq(all, bytes, SIZE);
    ck_assert_int_eq(all[SIZE], 0);
    free(all);
    ck_assert_ptr_null(file_read_all(fd, SIZE - 1, &length));
    ck_assert_int_eq(errno, EFBIG);
    free(bytes);
}
END_TEST

/* The kernel returns a part of a long listing at a time. */
START_TEST(reads_all_of_short_reads)
{
    enum { PARTS = 200 };
    struct stat stat;
    const size_t size = (size_t)sysconf(_SC_PAGESIZE);
    size_t length;
    char *room = mmap(NULL, PARTS * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(room, MAP_FAILED);
    for (size_t i = 0; i < PARTS; i += 2)
        ck_assert_int_eq(mprotect(room + i * size, size, PROT_READ), 0);
    int maps = file_open("/proc/self/maps", &stat);
    char *all = file_read_all(maps, SIZE_MAX, &length);
    ck_assert_ptr_nonnull(all);
    ck_assert_uint_eq(strlen(all), length);
    for (size_t i = 1; i < PARTS - 1; i++) { /* the outer ones may be parts of larger mappings */
        char part[64];
        uintptr_t begin = (uintptr_t)room + i * size;
        snprintf(part, sizeof part, "%08" PRIxPTR "-%08" PRIxPTR " ", begin, begin + size);
        ck_assert_ptr_nonnull(strstr(all, part));
    }
    free(all);
    close(maps);
    munmap(room, PARTS * size);
}
END_TEST

static Suite *file_suite(void)
{
    Suite *suite = suite_create("file");
    TCase *tcase = tcase_create("file");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, opens_and_says_what_it_is);
    tcase_add_test(tcase, opening_never_blocks);
    tcase_add_test(tcase, only_regular_files_are_opened);
    tcase_add_test(tcase, reads_at_an_offset);
    tcase_add_test(tcase, a_failure_is_not_an_end);
    tcase_add_test(tcase, passes_holes);
    tcase_add_test(tcase, reads_all);
    tcase_add_test(tcase, reads_all_of_short_reads);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(file_suite)
