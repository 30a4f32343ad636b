/* test_object.c: the calls of cdacq/object.h on a small heap; examples/object.c reads real ones. */
#include "src/lookup/opened_session.h"
#include "tests/support/check_main.h"
#include "tests/support/exception_heap.h"
#include "tests/support/mock_support.h"

static struct mock *mock;
static struct cdacq_target *target;
static struct exception_heap heap;
static struct cdacq_session session;
static struct cdacq_error error;

static void setup(void)
{
    mock = mock_of_arch(0, 1);
    target = mock_publish_and_open(mock);
    exception_heap_init(&heap);
    lend_session(&session, target, &heap.reader, &heap.cache);
}

static void teardown(void)
{
    give_session_back(&session, &heap.cache, &heap.reader);
    exception_heap_deinit(&heap);
    cdacq_target_close(target);
    mock_destroy(mock);
    target = NULL;
    mock = NULL;
}

static int append(const char *bytes, size_t length, void *context)
{
    strncat(context, bytes, length);
    return 0;
}

struct seen_fields {
    unsigned count;
    struct cdacq_field last;
    struct cdacq_value value;      /* of the last */
    struct cdacq_session *session; /* that the visit asks something of; NULL: of none */
};

static int see_field(const struct cdacq_field *field, void *context)
{
    struct seen_fields *seen = context;
    struct cdacq_object object = {.size = sizeof object};
    seen->count++;
    seen->last = *field;
    seen->value = *field->value;
    if (seen->session)
        (void)cdacq_session_get_object(seen->session, heap.list, &object, &error);
    return 0;
}

static int stop_at_field(const struct cdacq_field *field, void *context)
{
    (void)field;
    ++*(unsigned *)context;
    return 1;
}

struct seen_items {
    unsigned count, problems;
    uint64_t bits[4];
};

static int see_item(const struct cdacq_item *item, void *context)
{
    struct seen_items *seen = context;
    ck_assert_uint_eq(item->index, seen->count);
    seen->bits[seen->count++ % ARRAY_SIZE(seen->bits)] = item->value->bits;
    seen->problems += item->problem != NULL;
    return 0;
}

static int stop(const char *bytes, size_t length, void *context)
{
    (void)bytes, (void)length;
    ++*(unsigned *)context;
    return 1;
}

START_TEST(fields_lead_from_object_to_object)
{
    struct cdacq_object object = {.size = sizeof object};
    struct cdacq_value value = {.size = sizeof value};
    char text[64] = "";
    ck_assert_int_eq(cdacq_session_get_object(&session, heap.argument, &object, &error), CDACQ_OK);
    ck_assert_str_eq(object.type, "System.ArgumentException");
    ck_assert(!object.is_string && !object.is_array);
    ck_assert_int_eq(cdacq_session_get_field(&session, heap.argument, "_paramName", &value, &error), CDACQ_OK);
    ck_assert_int_eq(value.kind, CDACQ_VALUE_REFERENCE);
    ck_assert_uint_eq(value.width, 8);
    ck_assert_int_eq(cdacq_session_get_object(&session, value.bits, &object, &error), CDACQ_OK);
    ck_assert(object.is_string && !object.is_array);
    ck_assert_int_eq(cdacq_session_write_string(&session, value.bits, UINT32_MAX, append, text, &error), CDACQ_OK);
    ck_assert_uint_eq(strlen(text), object.length);
    text[0] = '\0';
    ck_assert_int_eq(cdacq_session_write_string(&session, value.bits, 0, append, text, &error), CDACQ_OK);
    ck_assert_str_eq(text, "");
    ck_assert_int_eq(cdacq_session_get_field(&session, heap.argument, "_nothing", &value, &error), CDACQ_NOT_MANAGED);
}
END_TEST

START_TEST(types_are_kept_once)
{
    struct cdacq_object first = {.size = sizeof first}, second = {.size = sizeof second};
    ck_assert_int_eq(cdacq_session_get_object(&session, heap.argument, &first, &error), CDACQ_OK);
    ck_assert_int_eq(cdacq_session_get_object(&session, heap.argument, &second, &error), CDACQ_OK);
    ck_assert_ptr_eq(first.type, second.type);
}
END_TEST

START_TEST(arrays_have_elements)
{
    struct cdacq_object object = {.size = sizeof object};
    struct cdacq_value value = {.size = sizeof value};
    ck_assert_int_eq(cdacq_session_get_object(&session, heap.list, &object, &error), CDACQ_OK);
    ck_assert(object.is_array);
    ck_assert_uint_eq(object.length, 2);
    ck_assert_uint_eq(object.rank, 1);
    ck_assert_uint_eq(object.element_size, 8);
    ck_assert_int_eq(cdacq_session_get_element(&session, heap.list, 2, &value, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(cdacq_session_get_element(&session, heap.argument, 0, &value, &error), CDACQ_ERR_ARGUMENT);
}
END_TEST

START_TEST(all_fields_are_visited)
{
    struct seen_fields seen = {.session = &session};
    unsigned count = 0;
    ck_assert_int_eq(cdacq_session_visit_fields(&session, heap.file, see_field, &seen, &error), CDACQ_OK);
    ck_assert_uint_eq(seen.count, 3);
    ck_assert_str_eq(seen.last.name, "_requestingAssemblyChain");
    ck_assert_str_eq(seen.last.type, "System.Object");
    ck_assert_str_eq(seen.last.owner, "System.IO.FileNotFoundException");
    ck_assert_ptr_null(seen.last.problem);
    ck_assert_uint_eq(seen.last.offset, 136);
    ck_assert_uint_eq(seen.value.address, heap.file + 144);
    ck_assert_int_eq(seen.value.kind, CDACQ_VALUE_REFERENCE);
    ck_assert_int_eq(cdacq_session_visit_fields(&session, heap.file, stop_at_field, &count, &error), CDACQ_STOPPED);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(cdacq_session_visit_fields(&session, heap.file, NULL, NULL, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(cdacq_session_visit_fields(&session, 0, see_field, &seen, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(cdacq_session_visit_struct_fields(&session, 0, 8, see_field, &seen, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_lt(cdacq_session_visit_struct_fields(&session, 8, 8, see_field, &seen, &error), 0);
}
END_TEST

/* One field that does not fit its object is a problem of its own. */
START_TEST(a_field_beyond_its_object)
{
    struct seen_fields seen = {0};
    exception_heap_set(&heap, heap.file_table, F_MethodTable_BaseSize, 152);
    ck_assert_int_eq(cdacq_session_visit_fields(&session, heap.file, see_field, &seen, &error), CDACQ_OK);
    ck_assert_uint_eq(seen.count, 3);
    ck_assert_ptr_nonnull(seen.last.problem);
    ck_assert_uint_eq(seen.value.bits, 0);
}
END_TEST

START_TEST(base_types_in_a_cycle)
{
    struct seen_fields seen = {0};
    exception_heap_set(&heap, heap.exception_table, F_MethodTable_ParentMethodTable, heap.file_table);
    ck_assert_int_eq(cdacq_session_visit_fields(&session, heap.file, see_field, &seen, &error), CDACQ_ERR_CORRUPT);
    ck_assert_uint_eq(seen.count, 0);
    ck_assert_ptr_nonnull(strstr(error.message, "the base types of a type"));
}
END_TEST

START_TEST(items_of_arrays_and_lists)
{
    struct cdacq_contents contents = {.size = sizeof contents};
    struct seen_items seen = {0};
    exception_heap_set(&heap, heap.references_table, F_MethodTable_PerInstInfo, heap.exception_table);
    ck_assert_int_eq(cdacq_session_visit_items(&session, heap.list, 9, &contents, see_item, &seen, &error), CDACQ_OK);
    ck_assert(contents.is_array && !contents.has_keys);
    ck_assert_uint_eq(contents.count, 2);
    ck_assert_uint_eq(contents.rank, 1);
    ck_assert_uint_eq(contents.lengths[0], 2);
    ck_assert_uint_eq(seen.count, 2);
    ck_assert_uint_eq(seen.bits[0], heap.argument);
    ck_assert_uint_eq(seen.bits[1], heap.bad);
    ck_assert_int_eq(cdacq_session_visit_items(&session, heap.list, 0, &contents, NULL, NULL, &error), CDACQ_OK);
    ck_assert_int_eq(cdacq_session_visit_items(&session, heap.argument, 9, &contents, see_item, &seen, &error),
                     CDACQ_NOT_MANAGED);
}
END_TEST

/* Elements that memory lacks are problems of their own, and no more of them are asked for than are wanted. */
START_TEST(a_huge_array)
{
    struct cdacq_contents contents = {.size = sizeof contents};
    struct seen_items seen = {0};
    exception_heap_set(&heap, heap.list, F_Array_m_NumComponents, UINT32_MAX);
    ck_assert_int_eq(cdacq_session_visit_items(&session, heap.list, 5000, &contents, see_item, &seen, &error),
                     CDACQ_OK);
    ck_assert_uint_eq(contents.count, UINT32_MAX);
    ck_assert_uint_eq(seen.count, 5000);
    ck_assert_uint_gt(seen.problems, 0);
}
END_TEST

START_TEST(texts_of_values)
{
    struct cdacq_value value = {.size = sizeof value, .address = 8, .width = 8};
    char text[64] = "";
    static const struct {
        enum cdacq_value_kind kind;
        uint32_t width;
        uint64_t bits;
        const char *text;
    } rows[] = {
        {CDACQ_VALUE_BOOLEAN, 1, 2, "true"},
        {CDACQ_VALUE_CHARACTER, 2, 0xe9, "\xc3\xa9"},
        {CDACQ_VALUE_CHARACTER, 2, 0xd800, "\xef\xbf\xbd"},
        {CDACQ_VALUE_SIGNED, 8, UINT64_C(1) << 63, "-9223372036854775808"},
        {CDACQ_VALUE_UNSIGNED, 8, UINT64_MAX, "18446744073709551615"},
        {CDACQ_VALUE_REAL, 4, 0x3dcccccd, "0.1"},
        {CDACQ_VALUE_REAL, 8, UINT64_C(0xbfd5555555555555), "-0.3333333333333333"},
        {CDACQ_VALUE_REAL, 8, UINT64_C(0x7ff8000000000000), "NaN"},
        {CDACQ_VALUE_REAL, 4, 0xff800000, "-Infinity"},
        {CDACQ_VALUE_POINTER, 8, 0x1234, "0x1234"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        value.kind = rows[i].kind;
        value.width = rows[i].width;
        value.bits = rows[i].bits;
        text[0] = '\0';
        ck_assert_int_eq(cdacq_session_write_value(&session, &value, append, text, &error), CDACQ_OK);
        ck_assert_str_eq(text, rows[i].text);
    }
    value.kind = CDACQ_VALUE_REFERENCE;
    ck_assert_int_eq(cdacq_session_write_value(&session, &value, append, text, &error), CDACQ_NOT_MANAGED);
    value.kind = CDACQ_VALUE_STRUCT;
    ck_assert_int_eq(cdacq_session_write_value(&session, &value, append, text, &error), CDACQ_NOT_MANAGED);
    ck_assert_int_eq(cdacq_session_write_value(&session, &value, NULL, NULL, &error), CDACQ_ERR_ARGUMENT);
}
END_TEST

START_TEST(arguments)
{
    struct cdacq_object object = {.size = sizeof object};
    struct cdacq_value value = {.size = sizeof value};
    unsigned count = 0;
    ck_assert_int_eq(cdacq_session_get_object(NULL, 8, &object, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(cdacq_session_get_object(&session, 0, &object, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(cdacq_session_get_object(&session, 8, NULL, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_lt(cdacq_session_get_object(&session, UINT64_MAX - 7, &object, &error), 0);
    ck_assert_int_eq(cdacq_session_get_field(&session, heap.argument, NULL, &value, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(cdacq_session_write_string(&session, heap.argument, 1, NULL, NULL, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_lt(cdacq_session_write_string(&session, heap.argument, 1, stop, &count, &error), 0);
    ck_assert_uint_eq(count, 0); /* it is no string */
    ck_assert_int_eq(cdacq_session_get_field(&session, heap.argument, "_paramName", &value, &error), CDACQ_OK);
    ck_assert_int_eq(cdacq_session_write_string(&session, value.bits, 9, stop, &count, &error), CDACQ_STOPPED);
    ck_assert_uint_eq(count, 1);
}
END_TEST

static int take_any_field(const struct cdacq_field *field, void *context)
{
    (void)context;
    ck_assert(!field->problem || !field->value->bits);
    return 0;
}

static int take_any_item(const struct cdacq_item *item, void *context)
{
    char text[256] = "";
    (void)context;
    if (!item->problem)
        (void)cdacq_session_write_value(&session, item->value, append, text, &error);
    return 0;
}

static void ask_all(uint64_t address)
{
    struct cdacq_value boxed = {.size = sizeof boxed};
    struct cdacq_delegate delegate = {.size = sizeof delegate};
    (void)cdacq_session_check_object(&session, address, &error);
    (void)cdacq_session_visit_fields(&session, address, take_any_field, NULL, &error);
    (void)cdacq_session_visit_items(&session, address, 4, NULL, take_any_item, NULL, &error);
    (void)cdacq_session_get_delegate(&session, address, &delegate, &error);
    if (cdacq_session_get_boxed(&session, address, &boxed, &error) == CDACQ_OK)
        (void)cdacq_session_visit_struct_fields(&session, boxed.method_table, boxed.address, take_any_field, NULL,
                                                &error);
}

/* A corrupt heap has any bytes: every call ends with an answer or a status. */
START_TEST(any_bytes)
{
    for (uint64_t at = heap.objects_begin; at < heap.end; at += 8) {
        struct cdacq_object object = {.size = sizeof object};
        struct cdacq_value value = {.size = sizeof value};
        uint64_t address = HEAP_BASE + (at - HEAP_BASE) / 8 * 8;
        (void)cdacq_session_get_object(&session, address, &object, &error);
        (void)cdacq_session_get_field(&session, address, "_paramName", &value, &error);
        (void)cdacq_session_get_element(&session, address, 1, &value, &error);
        ask_all(address);
        exception_heap_put(&heap, address, UINT64_C(0x9e3779b97f4a7c15) * (at + 1), 8);
        (void)cdacq_session_get_object(&session, heap.argument, &object, &error);
        (void)cdacq_session_get_element(&session, heap.list, 1, &value, &error);
        ask_all(heap.argument);
        ask_all(heap.generic_list);
        ask_all(heap.list);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("object");
    TCase *tc = tcase_create("object");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, fields_lead_from_object_to_object);
    tcase_add_test(tc, types_are_kept_once);
    tcase_add_test(tc, arrays_have_elements);
    tcase_add_test(tc, all_fields_are_visited);
    tcase_add_test(tc, a_field_beyond_its_object);
    tcase_add_test(tc, base_types_in_a_cycle);
    tcase_add_test(tc, items_of_arrays_and_lists);
    tcase_add_test(tc, a_huge_array);
    tcase_add_test(tc, texts_of_values);
    tcase_add_test(tc, arguments);
    tcase_add_test(tc, any_bytes);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
