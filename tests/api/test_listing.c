/*
 * test_listing.c: listings of targets that lack a part of what lists their code: what is missing is told.
 */
#include "cdacq.h"
#include "tests/support/check_main.h"
#include "tests/support/mock_support.h"

static struct mock *mock;
static struct cdacq_target *target;
static struct cdacq_session *session;
static struct cdacq_error error;

static void begin(int arch)
{
    mock = mock_of_arch(arch, 1);
    target = NULL;
    session = NULL;
}

static void open_mock(void)
{
    target = mock_publish_and_open(mock);
    session = mock_session(target);
}

static void end(void)
{
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}

/* ---- Code ranges ---- */

static uint64_t add_method(struct mock_heap *heap)
{
    return mock_method(heap, &(struct mock_method){.size = 64, .method_desc = 0x1000});
}

static int count_range(const struct cdacq_code_range_info *range, void *context)
{
    ck_assert_uint_lt(range->begin, range->end);
    return ++*(unsigned *)context >= 2;
}

static int count_file(const struct cdacq_code_file *file, void *context)
{
    (void)file;
    ++*(unsigned *)context;
    return 0;
}

/* Of two heaps, what leads to the second one is missing. */
START_TEST(ranges_that_may_be_missing)
{
    struct cdacq_method method = {.size = sizeof method};
    unsigned count = 0;
    uint64_t stride;
    size_t fragments;
    begin(_i);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.begin = 0x30000000, .size = 0x10000});
    struct mock_heap *lost = mock_heap_create(mock, &(struct mock_heap_options){.begin = 0x31000000, .size = 0x10000});
    uint64_t found = add_method(heap), unknown = add_method(lost);
    uint64_t fragment = mock_section_fragments(mock, lost->section, &fragments, &stride);
    mock_unmap(mock, fragment, fragments * stride);
    open_mock();

    ck_assert_int_eq(cdacq_session_visit_code_ranges(session, count_range, &count, &error), CDACQ_ERR_MEMORY);
    ck_assert_uint_eq(count, 1);
    ck_assert_pstr_eq(error.message, "there may be more code: 1 part of the range section map is missing or damaged");
    ck_assert_int_eq(cdacq_session_visit_code_ranges(session, count_range, &count, &error), CDACQ_STOPPED);

    error.message[0] = '\0';
    count = 0;
    ck_assert_int_eq(cdacq_session_visit_code_files(session, count_file, &count, &error), CDACQ_ERR_MEMORY);
    ck_assert_uint_gt(count, 0);
    ck_assert_ptr_nonnull(strstr(error.message, "there may be more code"));

    ck_assert_int_eq(cdacq_session_check_code_range(session, found, &error), CDACQ_OK);
    ck_assert_int_eq(cdacq_session_check_code_range(session, 0x32000000, &error), CDACQ_NOT_MANAGED);
    ck_assert_int_eq(cdacq_session_method_at(session, unknown, &method, &error), CDACQ_ERR_MEMORY);
    ck_assert_ptr_nonnull(strstr(error.message, "RangeSectionFragment."));
    error.message[0] = '\0';
    ck_assert_int_eq(cdacq_session_check_code_range(session, unknown, &error), CDACQ_ERR_MEMORY);
    ck_assert_ptr_nonnull(strstr(error.message, "RangeSectionFragment."));
    end();
}
END_TEST

/* Of two ranges with the same addresses, none is listed, but a look-up finds one. */
START_TEST(a_range_that_cannot_be_listed)
{
    unsigned count = 0;
    begin(_i);
    for (unsigned i = 0; i < 2; i++)
        mock_section_add(mock,
                         &(struct mock_section){.begin = 0x30000000 + i * 0x2000, .end = 0x30004000 + i * 0x2000});
    open_mock();
    ck_assert_int_eq(cdacq_session_visit_code_ranges(session, count_range, &count, &error), CDACQ_ERR_MEMORY);
    ck_assert_uint_eq(count, 0);
    ck_assert_int_eq(cdacq_session_check_code_range(session, 0x30003000, &error), CDACQ_ERR_CORRUPT);
    ck_assert_int_eq(cdacq_session_check_code_range(session, 0x30008000, &error), CDACQ_NOT_MANAGED);
    end();
}
END_TEST

/* ---- ReadyToRun methods ------------------------------------------------------------------------------------------ */

enum { IMAGES = 2, METHODS = 3 };

static void lose_entry_point_map(const struct mock_r2r *image)
{
    uint64_t buckets = mock_get(mock, image->entry_point_map, "HashMap.Buckets");
    mock_unmap(mock, buckets, mock_size_of(mock, "Bucket") * (1 + mock_read_uint(mock, buckets, 4)));
}

/* Images in which the runtime has prepared the last method; of the last image, the map that says so is missing. */
static void open_images(void)
{
    static const uint64_t size = 64;
    struct mock_r2r *image = NULL;
    for (unsigned i = 0; i < IMAGES; i++) {
        image = mock_r2r_create(mock, &(struct mock_r2r_options){.tables = MOCK_R2R_METHODDEFS});
        for (unsigned m = 1; m <= METHODS; m++) {
            uint64_t method_desc = m == METHODS ? 0x1000 : 0;
            mock_r2r_method(
                image, &(struct mock_r2r_method){.hot = &size, .hot_count = 1, .rid = m, .method_desc = method_desc});
        }
        mock_r2r_finish(image);
    }
    lose_entry_point_map(image);
    open_mock();
}

struct listed {
    unsigned methods, errors;
    char error[512];
};

static int list_method(const struct cdacq_method *method, void *context)
{
    struct listed *listed = context;
    ck_assert_uint_eq(listed->errors, 0); /* it is the last one */
    listed->methods += method->answer == CDACQ_ANSWER_MANAGED;
    if (method->answer == CDACQ_ANSWER_ERROR) {
        listed->errors++;
        ck_assert_uint_eq(method->code_start, 0);
        snprintf(listed->error, sizeof listed->error, "%s", method->error);
    }
    return 0;
}

static struct listed list_methods(unsigned flags)
{
    struct listed listed = {0};
    ck_assert_int_eq(cdacq_session_visit_methods(session, flags, list_method, &listed, &error), CDACQ_OK);
    return listed;
}

/* Methods that may be prepared are not taken for others without a word. */
START_TEST(prepared_methods_that_may_be_missing)
{
    begin(_i);
    open_images();
    struct listed prepared = list_methods(0), all = list_methods(CDACQ_VISIT_R2R_ALL);
    ck_assert_uint_eq(prepared.methods, 1);
    ck_assert_uint_eq(prepared.errors, 1);
    ck_assert_str_eq(prepared.error, "there may be more prepared methods: images whose maps of prepared methods cannot "
                                     "be read: 1");
    ck_assert_uint_eq(all.methods, IMAGES * METHODS);
    ck_assert_uint_eq(all.errors, 0);
    ck_assert_uint_eq(list_methods(CDACQ_VISIT_R2R_NONE).errors, 0);
    end();
}
END_TEST

/* A look-up names the method, and does not say that it is not prepared. */
START_TEST(a_method_that_may_be_prepared)
{
    struct sample_process sample = sample_build(_i, 1, 1, true);
    size_t count, found = 0;
    uint64_t method_desc;
    mock = sample.mock;
    lose_entry_point_map(sample.unsplit);
    open_mock();
    const struct mock_function *facts = mock_functions(mock, &count);
    for (size_t i = 0; i < count; i++) {
        struct cdacq_method method = {.size = sizeof method};
        bool may_be = facts[i].begin >= sample.unsplit->begin && facts[i].begin < sample.unsplit->end;
        if (cdacq_session_method_at(session, facts[i].begin, &method, &error) != CDACQ_OK)
            continue;
        ck_assert_uint_eq(method.method_desc, may_be ? 0 : facts[i].method_desc);
        ck_assert(may_be || !method.prepared_unknown);
        if (!method.prepared_unknown)
            continue;
        ck_assert_ptr_nonnull(method.name);
        ck_assert_ptr_nonnull(strstr(method.error, "prepared the method is not known"));
        ck_assert_int_eq(cdacq_session_non_virtual_entry_to_method_desc(session, facts[i].begin, &method_desc, &error),
                         CDACQ_ERR_MEMORY);
        ck_assert_ptr_nonnull(strstr(error.message, "EntryPointToMethodDescMap: no memory at"));
        found++;
    }
    ck_assert_uint_gt(found, 0);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    sample_destroy(&sample);
}
END_TEST

/* ---- Work ---- */

static int count_method(const struct cdacq_method *method, void *context)
{
    ck_assert_int_eq(method->answer, CDACQ_ANSWER_MANAGED);
    ++*(unsigned *)context;
    return 0;
}

enum { NAMESAKES = 1500, NAME_LENGTH = 3000 };

/* Methods that share a name. */
static void begin_with_namesakes(int arch)
{
    char name[NAME_LENGTH + 1];
    memset(name, 'n', NAME_LENGTH);
    name[NAME_LENGTH] = '\0';
    begin(arch);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x40000});
    uint64_t method_desc = mock_dynamic_method_desc(mock, name);
    for (unsigned i = 0; i < NAMESAKES; i++)
        mock_method(heap, &(struct mock_method){.size = 64, .method_desc = method_desc});
    mock_publish(mock, NULL);
}

/* With each method that is listed, the name costs what it takes. */
START_TEST(shared_names_are_work)
{
    enum { ALLOWED = 1000 };
    const struct cdacq_options options = {.size = sizeof options, .work_max = ALLOWED * NAME_LENGTH / 8};
    unsigned count = 0;
    begin_with_namesakes(_i);
    target = mock_open(mock, CARRIER_MEMORY, &options);
    session = mock_session(target);
    ck_assert_int_eq(cdacq_session_visit_methods(session, 0, count_method, &count, &error), CDACQ_ERR_FUEL);
    ck_assert_ptr_nonnull(strstr(error.message, "stopped at the bound on work"));
    ck_assert(count > 0 && count <= ALLOWED);
    end();
}
END_TEST

static int drop(const void *bytes, size_t size, void *context)
{
    (void)bytes, (void)size, (void)context;
    return 0;
}

/* An ELF file has each name twice, beside that of the session: these bytes count, too. */
START_TEST(names_of_an_elf_file_are_memory)
{
    const struct cdacq_options options = {.size = sizeof options, .memory_max = NAMESAKES * NAME_LENGTH * UINT64_C(2)};
    const struct cdacq_sink sink = {.size = sizeof sink, .write = drop};
    struct cdacq_written written = {.size = sizeof written};
    unsigned count = 0;
    begin_with_namesakes(_i);
    target = mock_open(mock, CARRIER_MEMORY, &options);
    session = mock_session(target);
    ck_assert_int_eq(cdacq_session_write_elf(session, 0, &sink, &written, &error), CDACQ_ERR_FUEL);
    ck_assert_ptr_nonnull(strstr(error.message, "stopped at the bound on memory"));
    ck_assert(written.methods > 0 && written.methods < NAMESAKES);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    target = mock_open(mock, CARRIER_MEMORY, &options);
    session = mock_session(target);
    ck_assert_int_eq(cdacq_session_visit_methods(session, 0, count_method, &count, &error), CDACQ_OK);
    ck_assert_uint_eq(count, NAMESAKES);
    end();
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("listing");
    TCase *tcase = tcase_create("listing");
    tcase_add_loop_test(tcase, ranges_that_may_be_missing, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, a_range_that_cannot_be_listed, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, prepared_methods_that_may_be_missing, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, a_method_that_may_be_prepared, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, shared_names_are_work, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, names_of_an_elf_file_are_memory, 0, ARCH_COUNT);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
