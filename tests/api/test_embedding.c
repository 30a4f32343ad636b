/*
 * test_embedding.c: the library in another program: memory read by callbacks, files that the host finds, files that
 * another program truncates while they are open.
 */
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

#include "tests/support/check_main.h"
#include "tests/support/elf_support.h"
#include "tests/support/mock_support.h"
#include "tests/support/visitors.h"

static struct cdacq_error error;

/* A process with one method. Only the file of the runtime's image has the bytes after the image's headers. */
static struct lacking {
    struct mock *mock;
    uint64_t start;
    char file[512]; /* on this machine, at a path other than the target's */
} lacking;

enum { HEADERS = 0x180 };

static const char runtime_path[] = "/mock/libcoreclr.so";

/* Writes what the mock has mapped from `path` to a file. */
static void write_mapped_file(struct mock *mock, const char *path, const char *name, char *ret, size_t ret_size)
{
    const struct cdacq_memory *memory = mock_memory(mock);
    snprintf(ret, ret_size, "%s", test_file(name, "", 0));
    int fd = open(ret, O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    for (size_t i = 0; i < memory->mapping_count; i++) {
        const struct cdacq_mapping *mapping = &memory->mappings[i];
        uint64_t begin, end;
        const void *bytes;
        for (uint64_t at = mapping->begin; strcmp(mapping->path, path) == 0 && at < mapping->end; at = end) {
            ck_assert(memory->span_at(at, &begin, &end, &bytes, memory->context));
            ck_assert_int_eq(pwrite(fd, (const uint8_t *)bytes + (at - begin), end - at,
                                    (off_t)(mapping->file_offset + (at - mapping->begin))),
                             (ssize_t)(end - at));
        }
    }
    close(fd);
}

static void make_lacking(int arch, const char *path)
{
    lacking.mock = mock_of_arch(arch, 1);
    struct mock_heap *heap = mock_heap_create(lacking.mock, &(struct mock_heap_options){.size = 0x4000});
    lacking.start = mock_method(heap, &(struct mock_method){.size = 100, .method_desc = 0x1238});
    mock_publish(lacking.mock, &(struct mock_publish_options){.path = path});
    mock_check(lacking.mock);
    write_mapped_file(lacking.mock, path, "elsewhere/runtime.bin", lacking.file, sizeof lacking.file);
    const struct cdacq_memory *memory = mock_memory(lacking.mock);
    for (size_t i = 0; i < memory->mapping_count; i++)
        if (strcmp(memory->mappings[i].path, path) == 0 && !memory->mappings[i].file_offset)
            mock_unmap(lacking.mock, memory->mappings[i].begin + HEADERS,
                       memory->mappings[i].end - memory->mappings[i].begin - HEADERS);
}

static void setup(void)
{
    lacking = (struct lacking){0};
    error = (struct cdacq_error){0};
}

static void teardown(void)
{
    mock_destroy(lacking.mock);
    test_dir_remove();
}

/* What the host was asked, and what it answers. */
struct host {
    const char *answer; /* NULL: no answer; "": a path that is too long and has no NUL */
    unsigned asked;
    bool fits;
};

static bool find_file(const struct cdacq_need *file, char *ret_path, size_t size, void *context)
{
    struct host *host = context;
    host->asked++;
    host->fits = file->size == sizeof *file && strcmp(file->path, runtime_path) == 0 && file->build_id &&
                 strlen(file->build_id) == 40 && file->symbol_key && strstr(file->symbol_key, file->build_id);
    if (!host->answer)
        return false;
    if (!host->answer[0])
        memset(ret_path, '/', size);
    else
        snprintf(ret_path, size, "%s", host->answer);
    return true;
}

static struct cdacq_options options_of(struct host *host)
{
    return (struct cdacq_options){
        .size = sizeof(struct cdacq_options), .find_file = find_file, .find_file_context = host};
}

static void check_method(struct cdacq_target *target)
{
    struct cdacq_session *session = mock_session(target);
    struct cdacq_method method = {.size = sizeof method};
    ck_assert_int_eq(cdacq_session_method_at(session, lacking.start + 5, &method, &error), CDACQ_OK);
    ck_assert_uint_eq(method.code_start, lacking.start);
    ck_assert_uint_eq(method.method_desc, 0x1238);
    cdacq_session_destroy(session);
}

static int check_module(const struct cdacq_mapped_file *module, void *context)
{
    if (strcmp(module->path, runtime_path) != 0)
        return 0;
    ck_assert_ptr_nonnull(module->local_path);
    ck_assert_str_eq(module->local_path, lacking.file);
    ck_assert(module->verified && !module->problem);
    ++*(int *)context;
    return 0;
}

/* ---- Files that the host finds ---- */

START_TEST(the_host_finds_a_file)
{
    make_lacking(_i, runtime_path);
    for (enum carrier carrier = 0; carrier < CARRIER_PROCESS; carrier++) {
        struct host host = {.answer = lacking.file};
        struct cdacq_options options = options_of(&host);
        struct cdacq_target *target = NULL;
        int found = 0;
        ck_assert_int_lt(mock_try_open(lacking.mock, carrier, NULL, &target, &error), 0);
        target = mock_open(lacking.mock, carrier, &options);
        ck_assert_uint_eq(host.asked, 1);
        ck_assert(host.fits);
        check_method(target);
        ck_assert_int_eq(cdacq_target_visit_mapped_files(target, check_module, &found, NULL), CDACQ_OK);
        ck_assert_int_eq(found, 1);
        ck_assert_uint_eq(host.asked, 1);
        cdacq_target_close(target);
    }
}
END_TEST

START_TEST(what_the_host_finds_is_checked)
{
    make_lacking(_i, runtime_path);
    char other[512];
    struct stat st;
    ck_assert_int_eq(stat(lacking.file, &st), 0);
    uint8_t *bytes = malloc((size_t)st.st_size);
    int fd = open(lacking.file, O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(read(fd, bytes, (size_t)st.st_size), st.st_size);
    close(fd);
    for (size_t i = 0; i + 4 < HEADERS; i++)
        if (memcmp(bytes + i, "GNU", 4) == 0)
            bytes[i + 4] ^= 1; /* the build-id */
    snprintf(other, sizeof other, "%s", test_file("other/runtime.bin", bytes, (size_t)st.st_size));
    free(bytes);
    const char *root = test_path("root");
    ck_assert_int_eq(rename(lacking.file, test_file("root/mock/libcoreclr.so", "", 0)), 0);
    const char *const answers[] = {other, "/no/such/file", "", "/dev/zero", NULL};
    for (enum carrier carrier = 0; carrier < CARRIER_PROCESS; carrier++)
        for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
            struct host host = {.answer = answers[i]};
            struct cdacq_options options = options_of(&host);
            struct cdacq_target *target = NULL;
            ck_assert_int_lt(mock_try_open(lacking.mock, carrier, &options, &target, &error), 0);
            ck_assert_ptr_null(target);
            ck_assert_uint_eq(host.asked, 1);
            if (i == 0)
                ck_assert_msg(strstr(error.message, "is not the file that was mapped: it has another build-id") != NULL,
                              "%s", error.message);
            /* The search continues: the right file is found below a sysroot. */
            options.sysroots = &root;
            options.sysroot_count = 1;
            target = mock_open(lacking.mock, carrier, &options);
            check_method(target);
            cdacq_target_close(target);
        }
}
END_TEST

/* The needs that were reported to the host. */
struct needs {
    unsigned count, kinds; /* of enum cdacq_need_kind, a bit each */
    bool fits;
    int length; /* of what it writes; 0: nothing */
};

static void describe_need(const struct cdacq_need *need, char *ret_text, size_t size, void *context)
{
    struct needs *needs = context;
    needs->count++;
    needs->kinds |= 1u << need->kind;
    needs->fits = need->size == sizeof *need &&
                  (need->kind == CDACQ_NEED_FILE
                       ? strcmp(need->path, runtime_path) == 0 && need->build_id && strlen(need->build_id) == 40 &&
                             need->symbol_key && strstr(need->symbol_key, need->build_id)
                       : !need->path && !need->build_id && !need->symbol_key);
    if (needs->length)
        snprintf(ret_text, size, "; ask%*s", needs->length, "me");
}

static bool no_span(uint64_t address, uint64_t *ret_begin, uint64_t *ret_end, const void **ret_bytes, void *context)
{
    (void)context, (void)address, (void)ret_begin, (void)ret_end, (void)ret_bytes;
    return false;
}

static struct cdacq_options options_to_describe(struct needs *needs)
{
    return (struct cdacq_options){
        .size = sizeof(struct cdacq_options), .describe_need = describe_need, .describe_need_context = needs};
}

START_TEST(the_host_describes_a_file_that_is_needed)
{
    make_lacking(_i, runtime_path);
    for (int length = 0; length < 3; length++) {
        struct needs needs = {.length =
                                  length == 2 ? 2000 : length * 3}; /* nothing, a word, more than there is room for */
        struct cdacq_options options = options_to_describe(&needs);
        struct cdacq_target *target = NULL;
        ck_assert_int_lt(mock_try_open(lacking.mock, CARRIER_CORE, &options, &target, &error), 0);
        ck_assert_uint_eq(needs.count, 1);
        ck_assert(needs.fits);
        ck_assert_msg(strstr(error.message, "is needed and was not found (build-id"), "%s", error.message);
        ck_assert_int_eq(strstr(error.message, "); ask") != NULL, length > 0);
        ck_assert_int_eq(strstr(error.message, "; ask me") != NULL, length == 1);
        ck_assert_ptr_null(strstr(error.message, "--")); /* the options of one host are not used for another */
        ck_assert_uint_lt(strlen(error.message), sizeof error.message);
    }
}
END_TEST

START_TEST(a_path_is_needed)
{
    static const char *const paths[] = {NULL, ""};
    struct cdacq_target *target = NULL;
    struct cdacq_jitdump *jitdump = NULL;
    struct sample_process sample = sample_build(0, 2, 2, true);
    mock_publish(sample.mock, NULL);
    const struct cdacq_options options = {.size = sizeof options, .flags = CDACQ_OPEN_RECORD};
    struct cdacq_target *recorded = mock_open(sample.mock, CARRIER_MEMORY, &options);
    struct cdacq_verification verification = {.size = sizeof verification};
    uint64_t size = 0;
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        ck_assert_int_eq(cdacq_target_open_core(paths[i], NULL, &target, &error), CDACQ_ERR_ARGUMENT);
        ck_assert_int_eq(cdacq_target_open_core_fd(0, paths[i], NULL, &target, &error), CDACQ_ERR_ARGUMENT);
        ck_assert_int_eq(cdacq_target_open_image(paths[i], NULL, &target, &error), CDACQ_ERR_ARGUMENT);
        ck_assert_int_eq(cdacq_jitdump_open(paths[i], 0, &jitdump, &error), CDACQ_ERR_ARGUMENT);
        ck_assert_str_eq(error.message, "no path, or an empty one");
        ck_assert_int_eq(cdacq_target_write_snapshot(recorded, paths[i], &size, &error), CDACQ_ERR_ARGUMENT);
        ck_assert_str_eq(error.message, "no path, or an empty one");
        ck_assert_int_eq(cdacq_target_verify(recorded, paths[i], NULL, NULL, &verification, &error),
                         CDACQ_ERR_ARGUMENT);
        ck_assert_str_eq(error.message, "no path, or an empty one");
    }
    ck_assert(!target && !jitdump && !size);
    cdacq_target_close(recorded);
    sample_destroy(&sample);
}
END_TEST

#define CHECK_UNKNOWN(call)                                       \
    do {                                                          \
        ck_assert_int_eq(call, CDACQ_ERR_ARGUMENT);               \
        ck_assert_str_eq(error.message, "unknown flags: 0x8000"); \
    } while (0)

START_TEST(unknown_flags_are_refused)
{
    const unsigned bit = 1u << 15;
    struct sample_process sample = sample_build(0, 2, 2, true);
    mock_publish(sample.mock, NULL);
    struct cdacq_target *target = mock_open(sample.mock, CARRIER_MEMORY, NULL), *other = NULL;
    struct cdacq_session *session = NULL;
    struct cdacq_jitdump *jitdump = NULL;
    const struct cdacq_sink sink = {.size = sizeof sink, .write = ignore_bytes};
    struct cdacq_written written = {.size = sizeof written};
    const struct cdacq_options options = {.size = sizeof options, .flags = CDACQ_OPEN_KEEP | bit};
    ck_assert_int_eq(cdacq_session_create(target, &session, &error), CDACQ_OK);
    CHECK_UNKNOWN(cdacq_target_open_core("/nowhere", &options, &other, &error));
    CHECK_UNKNOWN(cdacq_session_visit_methods(session, CDACQ_VISIT_STUBS | bit, ignore_method, NULL, &error));
    CHECK_UNKNOWN(cdacq_session_visit_frames(session, NULL, NULL, bit, ignore_frame, NULL, &error));
    CHECK_UNKNOWN(cdacq_session_write_perf_map(session, bit, &sink, &written, &error));
    CHECK_UNKNOWN(cdacq_session_write_jitdump(session, CDACQ_WRITE_DEBUG | bit, &sink, &written, &error));
    CHECK_UNKNOWN(cdacq_session_write_elf(session, CDACQ_ELF_CODE | bit, &sink, &written, &error));
    CHECK_UNKNOWN(cdacq_session_write_elf_of_file(session, "/nowhere", bit, &sink, &written, &error));
    CHECK_UNKNOWN(cdacq_jitdump_open("/nowhere", CDACQ_JITDUMP_CODE | bit, &jitdump, &error));
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    sample_destroy(&sample);
}
END_TEST

START_TEST(the_host_describes_what_opening_needs)
{
    struct needs needs = {.length = 3};
    struct cdacq_options options = options_to_describe(&needs);
    struct cdacq_memory memory = {.size = sizeof memory, .span_at = no_span};
    struct cdacq_target *target = NULL;
    ck_assert_int_eq(cdacq_target_open_memory(&memory, &options, &target, &error), CDACQ_ERR_NO_RUNTIME);
    ck_assert_uint_eq(needs.kinds, 1u << CDACQ_NEED_DESCRIPTOR_ADDRESS);
    ck_assert_str_eq(error.message, "no .NET runtime in the target: it names no mapped files; ask me");
    ck_assert_int_eq(cdacq_target_open_memory(&memory, NULL, &target, &error), CDACQ_ERR_NO_RUNTIME);
    ck_assert_ptr_null(strstr(error.message, "--"));

    needs = (struct needs){.length = 3};
    struct mock *mock = mock_of_arch(_i, 1);
    mock_hide(mock, "ExecutionManager");
    mock_publish(mock, NULL);
    ck_assert_int_eq(mock_open_fails(mock, &options, &error), CDACQ_ERR_CONTRACT);
    ck_assert_uint_eq(needs.kinds, 1u << CDACQ_NEED_DESCRIPTOR);
    ck_assert(needs.fits);
    ck_assert_msg(strstr(error.message, "so methods cannot be found; ask me"), "%s", error.message);
    mock_destroy(mock);
}
END_TEST

/* Memory from callbacks may belong to another machine, so local files are not used unless the host allows it. */
START_TEST(own_paths_are_not_looked_at)
{
    char own[512];
    snprintf(own, sizeof own, "%s", test_path("own/libcoreclr.so"));
    make_lacking(_i, own);
    test_file("own/other", "", 0);
    ck_assert_int_eq(link(lacking.file, own), 0);
    struct cdacq_target *target = NULL;
    ck_assert_int_lt(mock_try_open(lacking.mock, CARRIER_MEMORY, NULL, &target, &error), 0);
    ck_assert_int_lt(mock_try_open(lacking.mock, CARRIER_READ, NULL, &target, &error), 0);
    struct host host = {0};
    struct cdacq_options options = options_of(&host);
    ck_assert_int_lt(mock_try_open(lacking.mock, CARRIER_MEMORY, &options, &target, &error), 0);
    cdacq_target_close(mock_open(lacking.mock, CARRIER_CORE, NULL)); /* a core's are */
    cdacq_target_close(mock_open(lacking.mock, CARRIER_CORE_PREAD, NULL));
}
END_TEST

/* ---- What callbacks give ---- */

START_TEST(machine_and_pid)
{
    lacking.mock = mock_of_arch(_i, 1);
    mock_publish(lacking.mock, NULL);
    struct cdacq_memory memory = *mock_memory(lacking.mock);
    struct cdacq_target *target;
    struct cdacq_target_info info = {.size = sizeof info};
    ck_assert_int_eq(cdacq_target_open_memory(&memory, NULL, &target, &error), CDACQ_OK);
    cdacq_target_get_info(target, &info, NULL);
    ck_assert_int_eq(info.pid, 0);
    if (_i != 2)                                 /* EM_PPC has no name */
        ck_assert_ptr_nonnull(info.elf_machine); /* the runtime's image states it */
    cdacq_target_close(target);
    memory.pid = 4242;
    ck_assert_int_eq(cdacq_target_open_memory(&memory, NULL, &target, &error), CDACQ_OK);
    cdacq_target_get_info(target, &info, NULL);
    ck_assert_int_eq(info.pid, 4242);
    cdacq_target_close(target);
    /* Without an image, only the caller can name the machine. */
    mock_destroy(lacking.mock);
    lacking.mock = mock_of_arch(_i, 1);
    struct cdacq_options options = {.size = sizeof options};
    options.descriptor_address = mock_publish(lacking.mock, &(struct mock_publish_options){.no_image = true});
    memory = *mock_memory(lacking.mock);
    memory.elf_machine = EM_AARCH64;
    ck_assert_int_eq(cdacq_target_open_memory(&memory, &options, &target, &error), CDACQ_OK);
    cdacq_target_get_info(target, &info, NULL);
    ck_assert_str_eq(info.elf_machine, "aarch64");
    cdacq_target_close(target);
}
END_TEST

/* ---- Threads and snapshots over what is copied ---- */

enum { THREADS = 4 };

struct asker {
    pthread_t thread;
    struct cdacq_target *target;
    const struct mock_function *facts;
    size_t count;
    bool right;
};

/*
 * Asks about everything in a session of its own, one by one and in a batch. Check's asserts work only on its main
 * thread.
 */
static void *ask_in_thread(void *context)
{
    struct asker *asker = context;
    struct cdacq_session *session;
    if (cdacq_session_create(asker->target, &session, NULL) < 0)
        return NULL;
    asker->right = true;
    for (size_t i = 0; i < asker->count; i++) {
        const struct mock_function *fact = &asker->facts[i];
        struct cdacq_method method = {.size = sizeof method};
        bool is_method = fact->code == MOCK_CODE_JIT || fact->code == MOCK_CODE_R2R;
        if (i & 1)
            cdacq_session_methods_at(session, &fact->begin, 1, &method, NULL);
        else if (cdacq_session_method_at(session, fact->begin, &method, NULL) < 0)
            asker->right = false;
        asker->right &= !is_method || (method.answer == CDACQ_ANSWER_MANAGED && method.code_start == fact->method);
    }
    cdacq_session_destroy(session);
    return NULL;
}

START_TEST(threads_share_a_target)
{
    struct sample_process sample = sample_build(_i, 4, 2, true);
    size_t count;
    mock_publish(sample.mock, NULL);
    const struct mock_function *facts = mock_functions(sample.mock, &count);
    for (enum carrier carrier = 0; carrier < CARRIER_PROCESS; carrier++) {
        struct cdacq_target *target = mock_open(sample.mock, carrier, NULL);
        struct asker askers[THREADS];
        for (int i = 0; i < THREADS; i++) {
            askers[i] = (struct asker){.target = target, .facts = facts, .count = count};
            ck_assert_int_eq(pthread_create(&askers[i].thread, NULL, ask_in_thread, &askers[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(askers[i].thread, NULL);
            ck_assert(askers[i].right);
        }
        cdacq_target_close(target);
    }
    sample_destroy(&sample);
}
END_TEST

static void ask_all(struct cdacq_target *target, const struct mock_function *facts, size_t count, unsigned *answers,
                    unsigned *missing);

START_TEST(snapshots_of_every_carrier)
{
    struct sample_process sample = sample_build(_i, 2, 2, true);
    size_t count;
    char path[512];
    snprintf(path, sizeof path, "%s", test_path("snapshot"));
    mock_publish(sample.mock, NULL);
    const struct mock_function *facts = mock_functions(sample.mock, &count);
    struct cdacq_options options = {.size = sizeof options, .flags = CDACQ_OPEN_RECORD};
    unsigned expected = 0;
    for (enum carrier carrier = 0; carrier < mock_carriers(); carrier++) {
        unsigned answers[2] = {0}, missing = 0;
        uint64_t size;
        struct cdacq_target *target = mock_open(sample.mock, carrier, &options);
        ask_all(target, facts, count, &answers[0], &missing);
        ck_assert_int_eq(cdacq_target_write_snapshot(target, path, &size, &error), CDACQ_OK);
        cdacq_target_close(target);
        ck_assert_int_eq(cdacq_target_open_core(path, NULL, &target, &error), CDACQ_OK);
        ask_all(target, facts, count, &answers[1], &missing);
        cdacq_target_close(target);
        ck_assert_uint_eq(missing, 0);
        ck_assert_uint_eq(answers[0], answers[1]);
        if (!carrier)
            expected = answers[0];
        ck_assert_uint_eq(answers[0], expected);
    }
    sample_destroy(&sample);
}
END_TEST

/* ---- Files that are cut while they are open ---- */

/* Asks everything about everything: answers are right, and missing data are reported as missing. */
static void ask_all(struct cdacq_target *target, const struct mock_function *facts, size_t count, unsigned *answers,
                    unsigned *missing)
{
    struct cdacq_session *session = mock_session(target);
    for (size_t i = 0; i < count; i++) {
        bool is_method = facts[i].code == MOCK_CODE_JIT || facts[i].code == MOCK_CODE_R2R;
        struct cdacq_method method = {.size = sizeof method};
        if (!is_method)
            continue;
        enum cdacq_status status = cdacq_session_method_at(session, facts[i].begin, &method, &error);
        if (status == CDACQ_OK) {
            ck_assert_uint_eq(method.code_start, facts[i].method);
            ++*answers;
        } else {
            ck_assert_msg(status == CDACQ_ERR_MEMORY, "%d: %s", status, error.message);
            ++*missing;
        }
    }
    struct cdacq_method method = {.size = sizeof method};
    cdacq_session_methods_at(session, &facts[0].begin, 1, &method, NULL);
    cdacq_session_destroy(session);
}

START_TEST(a_core_is_cut)
{
    struct sample_process sample = sample_build(_i, 2, 2, true);
    size_t count;
    unsigned all = 0, answers = 0, missing = 0;
    char path[512];
    struct stat st;
    snprintf(path, sizeof path, "%s", test_path("core"));
    mock_publish(sample.mock, NULL);
    const struct mock_function *facts = mock_functions(sample.mock, &count);
    struct cdacq_options options = {.size = sizeof options, .flags = CDACQ_OPEN_PREAD};
    struct cdacq_target *target;
    for (int eighths = 8; eighths >= 0; eighths--) {
        unsigned before = answers;
        if (!mock_write_core(sample.mock, path, &error) || stat(path, &st) < 0)
            ck_abort_msg("%s", error.message);
        ck_assert_int_eq(cdacq_target_open_core(path, &options, &target, &error), CDACQ_OK);
        ck_assert_int_eq(truncate(path, st.st_size * eighths / 8), 0);
        ask_all(target, facts, count, &answers, &missing);
        if (eighths == 8) {
            ck_assert_uint_eq(missing, 0);
            all = answers;
        }
        if (eighths == 0)
            ck_assert_uint_lt(answers - before, all);
        cdacq_target_close(target);
    }
    ck_assert_uint_gt(all, 0);
    ck_assert_uint_gt(missing, 0);
    sample_destroy(&sample);
}
END_TEST

/* Data that were read before remain available. */
START_TEST(a_core_is_cut_after_the_questions)
{
    struct sample_process sample = sample_build(_i, 2, 2, true);
    size_t count;
    unsigned answers[2] = {0}, missing = 0;
    char path[512];
    snprintf(path, sizeof path, "%s", test_path("core"));
    mock_publish(sample.mock, NULL);
    const struct mock_function *facts = mock_functions(sample.mock, &count);
    struct cdacq_options options = {.size = sizeof options, .flags = CDACQ_OPEN_PREAD};
    struct cdacq_target *target;
    if (!mock_write_core(sample.mock, path, &error))
        ck_abort_msg("%s", error.message);
    ck_assert_int_eq(cdacq_target_open_core(path, &options, &target, &error), CDACQ_OK);
    ask_all(target, facts, count, &answers[0], &missing);
    ck_assert_int_eq(truncate(path, 0), 0);
    ask_all(target, facts, count, &answers[1], &missing);
    ck_assert_uint_eq(missing, 0);
    ck_assert_uint_eq(answers[0], answers[1]);
    cdacq_target_close(target);
    sample_destroy(&sample);
}
END_TEST

START_TEST(a_file_that_stands_in_is_cut)
{
    struct host host = {.answer = lacking.file};
    struct cdacq_options options = options_of(&host);
    struct cdacq_target_info info = {.size = sizeof info};
    options.flags = CDACQ_OPEN_PREAD;
    for (enum carrier carrier = 0; carrier < CARRIER_PROCESS; carrier++) {
        make_lacking(_i, runtime_path);
        struct cdacq_target *target = mock_open(lacking.mock, carrier, &options);
        ck_assert_int_eq(truncate(lacking.file, 0), 0);
        cdacq_target_get_info(target, &info, NULL); /* searches the image for its version */
        check_method(target);
        cdacq_target_close(target);
        mock_destroy(lacking.mock);
        lacking.mock = NULL;
    }
}
END_TEST

/* ---- Where the host has memory ---- */

enum { HELD_MAX = 4096 };

struct holder {
    const struct cdacq_memory *memory;
    struct cdacq_mapping held[HELD_MAX]; /* what was read, in the order of the reads */
    size_t count, refused, outside;
    bool is_known; /* only what is held may be asked for */
    bool fills;    /* it supplies other bytes beside what is held, as gdb does from files */
};

/* Of [address, address + size), the held bytes among others. */
static size_t read_filled(struct holder *holder, uint64_t address, uint8_t *buffer, size_t size)
{
    const void *bytes;
    uint64_t begin, end;
    memset(buffer, 0xee, size);
    for (size_t i = 0; i < holder->count; i++)
        for (uint64_t at = MAX(address, holder->held[i].begin); at < MIN(address + size, holder->held[i].end); at++)
            if (holder->memory->span_at(at, &begin, &end, &bytes, holder->memory->context))
                buffer[at - address] = ((const uint8_t *)bytes)[at - begin];
    return size;
}

static size_t read_held(uint64_t address, void *buffer, size_t size, void *context)
{
    struct holder *holder = context;
    const struct cdacq_memory *memory = holder->memory;
    const void *bytes;
    uint64_t begin, end;
    bool is_held = false;
    for (size_t i = 0; holder->is_known && i < holder->count; i++)
        is_held |= address + size > holder->held[i].begin && address < holder->held[i].end;
    holder->outside += holder->is_known && !is_held;
    if (holder->fills)
        return read_filled(holder, address, buffer, size);
    if (!memory->span_at(address, &begin, &end, &bytes, memory->context)) {
        holder->refused++;
        return 0;
    }
    size = MIN(size, (size_t)(end - address));
    memcpy(buffer, (const uint8_t *)bytes + (address - begin), size);
    if (!holder->is_known && holder->count < HELD_MAX)
        holder->held[holder->count++] =
            (struct cdacq_mapping){.size = sizeof holder->held[0], .begin = address, .end = address + size};
    return size;
}

START_TEST(the_host_is_not_asked_for_what_it_lacks)
{
    make_lacking(_i, runtime_path);
    static struct holder holder;
    holder = (struct holder){.memory = mock_memory(lacking.mock)};
    struct cdacq_memory memory = *holder.memory;
    struct host host = {.answer = lacking.file};
    struct cdacq_options options = options_of(&host);
    memory.span_at = NULL;
    memory.read = read_held;
    memory.context = &holder;
    for (int known = 0; known < 3; known++) {
        struct cdacq_target *target;
        holder.fills = known == 2;
        ck_assert_int_eq(cdacq_target_open_memory(&memory, &options, &target, &error), CDACQ_OK);
        check_method(target);
        cdacq_target_close(target);
        ck_assert_uint_lt(holder.count, HELD_MAX);
        ck_assert_msg(known || holder.refused, "the file supplies what the host lacks");
        memory.held = holder.held; /* unsorted; some overlap */
        memory.held_count = holder.count;
        holder.is_known = true;
        ck_assert_uint_eq(holder.outside, 0);
    }
    struct cdacq_target *none = NULL;
    holder.fills = false;
    holder.refused = 0;
    memory.held_count = 0;
    holder.count = 0;
    ck_assert_int_lt(cdacq_target_open_memory(&memory, NULL, &none, &error), 0);
    ck_assert_uint_eq(holder.refused + holder.outside, 0);
    memory.held_count = 1;
    holder.held[0].size = 1;
    ck_assert_int_eq(cdacq_target_open_memory(&memory, NULL, &none, &error), CDACQ_ERR_ARGUMENT);
}
END_TEST

static Suite *suite(void)
{
    const TTest *const tests[] = {
        the_host_is_not_asked_for_what_it_lacks,
        the_host_finds_a_file,
        what_the_host_finds_is_checked,
        the_host_describes_a_file_that_is_needed,
        a_path_is_needed,
        unknown_flags_are_refused,
        the_host_describes_what_opening_needs,
        own_paths_are_not_looked_at,
        machine_and_pid,
        threads_share_a_target,
        snapshots_of_every_carrier,
        a_core_is_cut,
        a_core_is_cut_after_the_questions,
        a_file_that_stands_in_is_cut,
    };
    Suite *s = suite_create("embedding");
    TCase *tc = tcase_create("embedding");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
        tcase_add_loop_test(tc, tests[i], 0, ARCH_COUNT);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
