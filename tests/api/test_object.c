/* test_object.c: the calls of cdacq/object.h on a small heap; examples/object.c reads real ones. */
#include "src/api/handles.h"
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
    session = (struct cdacq_session){.target = target, .reader = heap.reader, .modules = heap.cache};
}

static void teardown(void)
{
    heap.cache = session.modules; /* which has opened modules since */
    exception_heap_deinit(&heap);
    arena_deinit(&session.arena);
    free(session.texts.slots);
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
        exception_heap_put(&heap, address, UINT64_C(0x9e3779b97f4a7c15) * (at + 1), 8);
        (void)cdacq_session_get_object(&session, heap.argument, &object, &error);
        (void)cdacq_session_get_element(&session, heap.list, 1, &value, &error);
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
    tcase_add_test(tc, arguments);
    tcase_add_test(tc, any_bytes);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
