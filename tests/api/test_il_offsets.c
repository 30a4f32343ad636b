/*
 * test_il_offsets.c: IL offsets in answers: which encoding is read for which version of the DebugInfo contract, and
 * that an answer without an IL offset is otherwise whole. The encodings have a test of their own, test_debug_info.c.
 */
#include "tests/support/check_main.h"
#include "tests/support/mock_support.h"

/* From native offset 0 on the code is that of IL offset 0, from 16 on that of 5: in each encoding. */
static const struct version {
    const char *contract;
    uint8_t debug_info[8];
} versions[] = {
    {"8.0", {0x05, 0x02, 0x23, 0x0a, 0x09, 0x02}},
    {"1", {0x05, 0x42, 0x03, 0x82, 0x11, 0x22}},
    {"2", {0x05, 0x42, 0x03, 0x02, 0x23, 0x88}},
};

static struct mock *mock;
static struct cdacq_target *target;
static struct cdacq_session *session;
static uint64_t start;

static void open_mock(const char *contract, const uint8_t *debug_info, bool no_debug_info)
{
    size_t count;
    struct cdacq_error error;
    mock = mock_create(&(struct mock_options){.pointer_size = 8, .seed = 3});
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x10000});
    start = mock_method(heap, &(struct mock_method){.size = 64,
                                                    .method_desc = mock_dynamic_method_desc(mock, "M"),
                                                    .no_debug_info = no_debug_info});
    if (contract)
        mock_contract(mock, "DebugInfo", contract);
    mock_publish(mock, NULL);
    if (debug_info)
        mock_write(mock, mock_functions(mock, &count)->debug_info, debug_info, sizeof versions[0].debug_info);
    ck_assert_int_eq(cdacq_target_open_memory(mock_memory(mock), NULL, &target, &error), CDACQ_OK);
    ck_assert_int_eq(cdacq_session_create(target, &session, &error), CDACQ_OK);
}

static void close_mock(void)
{
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}

static int32_t il_offset_at(unsigned offset)
{
    struct cdacq_method method = {.size = sizeof method};
    ck_assert_int_eq(cdacq_session_method_at(session, start + offset, &method, NULL), CDACQ_OK);
    ck_assert_uint_eq(method.code_start, start);
    ck_assert_ptr_null(method.error);
    return method.il_offset;
}

START_TEST(each_version_has_its_encoding)
{
    open_mock(versions[_i].contract, versions[_i].debug_info, false);
    for (unsigned offset = 0; offset < 64; offset++)
        ck_assert_int_eq(il_offset_at(offset), offset < 16 ? 0 : 5);
    close_mock();
}
END_TEST

static int check_listed(const struct cdacq_method *method, void *context)
{
    ck_assert_int_eq(method->il_offset, CDACQ_OFFSET_UNKNOWN);
    ++*(int *)context;
    return 0;
}

START_TEST(listings_and_batches)
{
    int listed = 0;
    uint64_t ips[40];
    struct cdacq_method methods[40] = {{.size = sizeof methods[0]}};
    open_mock(versions[1].contract, versions[1].debug_info, false);
    for (unsigned i = 0; i < 40; i++)
        ips[i] = start + i;
    ck_assert_int_eq(cdacq_session_methods_at(session, ips, 40, methods, NULL), CDACQ_OK);
    for (int i = 0; i < 40; i++)
        ck_assert_int_eq(methods[i].il_offset, i < 16 ? 0 : 5);
    ck_assert_int_eq(cdacq_session_visit_methods(session, 0, check_listed, &listed, NULL), CDACQ_OK);
    ck_assert_int_eq(listed, 1);
    close_mock();
}
END_TEST

START_TEST(nothing_is_made_up)
{
    static const uint8_t damaged[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    open_mock(NULL, versions[1].debug_info, false); /* not published */
    ck_assert_int_eq(il_offset_at(16), CDACQ_OFFSET_UNKNOWN);
    close_mock();
    open_mock("77", versions[1].debug_info, false); /* in a version that nobody knows */
    ck_assert_int_eq(il_offset_at(16), CDACQ_OFFSET_UNKNOWN);
    close_mock();
    open_mock("1", NULL, true); /* as of a dynamic method */
    ck_assert_int_eq(il_offset_at(16), CDACQ_OFFSET_UNKNOWN);
    close_mock();
    open_mock("1", damaged, false);
    ck_assert_int_eq(il_offset_at(16), CDACQ_OFFSET_UNKNOWN);
    close_mock();
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("il_offsets");
    TCase *tc = tcase_create("il_offsets");
    tcase_add_loop_test(tc, each_version_has_its_encoding, 0, (int)ARRAY_SIZE(versions));
    tcase_add_test(tc, listings_and_batches);
    tcase_add_test(tc, nothing_is_made_up);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
