/*
 * test_method_desc.c: which methods the runtime's stack traces leave out. The thunks of async methods are marked in
 * data that follows a MethodDesc, behind parts that not every one has.
 */
#include "contracts/type_system/method_desc.h"
#include "tests/support/check_main.h"
#include "tests/support/exception_heap.h"

enum { NON_VTABLE_SLOT = 0x08, METHOD_IMPL = 0x10, NATIVE_CODE_SLOT = 0x20, ASYNC_DATA = 0x40 };
enum { CALL = 1, TASK_RETURNING = 2, VARIANT = 4, THUNK = 0x10, DROPS_RESULT = 0x20 }; /* AsyncMethodFlags */

static struct exception_heap heap;
static uint64_t desc;

static void setup(void)
{
    exception_heap_init(&heap);
    struct layout *layout = &heap.layout;
    desc = HEAP_BASE + HEAP_SIZE - 0x200;
    layout->sizes[T_MethodDesc] = 16;
    layout->sizes[T_InstantiatedMethodDesc] = 40;
    layout->sizes[T_NonVtableSlot] = layout->sizes[T_NativeCodeSlot] = 8;
    layout->sizes[T_MethodImpl] = 16;
    layout->fields[F_AsyncMethodData_Flags] = (struct layout_slot){.width = 4, .present = true};
}

static void teardown(void)
{
    exception_heap_deinit(&heap);
}

static bool is_hidden(enum method_classification classification, unsigned flags)
{
    const struct method_desc method = {.address = desc, .classification = (uint8_t)classification};
    exception_heap_set(&heap, desc, F_MethodDesc_Flags, flags | (unsigned)classification);
    bool hidden = method_desc_is_hidden(&heap.reader, &method);
    ck_assert(!reader_failed(&heap.reader));
    return hidden;
}

static const struct {
    enum method_classification classification;
    unsigned flags, offset;
} thunks[] = {
    {METHOD_IL, ASYNC_DATA, 16},
    {METHOD_IL, ASYNC_DATA | NON_VTABLE_SLOT, 24},
    {METHOD_IL, ASYNC_DATA | METHOD_IMPL, 32},
    {METHOD_IL, ASYNC_DATA | NATIVE_CODE_SLOT | 0x80, 24},
    {METHOD_IL, ASYNC_DATA | NON_VTABLE_SLOT | METHOD_IMPL | NATIVE_CODE_SLOT, 48},
    {METHOD_INSTANTIATED, ASYNC_DATA | NON_VTABLE_SLOT, 48},
};

START_TEST(thunks_are_hidden)
{
    ck_assert(!is_hidden(thunks[_i].classification, thunks[_i].flags));
    exception_heap_put(&heap, desc + thunks[_i].offset, TASK_RETURNING | THUNK, 4);
    ck_assert(is_hidden(thunks[_i].classification, thunks[_i].flags));
    ck_assert(!is_hidden(thunks[_i].classification, thunks[_i].flags & ~(unsigned)ASYNC_DATA));
    exception_heap_put(&heap, desc + thunks[_i].offset, CALL | VARIANT | THUNK | DROPS_RESULT, 4);
    ck_assert(is_hidden(thunks[_i].classification, thunks[_i].flags));
    exception_heap_put(&heap, desc + thunks[_i].offset, CALL | VARIANT, 4); /* an async method itself */
    ck_assert(!is_hidden(thunks[_i].classification, thunks[_i].flags));
    /* A method that only returns a Task, as its async callers have it compiled: stack traces of 11.0.0 show it. */
    exception_heap_put(&heap, desc + thunks[_i].offset, CALL | VARIANT | THUNK, 4);
    ck_assert(!is_hidden(thunks[_i].classification, thunks[_i].flags));
}
END_TEST

START_TEST(runtimes_that_do_not_describe_them)
{
    exception_heap_put(&heap, desc + 24, THUNK, 4);
    heap.layout.sizes[T_NativeCodeSlot] = 0;
    ck_assert(!is_hidden(METHOD_IL, ASYNC_DATA | NATIVE_CODE_SLOT));
    ck_assert(!is_hidden(METHOD_IL, ASYNC_DATA | NON_VTABLE_SLOT));
    heap.layout.fields[F_AsyncMethodData_Flags].present = false;
    ck_assert(!is_hidden(METHOD_IL, ASYNC_DATA | NON_VTABLE_SLOT));
}
END_TEST

START_TEST(other_kinds_of_methods)
{
    memset(heap.bytes + (desc - HEAP_BASE), 0xff, 0x100);
    ck_assert(!is_hidden(METHOD_FCALL, ASYNC_DATA));
    ck_assert(!is_hidden(METHOD_PINVOKE, ASYNC_DATA));
    ck_assert(is_hidden(METHOD_DYNAMIC, ASYNC_DATA));
    exception_heap_set(&heap, desc, F_StoredSigMethodDesc_ExtendedFlags, 0x4000); /* a DynamicMethod */
    ck_assert(!is_hidden(METHOD_DYNAMIC, ASYNC_DATA));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("method_desc");
    TCase *tc = tcase_create("method_desc");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, thunks_are_hidden, 0, ARRAY_SIZE(thunks));
    tcase_add_test(tc, runtimes_that_do_not_describe_them);
    tcase_add_test(tc, other_kinds_of_methods);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
