/*
 * The two MethodDescs that a Task-returning method has since .NET 11: what the variants are called, and which of them
 * are thunks. On every architecture of the mock.
 */
#include "contracts/type_system/method_desc.h"
#include "tests/support/check_main.h"
#include "tests/support/metadata_writer.h"
#include "tests/support/mock_support.h"

enum { TASK = 1, TASK_OF, VALUE_TASK_OF };                    /* rids of TypeRefs */
enum { NOTHING = 1, NUMBER, GENERIC, PLAIN, PAIR, MODIFIED }; /* of MethodDefs */
enum { WORK = 2, INT32 };                                     /* of TypeDefs */

/* AsyncMethodFlags */
enum { CALL = 1, TASK_RETURNING = 2, VARIANT = 4, VALUE_TASK = 8, THUNK = 16, DROPS = 32 };

struct process {
    struct mock *mock;
    struct mock_heap *heap;
    uint64_t module, table, int32;
};

static uint8_t *write_metadata(size_t *ret_size)
{
    struct metadata_writer writer;
    metadata_writer_init(&writer);
#define STRING(text) metadata_writer_string(&writer, text)
#define METHOD(name, ...)                                       \
    METADATA_ROW(                                               \
        &writer, METADATA_METHOD_DEF, 0, 0, 0x10, STRING(name), \
        metadata_writer_blob(&writer, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})), 1)
#define REF(rid) ((rid) << 2 | CODED_TYPE_REF)
    METADATA_ROW(&writer, METADATA_ASSEMBLY, 0, 1, 0, 0, 0, 0, 0, STRING("Own"), 0);
    METADATA_ROW(&writer, METADATA_ASSEMBLY_REF, 1, 0, 0, 0, 0, 0, STRING("System.Runtime"), 0, 0);
    METADATA_ROW(&writer, METADATA_TYPE_REF, 1 << 2 | CODED_ASSEMBLY_REF, STRING("Task"), STRING("Ns"));
    METADATA_ROW(&writer, METADATA_TYPE_REF, 1 << 2 | CODED_ASSEMBLY_REF, STRING("Task`1"), STRING("Ns"));
    METADATA_ROW(&writer, METADATA_TYPE_REF, 1 << 2 | CODED_ASSEMBLY_REF, STRING("ValueTask`1"), STRING("Ns"));
    METADATA_ROW(&writer, METADATA_TYPE_DEF, 1, STRING("Work"), STRING("Ns"), 0, 1, 1);
    METHOD("Nothing", 0x20, 1, 0x12, REF(TASK), 0x08);                                  /* Task Nothing(int) */
    METHOD("Number", 0, 0, 0x15, 0x12, REF(TASK_OF), 1, 0x08);                          /* Task<int> Number() */
    METHOD("Generic", 0x10, 1, 1, 0x15, 0x11, REF(VALUE_TASK_OF), 1, 0x1e, 0, 0x1e, 0); /* ValueTask<T> Generic<T>(T) */
    METHOD("Plain", 0, 0, 0x08);                                                        /* int Plain() */
    METHOD("Pair", 0, 0, 0x15, 0x12, REF(TASK_OF), 2, 0x08, 0x08);                      /* Task`1<int, int> Pair() */
    METHOD("Modified", 0, 0, 0x20, REF(TASK), 0x12, REF(TASK)); /* Task modopt(Task) Modified() */
    METADATA_ROW(&writer, METADATA_TYPE_DEF, 1, STRING("Int32"), STRING("System"), 0, 1,
                 writer.tables[METADATA_METHOD_DEF].rows + 1);
    METADATA_ROW(&writer, METADATA_GENERIC_PARAM, 0, 0, GENERIC << 1 | 1, STRING("T"));
    uint8_t *metadata = metadata_writer_finish(&writer, ret_size);
    metadata_writer_deinit(&writer);
    return metadata;
}

static struct process make_process(int arch, unsigned version)
{
    size_t size;
    uint8_t *metadata = write_metadata(&size);
    struct process process = {.mock = mock_of_version(arch, (uint64_t)arch + 3, version)};
    mock_global(process.mock, "MethodDescTokenRemainderBitCount", 12);
    process.module = mock_module(
        process.mock,
        &(struct mock_module_options){.path = "/mock/own.dll", .metadata = metadata, .metadata_size = size});
    process.heap = mock_heap_create(process.mock, &(struct mock_heap_options){.size = 0x10000});
    process.table = mock_method_table(process.mock, process.module, WORK);
    process.int32 = mock_method_table(process.mock, process.module, INT32);
    mock_make_primitive(process.mock, process.int32);
    free(metadata);
    mock_check(process.mock);
    return process;
}

/* The code of a method with these AsyncMethodFlags. */
static uint64_t add_code(struct process *process, uint32_t rid, uint32_t flags)
{
    size_t arguments = rid == GENERIC;
    uint64_t desc = mock_async_method_desc(process->mock, process->table, rid, &process->int32, arguments, flags);
    return mock_method(process->heap, &(struct mock_method){.size = 32, .method_desc = desc});
}

static struct cdacq_target *open_process(struct process *process, enum cdacq_name_style style)
{
    struct cdacq_options options = {.size = sizeof options, .names = style};
    return mock_open(process->mock, CARRIER_MEMORY, &options);
}

static void check(struct cdacq_target *target, uint64_t ip, const char *name, bool thunk)
{
    struct cdacq_method method = {.size = sizeof method};
    struct cdacq_session *session = mock_session(target);
    ck_assert_int_eq(cdacq_session_method_at(session, ip, &method, NULL), CDACQ_OK);
    ck_assert_pstr_eq(method.name, name);
    ck_assert_uint_eq(method.async_thunk, thunk);
    ck_assert_uint_eq(method.token >> 24, METADATA_METHOD_DEF);
    cdacq_session_destroy(session);
}

struct variant {
    uint32_t rid, flags;
    const char *il, *csharp;
    bool thunk;
    uint64_t ip;
};

/* A variant shows what its Task yields where the runtime's own files do; thunks and others have equal names in C#. */
START_TEST(names_of_variants)
{
    struct variant variants[] = {
        {NOTHING, TASK_RETURNING | THUNK, "instance class [System.Runtime]Ns.Task [Own] Ns.Work::Nothing(int32)",
         "Ns.Work.Nothing(int)", true, 0},
        {NOTHING, CALL | VARIANT, "instance void [Own] Ns.Work::Nothing(int32)", "Ns.Work.Nothing(int)", false, 0},
        {NUMBER, TASK_RETURNING, "class [System.Runtime]Ns.Task`1<int32> [Own] Ns.Work::Number()", "Ns.Work.Number()",
         false, 0},
        {NUMBER, CALL | VARIANT | THUNK, "int32 [Own] Ns.Work::Number()", "Ns.Work.Number()", false, 0},
        {NUMBER, CALL | VARIANT | THUNK | DROPS, "void [Own] Ns.Work::Number()", "Ns.Work.Number()", true, 0},
        {GENERIC, CALL | VARIANT | VALUE_TASK, "!!0 [Own] Ns.Work::Generic(!!0)", "Ns.Work.Generic<int>(int)", false,
         0},
        {GENERIC, TASK_RETURNING | THUNK, "valuetype [System.Runtime]Ns.ValueTask`1<!!0> [Own] Ns.Work::Generic(!!0)",
         "Ns.Work.Generic<int>(int)", true, 0},
        {PLAIN, CALL, "int32 [Own] Ns.Work::Plain()", "Ns.Work.Plain()", false, 0},
    };
    struct process process = make_process(_i, MOCK_NET_11);
    for (size_t i = 0; i < ARRAY_SIZE(variants); i++)
        variants[i].ip = add_code(&process, variants[i].rid, variants[i].flags);
    mock_publish(process.mock, NULL);
    struct cdacq_target *il = open_process(&process, CDACQ_NAMES_IL),
                        *csharp = open_process(&process, CDACQ_NAMES_CSHARP);
    for (size_t i = 0; i < ARRAY_SIZE(variants); i++) {
        check(il, variants[i].ip, variants[i].il, variants[i].thunk);
        check(csharp, variants[i].ip, variants[i].csharp, variants[i].thunk);
    }
    cdacq_target_close(il);
    cdacq_target_close(csharp);
    mock_destroy(process.mock);
}
END_TEST

/* No Task has two results, and no plain method has a variant: there is no name that shows what these return. */
START_TEST(what_no_task_yields_has_no_name)
{
    static const uint32_t rids[] = {PLAIN, PAIR, MODIFIED};
    struct process process = make_process(_i, MOCK_NET_11);
    uint64_t ips[ARRAY_SIZE(rids)];
    for (size_t i = 0; i < ARRAY_SIZE(rids); i++)
        ips[i] = add_code(&process, rids[i], CALL | VARIANT);
    mock_publish(process.mock, NULL);
    struct cdacq_target *il = open_process(&process, CDACQ_NAMES_IL);
    for (size_t i = 0; i < ARRAY_SIZE(rids); i++)
        check(il, ips[i], NULL, false);
    cdacq_target_close(il);
    mock_destroy(process.mock);
}
END_TEST

/* Without the memory of the flags, C# names are as they were, and nothing is taken for a thunk. */
START_TEST(flags_that_are_missing)
{
    struct process process = make_process(_i, MOCK_NET_11);
    uint64_t desc = mock_async_method_desc(process.mock, process.table, NUMBER, NULL, 0, TASK_RETURNING | THUNK);
    uint64_t ip = mock_method(process.heap, &(struct mock_method){.size = 32, .method_desc = desc});
    uint64_t flags = mock_get(process.mock, desc, "MethodDesc.Flags");
    mock_publish(process.mock, NULL);
    uint64_t data = desc + mock_size_of(process.mock, "MethodDesc") +
                    (flags & 0x08 ? mock_size_of(process.mock, "NonVtableSlot") : 0) +
                    (flags & 0x10 ? mock_size_of(process.mock, "MethodImpl") : 0) +
                    (flags & 0x20 ? mock_size_of(process.mock, "NativeCodeSlot") : 0);
    mock_unmap(process.mock, data + mock_offset_of(process.mock, "AsyncMethodData.Flags"), 4);
    struct cdacq_target *csharp = open_process(&process, CDACQ_NAMES_CSHARP),
                        *il = open_process(&process, CDACQ_NAMES_IL);
    check(csharp, ip, "Ns.Work.Number()", false);
    check(il, ip, NULL, false);
    cdacq_target_close(csharp);
    cdacq_target_close(il);
    mock_destroy(process.mock);
}
END_TEST

/* Before .NET 11, the flag of a MethodDesc means something else. */
START_TEST(older_runtimes)
{
    struct process process = make_process(_i, 2);
    uint64_t ip = add_code(&process, NUMBER, TASK_RETURNING | VARIANT | THUNK);
    mock_publish(process.mock, NULL);
    struct cdacq_target *il = open_process(&process, CDACQ_NAMES_IL);
    check(il, ip, "class [System.Runtime]Ns.Task`1<int32> [Own] Ns.Work::Number()", false);
    cdacq_target_close(il);
    mock_destroy(process.mock);
}
END_TEST

/* What the runtime's stack traces leave out. */
START_TEST(hidden_methods)
{
    struct process process = make_process(_i, MOCK_NET_11);
    uint64_t thunk = mock_async_method_desc(process.mock, process.table, NUMBER, NULL, 0, TASK_RETURNING | THUNK);
    uint64_t variant = mock_async_method_desc(process.mock, process.table, NUMBER, NULL, 0, CALL | VARIANT);
    uint64_t stub = mock_dynamic_method_desc_of(process.mock, process.table, "IL_STUB", true, NULL, 0);
    uint64_t dynamic = mock_dynamic_method_desc_of(process.mock, process.table, "Dyn", false, NULL, 0);
    mock_publish(process.mock, NULL);
    struct cdacq_target *target = open_process(&process, CDACQ_NAMES_CSHARP);
    struct reader reader = mock_reader(target);
    const struct {
        uint64_t address;
        bool hidden;
    } methods[] = {{thunk, true}, {variant, false}, {stub, true}, {dynamic, false}};
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
        struct method_desc method;
        ck_assert(method_desc_read(&reader, methods[i].address, &method));
        ck_assert(method_desc_is_hidden(&reader, &method) == methods[i].hidden);
    }
    cdacq_target_close(target);
    mock_destroy(process.mock);
}
END_TEST

/* Without debug info, the IL offset of a method is 0 as in stack traces; a thunk or a dynamic method has none. */
START_TEST(il_offsets_without_debug_info)
{
    struct process process = make_process(_i, MOCK_NET_11);
    const struct {
        uint64_t desc;
        int32_t expected;
    } methods[] = {
        {mock_method_descs(process.mock, process.table, PLAIN, 1, NULL), 0},
        {mock_async_method_desc(process.mock, process.table, NUMBER, NULL, 0, TASK_RETURNING | THUNK),
         CDACQ_OFFSET_UNKNOWN},
        {mock_dynamic_method_desc_of(process.mock, process.table, "IL_STUB", true, NULL, 0), CDACQ_OFFSET_UNKNOWN},
    };
    uint64_t ips[ARRAY_SIZE(methods)];
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
        ips[i] = mock_method(process.heap,
                             &(struct mock_method){.size = 32, .method_desc = methods[i].desc, .no_debug_info = true});
    mock_contract(process.mock, "DebugInfo", "c1");
    mock_publish(process.mock, NULL);
    struct cdacq_target *target = open_process(&process, CDACQ_NAMES_CSHARP);
    struct cdacq_session *session = mock_session(target);
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
        struct cdacq_method method = {.size = sizeof method};
        ck_assert_int_eq(cdacq_session_method_at(session, ips[i] + 8, &method, NULL), CDACQ_OK);
        ck_assert_int_eq(method.il_offset, methods[i].expected);
        ck_assert_uint_eq(method.line, 0);
    }
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(process.mock);
}
END_TEST

/* ---- In ReadyToRun images ---- */

/*
 * Async methods that are not prepared. The tables have each method, and the variant of one; the import sections lead to
 * the stub that continues it, and to no other.
 */
enum { R2R_METHOD, R2R_VARIANT, R2R_STUB, R2R_OTHER, R2R_HIDDEN, R2R_LAST, R2R_COUNT };

static struct mock_r2r *add_image(struct process *process, uint16_t major, bool composite)
{
    static const uint8_t variant[] = {0x81, 0x00, NUMBER}; /* flags 0x100 */
    static const uint64_t body[] = {0x40, 0x20}, stub[] = {0x20};
    size_t size;
    uint8_t *metadata = write_metadata(&size);
    struct mock_r2r *image =
        mock_r2r_create(process->mock, &(struct mock_r2r_options){.tables = MOCK_R2R_METHODDEFS | MOCK_R2R_INSTANCES,
                                                                  .metadata = metadata,
                                                                  .metadata_size = size,
                                                                  .composite = composite,
                                                                  .major = major,
                                                                  .minor = 1});
    const struct mock_r2r_method methods[R2R_COUNT] = {
        [R2R_METHOD] = {.hot = body, .hot_count = 2, .rid = NUMBER},
        [R2R_VARIANT] = {.hot = body, .hot_count = 2, .instance = variant, .instance_size = sizeof variant},
        [R2R_STUB] = {.hot = stub, .hot_count = 1, .resumption_stub = true},
        [R2R_OTHER] = {.hot = body, .hot_count = 2, .rid = NOTHING},
        [R2R_HIDDEN] = {.hot = stub, .hot_count = 1}, /* in no table: what it is is not known */
        [R2R_LAST] = {.hot = body, .hot_count = 1, .rid = PLAIN},
    };
    for (size_t i = 0; i < R2R_COUNT; i++)
        mock_r2r_method(image, &methods[i]);
    mock_r2r_finish(image);
    free(metadata);
    return image;
}

/*
 * Asks about every address of the methods, one by one, then all at once. Each has the start and the size of its method.
 */
static void check_image(struct process *process, const struct mock_r2r *image, struct cdacq_target *target,
                        const char *const *names)
{
    struct cdacq_session *session = mock_session(target);
    uint64_t ips[0x400];
    struct cdacq_method batch[ARRAY_SIZE(ips)];
    size_t count = 0;
    for (size_t i = 0; i < R2R_COUNT; i++) {
        uint64_t start = mock_r2r_start(image, i);
        const struct mock_function *expected = mock_function_at(process->mock, start);
        for (uint64_t ip = start; ip < start + expected->hot_size; ip += 4) {
            struct cdacq_method method = {.size = sizeof method};
            ck_assert_int_eq(cdacq_session_method_at(session, ip, &method, NULL), CDACQ_OK);
            ck_assert_uint_eq(method.code_start, start);
            ck_assert_uint_eq(method.code_size, expected->hot_size);
            ck_assert_pstr_eq(method.name, names[i]);
            ck_assert(names[i] || strstr(method.error, "its image does not name it here"));
            ck_assert_uint_lt(count, ARRAY_SIZE(ips));
            ips[count++] = ip;
        }
    }
    batch[0].size = sizeof batch[0];
    ck_assert_int_eq(cdacq_session_methods_at(session, ips, count, batch, NULL), CDACQ_OK);
    for (size_t i = 0; i < count; i++) {
        const struct mock_function *expected = mock_function_at(process->mock, ips[i]);
        ck_assert_uint_eq(batch[i].code_start, expected->method);
        ck_assert_uint_eq(batch[i].code_size, expected->hot_size);
    }
    cdacq_session_destroy(session);
}

START_TEST(stubs_in_images)
{
    static const char *const names[R2R_COUNT] = {
        [R2R_METHOD] = "class [System.Runtime]Ns.Task`1<int32> [Own] Ns.Work::Number()",
        [R2R_VARIANT] = "int32 [Own] Ns.Work::Number()",
        [R2R_STUB] = "object [Own] dynamicClass::IL_STUB_AsyncResume(object,uint8&)",
        [R2R_OTHER] = "instance class [System.Runtime]Ns.Task [Own] Ns.Work::Nothing(int32)",
        [R2R_LAST] = "int32 [Own] Ns.Work::Plain()",
    };
    struct process process = make_process(_i, MOCK_NET_11);
    struct mock_r2r *image = add_image(&process, 26, false);
    mock_publish(process.mock, NULL);
    struct cdacq_target *target = open_process(&process, CDACQ_NAMES_IL);
    check_image(&process, image, target, names);
    cdacq_target_close(target);
    mock_destroy(process.mock);
}
END_TEST

/* A small core lacks the import sections. The stub still belongs to no other method. */
START_TEST(stubs_without_import_sections)
{
    static const char *const names[R2R_COUNT] = {
        [R2R_METHOD] = "Ns.Work.Number()",
        [R2R_VARIANT] = "Ns.Work.Number()",
        [R2R_OTHER] = "Ns.Work.Nothing(int)",
        [R2R_LAST] = "Ns.Work.Plain()",
    };
    struct process process = make_process(_i, MOCK_NET_11);
    struct mock_r2r *image = add_image(&process, 26, false);
    mock_publish(process.mock, NULL);
    uint64_t sections = image->header + 16, imports = 0;
    for (uint64_t i = 0; i < 8 && !imports; i++)
        if (mock_read_uint(process.mock, sections + i * 12, 4) == 101)
            imports = image->begin + mock_read_uint(process.mock, sections + i * 12 + 4, 4);
    ck_assert_uint_ne(imports, 0);
    mock_unmap(process.mock, imports, 40);
    struct cdacq_target *target = open_process(&process, CDACQ_NAMES_CSHARP);
    check_image(&process, image, target, names);
    cdacq_target_close(target);
    mock_destroy(process.mock);
}
END_TEST

/* The assembly of a stub in a composite image is not known; C# does not show it. */
START_TEST(stubs_in_composite_images)
{
    struct process process = make_process(_i, MOCK_NET_11);
    struct mock_r2r *image = add_image(&process, 26, true);
    mock_publish(process.mock, NULL);
    struct cdacq_target *il = open_process(&process, CDACQ_NAMES_IL),
                        *csharp = open_process(&process, CDACQ_NAMES_CSHARP);
    struct cdacq_method method = {.size = sizeof method};
    struct cdacq_session *of_il = mock_session(il), *of_csharp = mock_session(csharp);
    uint64_t stub = mock_r2r_start(image, R2R_STUB);
    ck_assert_int_eq(cdacq_session_method_at(of_il, stub, &method, NULL), CDACQ_OK);
    ck_assert_ptr_null(method.name);
    ck_assert_int_eq(cdacq_session_method_at(of_csharp, stub, &method, NULL), CDACQ_OK);
    ck_assert_str_eq(method.name, "dynamicClass.IL_STUB_AsyncResume(object, ref byte)");
    ck_assert_uint_eq(method.token, 0);
    cdacq_session_destroy(of_il);
    cdacq_session_destroy(of_csharp);
    cdacq_target_close(il);
    cdacq_target_close(csharp);
    mock_destroy(process.mock);
}
END_TEST

/* The tables of images of .NET 10 have all starts, so that what follows a method is its funclets. */
START_TEST(older_images_have_no_stubs)
{
    struct process process = make_process(_i, MOCK_NET_11);
    struct mock_r2r *image = add_image(&process, 16, false);
    mock_publish(process.mock, NULL);
    struct cdacq_target *target = open_process(&process, CDACQ_NAMES_CSHARP);
    struct cdacq_session *session = mock_session(target);
    struct cdacq_method method = {.size = sizeof method};
    ck_assert_int_eq(cdacq_session_method_at(session, mock_r2r_start(image, R2R_STUB), &method, NULL), CDACQ_OK);
    ck_assert_uint_eq(method.code_start, mock_r2r_start(image, R2R_VARIANT));
    ck_assert_str_eq(method.name, "Ns.Work.Number()");
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(process.mock);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("async_methods");
    TCase *t = tcase_create("async_methods");
    tcase_add_loop_test(t, names_of_variants, 0, ARCH_COUNT);
    tcase_add_loop_test(t, what_no_task_yields_has_no_name, 0, ARCH_COUNT);
    tcase_add_loop_test(t, flags_that_are_missing, 0, ARCH_COUNT);
    tcase_add_loop_test(t, older_runtimes, 0, ARCH_COUNT);
    tcase_add_loop_test(t, hidden_methods, 0, ARCH_COUNT);
    tcase_add_loop_test(t, il_offsets_without_debug_info, 0, ARCH_COUNT);
    tcase_add_loop_test(t, stubs_in_images, 0, ARCH_COUNT);
    tcase_add_loop_test(t, stubs_without_import_sections, 0, ARCH_COUNT);
    tcase_add_loop_test(t, stubs_in_composite_images, 0, ARCH_COUNT);
    tcase_add_loop_test(t, older_images_have_no_stubs, 0, ARCH_COUNT);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
