/*
 * test_native_aot.c: the functions, names, types and threads of a small NativeAOT program
 * (tests/support/aot_program.h), whole and damaged. tests/dotnet/aot.py compares real programs with their own words.
 */
#include "contracts/native_aot/aot_method_table.h"
#include "contracts/native_aot/aot_name.h"
#include "contracts/native_aot/aot_thread.h"
#include "contracts/objects/native_exception.h"
#include "target/image.h"
#include "tests/support/aot_program.h"
#include "tests/support/check_main.h"

static struct aot_program program;
static struct text text;

static void setup(void)
{
    aot_program_init(&program);
    reader_begin(&program.reader, FUEL_INDEX);
}

static void teardown(void)
{
    text_deinit(&text);
    aot_program_deinit(&program);
}

/* Bytes that the target has had are kept nowhere: a new question reads them again. */
static void store(uint64_t at, uint32_t value)
{
    store_u32(aot_program_at(&program, at), value, false);
}

/* ---- Functions ---- */

START_TEST(code_range)
{
    uint64_t begin, end;
    ck_assert(aot_code_range(&program.reader, &begin, &end));
    ck_assert_uint_eq(begin, AOT_CODE);
    ck_assert_uint_eq(end, AOT_CODE + AOT_CODE_SIZE);
}
END_TEST

static const struct {
    uint32_t at;
    struct aot_function function; /* relative to the code */
} functions[] = {
    {AOT_OUTER, {AOT_OUTER, AOT_OUTER_CATCH, AOT_OUTER, AOT_BODY}},
    {AOT_OUTER_CATCH - 1, {AOT_OUTER, AOT_OUTER_CATCH, AOT_OUTER, AOT_BODY}},
    {AOT_OUTER_CATCH, {AOT_OUTER_CATCH, AOT_OUTER_FILTER, AOT_OUTER, AOT_HANDLER}},
    {AOT_OUTER_FILTER + 5, {AOT_OUTER_FILTER, AOT_PLAIN, AOT_OUTER, AOT_FILTER}},
    {AOT_PLAIN, {AOT_PLAIN, AOT_REFLECTED, AOT_PLAIN, AOT_BODY}},
    {AOT_END - 1, {AOT_NAMELESS, AOT_END, AOT_NAMELESS, AOT_BODY}},
};

START_TEST(function_of_an_address)
{
    struct aot_function found;
    for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
        const struct aot_function *expected = &functions[i].function;
        ck_assert(aot_function_at(&program.aot, &program.reader, AOT_CODE + functions[i].at, &found));
        ck_assert_uint_eq(found.begin, AOT_CODE + expected->begin);
        ck_assert_uint_eq(found.end, AOT_CODE + expected->end);
        ck_assert_uint_eq(found.method, AOT_CODE + expected->method);
        ck_assert_int_eq(found.kind, expected->kind);
    }
    ck_assert(!aot_function_at(&program.aot, &program.reader, AOT_CODE + AOT_END, &found));
    ck_assert(!aot_function_at(&program.aot, &program.reader, AOT_CODE - 1, &found));
    ck_assert(!reader_failed(&program.reader));
    ck_assert_uint_eq(aot_method_end(&program.aot, &program.reader, AOT_CODE + AOT_OUTER), AOT_CODE + AOT_PLAIN);
    ck_assert_uint_eq(aot_method_end(&program.aot, &program.reader, AOT_CODE + AOT_PLAIN), AOT_CODE + AOT_REFLECTED);
    ck_assert_uint_eq(aot_function_count(&program.aot, &program.reader), 9);
}
END_TEST

static bool count_function(const struct aot_function *function, void *context)
{
    uint64_t *last = context;
    ck_assert_uint_gt(function->begin, *last);
    *last = function->begin;
    return function->begin != AOT_CODE + AOT_REFLECTED; /* the last one that is wanted */
}

START_TEST(functions_in_their_order)
{
    uint64_t last = 0;
    ck_assert(aot_functions_each(&program.aot, &program.reader, AOT_CODE, AOT_CODE + AOT_PLAIN, count_function, &last));
    ck_assert_uint_eq(last, AOT_CODE + AOT_OUTER_FILTER);
    last = 0;
    aot_functions_each(&program.aot, &program.reader, 0, UINT64_MAX, count_function, &last);
    ck_assert_uint_eq(last, AOT_CODE + AOT_REFLECTED);
}
END_TEST

/* A funclet that would be in front of its method, and one whose data are missing. */
START_TEST(damaged_funclets)
{
    struct aot_function found;
    uint64_t lsda = AOT_FRAMES + 0x400 + 16;
    store(lsda + 5, 0);
    ck_assert(!aot_function_at(&program.aot, &program.reader, AOT_CODE + AOT_OUTER_CATCH, &found));
    ck_assert_int_eq(reader_status(&program.reader, NULL), CDACQ_ERR_CORRUPT);
    program.aot.image = NULL; /* not known */
    reader_begin(&program.reader, FUEL_INDEX);
    ck_assert(!aot_function_at(&program.aot, &program.reader, AOT_CODE, &found));
    ck_assert_uint_eq(aot_function_count(&program.aot, &program.reader), 0);
    ck_assert(!reader_failed(&program.reader));
}
END_TEST

/* ---- Names of methods ---- */

static const struct {
    uint32_t at;
    const char *stack_trace, *csharp; /* NULL: the tables do not name it */
} names[] = {
    {AOT_OUTER,
     "Ns.Outer`1.Method[U](Int32, String, List`1, T, U, Nullable`1, ValueTuple`2, Int32[,][], Int32&, Int32*, U[], , "
     "?\?\?)",
     "Ns.Outer<T>.Method<U>(int, string, System.Collections.Generic.List<int>, T, U, int?, (int, string), int[][,], "
     "ref int, int*, U[], delegate*, int)"},
    {AOT_PLAIN, "Ns.Outer`1.Inner.Plain()", "Ns.Outer<T>.Inner.Plain()"},
    {AOT_REFLECTED, "Ns.Value.Reflected(Int32 first, Int32 second)", "Ns.Value.Reflected(int, int)"},
    {AOT_INSTANCE, "Ns.Outer`1.Instance(Int32 first, Int32 second)", "Ns.Outer<T>.Instance(int, int)"},
    {AOT_NAMELESS, NULL, NULL},
    {AOT_OUTER + 1, NULL, NULL},
};

static void assert_name(uint32_t at, enum aot_name_style style, const char *expected)
{
    text_clear(&text);
    enum cdacq_status status = aot_name_method(&program.aot, &program.reader, AOT_CODE + at, style, &text);
    ck_assert_int_eq(status, expected ? CDACQ_OK : CDACQ_NOT_MANAGED);
    ck_assert_msg(text_equals(&text, expected ? expected : ""), "%s\n%s", text.data, expected);
}

START_TEST(names_of_methods)
{
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        assert_name(names[i].at, AOT_STACK_TRACE, names[i].stack_trace);
        assert_name(names[i].at, AOT_CSHARP, names[i].csharp);
    }
    ck_assert(!reader_failed(&program.reader));
}
END_TEST

START_TEST(hidden_methods)
{
    const struct aot_tables *tables = aot_tables_get(&program.aot, &program.reader);
    ck_assert(tables);
    ck_assert(!aot_method_at(tables, AOT_CODE + AOT_OUTER)->is_hidden);
    ck_assert(aot_method_at(tables, AOT_CODE + AOT_PLAIN)->is_hidden);      /* the command says so */
    ck_assert(!aot_method_at(tables, AOT_CODE + AOT_REFLECTED)->is_hidden); /* by its attributes: */
    ck_assert(aot_method_at(tables, AOT_CODE + AOT_INSTANCE)->is_hidden);
    ck_assert(aot_method_at(tables, AOT_CODE + AOT_UNBOXING)); /* the stubs that reflection calls, too */
    ck_assert(aot_method_at(tables, AOT_CODE + AOT_INSTANTIATING));
    ck_assert(!aot_method_at(tables, AOT_CODE + AOT_OUTER_CATCH));
}
END_TEST

START_TEST(owners_and_assemblies)
{
    const struct aot_tables *tables = aot_tables_get(&program.aot, &program.reader);
    struct text name = {0}, assembly = {0};
    const struct aot_method *method = aot_method_at(tables, AOT_CODE + AOT_PLAIN);
    ck_assert(aot_put_owner(aot_metadata(tables), &method->name, &text, &name));
    ck_assert_str_eq(text.data, "Ns.Outer`1+Inner");
    ck_assert_str_eq(name.data, "Plain");
    ck_assert(aot_put_assembly(aot_metadata(tables), method->name.owner, &assembly));
    ck_assert_str_eq(assembly.data, "Library");
    text_clear(&assembly);
    aot_handle int32 = aot_type_of(tables, aot_program_type(AOT_INT32));
    ck_assert(aot_put_assembly(aot_metadata(tables), int32, &assembly));
    ck_assert_str_eq(assembly.data, "System.Private.CoreLib");
    ck_assert(!aot_put_assembly(aot_metadata(tables), 0, &assembly));
    ck_assert_str_eq(assembly.data, "System.Private.CoreLib"); /* nothing was appended */
    text_deinit(&name);
    text_deinit(&assembly);
}
END_TEST

/* The lines of a stack trace, as the runtime writes them. */
START_TEST(lines_of_stack_traces)
{
    static const struct {
        uint32_t at;
        const char *line; /* NULL: it is left out */
    } lines[] = {
        {AOT_REFLECTED + 3, "   at Ns.Value.Reflected(Int32 first, Int32 second)"},
        {AOT_PLAIN, NULL},
        {AOT_INSTANCE, NULL},
        {AOT_NAMELESS + 2, "   at program!<BaseAddress>+0x2122"},
        {AOT_END, "   at program!<BaseAddress>+0x2140"}, /* no function is there */
    };
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        unsigned flaws = 0;
        text_clear(&text);
        bool is_shown = native_frame_append(&program.aot, &program.reader, AOT_CODE + lines[i].at, &text, &flaws);
        ck_assert(is_shown == (lines[i].line != NULL));
        ck_assert(text_equals(&text, lines[i].line ? lines[i].line : ""));
        ck_assert_uint_eq(flaws, 0);
    }
}
END_TEST

/* ---- Names of types ---- */

START_TEST(names_of_types)
{
    static const struct {
        enum aot_program_type type;
        const char *name;
    } types[] = {
        {AOT_OUTER_TYPE, "Ns.Outer`1"},
        {AOT_INT32, "System.Int32"},
        {AOT_SYSTEM_THREAD, "System.Threading.Thread"},
        {AOT_OUTER_OF_INT32, "Ns.Outer`1[System.Int32]"},
        {AOT_PAIR_OF_INT32_VALUE, "Ns.Pair`2[System.Int32,Ns.Value]"},
        {AOT_VECTOR_OF_INSTANCE, "Ns.Outer`1[System.Int32][]"},
        {AOT_MATRIX_OF_INT32, "System.Int32[,]"},
        {AOT_POINTER_TO_INT32, "System.Int32*"},
        {AOT_REFERENCE_TO_VALUE, "Ns.Value&"},
        {AOT_STATICS_TYPE, NULL}, /* without metadata */
        {AOT_DYNAMIC, NULL},
    };
    const struct aot_tables *tables = aot_tables_get(&program.aot, &program.reader);
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        text_clear(&text);
        enum cdacq_status status = aot_name_type(&program.aot, &program.reader, aot_program_type(types[i].type), &text);
        ck_assert_int_eq(status, types[i].name ? CDACQ_OK : CDACQ_NOT_MANAGED);
        ck_assert_str_eq(text.data ? text.data : "", types[i].name ? types[i].name : "");
    }
    ck_assert_uint_eq(aot_type_named(tables, "Ns.Value"), aot_program_type(AOT_VALUE));
    ck_assert_uint_eq(aot_type_named(tables, "Ns.Valu"), 0);
}
END_TEST

START_TEST(damaged_types)
{
    uint64_t vector = aot_program_type(AOT_VECTOR_OF_INSTANCE);
    store_u64(aot_program_at(&program, vector + 8), vector, false); /* an array of itself */
    ck_assert_int_eq(aot_name_type(&program.aot, &program.reader, vector, &text), CDACQ_ERR_FUEL);
    store(aot_program_type(AOT_OUTER_TYPE) + 4, 0); /* a generic type without parameters */
    ck_assert_int_eq(aot_name_type(&program.aot, &program.reader, aot_program_type(AOT_OUTER_OF_INT32), &text),
                     CDACQ_ERR_CORRUPT);
    reader_begin(&program.reader, FUEL_INDEX);
    store(aot_program_type(AOT_MATRIX_OF_INT32) + 4, 24 + 8 * 33); /* too many dimensions */
    ck_assert_int_eq(aot_name_type(&program.aot, &program.reader, aot_program_type(AOT_MATRIX_OF_INT32), &text),
                     CDACQ_ERR_CORRUPT);
    ck_assert_int_eq(aot_name_type(&program.aot, &program.reader, 0x10, &text), CDACQ_ERR_MEMORY);
    ck_assert_uint_eq(text.length, 0);
}
END_TEST

/* ---- Damage ---- */

/* A program without tables has no names, and says that they are missing only if they cannot be read. */
START_TEST(missing_tables)
{
    uint64_t header = AOT_BASE + 0x80;
    *aot_program_at(&program, header + 12) = 0; /* no sections */
    assert_name(AOT_OUTER, AOT_CSHARP, NULL);
    aot_program_deinit(&program);
    setup();
    store(header, 0); /* no header */
    ck_assert_int_eq(aot_name_method(&program.aot, &program.reader, AOT_CODE, AOT_CSHARP, &text), CDACQ_ERR_CORRUPT);
    aot_program_deinit(&program);
    setup();
    store(header + 16 + 4, AOT_SIZE); /* the metadata go on behind the memory */
    ck_assert_int_eq(aot_name_method(&program.aot, &program.reader, AOT_CODE, AOT_CSHARP, &text), CDACQ_ERR_MEMORY);
    aot_program_deinit(&program);
    setup();
    store(AOT_BASE + 0x10 + 16, 0); /* no type managers yet */
    assert_name(AOT_OUTER, AOT_CSHARP, NULL);
}
END_TEST

/* Whatever a byte of the sections is: a name is formed, or there is none, and nothing is appended. */
START_TEST(every_byte_damaged)
{
    static const uint8_t values[] = {0, 1, 0x0f, 0x7f, 0x80, 0xff};
    for (uint64_t at = AOT_SECTIONS + (uint64_t)_i; at < AOT_SECTIONS + 0x600; at += 4) {
        uint8_t *byte = aot_program_at(&program, at), before = *byte;
        for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
            *byte = values[i];
            aot_image_deinit(&program.aot);
            program.aot = (struct aot_image){.image = &program.image};
            for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
                reader_begin(&program.reader, FUEL_INDEX);
                text_clear(&text);
                enum cdacq_status status = aot_name_method(&program.aot, &program.reader, AOT_CODE + names[n].at,
                                                           n % 2 ? AOT_CSHARP : AOT_STACK_TRACE, &text);
                ck_assert((status == CDACQ_OK) == (text.length > 0));
            }
            reader_begin(&program.reader, FUEL_INDEX);
            text_clear(&text);
            aot_name_type(&program.aot, &program.reader, aot_program_type(AOT_PAIR_OF_INT32_VALUE), &text);
        }
        *byte = before;
    }
}
END_TEST

/* ---- Threads ---- */

START_TEST(managed_thread)
{
    ck_assert_uint_eq(aot_managed_thread(&program.aot, &program.reader, AOT_THREAD), AOT_THREAD_OBJECT);
    ck_assert_uint_eq(aot_managed_thread_id(&program.reader, AOT_THREAD_OBJECT), 77);
    /* The same object twice is one; another one of the type could be the thread, too. */
    store(AOT_STATICS + 16, AOT_THREAD_OBJECT);
    ck_assert_uint_eq(aot_managed_thread(&program.aot, &program.reader, AOT_THREAD), AOT_THREAD_OBJECT);
    store(AOT_STATICS + 16, AOT_THREAD_OBJECT + 0x100);
    store(AOT_THREAD_OBJECT + 0x100, (uint32_t)aot_program_type(AOT_SYSTEM_THREAD));
    ck_assert_uint_eq(aot_managed_thread(&program.aot, &program.reader, AOT_THREAD), 0);
    ck_assert(!reader_failed(&program.reader));
}
END_TEST

START_TEST(threads_without_an_object)
{
    store(AOT_STATICS + 24, 0);
    ck_assert_uint_eq(aot_managed_thread(&program.aot, &program.reader, AOT_THREAD), 0);
    store(AOT_THREAD + 8, 0); /* no statics yet */
    ck_assert_uint_eq(aot_managed_thread(&program.aot, &program.reader, AOT_THREAD), 0);
    ck_assert(!reader_failed(&program.reader));
    store(AOT_THREAD + 8, AOT_BASE + 0x380);
    store(AOT_BASE + 0x388, AOT_BASE + 0x380); /* a list without an end */
    ck_assert_uint_eq(aot_managed_thread(&program.aot, &program.reader, AOT_THREAD), 0);
    ck_assert(!reader_failed(&program.reader));
    store(aot_program_type(AOT_STATICS_TYPE) + 4, 1 << 24); /* an impossible size */
    ck_assert_uint_eq(aot_managed_thread(&program.aot, &program.reader, AOT_THREAD), 0);
    ck_assert_int_eq(reader_status(&program.reader, NULL), CDACQ_ERR_CORRUPT);
}
END_TEST

static Suite *suite(void)
{
    const TTest *const tests[] = {
        code_range,     function_of_an_address,    functions_in_their_order, damaged_funclets, names_of_methods,
        hidden_methods, owners_and_assemblies,     names_of_types,           damaged_types,    missing_tables,
        managed_thread, threads_without_an_object, lines_of_stack_traces,
    };
    Suite *s = suite_create("native_aot");
    TCase *tc = tcase_create("native_aot");
    tcase_add_checked_fixture(tc, setup, teardown);
    for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
        tcase_add_test(tc, tests[i]);
    tcase_add_loop_test(tc, every_byte_damaged, 0, 4);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
