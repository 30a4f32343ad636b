/*
 * test_exception.c: the calls of cdacq/exception.h where there is no exception; tests/dotnet/exceptions.py has real
 * ones.
 */
#include "src/lookup/opened_session.h"
#include "src/lookup/opened_target.h"
#include "tests/support/check_main.h"
#include "tests/support/exception_heap.h"
#include "tests/support/mock_support.h"

static struct mock *mock;
static struct cdacq_target *target;
static struct cdacq_session *session;

static void setup(void)
{
    mock = mock_of_arch(0, 1);
    target = mock_publish_and_open(mock);
    session = mock_session(target);
}

static void teardown(void)
{
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
    session = NULL;
    target = NULL;
    mock = NULL;
}

static int no_text(const char *bytes, size_t length, void *context)
{
    (void)bytes;
    (void)length;
    (void)context;
    ck_abort_msg("nothing is written");
    return 0;
}

static int no_frame(const struct cdacq_exception_frame *frame, void *context)
{
    (void)frame;
    (void)context;
    ck_abort_msg("there is no frame");
    return 0;
}

START_TEST(no_exception)
{
    static const uint64_t addresses[] = {0, 1, 0x123456789, UINT64_MAX};
    for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
        struct cdacq_exception exception = {.size = sizeof exception, .hresult = 77};
        struct cdacq_error error;
        unsigned flaws = 77;
        ck_assert_int_lt(cdacq_session_get_exception(session, addresses[i], &exception, &error), 0);
        ck_assert_int_eq(exception.hresult, 77);
        ck_assert_int_lt(cdacq_session_visit_exception_frames(session, addresses[i], no_frame, NULL, &error), 0);
        ck_assert_int_lt(cdacq_session_write_exception(session, addresses[i], no_text, NULL, &flaws, &error), 0);
        ck_assert_uint_eq(flaws, 77);
        ck_assert_uint_ne(error.message[0], '\0');
    }
}
END_TEST

START_TEST(arguments)
{
    struct cdacq_exception exception = {.size = 0};
    struct cdacq_error error;
    unsigned flaws;
    ck_assert_int_eq(cdacq_session_get_exception(session, 1, NULL, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(cdacq_session_get_exception(session, 1, &exception, &error), CDACQ_ERR_ARGUMENT);
    exception.size = sizeof exception;
    ck_assert_int_eq(cdacq_session_get_exception(NULL, 1, &exception, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(cdacq_session_get_exception(session, 0, &exception, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_str_eq(error.message, "no object");
    ck_assert_int_eq(cdacq_session_visit_exception_frames(session, 1, NULL, NULL, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(cdacq_session_write_exception(session, 1, NULL, NULL, &flaws, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(cdacq_session_write_exception(session, 1, no_text, NULL, NULL, &error), CDACQ_ERR_ARGUMENT);
    struct cdacq_end end = {.size = 0};
    ck_assert_int_eq(cdacq_session_get_end(session, &end, &error), CDACQ_ERR_ARGUMENT);
    end.size = sizeof end;
    ck_assert_int_eq(cdacq_session_get_end(NULL, &end, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_lt(cdacq_session_get_end(session, &end, &error), 0); /* caller's memory has no threads */
    ck_assert_int_eq(cdacq_session_write_last_words(session, NULL, NULL, &flaws, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(cdacq_session_write_last_words(session, no_text, NULL, NULL, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_lt(cdacq_session_write_last_words(session, no_text, NULL, &flaws, &error), 0);
}
END_TEST

static int stop_at_text(const char *bytes, size_t length, void *context)
{
    (void)bytes;
    (void)length;
    ++*(unsigned *)context;
    return 1;
}

static int stop_at_frame(const struct cdacq_exception_frame *frame, void *context)
{
    (void)frame;
    ++*(unsigned *)context;
    return 1;
}

START_TEST(a_visitor_can_stop)
{
    static struct exception_heap heap;
    struct cdacq_error error;
    unsigned flaws, count = 0;
    exception_heap_init(&heap);
    struct cdacq_session own;
    lend_session(&own, target, &heap.reader, &heap.cache);
    ck_assert_int_eq(cdacq_session_visit_exception_frames(&own, heap.argument, stop_at_frame, &count, &error),
                     CDACQ_STOPPED);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(cdacq_session_write_exception(&own, heap.argument, stop_at_text, &count, &flaws, &error),
                     CDACQ_STOPPED);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_ne(flaws & CDACQ_EXCEPTION_CUT, 0);
    give_session_back(&own, &heap.cache, &heap.reader);
    exception_heap_deinit(&heap);
}
END_TEST

static int ignore_text(const char *bytes, size_t length, void *context)
{
    (void)bytes;
    (void)length;
    (void)context;
    return 0;
}

/* Ends a session that was not created by the library, and its heap. */
static void end_session(struct cdacq_session *own, struct exception_heap *heap)
{
    give_session_back(own, &heap->cache, &heap->reader);
    exception_heap_deinit(heap);
}

/* A satellite assembly of the core library: the process may have other texts than the English ones. */
START_TEST(texts_of_another_language)
{
    static char satellite[] = "/usr/share/dotnet/de/System.Private.CoreLib.resources.dll";
    static struct exception_heap heap;
    struct cdacq_error error;
    unsigned flaws[2];
    exception_heap_init(&heap);
    struct cdacq_session own;
    lend_session(&own, target, &heap.reader, &heap.cache);
    ck_assert_int_eq(cdacq_session_write_exception(&own, heap.argument, ignore_text, NULL, &flaws[0], &error),
                     CDACQ_OK);
    ck_assert_uint_ge(target->memory->mapping_count, 1);
    struct mapping *mapping = &target->memory->mappings[0], saved = *mapping;
    mapping->file = NULL;
    mapping->path = satellite;
    ck_assert_int_eq(cdacq_session_write_exception(&own, heap.argument, ignore_text, NULL, &flaws[1], &error),
                     CDACQ_OK);
    *mapping = saved;
    ck_assert_uint_eq(flaws[0] & CDACQ_EXCEPTION_INFERRED, 0);
    ck_assert_uint_eq(flaws[1] & CDACQ_EXCEPTION_INFERRED, CDACQ_EXCEPTION_INFERRED);
    end_session(&own, &heap);
}
END_TEST

static const struct target_ops *heap_ops;

static bool unconfirmed_memory_at(struct target *of, uint64_t address, struct span *ret)
{
    bool found = heap_ops->memory_at(of, address, ret);
    ret->unverified = found;
    return found;
}

/* Its type has a name although nothing confirms the file that the name is from. */
START_TEST(a_type_of_an_unconfirmed_file)
{
    static struct exception_heap heap;
    struct cdacq_exception exception = {.size = sizeof exception};
    struct cdacq_error error;
    exception_heap_init(&heap);
    heap_ops = heap.target->ops;
    struct target_ops ops = *heap_ops;
    ops.memory_at = unconfirmed_memory_at;
    heap.target->ops = &ops;
    struct cdacq_session own;
    lend_session(&own, target, &heap.reader, &heap.cache);
    ck_assert_int_eq(cdacq_session_get_exception(&own, heap.bad, &exception, &error), CDACQ_OK);
    ck_assert_ptr_nonnull(exception.type);
    ck_assert_str_eq(exception.type, "N.Bad");
    heap.target->ops = heap_ops;
    end_session(&own, &heap);
}
END_TEST

struct nested_list {
    uint64_t infos[8], objects[8];
    unsigned count, max; /* the visitor stops after `max` */
};

static int add_nested(const struct cdacq_nested_exception *nested, void *context)
{
    struct nested_list *list = context;
    ck_assert_uint_eq(nested->size, sizeof *nested);
    if (list->count < ARRAY_SIZE(list->infos)) {
        list->infos[list->count] = nested->info;
        list->objects[list->count] = nested->object;
    }
    return ++list->count == list->max;
}

static enum cdacq_status visit_nested(struct exception_heap *heap, unsigned max, struct nested_list *ret)
{
    struct cdacq_error error;
    struct cdacq_session own;
    lend_session(&own, target, &heap->reader, &heap->cache);
    *ret = (struct nested_list){.max = max};
    return cdacq_session_visit_nested_exceptions(&own, heap->thread, add_nested, ret, &error);
}

START_TEST(nested_exceptions)
{
    static struct exception_heap heap;
    struct nested_list list;
    exception_heap_init(&heap);
    heap.layout.usable = UINT32_MAX;
    ck_assert_int_eq(visit_nested(&heap, 0, &list), CDACQ_OK);
    ck_assert_uint_eq(list.count, 3);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(list.infos[i], heap.infos[i]);
    ck_assert_uint_eq(list.objects[0], heap.aggregate);
    ck_assert_uint_eq(list.objects[1], 0);
    ck_assert_uint_eq(list.objects[2], heap.bad);
    ck_assert_int_eq(visit_nested(&heap, 2, &list), CDACQ_STOPPED);
    ck_assert_uint_eq(list.count, 2);
    heap.layout.schema = 2; /* since .NET 11, the record has the object itself */
    exception_heap_set(&heap, heap.infos[0], F_ExceptionInfo_ThrownObject, heap.argument);
    ck_assert_int_eq(visit_nested(&heap, 1, &list), CDACQ_STOPPED);
    ck_assert_uint_eq(list.objects[0], heap.argument);
    exception_heap_set(&heap, heap.thread, F_Thread_ExceptionTracker, 0);
    ck_assert_int_eq(visit_nested(&heap, 0, &list), CDACQ_OK);
    ck_assert_uint_eq(list.count, 0);
    heap.layout.usable = ~(1u << LAYOUT_Exception);
    ck_assert_int_eq(visit_nested(&heap, 0, &list), CDACQ_ERR_CONTRACT);
    exception_heap_deinit(&heap);
}
END_TEST

/* What can be read is visited, a bounded number of times. */
START_TEST(damaged_nested_exceptions)
{
    static struct exception_heap heap;
    struct nested_list list;
    exception_heap_init(&heap);
    heap.layout.usable = UINT32_MAX;
    for (unsigned i = 0; i < 3; i++) { /* the last leads back to each */
        exception_heap_set(&heap, heap.infos[2], F_ExceptionInfo_PreviousNestedInfo, heap.infos[i]);
        ck_assert_int_eq(visit_nested(&heap, 0, &list), CDACQ_ERR_CORRUPT);
        ck_assert_uint_ge(list.count, 3);
        ck_assert_uint_le(list.count, 8);
    }
    exception_heap_set(&heap, heap.infos[2], F_ExceptionInfo_PreviousNestedInfo, 0x10);
    ck_assert_int_eq(visit_nested(&heap, 0, &list), CDACQ_ERR_MEMORY);
    ck_assert_uint_eq(list.count, 3);
    exception_heap_set(&heap, heap.infos[1], F_ExceptionInfo_ThrownObject, 0x10);
    ck_assert_int_eq(visit_nested(&heap, 0, &list), CDACQ_ERR_MEMORY);
    ck_assert_uint_eq(list.count, 1);
    exception_heap_set(&heap, heap.thread, F_Thread_ExceptionTracker, UINT64_MAX - 7);
    ck_assert_int_eq(visit_nested(&heap, 0, &list), CDACQ_ERR_MEMORY);
    ck_assert_uint_eq(list.count, 0);
    heap.thread = 0;
    ck_assert_int_eq(visit_nested(&heap, 0, &list), CDACQ_ERR_ARGUMENT);
    exception_heap_deinit(&heap);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("exception");
    TCase *tc = tcase_create("exception");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, no_exception);
    tcase_add_test(tc, arguments);
    tcase_add_test(tc, a_visitor_can_stop);
    tcase_add_test(tc, texts_of_another_language);
    tcase_add_test(tc, a_type_of_an_unconfirmed_file);
    tcase_add_test(tc, nested_exceptions);
    tcase_add_test(tc, damaged_nested_exceptions);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
