/*
 * test_follow.c: following the code of a process, by the library and by the tool. The process is a mock's, which does
 * nothing; the test writes to its memory what a runtime would.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/lookup/opened_session.h"
#include "src/lookup/opened_target.h"
#include "tests/support/check_main.h"
#include "tests/support/elf_support.h"
#include "tests/support/mock_support.h"

enum { X64 = 1, METHODS = 8, HEAP_SIZE = 0x10000, SEEN_MAX = 1024, MAP_BYTES = HEAP_SIZE / 32 / 2 };

static struct sample_process sample;
static struct mock_heap *heap;
static uint64_t starts[METHODS];
static struct cdacq_target *target;
static struct cdacq_follower *follower;
static struct cdacq_error error;

static struct seen {
    uint64_t start;
    char name[64];
} seen[SEEN_MAX];
static size_t seen_count;

/* Without the permission to read another process's memory there is nothing to test. */
static bool open_process(bool collectible)
{
    sample = sample_build(X64, 1, 1, true);
    const struct mock_heap_options options = {.size = HEAP_SIZE, .collectible = collectible};
    heap = mock_heap_create(sample.mock, &options);
    for (size_t i = 0; i < METHODS; i++) {
        const struct mock_method method = {.size = 64 + 16 * i, .method_desc = sample.method_descs[0][i]};
        starts[i] = mock_method(heap, &method);
    }
    mock_publish(sample.mock, NULL);
    if (mock_carriers() <= CARRIER_PROCESS)
        return false;
    target = mock_open(sample.mock, CARRIER_PROCESS, NULL);
    return true;
}

static void follow(unsigned flags)
{
    if (cdacq_follower_create(target, flags, &follower, &error) < 0)
        ck_abort_msg("%s", error.message);
}

static void setup(void)
{
    memset(&error, 0, sizeof error);
    target = NULL;
    follower = NULL;
}

static void teardown(void)
{
    cdacq_follower_destroy(follower);
    cdacq_target_close(target);
    sample_destroy(&sample);
    follower = NULL;
    target = NULL;
    test_dir_remove();
}

/* ---- What the process does ---- */

static void write_to_process(uint64_t address, const void *bytes, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", target->memory->pid);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, bytes, size, (off_t)address), (ssize_t)size);
    close(fd);
}

/* The process gets the heap's nibble map as the mock has it now. */
static void copy_nibbles(void)
{
    uint8_t bytes[MAP_BYTES];
    for (size_t i = 0; i < MAP_BYTES; i++)
        bytes[i] = (uint8_t)mock_read_uint(sample.mock, heap->header_map + i, 1);
    write_to_process(heap->header_map, bytes, sizeof bytes);
}

static void free_method(size_t i)
{
    mock_nibble_delete(sample.mock, heap->header_map, heap->map_base, starts[i]);
    copy_nibbles();
}

static void make_method(size_t i)
{
    mock_nibble_set(sample.mock, heap->header_map, heap->map_base, starts[i], 64 + 16 * i);
    copy_nibbles();
}

/* The code of method i is now that of method `other`. */
static void replace_method(size_t i, size_t other)
{
    uint64_t at = mock_method_header(heap, starts[i]) + mock_offset_of(sample.mock, "RealCodeHeader.MethodDesc");
    uint8_t value[8];
    ck_assert_uint_eq(mock_read_pointer(sample.mock, at), sample.method_descs[0][i]);
    mock_write_pointer(sample.mock, at, sample.method_descs[0][other]);
    for (size_t k = 0; k < sizeof value; k++)
        value[k] = (uint8_t)mock_read_uint(sample.mock, at + k, 1);
    write_to_process(at, value, sizeof value);
}

static void end_process(void)
{
    ck_assert_int_eq(kill(target->memory->pid, SIGKILL), 0);
    for (int i = 0; i < 20000 && !target_gone(target->memory); i++)
        usleep(1000);
}

/* ---- Methods ---- */

static int see(const struct cdacq_method *method, void *context)
{
    (void)context;
    ck_assert_uint_lt(seen_count, SEEN_MAX);
    ck_assert_msg(method->answer != CDACQ_ANSWER_ERROR, "%s", method->error);
    seen[seen_count].start = method->code_start;
    snprintf(seen[seen_count++].name, sizeof seen->name, "%s", method->name ? method->name : "");
    return 0;
}

static enum cdacq_status visit(void)
{
    seen_count = 0;
    return cdacq_follower_visit_methods(follower, see, NULL, &error);
}

static const char *name_of(size_t i)
{
    for (size_t k = 0; k < seen_count; k++)
        if (seen[k].start == starts[i])
            return seen[k].name;
    return NULL;
}

START_TEST(each_method_is_visited_once)
{
    if (!open_process(true))
        return;
    follow(CDACQ_VISIT_STUBS | CDACQ_VISIT_R2R_ALL);
    ck_assert_int_eq(visit(), CDACQ_OK);
    size_t all = seen_count;
    struct cdacq_session *session = mock_session(target);
    seen_count = 0;
    ck_assert_int_eq(cdacq_session_visit_methods(session, CDACQ_VISIT_STUBS | CDACQ_VISIT_R2R_ALL, see, NULL, &error),
                     CDACQ_OK);
    cdacq_session_destroy(session);
    ck_assert_uint_eq(seen_count, all);
    for (size_t i = 0; i < METHODS; i++)
        ck_assert_ptr_nonnull(name_of(i));
    ck_assert_int_eq(visit(), CDACQ_OK);
    ck_assert_uint_eq(seen_count, 0);
}
END_TEST

START_TEST(what_is_made_again_is_visited_again)
{
    if (!open_process(true))
        return;
    follow(0);
    free_method(3);
    ck_assert_int_eq(visit(), CDACQ_OK);
    ck_assert_ptr_null(name_of(3));
    for (int round = 0; round < 3; round++) {
        make_method(3);
        ck_assert_int_eq(visit(), CDACQ_OK);
        ck_assert_uint_eq(seen_count, 1);
        ck_assert_uint_eq(seen[0].start, starts[3]);
        ck_assert_int_eq(visit(), CDACQ_OK);
        ck_assert_uint_eq(seen_count, 0);
        free_method(3);
        ck_assert_int_eq(visit(), CDACQ_OK);
        ck_assert_uint_eq(seen_count, 0);
    }
}
END_TEST

START_TEST(a_method_in_the_place_of_another_is_new)
{
    char before[64];
    if (!open_process(true))
        return;
    follow(0);
    ck_assert_int_eq(visit(), CDACQ_OK);
    snprintf(before, sizeof before, "%s", name_of(2));
    replace_method(2, 5);
    ck_assert_int_eq(visit(), CDACQ_OK);
    ck_assert_uint_eq(seen_count, 1);
    ck_assert_uint_eq(seen[0].start, starts[2]);
    ck_assert_str_ne(seen[0].name, before);
    ck_assert_int_eq(visit(), CDACQ_OK);
    ck_assert_uint_eq(seen_count, 0);
}
END_TEST

/* Code outside of collectible heaps is never freed, so it is not read again. */
START_TEST(what_stays_is_not_read_again)
{
    if (!open_process(false))
        return;
    follow(0);
    ck_assert_int_eq(visit(), CDACQ_OK);
    ck_assert_ptr_nonnull(name_of(2));
    replace_method(2, 5);
    ck_assert_int_eq(visit(), CDACQ_OK);
    ck_assert_uint_eq(seen_count, 0);
}
END_TEST

START_TEST(it_ends_with_the_process)
{
    if (!open_process(true))
        return;
    follow(0);
    ck_assert_int_eq(visit(), CDACQ_OK);
    end_process();
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(visit(), CDACQ_DONE);
    ck_assert_uint_eq(seen_count, 0);
}
END_TEST

static int stop(const struct cdacq_method *method, void *context)
{
    (void)method;
    ++*(unsigned *)context;
    return 1;
}

START_TEST(a_visitor_may_stop)
{
    unsigned count = 0;
    if (!open_process(true))
        return;
    follow(CDACQ_VISIT_R2R_NONE);
    ck_assert_int_eq(cdacq_follower_visit_methods(follower, stop, &count, &error), CDACQ_STOPPED);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(visit(), CDACQ_OK); /* the rest */
    ck_assert_uint_gt(seen_count, METHODS - 1);
}
END_TEST

START_TEST(only_what_runs_can_be_followed)
{
    sample = sample_build(X64, 1, 1, true);
    mock_publish(sample.mock, NULL);
    target = mock_open(sample.mock, CARRIER_MEMORY, NULL);
    ck_assert_int_eq(cdacq_follower_create(target, 0, &follower, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_ptr_null(follower);
    ck_assert_int_eq(cdacq_follower_create(NULL, 0, &follower, &error), CDACQ_ERR_ARGUMENT);
    cdacq_follower_destroy(NULL);
}
END_TEST

/* ---- Jitdumps ---- */

struct file {
    const char *path;
    int fd;
    unsigned writes;
};

static int write_whole(const void *bytes, size_t size, void *context)
{
    struct file *file = context;
    const uint8_t *record = bytes;
    size_t at = file->writes++ ? 0 : size; /* the header has no prefix */
    while (at < size) {
        ck_assert_uint_ge(size - at, 16);
        uint32_t length = load_u32(record + at + 4, target->descriptor_info.big_endian);
        ck_assert_uint_ge(length, 16);
        at += length;
    }
    ck_assert_uint_eq(at, size);
    ck_assert_int_eq(write(file->fd, bytes, size), (ssize_t)size);
    return 0;
}

struct counts {
    unsigned loads, closes;
    uint64_t last_load, last_index;
    bool damaged;
};

static struct counts read_jitdump(const char *path)
{
    struct counts counts = {0};
    struct cdacq_jitdump *jitdump;
    struct cdacq_jitdump_record record = {.size = sizeof record};
    enum cdacq_status status;
    if (cdacq_jitdump_open(path, 0, &jitdump, &error) < 0)
        ck_abort_msg("%s", error.message);
    while ((status = cdacq_jitdump_next(jitdump, &record, &error)) == CDACQ_OK) {
        counts.damaged |= record.error != NULL;
        counts.closes += record.kind == CDACQ_JITDUMP_CLOSE;
        if (record.kind != CDACQ_JITDUMP_LOAD)
            continue;
        counts.loads++;
        counts.last_load = record.as.load.vma;
        ck_assert_uint_gt(record.as.load.code_index, counts.last_index);
        counts.last_index = record.as.load.code_index;
    }
    ck_assert_int_eq(status, CDACQ_DONE);
    cdacq_jitdump_close(jitdump);
    return counts;
}

START_TEST(a_jitdump_grows_by_whole_records)
{
    struct file file = {.path = test_file("jit.dump", "", 0)};
    struct cdacq_written written = {.size = sizeof written};
    const struct cdacq_sink sink = {.size = sizeof sink, .context = &file, .write = write_whole};
    file.fd = open(file.path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(file.fd, 0);
    if (!open_process(true))
        return;
    follow(CDACQ_VISIT_R2R_NONE | (unsigned)CDACQ_WRITE_DEBUG);
    free_method(3);
    ck_assert_int_eq(cdacq_follower_write_jitdump(follower, &sink, &written, &error), CDACQ_OK);
    unsigned first = read_jitdump(file.path).loads;
    ck_assert_uint_eq(written.methods, first);
    make_method(3);
    ck_assert_int_eq(cdacq_follower_write_jitdump(follower, &sink, &written, &error), CDACQ_OK);
    struct counts counts = read_jitdump(file.path);
    ck_assert_uint_eq(counts.loads, first + 1);
    ck_assert_uint_eq(counts.last_load, starts[3]);
    ck_assert_uint_eq(written.methods, first + 1);
    end_process();
    ck_assert_int_eq(cdacq_follower_write_jitdump(follower, &sink, &written, &error), CDACQ_DONE);
    ck_assert_int_eq(cdacq_follower_close_jitdump(follower, &sink, &written, &error), CDACQ_OK);
    ck_assert_int_eq(cdacq_follower_write_jitdump(follower, &sink, &written, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(cdacq_follower_close_jitdump(follower, &sink, &written, &error), CDACQ_ERR_ARGUMENT);
    counts = read_jitdump(file.path);
    ck_assert(!counts.damaged);
    ck_assert_uint_eq(counts.loads, first + 1);
    ck_assert_uint_eq(counts.closes, 1);
    struct stat st;
    ck_assert_int_eq(fstat(file.fd, &st), 0);
    ck_assert_uint_eq(written.bytes, (uint64_t)st.st_size);
    close(file.fd);
}
END_TEST

/* ---- The tool ---- */

static pid_t start_tool(const char *command, const char *output)
{
    const char *tool = getenv("CDACQ_TOOL");
    char pid[16];
    snprintf(pid, sizeof pid, "%d", target->memory->pid);
    pid_t child = tool ? fork() : -1;
    ck_assert_msg(child >= 0, "CDACQ_TOOL is not set");
    if (!child) {
        execlp(tool, tool, command, "--follow", pid, "-o", output, NULL);
        _exit(127);
    }
    return child;
}

/* The number of lines about the method that begins there. */
static size_t lines_of(const char *path, uint64_t start)
{
    char line[4096], head[32];
    FILE *file = fopen(path, "re");
    size_t count = 0;
    int length = snprintf(head, sizeof head, "0x%" PRIx64 " +", start);
    while (file && fgets(line, sizeof line, file))
        count += strncmp(line, head, (size_t)length) == 0;
    if (file)
        fclose(file);
    return count;
}

static void await_line(const char *path, uint64_t start)
{
    for (int i = 0; i < 2000 && !lines_of(path, start); i++)
        usleep(10 * 1000);
    ck_assert_uint_eq(lines_of(path, start), 1);
}

static int exit_code(pid_t child)
{
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

START_TEST(methods_come_as_they_are_made)
{
    const char *path = test_file("methods", "", 0);
    if (!open_process(true))
        return;
    free_method(3);
    pid_t tool = start_tool("methods", path);
    await_line(path, starts[2]);
    ck_assert_uint_eq(lines_of(path, starts[3]), 0);
    make_method(3);
    await_line(path, starts[3]);
    ck_assert_uint_eq(lines_of(path, starts[2]), 1);
    ck_assert_int_eq(kill(tool, SIGINT), 0);
    ck_assert_int_le(exit_code(tool), 1); /* 1 after three rounds: some of the sample's methods have no MethodDesc */
}
END_TEST

START_TEST(the_file_is_closed_when_the_process_ends)
{
    const int signals[] = {0, SIGINT, SIGTERM};
    struct stat st;
    if (!open_process(true))
        return;
    for (size_t i = ARRAY_SIZE(signals); i-- > 0;) {
        static const char old[4096] = "JiTD";
        const char *path = test_file("jit.dump", old, sizeof old); /* of an earlier process */
        pid_t tool = start_tool("jitdump", path);
        for (int k = 0; k < 2000 && (stat(path, &st) < 0 || st.st_size < 1 || st.st_size == sizeof old); k++)
            usleep(10 * 1000);
        if (signals[i])
            ck_assert_int_eq(kill(tool, signals[i]), 0);
        else
            end_process();
        ck_assert_int_eq(exit_code(tool), 1); /* some of the sample's methods have no name */
        struct counts counts = read_jitdump(path);
        ck_assert(!counts.damaged);
        ck_assert_uint_eq(counts.closes, 1);
        ck_assert_uint_ge(counts.loads, METHODS);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("follow");
    TCase *tcase = tcase_create("follow");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, only_what_runs_can_be_followed);
    suite_add_tcase(suite, tcase);
    if (left_out_emulated("follow: all but only_what_runs_can_be_followed", "no process_vm_readv"))
        return suite;
    tcase_add_test(tcase, each_method_is_visited_once);
    tcase_add_test(tcase, what_is_made_again_is_visited_again);
    tcase_add_test(tcase, a_method_in_the_place_of_another_is_new);
    tcase_add_test(tcase, what_stays_is_not_read_again);
    tcase_add_test(tcase, it_ends_with_the_process);
    tcase_add_test(tcase, a_visitor_may_stop);
    tcase_add_test(tcase, a_jitdump_grows_by_whole_records);
    tcase_add_test(tcase, methods_come_as_they_are_made);
    tcase_add_test(tcase, the_file_is_closed_when_the_process_ends);
    return suite;
}

CHECK_MAIN(suite)
