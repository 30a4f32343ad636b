#include "tests/support/check_main.h"
#include "tests/support/exception_heap.h"
#include "contracts/objects/field.h"
#include "contracts/objects/object.h"
#include "contracts/objects/reference_list.h"
#include "contracts/objects/string.h"
#include "contracts/objects/sync_block.h"
#include "util/escape.h"
#include "util/text.h"

static struct exception_heap heap;
static struct text text;

static void setup(void)
{
    exception_heap_init(&heap);
}

static void teardown(void)
{
    text_deinit(&text);
    text = (struct text){0};
    exception_heap_deinit(&heap);
}

static bool append(void *context, const char *bytes, size_t length)
{
    text_append(context, bytes, length);
    return !text.broken;
}

static unsigned write_text(uint64_t exception)
{
    const struct exception_output output = {
        .cache = &heap.cache, .runtime_types = true, .write = append, .context = &text};
    text_clear(&text);
    return exception_text_write(&output, exception);
}

START_TEST(texts)
{
    ck_assert_uint_eq(write_text(heap.aggregate), EXCEPTION_TEXT_OVERRIDDEN);
    ck_assert_str_eq(text.data, exception_heap_text);
}
END_TEST

START_TEST(keys_of_resources)
{
    exception_heap_put(&heap, heap.keys_answer, 1, 1);
    ck_assert_uint_eq(write_text(heap.aggregate), EXCEPTION_TEXT_OVERRIDDEN);
    ck_assert_str_eq(text.data, exception_heap_text_of_keys);
    exception_heap_put(&heap, heap.keys_answer, 0, 1); /* the process has not asked for the switch yet */
    exception_heap_put(&heap, heap.switch_value, heap.on, 8);
    ck_assert_uint_eq(write_text(heap.aggregate), EXCEPTION_TEXT_OVERRIDDEN);
    ck_assert_str_eq(text.data, exception_heap_text_of_keys);
}
END_TEST

START_TEST(unknown_resources)
{
    exception_heap_put(&heap, heap.properties, 0, 8);
    ck_assert_uint_eq(write_text(heap.aggregate), EXCEPTION_TEXT_OVERRIDDEN | EXCEPTION_TEXT_INFERRED);
    ck_assert_str_eq(text.data, exception_heap_text);
    ck_assert_uint_eq(write_text(heap.bad), EXCEPTION_TEXT_OVERRIDDEN); /* no text of a resource */
}
END_TEST

/* Types that have only the names of the framework's. */
START_TEST(namesakes)
{
    static const char core[] = "System.Private.CoreLib";
    uint8_t *name = memmem(heap.bytes, sizeof heap.bytes, core, sizeof core);
    ck_assert_ptr_nonnull(name);
    *name = 'P';
    write_text(heap.aggregate);
    ck_assert_ptr_nonnull(strstr(text.data, "System.AggregateException: several\n ---> System.ArgumentException: m\n"));
}
END_TEST

static enum exception_line put_line(void *context, const struct exception_frame *frame, const char **ret_file,
                                    uint32_t *ret_line)
{
    (void)context;
    *ret_file = "/a/b.cs";
    *ret_line = (uint32_t)frame->ip;
    return frame->ip == 0x1001 ? EXCEPTION_LINE_KNOWN : EXCEPTION_LINE_NONE;
}

START_TEST(lines)
{
    const struct exception_output output = {
        .cache = &heap.cache, .runtime_types = true, .write = append, .line = put_line, .context = &text};
    exception_text_write(&output, heap.argument);
    ck_assert_ptr_nonnull(strstr(text.data, "\n   at N.Outer.Run() in /a/b.cs:line 4097\n   at "));
}
END_TEST

static unsigned asked; /* for lines */

/* The line of each frame is known, but the runtime fails at the first one that is looked for. */
static enum exception_line fail_first(void *context, const struct exception_frame *frame, const char **ret_file,
                                      uint32_t *ret_line)
{
    (void)context;
    *ret_file = "/a/b.cs";
    *ret_line = (uint32_t)frame->ip;
    return asked++ ? EXCEPTION_LINE_KNOWN : EXCEPTION_LINE_FAILED;
}

START_TEST(no_line_after_a_failure)
{
    const struct exception_output output = {
        .cache = &heap.cache, .runtime_types = true, .write = append, .line = fail_first, .context = &text};
    asked = 0;
    exception_text_write(&output, heap.argument);
    ck_assert_uint_eq(asked, 1);
    ck_assert_ptr_nonnull(strstr(text.data, "\n   at N.Outer.Run()\n   at "));
    ck_assert_ptr_null(strstr(text.data, ":line "));
    text_clear(&text);
    exception_text_write(&output, heap.argument); /* the next trace has lines again */
    ck_assert_uint_gt(asked, 1);
    ck_assert_ptr_nonnull(strstr(text.data, "\n   at N.Outer.Run() in /a/b.cs:line 4097\n   at "));
}
END_TEST

/* The frame before the last one: of a method, with these flags. */
static void set_frame(enum exception_heap_method method, uint64_t flags)
{
    uint64_t element = heap.frames + 16 + heap.layout.sizes[T_StackTraceArrayHeader] +
                       3 * (uint64_t)heap.layout.sizes[T_StackTraceElement];
    exception_heap_set(&heap, element, F_StackTraceElement_MethodDesc, heap.method_descs + (method - 1u) * 8);
    exception_heap_set(&heap, element, F_StackTraceElement_Flags, flags);
}

/* .NET 11 takes a method for async that has no state machine; the releases before it do not. */
START_TEST(async_methods_without_state_machines)
{
    static const char end[] = "\n   at System.Environment.Await()\n--- End of stack trace from previous location ---\n",
                      no_end[] = "\n   at System.Environment.Await()\n   at N.Outer.Hidden()";
    set_frame(HEAP_METHOD_AWAIT, 3);
    write_text(heap.argument);
    ck_assert_ptr_nonnull(strstr(text.data, end));
    heap.layout.schema = 2;
    write_text(heap.argument);
    ck_assert_ptr_nonnull(strstr(text.data, no_end));
}
END_TEST

/* The address of a continuation is where it resumes: the one before it is in another line. */
START_TEST(continuations)
{
    static const struct {
        uint64_t flags;
        bool faulted;
    } rows[] = {{0, true}, {1, true}, {2, false}, {3, false}, {4, true}, {8, false}, {9, false}};
    struct exception exception;
    struct exception_frame frame;
    ck_assert(exception_read(&heap.reader, heap.argument, &exception));
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        set_frame(HEAP_METHOD_AWAIT, rows[i].flags);
        ck_assert(exception_frame_at(&heap.reader, &exception, 3, &frame));
        ck_assert_int_eq(frame.faulted, rows[i].faulted);
        ck_assert_uint_eq(frame.ip, 0x1003);
    }
}
END_TEST

/* Which assemblies asked for a file, since .NET 11. The type of another release has no such field. */
START_TEST(requesting_assemblies)
{
    static const char chain[] = "System.IO.FileNotFoundException: no file\nRequested by: B\n --> A\n ---> N.Bad: ",
                      no_chain[] = "System.IO.FileNotFoundException: no file\n ---> N.Bad: ";
    ck_assert_uint_eq(write_text(heap.file), EXCEPTION_TEXT_OVERRIDDEN);
    ck_assert_ptr_nonnull(strstr(text.data, no_chain));
    exception_heap_put(&heap, heap.file + 144, heap.chain, 8);
    ck_assert_uint_eq(write_text(heap.file), EXCEPTION_TEXT_OVERRIDDEN);
    ck_assert_ptr_nonnull(strstr(text.data, chain));
    char *name = memmem(heap.bytes, sizeof heap.bytes, "_requestingAssemblyChain", 24);
    ck_assert_ptr_nonnull(name);
    *name = '-';
    ck_assert_uint_eq(write_text(heap.file), EXCEPTION_TEXT_OVERRIDDEN);
    ck_assert_ptr_nonnull(strstr(text.data, no_chain));
}
END_TEST

/* .NET 11 writes the path of a directory, and does not mark the end of the inner exception. */
START_TEST(directories)
{
    static const char type[] = "System.IO.DirectoryNotFoundException";
    ck_assert_uint_eq(write_text(heap.directory), EXCEPTION_TEXT_OVERRIDDEN);
    ck_assert_str_eq(text.data + strlen(type), ": \n ---> N.Bad: stored \xc3\xbc");
    exception_heap_put(&heap, heap.directory + 128, heap.chain, 8);
    ck_assert_uint_eq(write_text(heap.directory), EXCEPTION_TEXT_OVERRIDDEN);
    ck_assert_str_eq(text.data + strlen(type), ": \nDirectory path: 'B\n --> A'\n ---> N.Bad: stored \xc3\xbc");
    char *name = memmem(heap.bytes, sizeof heap.bytes, "<DirectoryPath>", 15);
    ck_assert_ptr_nonnull(name);
    *name = '-';
    ck_assert_uint_eq(write_text(heap.directory), EXCEPTION_TEXT_OVERRIDDEN);
    ck_assert_str_eq(text.data + strlen(type),
                     "\n ---> N.Bad: stored \xc3\xbc\n   --- End of inner exception stack trace ---");
}
END_TEST

START_TEST(lists)
{
    struct object_array array = {.count = 77};
    ck_assert(reference_list_read(&heap.cache, heap.list, &array));
    ck_assert_uint_eq(array.count, 2);
    ck_assert(reference_list_read(&heap.cache, heap.generic_list, &array));
    ck_assert_uint_eq(array.count, 1);
    ck_assert_uint_eq(array.elements, heap.list + 16);
    ck_assert(!reference_list_read(&heap.cache, heap.bad, &array));
    ck_assert(!reader_failed(&heap.reader));
    exception_heap_put(&heap, heap.generic_list + 16, 3, 4);
    ck_assert(!reference_list_read(&heap.cache, heap.generic_list, &array));
    ck_assert_int_eq(reader_status(&heap.reader, NULL), CDACQ_ERR_CORRUPT);
    reader_begin(&heap.reader, FUEL_INDEX);
    exception_heap_put(&heap, heap.generic_list + 16, 0, 4);
    ck_assert(reference_list_read(&heap.cache, heap.generic_list, &array));
    ck_assert_uint_eq(array.count, 0);
    exception_heap_put(&heap, heap.generic_list + 8, 0, 8);
    ck_assert(!reference_list_read(&heap.cache, heap.generic_list, &array));
    ck_assert_uint_eq(array.elements, heap.list + 16);
}
END_TEST

START_TEST(the_type_alone)
{
    const struct exception_output output = {.cache = &heap.cache, .write = append, .context = &text};
    ck_assert_uint_eq(exception_text_type(&output, heap.bad), 0);
    ck_assert_str_eq(text.data, "N.Bad");
}
END_TEST

/* An exception within itself is written once. */
START_TEST(cycles)
{
    exception_heap_set(&heap, heap.bad, F_Exception__innerException, heap.argument);
    ck_assert_uint_eq(write_text(heap.argument), EXCEPTION_TEXT_OVERRIDDEN | EXCEPTION_TEXT_CUT);
    ck_assert_ptr_nonnull(strstr(text.data, " ---> N.Bad: stored \xc3\xbc\n ---> \n   --- End of inner"));
    exception_heap_set(&heap, heap.bad, F_Exception__innerException, heap.bad);
    ck_assert_uint_eq(write_text(heap.bad), EXCEPTION_TEXT_OVERRIDDEN | EXCEPTION_TEXT_CUT);
}
END_TEST

/* What cannot be read is left out, and the rest is written. */
START_TEST(missing_parts)
{
    exception_heap_set(&heap, heap.argument, F_Exception__message, 0x5000);
    exception_heap_set(&heap, heap.bad, F_Object_m_pMethTab, 0x5000);
    ck_assert_uint_eq(write_text(heap.argument) & EXCEPTION_TEXT_MISSING, EXCEPTION_TEXT_MISSING);
    ck_assert_ptr_nonnull(strstr(text.data, "System.ArgumentException"));
    ck_assert_ptr_nonnull(strstr(text.data, "   at N.Outer.Hidden()"));
    ck_assert_uint_eq(write_text(0), EXCEPTION_TEXT_MISSING);
    ck_assert_uint_eq(text.length, 0);
}
END_TEST

/* Lengths that no object can have, or that the memory does not hold. */
START_TEST(lying_lengths)
{
    uint64_t message = heap.bad + 136 + 8; /* the string that was allocated next */
    struct exception exception;
    ck_assert(exception_read(&heap.reader, heap.bad, &exception));
    message = exception.message;
    exception_heap_set(&heap, message, F_String_m_StringLength, 0x7fffffff);
    ck_assert_uint_ne(write_text(heap.bad) & EXCEPTION_TEXT_MISSING, 0);
    exception_heap_set(&heap, message, F_String_m_StringLength, STRING_LENGTH_MAX);
    ck_assert_uint_ne(write_text(heap.bad) & EXCEPTION_TEXT_MISSING, 0);
    exception_heap_set(&heap, heap.frames + 16, F_StackTraceArrayHeader_Size, 1000);
    reader_begin(&heap.reader, FUEL_INDEX);
    ck_assert(!exception_read(&heap.reader, heap.argument, &exception));
    exception_heap_set(&heap, heap.list, F_Array_m_NumComponents, UINT32_MAX);
    reader_begin(&heap.reader, FUEL_INDEX);
    ck_assert_uint_ne(write_text(heap.aggregate) & EXCEPTION_TEXT_MISSING, 0);
}
END_TEST

/* A list of null elements that claims to be as long as can be. Loop index 0: the target lacks most. 1: it has all. */
START_TEST(endless_lists)
{
    uint64_t list = align_up(heap.end, 16);
    heap.endless = _i;
    exception_heap_set(&heap, heap.bad, F_Object_m_pMethTab, heap.loader_table);
    exception_heap_put(&heap, heap.bad + 128, list, 8);
    exception_heap_set(&heap, list, F_Object_m_pMethTab, heap.references_table);
    exception_heap_set(&heap, list, F_Array_m_NumComponents, UINT32_MAX);
    ck_assert_uint_eq(write_text(heap.bad), _i ? EXCEPTION_TEXT_CUT : EXCEPTION_TEXT_MISSING);
    ck_assert_str_eq(text.data, "System.Reflection.ReflectionTypeLoadException: stored \xc3\xbc");
}
END_TEST

/* A list of more exceptions than a text may have is cut, and said to be. */
START_TEST(long_lists)
{
    exception_heap_set(&heap, heap.aggregate, F_Exception__innerException, 0);
    exception_heap_set(&heap, heap.list, F_Array_m_NumComponents, EXCEPTION_COUNT_MAX);
    heap.endless = true;
    ck_assert_uint_ne(write_text(heap.aggregate) & EXCEPTION_TEXT_CUT, 0);
}
END_TEST

/*
 * A text is work each time, as long as it is once it is escaped: a thread can handle thousands of exceptions that share
 * one long text.
 */
START_TEST(texts_are_work)
{
    enum { LENGTH = 60 * 1000, TEXT_STEPS = ESCAPED_SIZE(LENGTH) * WORK_USES_OF_A_TEXT / WORK_BYTES_OF_A_STEP };
    struct work *work = &heap.target->work;
    uint64_t string = align_up(heap.end, 16);
    heap.endless = true; /* its characters are zeros, all of which are escaped */
    exception_heap_set(&heap, string, F_Object_m_pMethTab, heap.string_table);
    exception_heap_set(&heap, string, F_String_m_StringLength, LENGTH);
    exception_heap_set(&heap, heap.bad, F_Exception__message, string);
    work_set(work, 1000 * 1000, 0, 0);
    ck_assert_uint_eq(write_text(heap.bad) & EXCEPTION_TEXT_CUT, 0);
    ck_assert_uint_gt(text.length, LENGTH);
    ck_assert_uint_ge(work->steps, TEXT_STEPS);
    work_set(work, work->steps + TEXT_STEPS / 2, 0, 0);
    ck_assert_uint_ne(write_text(heap.bad) & EXCEPTION_TEXT_CUT, 0);
    ck_assert_uint_lt(text.length, LENGTH);
}
END_TEST

START_TEST(objects)
{
    struct object_array array;
    struct object_field field;
    struct object_monitor monitor;
    uint64_t value;
    ck_assert_uint_eq(object_size(&heap.reader, heap.list), 24 + 2 * 8);
    ck_assert(object_array_read(&heap.reader, heap.list, &array));
    ck_assert_uint_eq(array.count, 2);
    ck_assert_uint_eq(array.rank, 1);
    ck_assert_uint_eq(array.elements, heap.list + 16);
    ck_assert(!object_array_read(&heap.reader, heap.bad, &array));
    exception_heap_set(&heap, heap.list, F_Object_m_pMethTab,
                       heap.references_table | 1); /* as the collector marks it */
    ck_assert(object_array_read(&heap.reader, heap.list, &array));
    ck_assert(object_reference(&heap.cache, heap.aggregate, "_innerExceptions", &value));
    ck_assert_uint_eq(value, heap.list);
    ck_assert(!object_reference(&heap.cache, heap.aggregate, "_paramName", &value));
    ck_assert(object_field_find(&heap.cache, object_method_table(&heap.reader, heap.argument), "_paramName", &field));
    ck_assert_uint_eq(field.token, 0x04000002);
    ck_assert(!reader_failed(&heap.reader));
    exception_heap_put(&heap, heap.bad - 4, 3 << 16 | 7, 4);
    ck_assert(object_monitor_read(&heap.reader, heap.bad, &monitor));
    ck_assert(monitor.held && monitor.thin);
    ck_assert_uint_eq(monitor.thread_id, 7);
    ck_assert_uint_eq(monitor.recursion, 3);
    exception_heap_put(&heap, heap.bad - 4, 0x0c001234, 4);
    ck_assert(object_monitor_read(&heap.reader, heap.bad, &monitor));
    ck_assert(!monitor.held && monitor.has_hash);
    ck_assert_uint_eq(monitor.hash, 0x1234);
}
END_TEST

static Suite *suite(void)
{
    const TTest *const tests[] = {texts,
                                  keys_of_resources,
                                  unknown_resources,
                                  namesakes,
                                  lines,
                                  no_line_after_a_failure,
                                  async_methods_without_state_machines,
                                  continuations,
                                  requesting_assemblies,
                                  directories,
                                  lists,
                                  the_type_alone,
                                  cycles,
                                  missing_parts,
                                  lying_lengths,
                                  long_lists,
                                  texts_are_work,
                                  objects};
    Suite *s = suite_create("exceptions");
    TCase *tc = tcase_create("exceptions");
    tcase_add_checked_fixture(tc, setup, teardown);
    for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
        tcase_add_test(tc, tests[i]);
    tcase_add_loop_test(tc, endless_lists, 0, 2);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
