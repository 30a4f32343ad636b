#include "target/core.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "target/core_file.h"
#include "target/file_policy.h"
#include "target/target.h"
#include "tests/support/check_main.h"
#include "tests/support/compressor.h"
#include "tests/support/elf_support.h"

enum { SIZE = 300 * 4096, HOLE_AT = 100 * 4096, HOLE_END = 250 * 4096 };

static const uint64_t base = 0x10000;
static uint8_t *memory, *file, *packed;
static size_t file_size, packed_size;
static struct target *target;
static struct cdacq_error error;
static struct file_policy policy;

/* A core of one segment, with zeros in the middle. */
static void setup(void)
{
    struct elf_core core;
    uint32_t random = 1;
    memory = calloc(1, SIZE);
    ck_assert_ptr_nonnull(memory);
    for (size_t i = 0; i < SIZE; i++) {
        random = random * 1664525 + 1013904223;
        memory[i] = i >= HOLE_AT && i < HOLE_END ? 0 : (uint8_t)(random >> 24);
    }
    elf_core_init(&core, true, false);
    elf_core_load(&core, base, memory, SIZE, SIZE, PF_R | PF_W);
    file = elf_core_build(&core, &file_size);
    elf_core_deinit(&core);
    packed = compress_bytes("gzip", file, file_size, &packed_size);
    policy = (struct file_policy){0};
    pthread_mutex_init(&policy.lock, NULL);
}

static void teardown(void)
{
    target_destroy(target);
    target = NULL;
    free(memory);
    free(file);
    free(packed);
    memory = file = packed = NULL;
    pthread_mutex_destroy(&policy.lock);
}

static void check_memory(void)
{
    struct span span;
    for (uint64_t at = 0; at < SIZE; at += span.end - (base + at)) {
        ck_assert(target->ops->memory_at(target, base + at, &span));
        ck_assert_mem_eq(span.bytes + (base + at - span.begin), memory + at, span.end - (base + at));
    }
}

static unsigned open_files(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* A descriptor whose position is at the start of these bytes. */
static int fd_of(const uint8_t *bytes, size_t size)
{
    int fd;
    memory_file(bytes, size, &fd);
    ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static enum cdacq_status open_fd(int fd, uint64_t disk_max)
{
    const struct core_source source = {"the input", fd, {.disk_max = disk_max}};
    return core_open_source(&source, &policy, false, &target, &error);
}

/* Mapped and with pread; the caller's descriptor stays open, and nothing else does. */
START_TEST(file_descriptors)
{
    for (int way = 0; way < 4; way++) {
        int fd = way & 1 ? fd_of(packed, packed_size) : fd_of(file, file_size);
        unsigned before = open_files();
        policy.pread = way & 2;
        ck_assert_msg(open_fd(fd, 0) == CDACQ_OK, "%s", error.message);
        ck_assert_int_eq(close(fd), 0);
        ck_assert(!target->truncated && !target->truncation);
        check_memory();
        target_destroy(target);
        target = NULL;
        ck_assert_uint_eq(open_files(), before - 1);
    }
}
END_TEST

START_TEST(zero_pages_are_holes)
{
    struct stored_core stored;
    struct stat st;
    int fd = fd_of(packed, packed_size);
    ck_assert_int_eq(core_store(fd, "the input", &(struct core_store_options){0}, &stored, &error), CDACQ_OK);
    ck_assert_uint_eq(stored.size, file_size);
    ck_assert_str_eq(stored.problem, "");
    ck_assert_int_eq(fstat(stored.fd, &st), 0);
    ck_assert_int_eq(st.st_nlink, 0);
    ck_assert_int_eq(st.st_mode & 0777, 0600);
    ck_assert_int_ge(lseek(stored.fd, HOLE_AT + 2 * 4096, SEEK_DATA), HOLE_END);
    close(stored.fd);
    close(fd);
}
END_TEST

START_TEST(bound_on_the_disk)
{
    int fd = fd_of(packed, packed_size);
    ck_assert_int_eq(open_fd(fd, 50 * 4096), CDACQ_OK);
    ck_assert(target->truncated);
    ck_assert_str_eq(
        target->truncation,
        "only its first 204800 bytes were read: no more than 200 KiB of a core are stored, not counting zeros");
    ck_assert_uint_lt(target->dumped_size, 50 * 4096);
    close(fd);
}
END_TEST

static uint64_t last_done, last_total;

static void note_progress(uint64_t done, uint64_t total, void *context)
{
    ck_assert_ptr_eq(context, &last_done);
    ck_assert_uint_gt(done, last_done);
    last_done = done;
    last_total = total;
}

START_TEST(progress)
{
    int fd = fd_of(packed, packed_size);
    struct core_source source = {"the input", fd, {0, note_progress, &last_done}};
    last_done = 0;
    ck_assert_int_eq(core_open_source(&source, &policy, false, &target, &error), CDACQ_OK);
    ck_assert_uint_eq(last_done, packed_size);
    ck_assert_uint_eq(last_total, packed_size);
    close(fd);
}
END_TEST

START_TEST(failures_leave_nothing_open)
{
    unsigned before = open_files();
    int fd = fd_of(packed, 20);
    ck_assert_int_eq(open_fd(fd, 0), CDACQ_ERR_FORMAT);
    ck_assert_str_eq(error.message, "the input: no core: the gzip data end early");
    close(fd);
    fd = fd_of(memory, 5000);
    ck_assert_int_eq(open_fd(fd, 0), CDACQ_ERR_FORMAT);
    close(fd);
    fd = fd_of(packed, packed_size);
    ck_assert_int_eq(open_fd(fd, 1), CDACQ_ERR_FORMAT);
    close(fd);
    ck_assert_int_eq(open_fd(9999, 0), CDACQ_ERR_IO);
    ck_assert_str_eq(error.message, "the input: Bad file descriptor");
    ck_assert_uint_eq(open_files(), before);
    ck_assert_ptr_null(target);
}
END_TEST

static Suite *core_store_suite(void)
{
    Suite *suite = suite_create("core_store");
    TCase *tcase = tcase_create("core_store");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, file_descriptors);
    tcase_add_test(tcase, zero_pages_are_holes);
    tcase_add_test(tcase, bound_on_the_disk);
    tcase_add_test(tcase, progress);
    tcase_add_test(tcase, failures_leave_nothing_open);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(core_store_suite)
