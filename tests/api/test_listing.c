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
    ck_assert_ptr_nonnull(strstr(error.message, "there may be more code"));
    ck_assert_int_eq(cdacq_session_visit_code_ranges(session, count_range, &count, &error), CDACQ_STOPPED);

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

static Suite *suite(void)
{
    Suite *suite = suite_create("listing");
    TCase *tcase = tcase_create("listing");
    tcase_add_loop_test(tcase, ranges_that_may_be_missing, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, a_range_that_cannot_be_listed, 0, ARCH_COUNT);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
