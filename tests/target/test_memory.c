#include "target/memory.h"

#include <stdio.h>

#include "target/mapped_file.h"
#include "target/reader.h"
#include "tests/support/check_main.h"
#include "tests/support/elf_support.h"

static struct target *target;
static struct cdacq_error error;

/* What the callback answers, whatever it is asked. */
static struct answer {
    bool found;
    uint64_t begin, end, asked;
    const void *bytes;
} answer;

static bool span_at(uint64_t address, uint64_t *ret_begin, uint64_t *ret_end, const void **ret_bytes, void *context)
{
    struct answer *a = context;
    a->asked = address;
    if (!a->found)
        return false;
    *ret_begin = a->begin;
    *ret_end = a->end;
    *ret_bytes = a->bytes;
    return true;
}

static void setup(void)
{
    answer = (struct answer){.found = true, .begin = 0x1000, .end = 0x1008, .bytes = "\1\2\3\4\5\6\7\x80"};
}

static void teardown(void)
{
    target_destroy(target);
    target = NULL;
}

static struct cdacq_memory memory(void)
{
    return (struct cdacq_memory){.size = sizeof(struct cdacq_memory), .context = &answer, .span_at = span_at};
}

static void open_memory(void)
{
    struct cdacq_memory m = memory();
    ck_assert_int_eq(memory_open(&m, NULL, false, &target, &error), CDACQ_OK);
}

START_TEST(hands_out_what_the_caller_has)
{
    open_memory();
    ck_assert_int_eq(target->kind, CDACQ_TARGET_MEMORY);
    struct span run;
    ck_assert(target->ops->memory_at(target, 0x1003, &run));
    ck_assert_uint_eq(answer.asked, 0x1003);
    ck_assert_uint_eq(run.begin, 0x1000);
    ck_assert_uint_eq(run.end, 0x1008);
    ck_assert_ptr_eq(run.bytes, answer.bytes);
    ck_assert(!run.unverified);
    ck_assert(target->ops->dumped_at(target, 0x1003, &run));
    struct reader reader;
    reader_init(&reader, target, 8, true);
    ck_assert_uint_eq(read_u64(&reader, 0x1000), UINT64_C(0x0102030405060780));
}
END_TEST

START_TEST(an_answer_about_another_place_is_none)
{
    struct span run;
    open_memory();
    ck_assert(!target->ops->memory_at(target, 0x0fff, &run));
    ck_assert(!target->ops->memory_at(target, 0x1008, &run));
    answer.end = 0x0800; /* inverted */
    ck_assert(!target->ops->memory_at(target, 0x1003, &run));
    answer.end = 0x1008;
    answer.bytes = NULL;
    ck_assert(!target->ops->memory_at(target, 0x1003, &run));
    answer.found = false;
    ck_assert(!target->ops->memory_at(target, 0x1003, &run));
}
END_TEST

static size_t read_nothing(uint64_t address, void *buffer, size_t size, void *context)
{
    (void)context, (void)address, (void)buffer, (void)size;
    return 0;
}

START_TEST(refuses_arguments_that_make_no_sense)
{
    struct cdacq_memory wrong[] = {memory(), memory(), memory(), memory(), memory()};
    wrong[0].size = 0;
    wrong[1].size = offsetof(struct cdacq_memory, mapping_count);
    wrong[2].span_at = NULL;
    wrong[3].mapping_count = 1;
    wrong[4].read = read_nothing; /* and span_at: which of them? */
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        ck_assert_int_eq(memory_open(&wrong[i], NULL, false, &target, &error), CDACQ_ERR_ARGUMENT);
        ck_assert_ptr_null(target);
        ck_assert_str_ne(error.message, "");
    }
    ck_assert_int_eq(memory_open(NULL, NULL, false, &target, NULL), CDACQ_ERR_ARGUMENT);
    /* An earlier version's smaller struct is accepted, and the bytes after it are not read. */
    wrong[4].read = NULL;
    wrong[4].size = offsetof(struct cdacq_memory, held);
    ck_assert_int_eq(memory_open(&wrong[4], NULL, false, &target, &error), CDACQ_OK);
    target_destroy(target);
    /* So is a later version's larger one. */
    wrong[0].size = sizeof(struct cdacq_memory) + 64;
    ck_assert_int_eq(memory_open(&wrong[0], NULL, false, &target, &error), CDACQ_OK);
}
END_TEST

START_TEST(mappings_are_sorted_and_filtered)
{
    struct cdacq_mapping mappings[] = {
        {sizeof mappings[0], 0x5000, 0x6000, 0x100, "/b"},
        {0, 0x1000, 0x2000, 0, "/a"},
        {0, 0x2000, 0x3000, 0, NULL},
        {0, 0x4000, 0x4000, 0, "/empty"},
        {0, 0x9000, 0x8000, 0, "/inverted"},
    };
    struct cdacq_memory m = memory();
    m.mappings = mappings;
    m.mapping_count = ARRAY_SIZE(mappings);
    ck_assert_int_eq(memory_open(&m, NULL, false, &target, &error), CDACQ_OK);
    ck_assert_uint_eq(target->mapping_count, 2);
    ck_assert_str_eq(target->mappings[0].path, "/a");
    ck_assert_str_eq(target->mappings[1].path, "/b");
    ck_assert_uint_eq(target->mappings[1].offset, 0x100);
    ck_assert(!mapped_file_resolve(target->mappings[1].file)); /* no file is used unless the caller says where it is */
    ck_assert_ptr_null(target_mapping_at(target, 0x0fff));
    ck_assert_ptr_eq(target_mapping_at(target, 0x1000), &target->mappings[0]);
    ck_assert_ptr_eq(target_mapping_at(target, 0x1fff), &target->mappings[0]);
    ck_assert_ptr_null(target_mapping_at(target, 0x2000));
    ck_assert_ptr_eq(target_mapping_at(target, 0x5fff), &target->mappings[1]);
    ck_assert_ptr_null(target_mapping_at(target, UINT64_MAX));
}
END_TEST

/* The first element's size is the distance to the next. */
START_TEST(mappings_of_a_later_version)
{
    const size_t size = sizeof(struct cdacq_mapping) + 32 * (size_t)_i;
    _Alignas(struct cdacq_mapping) uint8_t bytes[3 * 128];
    struct cdacq_memory m = memory();
    memset(bytes, 0x5a, sizeof bytes);
    for (size_t i = 0; i < 3; i++) {
        struct cdacq_mapping mapping = {i ? 77 : size, 0x1000 * (i + 1), 0x1000 * (i + 2), 0, "/a"};
        memcpy(bytes + i * size, &mapping, sizeof mapping);
    }
    m.mappings = (const struct cdacq_mapping *)bytes;
    m.mapping_count = 3;
    ck_assert_int_eq(memory_open(&m, NULL, false, &target, &error), CDACQ_OK);
    ck_assert_uint_eq(target->mapping_count, 3);
    for (size_t i = 0; i < 3; i++)
        ck_assert_uint_eq(target->mappings[i].begin, 0x1000 * (i + 1));
    target_destroy(target);
    target = NULL;
    memset(bytes, 0, sizeof(size_t));
    ck_assert_int_eq(memory_open(&m, NULL, false, &target, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_str_eq(error.message, "struct cdacq_mapping: size is not set");
}
END_TEST

START_TEST(records_when_asked)
{
    struct cdacq_memory m = memory();
    ck_assert_int_eq(memory_open(&m, NULL, true, &target, &error), CDACQ_OK);
    struct reader reader;
    reader_init(&reader, target, 8, false);
    read_u8(&reader, 0x1001);
    ck_assert_uint_eq(target->recording->pages.count, 1);
    ck_assert_ptr_nonnull(pages_find(&target->recording->pages, 0x1000));
}
END_TEST

/* ---- Files that fill what the caller does not have ---- */

enum { MAPPED = 0x10000, FILE_SIZE = 0x1000 };

/* A page of which the caller has some bytes, all 0xcc; its file has others everywhere. */
static struct {
    bool has[FILE_SIZE];
    uint8_t patched[FILE_SIZE];
    char path[256];
    size_t reads; /* calls of patched_read */
} page;

static bool patched_span_at(uint64_t address, uint64_t *ret_begin, uint64_t *ret_end, const void **ret_bytes,
                            void *context)
{
    (void)context;
    uint64_t from = address - MAPPED, to = from;
    if (address < MAPPED || from >= FILE_SIZE || !page.has[from])
        return false;
    while (from && page.has[from - 1])
        from--;
    while (to < FILE_SIZE && page.has[to])
        to++;
    *ret_begin = MAPPED + from;
    *ret_end = MAPPED + to;
    *ret_bytes = page.patched + from;
    return true;
}

static size_t patched_read(uint64_t address, void *buffer, size_t size, void *context)
{
    uint64_t begin, end;
    const void *bytes;
    page.reads++;
    if (!patched_span_at(address, &begin, &end, &bytes, context))
        return 0;
    size = MIN(size, (size_t)(end - address));
    memset(buffer, 0xcc, size);
    return size;
}

static bool find_page(const struct cdacq_need *file, char *path, size_t size, void *context)
{
    (void)context, (void)file;
    snprintf(path, size, "%s", page.path);
    return true;
}

static enum file_match match_all_constant(struct target *of, const struct mapped_file *file,
                                          struct file_candidate *candidate, char *why, size_t why_size)
{
    (void)of, (void)file, (void)why, (void)why_size;
    file_candidate_add_constant(candidate, 0, candidate->size, FILE_EXTENT_ALWAYS);
    return FILE_MATCHES;
}

/* Opens a target with the pieces of a page that the caller has; a file has the others. */
static void open_patched(struct file_policy *policy, const size_t pieces[][2], size_t count, bool copies)
{
    *policy = (struct file_policy){.compare = match_all_constant, .find = find_page, .no_own_paths = true};
    pthread_mutex_init(&policy->lock, NULL);
    uint8_t *bytes = malloc(FILE_SIZE);
    memset(bytes, 'F', FILE_SIZE);
    snprintf(page.path, sizeof page.path, "%s", test_file("lib.so", bytes, FILE_SIZE));
    free(bytes);
    memset(page.patched, 0xcc, sizeof page.patched);
    memset(page.has, 0, sizeof page.has);
    page.reads = 0;
    for (size_t i = 0; i < count; i++)
        memset(page.has + pieces[i][0], 1, pieces[i][1] - pieces[i][0]);
    static struct cdacq_mapping mapping = {sizeof(struct cdacq_mapping), MAPPED, MAPPED + FILE_SIZE, 0, "/lib.so"};
    struct cdacq_memory m = {.size = sizeof m, .mappings = &mapping, .mapping_count = 1};
    if (copies)
        m.read = patched_read;
    else
        m.span_at = patched_span_at;
    ck_assert_int_eq(memory_open(&m, policy, false, &target, &error), CDACQ_OK);
}

static void close_patched(struct file_policy *policy)
{
    target_destroy(target);
    target = NULL;
    file_policy_deinit(policy);
    pthread_mutex_destroy(&policy->lock);
    test_dir_remove();
}

/* In whatever order bytes are read, forwards, backwards or across, the caller's own count; by both kinds of host. */
START_TEST(what_the_caller_has_counts)
{
    /*
     * The last piece is within a line that is otherwise missing, which only a host that returns pointers is asked for.
     */
    static const size_t own[][2] = {{0, 1}, {63, 65}, {0x140, 0x180}, {0x7f0, 0x900}, {0xfff, 0x1000}, {100, 101}};
    static const size_t steps[] = {1, FILE_SIZE - 1, 1021};
    struct file_policy policy;
    bool copies = _i & 1;
    open_patched(&policy, own, ARRAY_SIZE(own) - copies, copies);
    struct reader reader;
    reader_init(&reader, target, 8, false);
    for (size_t i = 0, at = (size_t)_i * 77; i < FILE_SIZE; i++, at = (at + steps[_i / 2]) % FILE_SIZE) {
        reader_begin(&reader, 10);
        ck_assert_uint_eq(read_u8(&reader, MAPPED + at), page.has[at] ? 0xcc : 'F');
    }
    uint8_t all[FILE_SIZE];
    ck_assert(reader_copy(&reader, MAPPED, all, sizeof all));
    for (size_t i = 0; i < FILE_SIZE; i++)
        ck_assert_uint_eq(all[i], page.has[i] ? 0xcc : 'F');
    ck_assert_int_eq(reader_status(&reader, NULL), CDACQ_OK);
    close_patched(&policy);
}
END_TEST

/* Each line of a gap costs a few calls of a host that copies, not one for each byte. */
START_TEST(gaps_are_found_in_few_calls)
{
    enum { CALLS_OF_A_LINE = 4, CALLS_OF_AN_EDGE = 16 };
    static const size_t own[][2] = {{0x410, 0x808}};
    struct file_policy policy;
    open_patched(&policy, own, _i, true);
    struct reader reader;
    uint8_t all[FILE_SIZE];
    reader_init(&reader, target, 8, false);
    reader_begin(&reader, 10000);
    ck_assert(reader_copy(&reader, MAPPED, all, sizeof all));
    for (size_t i = 0; i < FILE_SIZE; i++)
        ck_assert_uint_eq(all[i], page.has[i] ? 0xcc : 'F');
    ck_assert_uint_le(page.reads, FILE_SIZE / 64 * CALLS_OF_A_LINE + 2 * CALLS_OF_AN_EDGE);
    close_patched(&policy);
}
END_TEST

START_TEST(null_is_destroyed_quietly)
{
    target_destroy(NULL);
}
END_TEST

static Suite *suite(void)
{
    const TTest *const tests[] = {
        hands_out_what_the_caller_has,
        an_answer_about_another_place_is_none,
        refuses_arguments_that_make_no_sense,
        mappings_are_sorted_and_filtered,
        records_when_asked,
        null_is_destroyed_quietly,
    };
    Suite *s = suite_create("memory");
    TCase *tc = tcase_create("memory");
    tcase_add_checked_fixture(tc, setup, teardown);
    for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
        tcase_add_test(tc, tests[i]);
    tcase_add_loop_test(tc, what_the_caller_has_counts, 0, 6);
    tcase_add_loop_test(tc, gaps_are_found_in_few_calls, 0, 2);
    tcase_add_loop_test(tc, mappings_of_a_later_version, 0, 2);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
