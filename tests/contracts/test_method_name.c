/*
 * What the runtime's own data state about a method: its instantiation, in the spellings that show it
 * (test_names_runtime.c tests their grammar), and the tier of its code. On every architecture of the mock.
 */
#include <stdio.h>

#include "contracts/type_system/code_versions.h"
#include "contracts/type_system/method_name.h"
#include "formats/names/names.h"
#include "tests/support/check_main.h"
#include "tests/support/il_versions.h"
#include "tests/support/metadata_writer.h"
#include "tests/support/mock_support.h"

enum { INT32 = 2, OUTER, INNER, LAST, CANON, NULLABLE, TUPLE }; /* rids of TypeDefs */
enum { TAKE = 1, PLAIN };                                       /* of MethodDefs */
enum { PTR = 0x0f, BYREF = 0x10, VAR = 0x13 };

/* A process with one module, and a heap to put methods into. */
struct process {
    struct mock *mock;
    struct mock_heap *heap;
    uint64_t module, int32, outer_of_int32;
    bool published;
};

static uint8_t *write_metadata(size_t *ret_size)
{
    struct metadata_writer writer;
    metadata_writer_init(&writer);
#define TYPE(flags, namespace_name, name)                                                      \
    METADATA_ROW(&writer, METADATA_TYPE_DEF, flags, metadata_writer_string(&writer, name),     \
                 (namespace_name) ? metadata_writer_string(&writer, namespace_name) : 0, 0, 1, \
                 writer.tables[METADATA_METHOD_DEF].rows + 1)
#define METHOD(name, ...)                                                                \
    METADATA_ROW(                                                                        \
        &writer, METADATA_METHOD_DEF, 0, 0, 0x10, metadata_writer_string(&writer, name), \
        metadata_writer_blob(&writer, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})), 1)
    METADATA_ROW(&writer, METADATA_ASSEMBLY, 0, 1, 0, 0, 0, 0, 0, metadata_writer_string(&writer, "Own"), 0);
    TYPE(1, "System", "Int32");
    TYPE(1, "Ns", "Outer`1");
    TYPE(2, NULL, "In+ner");
    METHOD("Take", 0x30, 1, 2, 1, 0x13, 0, 0x15, 0x12, OUTER << 2, 1, 0x1e, 0); /* instance void Take<U>(T, Outer<U>) */
    METHOD("Plain", 0, 1, 1, 0x13, 0);
    TYPE(1, "Ns", "Last");
    TYPE(1, "System", "__Canon");
    TYPE(1, "System", "Nullable`1");
    TYPE(1, "System", "ValueTuple`2");
    METADATA_ROW(&writer, METADATA_MEMBER_REF, INNER << 3, metadata_writer_string(&writer, "Plain"),
                 metadata_writer_blob(&writer, (const uint8_t[]){0, 1, 1, 0x13, 0}, 5));
    METADATA_ROW(&writer, METADATA_NESTED_CLASS, INNER, OUTER);
    METADATA_ROW(&writer, METADATA_GENERIC_PARAM, 0, 0, TAKE << 1 | 1, metadata_writer_string(&writer, "U"));
    METADATA_ROW(&writer, METADATA_GENERIC_PARAM, 0, 0, OUTER << 1, metadata_writer_string(&writer, "T"));
    METADATA_ROW(&writer, METADATA_GENERIC_PARAM, 0, 0, INNER << 1, metadata_writer_string(&writer, "T"));
    METADATA_ROW(&writer, METADATA_GENERIC_PARAM, 0, 0, NULLABLE << 1, metadata_writer_string(&writer, "V"));
    METADATA_ROW(&writer, METADATA_GENERIC_PARAM, 0, 0, TUPLE << 1, metadata_writer_string(&writer, "A"));
    METADATA_ROW(&writer, METADATA_GENERIC_PARAM, 1, 0, TUPLE << 1, metadata_writer_string(&writer, "B"));
    uint8_t *metadata = metadata_writer_finish(&writer, ret_size);
    metadata_writer_deinit(&writer);
    return metadata;
}

static struct process make_process(int arch)
{
    size_t size;
    uint8_t *metadata = write_metadata(&size);
    struct process process = {.mock = mock_of_arch(arch, (uint64_t)arch + 5)};
    mock_global(process.mock, "MethodDescTokenRemainderBitCount", 12);
    process.module = mock_module(
        process.mock,
        &(struct mock_module_options){.path = "/mock/own.dll", .metadata = metadata, .metadata_size = size});
    process.heap = mock_heap_create(process.mock, &(struct mock_heap_options){.size = 0x10000});
    process.int32 = mock_method_table(process.mock, process.module, INT32);
    mock_make_primitive(process.mock, process.int32);
    process.outer_of_int32 = mock_generic_method_table(process.mock, process.module, OUTER, &process.int32, 1);
    free(metadata);
    mock_check(process.mock);
    return process;
}

static uint64_t add_code(struct process *process, uint64_t method_desc)
{
    return mock_method(process->heap, &(struct mock_method){.size = 32, .method_desc = method_desc});
}

static struct cdacq_target *open_process(struct process *process, enum cdacq_name_style style)
{
    struct cdacq_options options = {.size = sizeof options, .names = style};
    if (!process->published)
        mock_publish(process->mock, NULL);
    process->published = true;
    return mock_open(process->mock, CARRIER_MEMORY, &options);
}

/* The name of the method at `ip`, and how the text on what it lacks begins. NULL: it has no name; it lacks nothing. */
static void check_method(struct process *process, enum cdacq_name_style style, uint64_t ip, const char *name,
                         const char *error)
{
    struct cdacq_method method = {.size = sizeof method};
    struct cdacq_target *target = open_process(process, style);
    struct cdacq_session *session = mock_session(target);
    ck_assert_int_eq(cdacq_session_method_at(session, ip, &method, NULL), CDACQ_OK);
    ck_assert_pstr_eq(method.name, name);
    ck_assert(!method.error == !error);
    if (error)
        ck_assert_msg(!strncmp(method.error, error, strlen(error)), "%s", method.error);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
}

static void check_name(struct process *process, enum cdacq_name_style style, uint64_t ip, const char *expected)
{
    check_method(process, style, ip, expected, NULL);
}

/* A method of Ns.Outer`1+In+ner over `argument`. */
static void check_argument(struct process *process, uint64_t argument, const char *il, const char *sos)
{
    struct mock *mock = process->mock;
    char expected[256];
    uint64_t table = mock_generic_method_table(mock, process->module, INNER, &argument, 1);
    uint64_t ip = add_code(process, mock_method_descs(mock, table, PLAIN, 1, NULL));
    snprintf(expected, sizeof expected, "void [Own] Ns.Outer`1+In\\+ner[%s]::Plain(!0)", il);
    check_name(process, CDACQ_NAMES_IL, ip, expected);
    snprintf(expected, sizeof expected, "Ns.Outer`1+In\\+ner[[%s, Own]].Plain(%s)", il, sos);
    check_name(process, CDACQ_NAMES_SOS, ip, expected);
}

START_TEST(type_arguments)
{
    struct process process = make_process(_i);
    struct mock *mock = process.mock;
    uint64_t last = mock_method_table(mock, process.module, 5), vector, pointer;
    check_argument(&process, process.int32, "System.Int32", "Int32");
    check_argument(&process, last, "Ns.Last", "Ns.Last");
    vector = mock_array_method_table(mock, process.module, last, 0);
    check_argument(&process, vector, "Ns.Last[]", "Ns.Last[]");
    check_argument(&process, mock_array_method_table(mock, process.module, vector, 1), "Ns.Last[][*]", "Ns.Last[][]");
    check_argument(&process, mock_array_method_table(mock, process.module, process.int32, 3), "System.Int32[,,]",
                   "Int32[,,]");
    pointer = mock_type_desc(mock, PTR, process.int32);
    check_argument(&process, pointer, "System.Int32*", "Int32*");
    check_argument(&process, mock_type_desc(mock, BYREF, pointer), "System.Int32*&", "Int32* ByRef");
    mock_destroy(mock);
}
END_TEST

START_TEST(arguments_of_arguments)
{
    struct process process = make_process(_i);
    uint64_t table = mock_generic_method_table(process.mock, process.module, INNER, &process.outer_of_int32, 1);
    uint64_t ip = add_code(&process, mock_method_descs(process.mock, table, PLAIN, 1, NULL));
    check_name(&process, CDACQ_NAMES_IL, ip, "void [Own] Ns.Outer`1+In\\+ner[Ns.Outer`1[System.Int32]]::Plain(!0)");
    check_name(&process, CDACQ_NAMES_SOS, ip,
               "Ns.Outer`1+In\\+ner[[Ns.Outer`1[[System.Int32, Own]], Own]].Plain(Ns.Outer`1<Int32>)");
    check_name(&process, CDACQ_NAMES_CSHARP, ip, "Ns.Outer<Ns.Outer<int>>.In+ner.Plain(Ns.Outer<int>)");
    mock_destroy(process.mock);
}
END_TEST

START_TEST(arguments_of_methods)
{
    struct process process = make_process(_i);
    struct mock *mock = process.mock;
    uint64_t table = mock_generic_method_table(mock, process.module, INNER, &process.int32, 1);
    uint64_t ip = add_code(&process, mock_instantiated_method_desc(mock, table, TAKE, &process.outer_of_int32, 1));
    check_name(&process, CDACQ_NAMES_IL, ip,
               "instance void [Own] Ns.Outer`1+In\\+ner[System.Int32]::Take(!0,class Ns.Outer`1<!!0>)");
    check_name(&process, CDACQ_NAMES_SOS, ip,
               "Ns.Outer`1+In\\+ner[[System.Int32, Own]].Take[[Ns.Outer`1[[System.Int32, Own]], Own]](Int32, "
               "Ns.Outer`1<Ns.Outer`1<Int32>>)");
    check_name(&process, CDACQ_NAMES_CSHARP, ip,
               "Ns.Outer<int>.In+ner.Take<Ns.Outer<int>>(int, Ns.Outer<Ns.Outer<int>>)");
    mock_destroy(mock);
}
END_TEST

/* The C# name of Ns.Outer<argument>.In+ner.Plain(argument). */
static void check_csharp(struct process *process, uint64_t argument, const char *expected)
{
    char name[256];
    uint64_t table = mock_generic_method_table(process->mock, process->module, INNER, &argument, 1);
    uint64_t ip = add_code(process, mock_method_descs(process->mock, table, PLAIN, 1, NULL));
    snprintf(name, sizeof name, "Ns.Outer<%s>.In+ner.Plain(%s)", expected, expected);
    check_name(process, CDACQ_NAMES_CSHARP, ip, name);
}

START_TEST(arguments_in_csharp)
{
    struct process process = make_process(_i);
    struct mock *mock = process.mock;
    uint64_t vector = mock_array_method_table(mock, process.module, process.int32, 0);
    uint64_t nullable = mock_generic_method_table(mock, process.module, NULLABLE, &process.int32, 1);
    uint64_t pair[] = {nullable, mock_array_method_table(mock, process.module, vector, 2)};
    uint64_t tuple = mock_generic_method_table(mock, process.module, TUPLE, pair, 2);
    uint64_t nullable_tuple = mock_generic_method_table(mock, process.module, NULLABLE, &tuple, 1);
    check_csharp(&process, nullable, "int?");
    check_csharp(&process, tuple, "(int?, int[,][])");
    check_csharp(&process, nullable_tuple, "(int?, int[,][])?");
    check_csharp(&process, mock_type_desc(mock, PTR, nullable), "int?*");
    check_csharp(&process, mock_type_desc(mock, 0x1b, 0), "delegate*");
    mock_destroy(mock);
}
END_TEST

/* The code is shared: only formal parameters are known. */
START_TEST(shared_arguments)
{
    struct process process = make_process(_i);
    struct mock *mock = process.mock;
    uint64_t canon = mock_method_table(mock, process.module, CANON);
    uint64_t half[] = {canon, process.int32}, tuple = mock_generic_method_table(mock, process.module, TUPLE, half, 2);
    check_csharp(&process, canon, "T");
    check_csharp(&process, mock_array_method_table(mock, process.module, canon, 0), "T[]");
    check_csharp(&process, tuple, "(A, int)");
    check_csharp(&process, mock_generic_method_table(mock, process.module, NULLABLE, &tuple, 1), "(A, int)?");
    uint64_t table = mock_generic_method_table(mock, process.module, INNER, &process.int32, 1);
    uint64_t ip = add_code(&process, mock_instantiated_method_desc(mock, table, TAKE, &canon, 1));
    check_name(&process, CDACQ_NAMES_CSHARP, ip, "Ns.Outer<int>.In+ner.Take<U>(int, Ns.Outer<U>)");
    check_name(&process, CDACQ_NAMES_SOS, ip,
               "Ns.Outer`1+In\\+ner[[System.Int32, Own]].Take[[System.__Canon, Own]](Int32, "
               "Ns.Outer`1<System.__Canon>)");
    mock_destroy(mock);
}
END_TEST

/* An argument that cannot be read is its formal parameter; the others are not. */
START_TEST(arguments_that_are_missing)
{
    struct process process = make_process(_i);
    struct mock *mock = process.mock;
    uint64_t lost = mock_method_table(mock, process.module, LAST), half[] = {process.int32, lost};
    uint64_t tuple = mock_generic_method_table(mock, process.module, TUPLE, half, 2);
    uint64_t table = mock_generic_method_table(mock, process.module, INNER, &process.int32, 1);
    uint64_t ip = add_code(&process, mock_instantiated_method_desc(mock, table, TAKE, &lost, 1));
    uint64_t desc = mock_instantiated_method_desc(mock, table, TAKE, &process.int32, 1);
    uint64_t broken = add_code(&process, desc);
    mock_set(mock, lost, "MethodTable.Module", 0x10);
    mock_set(mock, desc, "InstantiatedMethodDesc.PerInstInfo", 0);
    const char *name = "Ns.Outer<int>.In+ner.Take<U>(int, Ns.Outer<U>)";
    check_method(&process, CDACQ_NAMES_CSHARP, ip, name, "type arguments are not known: Module.PEAssembly: no memory");
    check_method(&process, CDACQ_NAMES_CSHARP, broken, name,
                 "type arguments are not known: InstantiatedMethodDesc.PerInstInfo: impossible value");
    uint64_t of_tuple = mock_generic_method_table(mock, process.module, INNER, &tuple, 1);
    const uint64_t nowhere = 0x10;
    uint64_t of_nowhere = mock_generic_method_table(mock, process.module, INNER, &nowhere, 1);
    check_method(&process, CDACQ_NAMES_CSHARP, add_code(&process, mock_method_descs(mock, of_nowhere, PLAIN, 1, NULL)),
                 "Ns.Outer<T>.In+ner.Plain(T)", "type arguments are not known: MethodTable.MTFlags: no memory");
    check_method(&process, CDACQ_NAMES_CSHARP, add_code(&process, mock_method_descs(mock, of_tuple, PLAIN, 1, NULL)),
                 "Ns.Outer<(int, B)>.In+ner.Plain((int, B))", "type arguments are not known: Module.PEAssembly");
    mock_destroy(mock);
}
END_TEST

/* (type) -> void, the type by its handle; returns the size. */
static size_t write_handle_signature(int arch, uint64_t type, uint8_t ret[16])
{
    size_t word = arch & 1 ? 8 : 4;
    memcpy(ret, (const uint8_t[]){0, 1, 1, 0x21}, 4);
    for (size_t i = 0; i < word; i++)
        ret[4 + i] = (uint8_t)(type >> 8 * (arch & 2 ? word - 1 - i : i));
    return 4 + word;
}

START_TEST(dynamic_methods)
{
    struct process process = make_process(_i);
    struct mock *mock = process.mock;
    uint64_t table = mock_method_table(mock, process.module, 0);
    const uint8_t tokens[] = {0, 1, 1, 0x12, INNER << 2};
    uint64_t ip = add_code(&process, mock_dynamic_method_desc_of(mock, table, "Dyn(", false, tokens, sizeof tokens));
    check_name(&process, CDACQ_NAMES_CSHARP, ip, "dynamicClass.Dyn((Ns.Outer`1.In+ner)");
    check_name(&process, CDACQ_NAMES_IL, ip, "void [Own] dynamicClass::Dyn((class Ns.Outer`1/In+ner)");
    check_name(&process, CDACQ_NAMES_SOS, ip, "DynamicClass.Dyn(((In+ner)");
    uint8_t handle[16];
    size_t size = write_handle_signature(_i, process.int32, handle);
    ip = add_code(&process, mock_dynamic_method_desc_of(mock, table, "IL_STUB", true, handle, size));
    char expected[128];
    snprintf(expected, sizeof expected, "void [Own] dynamicClass::IL_STUB(System.Int32 /* MT: 0x%llx */)",
             (unsigned long long)process.int32);
    check_name(&process, CDACQ_NAMES_IL, ip, expected);
    check_name(&process, CDACQ_NAMES_SOS, ip, "ILStubClass.IL_STUB(System.Int32)");
    check_name(&process, CDACQ_NAMES_CSHARP, ip, "dynamicClass.IL_STUB(int)");
    uint64_t rectangle = mock_array_method_table(mock, process.module, process.int32, 2);
    size = write_handle_signature(_i, mock_array_method_table(mock, process.module, rectangle, 0), handle);
    ip = add_code(&process, mock_dynamic_method_desc_of(mock, table, "Arrays", false, handle, size));
    check_name(&process, CDACQ_NAMES_CSHARP, ip, "dynamicClass.Arrays(int[][,])");
    const uint8_t variable[] = {0x20, 1, 1, 0x13, 0};
    uint64_t array = mock_array_method_table(mock, process.module, process.int32, 2);
    ip = add_code(&process, mock_dynamic_method_desc_of(mock, array, "Set", true, variable, sizeof variable));
    check_name(&process, CDACQ_NAMES_SOS, ip, "ILStubClass.Set(Int32)"); /* the element is the array's argument */
    check_name(&process, CDACQ_NAMES_IL, ip, "instance void [Own] dynamicClass::Set(!0)");
    mock_destroy(mock);
}
END_TEST

/* In the spellings that show arguments. The definition still has a name. */
static void check_no_name(struct process *process, uint64_t ip, const char *why)
{
    for (enum cdacq_name_style style = CDACQ_NAMES_SOS; style <= CDACQ_NAMES_IL; style++) {
        struct cdacq_method method = {.size = sizeof method};
        struct cdacq_target *target = open_process(process, style);
        struct cdacq_session *session = mock_session(target);
        ck_assert_int_eq(cdacq_session_method_at(session, ip, &method, NULL), CDACQ_OK);
        ck_assert_ptr_null(method.name);
        ck_assert_ptr_nonnull(method.error);
        if (!strstr(method.error, why))
            ck_abort_msg("%s", method.error);
        cdacq_session_destroy(session);
        cdacq_target_close(target);
    }
}

START_TEST(what_contradicts_itself_has_no_name)
{
    for (unsigned i = 0; i < 7; i++) {
        struct process process = make_process(_i);
        struct mock *mock = process.mock;
        uint64_t vector = mock_array_method_table(mock, process.module, process.int32, 0);
        uint64_t pointer = mock_type_desc(mock, PTR, vector);
        uint64_t arguments[] = {i == 0   ? vector
                                : i == 1 ? pointer
                                : i == 2 ? mock_type_desc(mock, VAR, 0)
                                         : process.int32};
        uint64_t table = mock_generic_method_table(mock, process.module, INNER, arguments, 1);
        uint64_t ip = add_code(&process, mock_method_descs(mock, table, PLAIN, 1, NULL));
        uint64_t info = mock_get(mock, table, "MethodTable.PerInstInfo") - (_i & 1 ? 8 : 4);
        const char *why = "";
        if (i < 2) { /* an array of itself, or of pointers to itself */
            mock_set(mock, vector, "MethodTable.PerInstInfo", i ? pointer : vector);
            why = "bound";
        } else if (i == 3) {
            mock_set(mock, info, "GenericsDictInfo.NumDicts", 0);
            why = "GenericsDictInfo";
        } else if (i == 4) {
            mock_set(mock, info, "GenericsDictInfo.NumTypeArgs", 0xffff);
            why = "GenericsDictInfo";
        } else if (i == 5) {
            mock_set(mock, info, "GenericsDictInfo.NumDicts", 0xffff);
        } else if (i == 6) {
            mock_set(mock, process.int32, "MethodTable.Module", 0x10);
        }
        check_no_name(&process, ip, why);
        mock_destroy(mock);
    }
}
END_TEST

/* Missing arguments are never left out of the name. */
START_TEST(methods_that_contradict_themselves_have_no_name)
{
    static const struct {
        const char *field;
        uint64_t value;
    } cases[] = {{"InstantiatedMethodDesc.NumGenericArgs", 0},
                 {"InstantiatedMethodDesc.NumGenericArgs", 300},
                 {"InstantiatedMethodDesc.PerInstInfo", 0}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct process process = make_process(_i);
        struct mock *mock = process.mock;
        uint64_t table = mock_generic_method_table(mock, process.module, INNER, &process.int32, 1);
        uint64_t desc = mock_instantiated_method_desc(mock, table, TAKE, &process.int32, 1);
        uint64_t ip = add_code(&process, desc);
        mock_set(mock, desc, cases[i].field, cases[i].value);
        struct cdacq_method method = {.size = sizeof method};
        struct cdacq_target *target = open_process(&process, CDACQ_NAMES_SOS);
        struct cdacq_session *session = mock_session(target);
        ck_assert_int_eq(cdacq_session_method_at(session, ip, &method, NULL), CDACQ_OK);
        ck_assert_ptr_null(method.name);
        ck_assert_ptr_nonnull(method.error);
        ck_assert_msg(strstr(method.error, cases[i].field) != NULL, "%s", method.error);
        cdacq_session_destroy(session);
        cdacq_target_close(target);
        mock_destroy(mock);
    }
}
END_TEST

/* A definition, and a stub that passes on what a method of a generic type is instantiated over. */
START_TEST(methods_without_arguments_of_their_own)
{
    enum { DEFINITION = 1, WRAPPER_STUB = 4 };
    struct process process = make_process(_i);
    struct mock *mock = process.mock;
    uint64_t table = mock_generic_method_table(mock, process.module, INNER, &process.int32, 1);
    uint64_t definition = mock_instantiated_method_desc(mock, table, TAKE, &process.int32, 1);
    uint64_t stub = mock_instantiated_method_desc(mock, table, PLAIN, &process.int32, 1);
    uint64_t ips[] = {add_code(&process, definition), add_code(&process, stub)};
    mock_set(mock, definition, "InstantiatedMethodDesc.Flags2", DEFINITION);
    mock_set(mock, stub, "InstantiatedMethodDesc.Flags2", WRAPPER_STUB);
    mock_set(mock, stub, "InstantiatedMethodDesc.NumGenericArgs", 0);
    mock_set(mock, stub, "InstantiatedMethodDesc.PerInstInfo", 0);
    check_name(&process, CDACQ_NAMES_SOS, ips[0],
               "Ns.Outer`1+In\\+ner[[System.Int32, Own]].Take(Int32, Ns.Outer`1<!!0>)");
    check_name(&process, CDACQ_NAMES_SOS, ips[1], "Ns.Outer`1+In\\+ner[[System.Int32, Own]].Plain(Int32)");
    mock_destroy(mock);
}
END_TEST

/* Without a name, every spelling reports the reason. */
static void check_no_name_at_all(struct process *process, uint64_t ip, const char *why)
{
    for (enum cdacq_name_style style = CDACQ_NAMES_CSHARP; style <= CDACQ_NAMES_IL; style++) {
        struct cdacq_method method = {.size = sizeof method};
        struct cdacq_target *target = open_process(process, style);
        struct cdacq_session *session = mock_session(target);
        ck_assert_int_eq(cdacq_session_method_at(session, ip, &method, NULL), CDACQ_OK);
        ck_assert_ptr_null(method.name);
        ck_assert_ptr_nonnull(method.error);
        ck_assert_msg(strstr(method.error, why) != NULL, "%s", method.error);
        cdacq_session_destroy(session);
        cdacq_target_close(target);
    }
}

/* The address of a string in a mapped image. */
static uint64_t find_in_image(struct mock *mock, uint64_t base, const char *string)
{
    for (uint64_t at = base, end = base + 0x10000; at < end; at++) {
        size_t n = 0;
        while (mock_read_uint(mock, at + n, 1) == (uint8_t)string[n])
            if (!string[n++])
                return at;
    }
    ck_abort_msg("there is no %s", string);
}

/* "NAME<NAME<... int ...>>", with other words for each. */
static void nest(char *to, unsigned depth, const char *open, const char *innermost, const char *close)
{
    *to = '\0';
    for (unsigned i = 0; i < depth; i++)
        to = stpcpy(to, open);
    to = stpcpy(to, innermost);
    for (unsigned i = 0; i < depth; i++)
        to = stpcpy(to, close);
}

/* Only the length of a name is bounded, and the stack of the thread. */
START_TEST(deep_arguments)
{
    enum { DEPTH = 300 };
    static char nested[DEPTH * 32], expected[3 * DEPTH * 32];
    struct process process = make_process(_i);
    struct mock *mock = process.mock;
    uint64_t argument = process.int32;
    for (unsigned i = 0; i < DEPTH; i++)
        argument = mock_generic_method_table(mock, process.module, OUTER, &argument, 1);
    uint64_t table = mock_generic_method_table(mock, process.module, INNER, &argument, 1);
    uint64_t ip = add_code(&process, mock_method_descs(mock, table, PLAIN, 1, NULL));
    nest(nested, DEPTH, "Ns.Outer<", "int", ">");
    snprintf(expected, sizeof expected, "Ns.Outer<%s>.In+ner.Plain(%s)", nested, nested);
    check_name(&process, CDACQ_NAMES_CSHARP, ip, expected);
    nest(nested, DEPTH, "Ns.Outer`1[", "System.Int32", "]");
    snprintf(expected, sizeof expected, "void [Own] Ns.Outer`1+In\\+ner[%s]::Plain(!0)", nested);
    check_name(&process, CDACQ_NAMES_IL, ip, expected);
    nest(nested, DEPTH, "Ns.Outer`1[[", "System.Int32", ", Own]]");
    size_t length = (size_t)snprintf(expected, sizeof expected, "Ns.Outer`1+In\\+ner[[%s, Own]].Plain(", nested);
    nest(nested, DEPTH, "Ns.Outer`1<", "Int32", ">");
    snprintf(expected + length, sizeof expected - length, "%s)", nested);
    check_name(&process, CDACQ_NAMES_SOS, ip, expected);
    mock_destroy(mock);
}
END_TEST

/* Of the modules that a name needs, the message names the one that is missing, in whole or in part. */
START_TEST(the_module_that_is_missing_is_named)
{
    for (unsigned partly = 0; partly < 2; partly++) {
        struct process process = make_process(_i);
        struct mock *mock = process.mock;
        size_t size;
        uint8_t *metadata = write_metadata(&size);
        uint64_t other = mock_module(mock, &(struct mock_module_options){
                                               .path = "/mock/other.dll", .metadata = metadata, .metadata_size = size});
        uint64_t base = mock_get(mock, other, "Module.Base"), missing = base;
        uint64_t last = mock_method_table(mock, other, 5);
        uint64_t table = mock_generic_method_table(mock, process.module, INNER, &last, 1);
        uint64_t ip = add_code(&process, mock_method_descs(mock, table, PLAIN, 1, NULL));
        const uint8_t signature[] = {0, 1, 1, 0x12, 5 << 2};
        uint64_t dynamic =
            add_code(&process, mock_dynamic_method_desc_of(mock, last, "Dyn", false, signature, sizeof signature));
        if (partly)
            missing = find_in_image(mock, base, "Last");
        mock_unmap(mock, missing, partly ? 1 : 16);
        char expected[128];
        snprintf(expected, sizeof expected, "other.dll: metadata: no memory at 0x%llx; it belongs to /mock/other.dll",
                 (unsigned long long)missing);
        for (enum cdacq_name_style style = CDACQ_NAMES_SOS; style <= CDACQ_NAMES_IL; style++) {
            check_method(&process, style, ip, NULL, expected);
            check_method(&process, style, dynamic, NULL, expected);
        }
        char doubt[192];
        snprintf(doubt, sizeof doubt, "type arguments are not known: %s", expected);
        check_method(&process, CDACQ_NAMES_CSHARP, ip, "Ns.Outer<T>.In+ner.Plain(T)", doubt);
        check_name(&process, CDACQ_NAMES_CSHARP, dynamic, "dynamicClass.Dyn(...)");
        free(metadata);
        mock_destroy(mock);
    }
}
END_TEST

/* What the module cache requests from the layer above. */
struct asked {
    const char *path;
    uint64_t address, bases[3];
    size_t paths, positions;
};

static const char *path_at(void *context, uint64_t address)
{
    struct asked *asked = context;
    asked->paths++;
    asked->address = address;
    return asked->path;
}

static bool next_assembly(void *context, struct reader *reader, const char *name, size_t length, size_t *position,
                          uint64_t *ret_base)
{
    struct asked *asked = context;
    ck_assert(length == 3 && strncmp(name, "Own", 3) == 0);
    if (*position == ARRAY_SIZE(asked->bases) || !reader_step(reader, "files"))
        return false;
    *ret_base = asked->bases[(*position)++];
    asked->positions++;
    return true;
}

/* The layer above finds files; the cache searches for none. */
START_TEST(the_layer_above_finds_the_files)
{
    struct process process = make_process(_i);
    uint64_t base = mock_get(process.mock, process.module, "Module.Base");
    struct cdacq_target *target = open_process(&process, CDACQ_NAMES_CSHARP);
    struct cdacq_session *session = mock_session(target);
    struct asked asked = {.path = "/else/where.dll", .bases = {0x10, base, base}};
    struct module_files files = {.path_at = path_at, .next_assembly = next_assembly, .context = &asked};
    struct module_cache cache;
    module_cache_init(&cache, &session->resolver.reader, files);
    reader_begin(&session->resolver.reader, FUEL_NAME);
    struct module *module = module_cache_get(&cache, process.module);
    ck_assert(module && module->status == CDACQ_OK);
    ck_assert_str_eq(module->path, "/else/where.dll");
    ck_assert_uint_eq(asked.address, base);
    ck_assert_ptr_eq(module_cache_get(&cache, process.module), module);
    ck_assert_uint_eq(asked.paths, 1); /* once for each module */
    ck_assert_uint_eq(reader_fuel(&session->resolver.reader), FUEL_NAME - MODULE_COST);
    /* Neither is the assembly of this MVID; the message names the one that cannot be read. */
    ck_assert_ptr_null(module_cache_find_assembly(&cache, "Own", 3, (const uint8_t[16]){1}));
    ck_assert_uint_eq(asked.positions, ARRAY_SIZE(asked.bases));
    ck_assert(cache.failed && cache.failed->base == 0x10);
    ck_assert(!reader_failed(&session->resolver.reader)); /* the module failed, the task did not */
    module_cache_deinit(&cache);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(process.mock);
}
END_TEST

START_TEST(images_without_metadata)
{
    struct process process = {.mock = mock_of_arch(_i, (uint64_t)_i + 5)};
    const uint8_t instance[] = {0x04, 1, 1, 0x08}; /* MethodDef 1 over int */
    const uint64_t size = 32;
    struct mock_r2r *r2r =
        mock_r2r_create(process.mock, &(struct mock_r2r_options){.tables = MOCK_R2R_INSTANCES | MOCK_R2R_METHODDEFS});
    struct mock_r2r_method methods[] = {
        {.hot = &size, .hot_count = 1, .instance = instance, .instance_size = sizeof instance},
        {.hot = &size, .hot_count = 1, .rid = 1}};
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
        mock_r2r_method(r2r, &methods[i]);
    mock_r2r_finish(r2r);
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
        check_no_name_at_all(&process, mock_r2r_start(r2r, i), "neither an image nor dynamic metadata");
    mock_destroy(process.mock);
}
END_TEST

static void check_definition(struct process *process, uint64_t ip, uint32_t token, const char *module)
{
    struct cdacq_method method = {.size = sizeof method};
    struct cdacq_target *target = open_process(process, CDACQ_NAMES_CSHARP);
    struct cdacq_session *session = mock_session(target);
    ck_assert_int_eq(cdacq_session_method_at(session, ip, &method, NULL), CDACQ_OK);
    ck_assert_uint_eq(method.token, token);
    ck_assert_str_eq(method.module, module);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
}

/* What cannot be read from the MethodDesc can be in the image, which may refer to the method instead of defining it. */
START_TEST(arguments_in_the_image)
{
    static const uint8_t own[] = {0x44, 0x15, 0x12, INNER << 2, 1, 0x08, TAKE, 1, 0x08}; /* In+ner<int>.Take<int> */
    static const uint8_t reference[] = {0x50, 0x15, 0x12, INNER << 2, 1, 0x08, 1};       /* In+ner<int>.Plain */
    struct process process = make_process(_i);
    struct mock *mock = process.mock;
    size_t size;
    uint8_t *metadata = write_metadata(&size);
    const uint64_t length = 32;
    struct mock_r2r *r2r = mock_r2r_create(
        mock, &(struct mock_r2r_options){.tables = MOCK_R2R_INSTANCES, .metadata = metadata, .metadata_size = size});
    uint64_t lost = mock_method_table(mock, r2r->module, LAST);
    uint64_t table = mock_generic_method_table(mock, r2r->module, INNER, &process.int32, 1);
    uint64_t of_lost = mock_generic_method_table(mock, r2r->module, INNER, &lost, 1);
    uint64_t take = mock_instantiated_method_desc(mock, table, TAKE, &lost, 1);
    uint64_t plain = mock_method_descs(mock, of_lost, PLAIN, 1, NULL);
    const struct mock_r2r_method methods[] = {
        {.hot = &length, .hot_count = 1, .method_desc = take, .instance = own, .instance_size = sizeof own},
        {.hot = &length, .hot_count = 1, .method_desc = take},
        {.hot = &length,
         .hot_count = 1,
         .method_desc = plain,
         .instance = reference,
         .instance_size = sizeof reference},
    };
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
        mock_r2r_method(r2r, &methods[i]);
    mock_r2r_finish(r2r);
    mock_set(mock, lost, "MethodTable.Module", 0x10);
    check_name(&process, CDACQ_NAMES_CSHARP, mock_r2r_start(r2r, 0),
               "Ns.Outer<int>.In+ner.Take<int>(int, Ns.Outer<int>)");
    check_method(&process, CDACQ_NAMES_CSHARP, mock_r2r_start(r2r, 1), "Ns.Outer<int>.In+ner.Take<U>(int, Ns.Outer<U>)",
                 "type arguments are not known: Module.PEAssembly");
    check_name(&process, CDACQ_NAMES_CSHARP, mock_r2r_start(r2r, 2), "Ns.Outer<int>.In+ner.Plain(int)");
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
        check_definition(&process, mock_r2r_start(r2r, i), METADATA_METHOD_DEF << 24 | (i < 2 ? TAKE : PLAIN),
                         "/mock/r2r.dll");
    free(metadata);
    mock_destroy(mock);
}
END_TEST

/*
 * The runtime's map has a MethodDesc of one method for the code of another: neither is named, whether the tables of the
 * image have been read before or not.
 */
START_TEST(the_map_and_the_image_contradict_each_other)
{
    static const char why[] = "the method at 0x";
    const uint64_t length = 32;
    for (int other_first = 0; other_first < 2; other_first++) {
        struct process process = make_process(_i);
        struct mock *mock = process.mock;
        size_t size;
        uint8_t *metadata = write_metadata(&size);
        struct mock_r2r *r2r = mock_r2r_create(
            mock,
            &(struct mock_r2r_options){.tables = MOCK_R2R_METHODDEFS, .metadata = metadata, .metadata_size = size});
        uint64_t plain = mock_method_descs(mock, mock_method_table(mock, r2r->module, INNER), PLAIN, 1, NULL);
        mock_r2r_method(r2r, &(struct mock_r2r_method){&length, 1, .rid = TAKE, .method_desc = plain});
        mock_r2r_method(r2r, &(struct mock_r2r_method){&length, 1, .rid = PLAIN, .method_desc = plain});
        mock_r2r_finish(r2r);
        struct cdacq_target *target = open_process(&process, CDACQ_NAMES_CSHARP);
        struct cdacq_session *session = mock_session(target);
        for (int i = 0; i < 4; i++) {
            bool is_own = (i + other_first) % 2;
            struct cdacq_method method = {.size = sizeof method};
            enum cdacq_status status = cdacq_session_method_at(session, mock_r2r_start(r2r, is_own), &method, NULL);
            ck_assert_int_eq(status, CDACQ_OK);
            ck_assert_pstr_eq(method.name, is_own ? "Ns.Outer<T>.In+ner.Plain(T)" : NULL);
            ck_assert_uint_eq(method.token, is_own ? METADATA_METHOD_DEF << 24 | PLAIN : 0);
            ck_assert(is_own ? !method.error : !strncmp(method.error, why, strlen(why)));
        }
        cdacq_session_destroy(session);
        cdacq_target_close(target);
        free(metadata);
        mock_destroy(mock);
    }
}
END_TEST

/* A name that does without what cannot be read leaves no failure behind: more is read with the same reader. */
START_TEST(names_leave_no_failure)
{
    struct process process = make_process(_i);
    struct mock *mock = process.mock;
    const uint8_t signature[] = {0, 1, 1, 0x08};
    uint64_t table = mock_method_table(mock, process.module, 0);
    uint64_t desc = mock_dynamic_method_desc_of(mock, table, "Dyn", false, signature, sizeof signature);
    mock_set(mock, desc, "StoredSigMethodDesc.Sig", 0x10);
    struct cdacq_target *target = open_process(&process, CDACQ_NAMES_CSHARP);
    struct cdacq_session *session = mock_session(target);
    const struct method_namer namer = {
        .cache = &session->resolver.modules, .spelling = &name_spelling_stack_trace, .runtime_types = true};
    struct method_name name = {0};
    reader_begin(&session->resolver.reader, FUEL_NAME);
    method_name_of_desc(&namer, desc, &name);
    ck_assert_str_eq(name.text.data, ".Dyn(...)");
    ck_assert(!reader_failed(&session->resolver.reader));
    text_deinit(&name.text);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

START_TEST(names_that_are_too_long)
{
    enum { COUNT = 4200 };
    struct process process = make_process(_i);
    uint8_t signature[4 + 2 * COUNT] = {0, 0x80 | COUNT >> 8, COUNT & 0xff, 1};
    for (size_t i = 0; i < COUNT; i++)
        memcpy(signature + 4 + 2 * i, (const uint8_t[]){0x12, INNER << 2}, 2);
    uint64_t table = mock_method_table(process.mock, process.module, 0);
    uint64_t ip = add_code(
        &process, mock_dynamic_method_desc_of(process.mock, table, "Long", false, signature, sizeof signature));
    char expected[128];
    snprintf(expected, sizeof expected, "the method at 0x%llx: its name is longer than 65536 bytes, or memory ran out",
             (unsigned long long)ip);
    check_method(&process, CDACQ_NAMES_CSHARP, ip, NULL, expected);
    mock_destroy(process.mock);
}
END_TEST

static void check_tier(struct process *process, uint64_t ip, const char *expected)
{
    struct cdacq_method method = {.size = sizeof method};
    struct cdacq_target *target = open_process(process, CDACQ_NAMES_CSHARP);
    struct cdacq_session *session = mock_session(target);
    ck_assert_int_eq(cdacq_session_method_at(session, ip, &method, NULL), CDACQ_OK);
    ck_assert_pstr_eq(method.tier, expected);
    ck_assert_str_eq(method.name, "Ns.Outer<int>.In+ner.Plain(int)");
    cdacq_session_destroy(session);
    cdacq_target_close(target);
}

START_TEST(tiers)
{
    static const char *const names[] = {
        "Tier0", "Tier1", "Tier1OSR", "Optimized", "Tier0Instrumented", "Tier1Instrumented", NULL};
    struct process process = make_process(_i);
    struct mock *mock = process.mock;
    uint64_t table = mock_generic_method_table(mock, process.module, INNER, &process.int32, 1);
    uint64_t desc = mock_method_descs(mock, table, PLAIN, 1, NULL), code[ARRAY_SIZE(names)];
    uint64_t first = add_code(&process, desc), other = mock_method_descs(mock, table, PLAIN, 1, NULL);
    for (uint32_t tier = 0; tier < ARRAY_SIZE(names); tier++)
        mock_code_version(mock, desc, code[tier] = add_code(&process, desc), tier);
    uint64_t bare = add_code(&process, other);
    for (size_t tier = 0; tier < ARRAY_SIZE(names); tier++)
        check_tier(&process, code[tier] + 7, names[tier]);
    check_tier(&process, first, NULL);
    check_tier(&process, bare, NULL); /* there is nothing to ask */
    mock_code_version(mock, desc, 0, 3);
    check_tier(&process, first, "Optimized");
    check_tier(&process, code[0], "Tier0");
    /* Versions in a cycle: the name without a tier. */
    uint64_t state = mock_get(mock, mock_get(mock, desc, "MethodDesc.CodeData"), "MethodDescCodeData.VersioningState");
    uint64_t node = mock_get(mock, state, "MethodDescVersioningState.NativeCodeVersionNode");
    mock_set(mock, node, "NativeCodeVersionNode.Next", node);
    check_tier(&process, first, NULL);
    check_tier(&process, code[ARRAY_SIZE(names) - 2], NULL);
    mock_set(mock, desc, "MethodDesc.CodeData", 0x10); /* nothing is there */
    check_tier(&process, first, NULL);
    mock_destroy(mock);
}
END_TEST

/* .NET 10 publishes the nodes, but not what they were compiled for. */
START_TEST(tiers_that_are_not_published)
{
    struct process process = make_process(_i);
    struct mock *mock = process.mock;
    uint64_t table = mock_generic_method_table(mock, process.module, INNER, &process.int32, 1);
    uint64_t desc = mock_method_descs(mock, table, PLAIN, 1, NULL), ip = add_code(&process, desc);
    mock_code_version(mock, desc, ip, 1);
    mock_hide(mock, "NativeCodeVersionNode.OptimizationTier");
    check_tier(&process, ip, NULL);
    mock_destroy(mock);
}
END_TEST

/* A profiler has the second version compiled from IL of its own. */
START_TEST(versions_of_il)
{
    struct process process = make_process(_i);
    struct mock *mock = process.mock;
    uint64_t table = mock_generic_method_table(mock, process.module, INNER, &process.int32, 1);
    uint64_t desc = mock_method_descs(mock, table, PLAIN, 1, NULL), first = add_code(&process, desc);
    uint64_t second = add_code(&process, desc), bare = mock_method_descs(mock, table, PLAIN, 1, NULL);
    mock_code_version(mock, desc, second, 1);
    uint64_t state = mock_get(mock, mock_get(mock, desc, "MethodDesc.CodeData"), "MethodDescCodeData.VersioningState");
    uint64_t node = mock_get(mock, state, "MethodDescVersioningState.NativeCodeVersionNode");
    mock_set(mock, node, "NativeCodeVersionNode.ILVersionId", 3);
    struct cdacq_target *target = open_process(&process, CDACQ_NAMES_CSHARP);
    struct reader reader = mock_reader(target);
    ck_assert_uint_eq(code_versions_il_version(&reader, desc, first), 0);
    ck_assert_uint_eq(code_versions_il_version(&reader, desc, second), 3);
    ck_assert_uint_eq(code_versions_il_version(&reader, bare, second), 0); /* a method without versions */
    ck_assert(!reader_failed(&reader));
    mock_set(mock, node, "NativeCodeVersionNode.Next", node);
    ck_assert_uint_eq(code_versions_il_version(&reader, desc, first), 0);
    ck_assert(reader_failed(&reader)); /* the list does not end */
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* Hot reload has edited methods 1 and 2; a profiler has replaced the IL of 2 and 3; 4 and 5 are as they were. */
START_TEST(edited_methods)
{
    enum { COUNT = 5, PLACES = COUNT + 1, MISSING = 0x10 };
    static const bool edited[PLACES] = {false, true, true, false, false, false};
    struct process process = make_process(_i);
    struct mock *mock = process.mock;
    const uint64_t lists[PLACES] = {0, il_version_put(mock, IL_VERSION_EDIT, il_version_put(mock, IL_VERSION_EDIT, 0)),
                                    il_version_put(mock, IL_VERSION_REJIT, il_version_put(mock, IL_VERSION_EDIT, 0)),
                                    il_version_put(mock, IL_VERSION_REJIT, 0)};
    unsigned word = mock_pointer_size(mock);
    uint64_t places = il_versions_put(mock, process.module, lists, PLACES);
    uint64_t assembly = mock_get(mock, process.module, "Module.PEAssembly");
    mock_set(mock, assembly, "PEAssembly.MDImportIsRW", 1);
    struct cdacq_target *target = open_process(&process, CDACQ_NAMES_CSHARP);
    struct reader reader = mock_reader(target);
    for (uint32_t i = 0; i < PLACES; i++)
        ck_assert_int_eq(code_versions_is_edited(&reader, process.module, 0x06000000 | i), edited[i]);
    ck_assert(!code_versions_is_edited(&reader, process.module, 0x06000000 | PLACES));
    ck_assert(!code_versions_is_edited(&reader, 0, 0x06000001));
    ck_assert(!reader_failed(&reader));
    /* Without metadata of the runtime's own, nothing was edited, whatever a core has of the versions. */
    mock_write_uint(mock, places + COUNT * word, word, MISSING);
    mock_set(mock, assembly, "PEAssembly.MDImportIsRW", 0);
    ck_assert(!code_versions_is_edited(&reader, process.module, 0x06000001));
    ck_assert(!code_versions_is_edited(&reader, process.module, 0x06000000 | COUNT));
    ck_assert(!reader_failed(&reader));
    mock_set(mock, assembly, "PEAssembly.MDImportIsRW", 1);
    ck_assert(code_versions_is_edited(&reader, process.module, 0x06000000 | COUNT));
    ck_assert(reader_failed(&reader));
    reader = mock_reader(target);
    mock_set(mock, lists[3], "ILCodeVersionNode.Next", lists[3]);
    ck_assert(code_versions_is_edited(&reader, process.module, 0x06000003)); /* the list does not end */
    ck_assert(reader_failed(&reader));
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

/* An assembly that forbids optimization: the tier of code that no tier can replace says nothing of it. */
START_TEST(tiers_without_optimization)
{
    struct process process = make_process(_i);
    struct mock *mock = process.mock;
    uint64_t table = mock_generic_method_table(mock, process.module, INNER, &process.int32, 1);
    uint64_t desc = mock_method_descs(mock, table, PLAIN, 1, NULL), fixed = add_code(&process, desc);
    uint64_t tiered = add_code(&process, desc);
    mock_code_version(mock, desc, fixed, 3);
    mock_code_version(mock, desc, tiered, 1);
    check_tier(&process, fixed, "Optimized");
    mock_set(mock, process.module, "Module.Flags", mock_get(mock, process.module, "Module.Flags") ^ 0x800);
    check_tier(&process, fixed, NULL);
    check_tier(&process, tiered, "Tier1");
    mock_destroy(mock);
}
END_TEST

/* A runtime that says neither whether a module forbids optimization nor which IL a version has, as .NET 8. */
START_TEST(versions_that_are_not_described)
{
    struct process process = make_process(_i);
    struct mock *mock = process.mock;
    uint64_t table = mock_generic_method_table(mock, process.module, INNER, &process.int32, 1);
    uint64_t desc = mock_method_descs(mock, table, PLAIN, 1, NULL), code = add_code(&process, desc);
    mock_code_version(mock, desc, code, 3);
    uint64_t state = mock_get(mock, mock_get(mock, desc, "MethodDesc.CodeData"), "MethodDescCodeData.VersioningState");
    uint64_t node = mock_get(mock, state, "MethodDescVersioningState.NativeCodeVersionNode");
    mock_set(mock, node, "NativeCodeVersionNode.ILVersionId", 3);
    mock_set(mock, process.module, "Module.Flags", 0);
    mock_hide(mock, "Module.Flags");
    mock_hide(mock, "NativeCodeVersionNode.ILVersionId");
    check_tier(&process, code, "Optimized");
    struct cdacq_target *target = open_process(&process, CDACQ_NAMES_CSHARP);
    struct reader reader = mock_reader(target);
    ck_assert_uint_eq(code_versions_il_version(&reader, desc, code), 0);
    ck_assert(!reader_failed(&reader));
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("method_name");
    TCase *t = tcase_create("method_name");
    tcase_add_loop_test(t, type_arguments, 0, ARCH_COUNT);
    tcase_add_loop_test(t, deep_arguments, 0, ARCH_COUNT);
    tcase_add_loop_test(t, arguments_of_arguments, 0, ARCH_COUNT);
    tcase_add_loop_test(t, arguments_of_methods, 0, ARCH_COUNT);
    tcase_add_loop_test(t, arguments_in_csharp, 0, ARCH_COUNT);
    tcase_add_loop_test(t, shared_arguments, 0, ARCH_COUNT);
    tcase_add_loop_test(t, arguments_that_are_missing, 0, ARCH_COUNT);
    tcase_add_loop_test(t, dynamic_methods, 0, ARCH_COUNT);
    tcase_add_loop_test(t, what_contradicts_itself_has_no_name, 0, ARCH_COUNT);
    tcase_add_loop_test(t, methods_that_contradict_themselves_have_no_name, 0, ARCH_COUNT);
    tcase_add_loop_test(t, methods_without_arguments_of_their_own, 0, ARCH_COUNT);
    tcase_add_loop_test(t, the_module_that_is_missing_is_named, 0, ARCH_COUNT);
    tcase_add_loop_test(t, the_layer_above_finds_the_files, 0, ARCH_COUNT);
    tcase_add_loop_test(t, images_without_metadata, 0, ARCH_COUNT);
    tcase_add_loop_test(t, arguments_in_the_image, 0, ARCH_COUNT);
    tcase_add_loop_test(t, the_map_and_the_image_contradict_each_other, 0, ARCH_COUNT);
    tcase_add_loop_test(t, names_leave_no_failure, 0, ARCH_COUNT);
    tcase_add_loop_test(t, names_that_are_too_long, 0, ARCH_COUNT);
    tcase_add_loop_test(t, tiers, 0, ARCH_COUNT);
    tcase_add_loop_test(t, tiers_that_are_not_published, 0, ARCH_COUNT);
    tcase_add_loop_test(t, versions_of_il, 0, ARCH_COUNT);
    tcase_add_loop_test(t, edited_methods, 0, ARCH_COUNT);
    tcase_add_loop_test(t, tiers_without_optimization, 0, ARCH_COUNT);
    tcase_add_loop_test(t, versions_that_are_not_described, 0, ARCH_COUNT);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
