#include "formats/names/names.h"

#include <stdio.h>

#include "tests/support/check_main.h"
#include "tests/support/metadata_writer.h"
#include "tests/support/type_names.h"

static const struct name_spelling *const spelling_SOS = &name_spelling_sos, *const spelling_IL = &name_spelling_il;
static const struct name_spelling *const spellings[] = {&name_spelling_sos, &name_spelling_il};
static struct text text;
static struct metadata_writer writer;
static uint8_t *written;
static struct bytes written_bytes;
static struct metadata m;
static struct name_source source;

/* What `call`, which appends to `text`, gives; macros so that a failure shows the caller's line. */
#define assert_name(call, expected)            \
    do {                                       \
        text_clear(&text);                     \
        ck_assert_int_eq(call, CDACQ_OK);      \
        ck_assert_str_eq(text.data, expected); \
    } while (0)

#define assert_no_name(call, status)           \
    do {                                       \
        text_clear(&text);                     \
        text_puts(&text, "before");            \
        ck_assert_int_eq(call, status);        \
        ck_assert_str_eq(text.data, "before"); \
        ck_assert_uint_eq(text.length, 6);     \
    } while (0)

#define SIGNATURE(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})
#define BLOB(...)      metadata_writer_blob(&writer, SIGNATURE(__VA_ARGS__))

static enum cdacq_status name_signature(const struct name_spelling *spelling, const void *signature, size_t length)
{
    const struct dynamic_method method = {.owner = "C", .name = "N", .signature = signature, .length = length};
    return name_dynamic(&source, spelling, &method, &text);
}

/* A method `C.N` with that signature; one that returns nothing, with one parameter. */
#define METHOD(style, ...)        name_signature(spelling_##style, SIGNATURE(__VA_ARGS__))
#define assert_il(expected, ...)  assert_name(METHOD(IL, 0, 1, 1, __VA_ARGS__), "void [Own] C::N(" expected ")")
#define assert_sos(expected, ...) assert_name(METHOD(SOS, 0, 1, 1, __VA_ARGS__), "C.N(" expected ")")
#define assert_neither(status, ...)                                \
    do {                                                           \
        assert_no_name(METHOD(IL, 0, 1, 1, __VA_ARGS__), status);  \
        assert_no_name(METHOD(SOS, 0, 1, 1, __VA_ARGS__), status); \
    } while (0)

static uint32_t string(const char *s)
{
    return metadata_writer_string(&writer, s);
}

enum { PUBLIC = 1, NESTED = 2 };

static uint32_t add_type(uint32_t flags, const char *namespace_name, const char *name)
{
    return METADATA_ROW(&writer, METADATA_TYPE_DEF, flags, string(name), *namespace_name ? string(namespace_name) : 0,
                        0, 1, writer.tables[METADATA_METHOD_DEF].rows + 1);
}

static uint32_t add_method(const char *name, uint32_t signature)
{
    return METADATA_ROW(&writer, METADATA_METHOD_DEF, 0, 0, 0, string(name), signature, 1);
}

static void open_written(void)
{
    size_t size;
    free(written);
    written = metadata_writer_finish(&writer, &size);
    written_bytes = bytes_of_buffer(written, size);
    ck_assert_int_eq(metadata_open(&written_bytes, &m), CDACQ_OK);
}

/* Types of every kind; as TypeDefOrRef in signatures: rid << 2 | 0 (TypeDef), 1 (TypeRef), 2 (TypeSpec). */
enum {
    OUTER = 2 << 2,    /* Ns.Outer`1, and nested in it: */
    INNER = 3 << 2,    /* Inner */
    ODD = 4 << 2,      /* Ns.A+B[,]&*\\C */
    LIST = 1 << 2 | 1, /* [System.Runtime]System.List`1, and nested in it: */
    ENUMERATOR = 2 << 2 | 1,
    OTHER = 3 << 2 | 1,     /* of another file of the assembly */
    HERE = 4 << 2 | 1,      /* in this module */
    SAME = 5 << 2 | 1,      /* of the same module */
    MODIFIER = 6 << 2 | 1,  /* [System.Runtime]In */
    SPEC = 1 << 2 | 2,      /* int32[] */
    TAKE = 0x06000001,      /* of Ns.Outer`1+Inner */
    EXPLICIT = 0x06000002,  /* a name with parentheses */
    ODD_METHOD = 0x06000003 /* of the odd type */
};

static void setup(void)
{
    metadata_writer_init(&writer);
    METADATA_ROW(&writer, METADATA_ASSEMBLY, 0, 1, 0, 0, 0, 0, 0, string("Own"), 0);
    METADATA_ROW(&writer, METADATA_ASSEMBLY_REF, 1, 0, 0, 0, 0, 0, string("System.Runtime"), 0, 0);
    METADATA_ROW(&writer, METADATA_MODULE_REF, string("Other.netmodule"));
    uint32_t outer = add_type(PUBLIC, "Ns", "Outer`1"), inner = add_type(NESTED, "", "Inner");
    /* instance T Take<U>(T, U, Outer<T>.Inner&, List<U[]>, int) */
    add_method("Take", BLOB(0x30, 1, 5, 0x13, 0, 0x13, 0, 0x1e, 0, 0x10, 0x15, 0x12, INNER, 1, 0x13, 0, 0x15, 0x12,
                            LIST, 1, 0x1d, 0x1e, 0, 8));
    add_method("I<(A,B)>.Get", BLOB(0x20, 1, 8, 8));
    METADATA_ROW(&writer, METADATA_NESTED_CLASS, inner, outer);
    add_type(PUBLIC, "N\\s", "A+B[,]&*\\C\n");
    add_method("M\\\n", BLOB(0, 0, 1));
    uint32_t list =
        METADATA_ROW(&writer, METADATA_TYPE_REF, 1 << 2 | CODED_ASSEMBLY_REF, string("List`1"), string("System"));
    METADATA_ROW(&writer, METADATA_TYPE_REF, list << 2 | CODED_SCOPE_TYPE_REF, string("Enumerator"), 0);
    METADATA_ROW(&writer, METADATA_TYPE_REF, 1 << 2 | CODED_MODULE_REF, string("Other"), string("Ns"));
    METADATA_ROW(&writer, METADATA_TYPE_REF, 0, string("Here"), 0);
    METADATA_ROW(&writer, METADATA_TYPE_REF, 1 << 2 | CODED_MODULE, string("Same"), 0);
    METADATA_ROW(&writer, METADATA_TYPE_REF, 1 << 2 | CODED_ASSEMBLY_REF, string("In"), 0);
    METADATA_ROW(&writer, METADATA_TYPE_SPEC, BLOB(0x1d, 8));
    source = (struct name_source){.metadata = &m};
    open_written();
}

static void teardown(void)
{
    free(written);
    written = NULL;
    metadata_writer_deinit(&writer);
    text_deinit(&text);
}

START_TEST(primitive_types)
{
    static const struct {
        uint8_t element;
        const char *il, *sos;
    } primitives[] = {
        {1, "void", "Void"},
        {2, "bool", "Boolean"},
        {3, "char", "Char"},
        {4, "int8", "SByte"},
        {5, "uint8", "Byte"},
        {6, "int16", "Int16"},
        {7, "uint16", "UInt16"},
        {8, "int32", "Int32"},
        {9, "uint32", "UInt32"},
        {10, "int64", "Int64"},
        {11, "uint64", "UInt64"},
        {12, "float32", "Single"},
        {13, "float64", "Double"},
        {14, "string", "System.String"},
        {0x16, "typedref", "TypedReference"},
        {0x18, "native int", "IntPtr"},
        {0x19, "native uint", "UIntPtr"},
        {0x1c, "object", "System.Object"},
    };
    for (unsigned i = 0; i < ARRAY_SIZE(primitives); i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "%s [Own] C::N()", primitives[i].il);
        assert_name(METHOD(IL, 0, 0, primitives[i].element), expected);
        snprintf(expected, sizeof expected, "void [Own] C::N(%s)", primitives[i].il);
        assert_name(METHOD(IL, 0, 1, 1, primitives[i].element), expected);
        snprintf(expected, sizeof expected, "C.N(%s)", primitives[i].sos);
        assert_name(METHOD(SOS, 0, 1, 1, primitives[i].element), expected);
        snprintf(expected, sizeof expected, "C.N(%s, %s*)", primitives[i].sos, primitives[i].sos);
        assert_name(METHOD(SOS, 0, 2, 1, primitives[i].element, 0x0f, primitives[i].element), expected);
    }
    const uint8_t bad[] = {0, 0x17, 0x1a, 0x23, 0x3a, 0x3c, 0x40, 0x7f, 0x80, 0xff};
    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++)
        assert_neither(CDACQ_ERR_FORMAT, bad[i]);
}
END_TEST

START_TEST(il_classes)
{
    assert_il("valuetype Ns.Outer`1", 0x11, OUTER);
    assert_il("class Ns.Outer`1/Inner", 0x12, INNER);
    assert_il("class N\\\\s.A+B[,]&*\\\\C\\x0a", 0x12, ODD);
    assert_il("class [System.Runtime]System.List`1", 0x12, LIST);
    assert_il("valuetype [System.Runtime]System.List`1/Enumerator", 0x11, ENUMERATOR);
    assert_il("class [.module Other.netmodule]Ns.Other", 0x12, OTHER);
    assert_il("class [*]Here", 0x12, HERE);
    assert_il("class Same", 0x12, SAME);
    assert_il("class int32[]", 0x12, SPEC);
    assert_il("class [System.Runtime]System.List`1<class Ns.Outer`1/Inner<!0,!!1>>", 0x15, 0x12, LIST, 1, 0x15, 0x12,
              INNER, 2, 0x13, 0, 0x1e, 1);
    assert_il("int32<int32>", 0x15, 8, 1, 8); /* no such type, but the spelling is clear */
}
END_TEST

START_TEST(il_composed)
{
    assert_il("int32[][]", 0x1d, 0x1d, 8);
    assert_il("void**&", 0x10, 0x0f, 0x0f, 1);
    assert_il("int32[]*[]", 0x1d, 0x0f, 0x1d, 8);
    assert_il("!0& modreq([System.Runtime]In)", 0x1f, MODIFIER, 0x10, 0x13, 0);
    assert_il("int32 modopt(Ns.Outer`1) modreq([System.Runtime]In)&", 0x10, 0x1f, MODIFIER, 0x20, OUTER, 8);
    assert_il("int32 modreq(int32[])", 0x1f, SPEC, 8);
    assert_il("int32& pinned", 0x45, 0x10, 8);
    assert_il("!300", 0x13, 0x81, 0x2c);
    assert_il("!!2", 0x1e, 2);
}
END_TEST

START_TEST(il_arrays)
{
    assert_il("int32[...]", 0x14, 8, 1, 0, 0);
    assert_il("int32[,]", 0x14, 8, 2, 0, 0);
    assert_il("float64[0...,0...]", 0x14, 13, 2, 0, 2, 0, 0);
    assert_il("int32[3,0...]", 0x14, 8, 2, 1, 3, 2, 0, 0);
    assert_il("int32[4]", 0x14, 8, 1, 1, 4, 0);
    assert_il("int32[5...8]", 0x14, 8, 1, 1, 4, 1, 10);
    assert_il("int32[-64...,-1...,63...,,]", 0x14, 8, 5, 0, 3, 0x01, 0x7f, 0x7e);
    assert_il("int32[-8192...,8191...]", 0x14, 8, 2, 0, 2, 0x80, 0x01, 0xbf, 0xfe);
    assert_il("int32[-268435456...-268435454]", 0x14, 8, 1, 1, 3, 1, 0xc0, 0, 0, 1);
    assert_il("int32[268435455...]", 0x14, 8, 1, 0, 1, 0xdf, 0xff, 0xff, 0xfe);
    assert_il("int32[0...][]", 0x1d, 0x14, 8, 1, 0, 1, 0);
    assert_neither(CDACQ_ERR_FORMAT, 0x14, 8, 0, 0, 0);  /* no dimension */
    assert_neither(CDACQ_ERR_FORMAT, 0x14, 8, 33, 0, 0); /* too many */
    assert_neither(CDACQ_ERR_FORMAT, 0x14, 8, 2, 3, 1, 1, 1, 0);
    assert_neither(CDACQ_ERR_FORMAT, 0x14, 8, 2, 0, 3, 0, 0, 0);
    assert_neither(CDACQ_ERR_FORMAT, 0x14, 8, 2, 0, 2, 0);
    assert_neither(CDACQ_ERR_FORMAT, 0x14, 8, 2, 0);
}
END_TEST

START_TEST(il_heads)
{
    assert_name(METHOD(IL, 0x20, 0, 1), "instance void [Own] C::N()");
    assert_name(METHOD(IL, 0x60, 0, 1), "explicit instance void [Own] C::N()");
    assert_name(METHOD(IL, 0x30, 2, 1, 1, 0x1e, 1), "instance void [Own] C::N(!!1)");
    assert_name(METHOD(IL, 1, 0, 1), "unmanaged cdecl void [Own] C::N()");
    assert_name(METHOD(IL, 2, 0, 1), "unmanaged stdcall void [Own] C::N()");
    assert_name(METHOD(IL, 3, 0, 1), "unmanaged thiscall void [Own] C::N()");
    assert_name(METHOD(IL, 4, 0, 1), "unmanaged fastcall void [Own] C::N()");
    assert_name(METHOD(IL, 5, 1, 1, 8), "vararg void [Own] C::N(int32)");
    assert_name(METHOD(IL, 5, 2, 1, 8, 0x41, 8), "vararg void [Own] C::N(int32,...,int32)");
    assert_name(METHOD(IL, 5, 1, 1, 0x41, 8), "vararg void [Own] C::N(...,int32)");
    assert_name(METHOD(IL, 9, 0, 1), "unmanaged void [Own] C::N()");
    assert_name(METHOD(IL, 0, 3, 14, 8, 0x1d, 14, 2), "string [Own] C::N(int32,string[],bool)");
    assert_name(METHOD(IL, 0, 0, 0x1f, MODIFIER, 0x10, 8), "int32& modreq([System.Runtime]In) [Own] C::N()");
}
END_TEST

START_TEST(function_pointers)
{
    assert_il("method int32 *(int32,bool&)", 0x1b, 0, 2, 8, 8, 0x10, 2);
    assert_il("method unmanaged cdecl int32 *()", 0x1b, 1, 0, 8);
    assert_il("method vararg void *(int32,...,string)[]", 0x1d, 0x1b, 5, 2, 1, 8, 0x41, 14);
    assert_il("method method void *() *(method int32 *())", 0x1b, 0, 1, 0x1b, 0, 0, 1, 0x1b, 0, 0, 8);
    assert_sos("Int32 (Int32, Boolean ByRef)", 0x1b, 0, 2, 8, 8, 0x10, 2);
    assert_sos("Void ()", 0x1b, 1, 0, 1);
    assert_sos("Void (Int32, System.String, ...)[]", 0x1d, 0x1b, 5, 2, 1, 8, 0x41, 14);
    assert_sos("Void (...)", 0x1b, 5, 0, 1);
    assert_sos("Void () (Int32 ())", 0x1b, 0, 1, 0x1b, 0, 0, 1, 0x1b, 0, 0, 8);
    assert_neither(CDACQ_ERR_FORMAT, 0x1b, 6, 0, 1);
    assert_neither(CDACQ_ERR_FORMAT, 0x1b, 0, 2, 1, 8);
}
END_TEST

START_TEST(sos_types)
{
    assert_sos("Ns.Outer`1", 0x11, OUTER);
    assert_sos("Inner", 0x12, INNER);
    assert_sos("System.List`1", 0x12, LIST);
    assert_sos("Enumerator", 0x11, ENUMERATOR);
    assert_sos("", 0x12, SPEC);
    assert_sos("N\\\\s.A+B[,]&*\\\\C\\x0a", 0x12, ODD);
    assert_sos("System.List`1<Inner<!0,!!1>>", 0x15, 0x12, LIST, 1, 0x15, 0x12, INNER, 2, 0x13, 0, 0x1e, 1);
    assert_sos("Int32[][,,][]", 0x1d, 0x14, 0x1d, 8, 3, 0, 0);
    assert_sos("Int32[]", 0x14, 8, 1, 0, 0);
    assert_sos("Void** ByRef", 0x10, 0x0f, 0x0f, 1);
    assert_sos("Int32 ByRef", 0x1f, MODIFIER, 0x10, 0x20, OUTER, 0x45, 8);
    assert_name(METHOD(SOS, 0x20, 2, 1, 8, 14), "C.N(Int32, System.String)");
    assert_name(METHOD(SOS, 5, 0, 1), "C.N(...)");
    assert_name(METHOD(SOS, 5, 2, 1, 8, 0x41, 14), "C.N(Int32, ...)");
    assert_name(METHOD(SOS, 0, 0, 0x1b, 0, 1, 1, 8),
                "C.N(Int32) N()"); /* where its services find a parenthesis first */
}
END_TEST

/* ---- Methods of metadata ---- */

static void put_owner(void *context, struct namer *n)
{
    text_puts(n->text, context);
}

static void put_argument(void *context, bool of_method, uint32_t index, struct namer *n)
{
    (void)context;
    ck_assert_uint_lt(index, of_method ? 2 : 1);
    text_printf(n->text, "%c%u", of_method ? 'M' : 'T', index);
    n->origin = (struct origin){.metadata = &m};
    if (of_method && index == 1 && !n->types->assemblies)
        namer_fail(n, CDACQ_ERR_MEMORY);
}

START_TEST(methods)
{
    struct name_instance instance = {.owner = put_owner, .context = (char[]){"Owner"}};
#define NAMED(style, token, instance) name_method(&source, spelling_##style, token, instance, &text)
    assert_name(NAMED(IL, TAKE, NULL), "instance !0 [Own] Ns.Outer`1+Inner::Take(!0,!!0,class Ns.Outer`1/Inner<!0>&,"
                                       "class [System.Runtime]System.List`1<!!0[]>,int32)");
    assert_name(NAMED(IL, TAKE, &instance), "instance !0 [Own] Owner::Take(!0,!!0,class Ns.Outer`1/Inner<!0>&,"
                                            "class [System.Runtime]System.List`1<!!0[]>,int32)");
    assert_name(NAMED(SOS, TAKE, NULL), "Ns.Outer`1+Inner.Take(!0, !!0, Inner<!0> ByRef, System.List`1<!!0[]>, Int32)");
    instance.argument = put_argument;
    instance.type_count = 1;
    assert_name(NAMED(SOS, TAKE, &instance), "Owner.Take(T0, !!0, Inner<T0> ByRef, System.List`1<!!0[]>, Int32)");
    instance.method_count = 2;
    assert_name(NAMED(SOS, TAKE, &instance),
                "Owner.Take[[M0, Own],[M1, Own]](T0, M0, Inner<T0> ByRef, System.List`1<M0[]>, Int32)");
    assert_name(NAMED(IL, EXPLICIT, NULL), "instance int32 [Own] Ns.Outer`1+Inner::I<(A,B)>.Get(int32)");
    assert_name(NAMED(SOS, EXPLICIT, NULL), "Ns.Outer`1+Inner.I<(A,B)>.Get(A,B)>.Get(Int32)");
    assert_name(NAMED(IL, ODD_METHOD, NULL), "void [Own] N\\\\s.A\\+B\\[\\,\\]\\&\\*\\\\C\\x0a::M\\\\\\x0a()");
    assert_name(NAMED(SOS, ODD_METHOD, NULL), "N\\\\s.A\\+B\\[\\,\\]\\&\\*\\\\C\\x0a.M\\\\\\x0a()");
    assert_no_name(NAMED(IL, 0x06000004, NULL), CDACQ_ERR_FORMAT);
    assert_no_name(NAMED(IL, 0x0a000001, NULL), CDACQ_ERR_FORMAT);
    source.metadata = NULL;
    assert_no_name(NAMED(SOS, TAKE, NULL), CDACQ_ERR_MODULE);
}
END_TEST

START_TEST(failures_of_callbacks_are_the_name_s)
{
    struct name_instance instance = {.argument = put_argument, .method_count = 2};
    METADATA_ROW(&writer, METADATA_METHOD_DEF, 0, 0, 0, string("F"), BLOB(0x10, 2, 1, 1, 0x1e, 1), 1);
    open_written();
    assert_no_name(NAMED(SOS, 0x06000004, &instance), CDACQ_ERR_MEMORY);
    assert_name(NAMED(IL, 0x06000004, &instance), "void [Own] N\\\\s.A\\+B\\[\\,\\]\\&\\*\\\\C\\x0a::F(!!1)");
}
END_TEST

START_TEST(types)
{
#define TYPE(token) name_type(&source, spelling_SOS->owner, token, &text)
    assert_name(TYPE(0x02000003), "Ns.Outer`1+Inner");
    assert_name(TYPE(0x01000002), "System.List`1+Enumerator");
    assert_no_name(TYPE(0x1b000001), CDACQ_ERR_FORMAT);
    assert_no_name(TYPE(0x06000001), CDACQ_ERR_FORMAT);
    source.metadata = NULL;
    assert_no_name(TYPE(0x02000003), CDACQ_ERR_MODULE);
}
END_TEST

/* A type handle is the number of a TypeDef; 0x99 cannot be read. */
static enum cdacq_status define_handle(void *context, uint64_t address, const struct metadata **ret_metadata,
                                       uint32_t *ret_token)
{
    (void)context;
    *ret_metadata = &m;
    *ret_token = 0x02000000 | (uint32_t)address;
    return address == 0x99 ? CDACQ_ERR_MEMORY : CDACQ_OK;
}

START_TEST(type_handles)
{
    assert_neither(CDACQ_ERR_FORMAT, 0x21, 3, 0, 0, 0, 0, 0, 0, 0); /* no callback */
    source.type_definition = define_handle;
    source.pointer_size = 8;
    assert_il("Ns.Outer`1/Inner /* MT: 0x3 */", 0x21, 3, 0, 0, 0, 0, 0, 0, 0);
    assert_sos("Inner", 0x21, 3, 0, 0, 0, 0, 0, 0, 0);
    assert_il("Ns.Outer`1 /* MT: 0x2 */<object>&", 0x10, 0x15, 0x21, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0x1c);
    assert_sos("Ns.Outer`1<System.Object> ByRef", 0x10, 0x15, 0x21, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0x1c);
    assert_neither(CDACQ_ERR_MEMORY, 0x21, 0x99, 0, 0, 0, 0, 0, 0, 0);
    assert_neither(CDACQ_ERR_FORMAT, 0x21, 3, 0, 0, 0, 0, 0, 0);
    source.pointer_size = 4;
    source.big_endian = true;
    assert_il("Ns.Outer`1 /* MT: 0x2 */[]", 0x1d, 0x21, 0, 0, 0, 2);
}
END_TEST

START_TEST(tokens_need_metadata)
{
    source.metadata = NULL;
    assert_name(METHOD(SOS, 0, 2, 1, 8, 14), "C.N(Int32, System.String)");
    assert_no_name(METHOD(IL, 0, 0, 1), CDACQ_ERR_MODULE); /* the assembly is a part of the name */
    assert_no_name(METHOD(SOS, 0, 1, 1, 0x12, 4), CDACQ_ERR_MODULE);
}
END_TEST

START_TEST(malformed_signatures)
{
    assert_neither(CDACQ_ERR_FORMAT, 0x12, 0);
    assert_neither(CDACQ_ERR_FORMAT, 0x12, 0x7d); /* rows that are not there */
    assert_neither(CDACQ_ERR_FORMAT, 0x12, 0x7c);
    assert_neither(CDACQ_ERR_FORMAT, 0x12, 7);
    assert_neither(CDACQ_ERR_FORMAT, 0x15, 0x12, LIST, 2, 8);
    assert_neither(CDACQ_ERR_FORMAT, 0x0f);
    assert_neither(CDACQ_ERR_FORMAT, 0x13);
    static const uint8_t signature[] = {0x30, 1,    2, 0x1f, MODIFIER, 0x10, 0x13, 0, 0x15,
                                        0x12, LIST, 1, 8,    0x1b,     0,    0,    1};
    for (size_t length = 0; length <= sizeof signature; length++)
        for (size_t spelling = 0; spelling < ARRAY_SIZE(spellings); spelling++) {
            text_clear(&text);
            ck_assert_int_eq(name_signature(spellings[spelling], signature, length),
                             length == sizeof signature ? CDACQ_OK : CDACQ_ERR_FORMAT);
        }
    assert_no_name(METHOD(IL, 6, 8), CDACQ_ERR_FORMAT);       /* a field */
    assert_no_name(METHOD(SOS, 7, 1, 8), CDACQ_ERR_FORMAT);   /* locals */
    assert_no_name(METHOD(IL, 0x28, 0, 8), CDACQ_ERR_FORMAT); /* a property */
}
END_TEST

START_TEST(depth_and_length_have_their_caps)
{
    static uint8_t deep[200000];
    for (size_t spelling = 0; spelling < ARRAY_SIZE(spellings); spelling++) {
        static const uint8_t prefixes[] = {0x0f, 0x10, 0x1d, 0x14, 0x15};
#define DEEP(size) name_signature(spellings[spelling], deep, size)
        for (unsigned i = 0; i < ARRAY_SIZE(prefixes); i++) {
            memset(deep, prefixes[i], sizeof deep);
            memcpy(deep, (const uint8_t[]){0, 1, 1}, 3);
            assert_no_name(DEEP(sizeof deep), CDACQ_ERR_FUEL);
            deep[2] = prefixes[i]; /* the return type is read by both */
            assert_no_name(DEEP(sizeof deep), CDACQ_ERR_FUEL);
        }
        for (size_t i = 0; i + 2 < sizeof deep; i += 2)
            memcpy(deep + i, (const uint8_t[]){0x1f, MODIFIER}, 2);
        memcpy(deep, (const uint8_t[]){0, 1, 1, 0x0f}, 4);
        assert_no_name(DEEP(sizeof deep), spellings[spelling] == spelling_IL ? CDACQ_ERR_FUEL : CDACQ_ERR_FORMAT);
        memset(deep, 8, sizeof deep);
        memcpy(deep, (const uint8_t[]){0, 0xc0, 0x01, 0x86, 0xa0, 1}, 6);
        assert_no_name(DEEP(sizeof deep), CDACQ_ERR_FUEL); /* of the text */
    }
}
END_TEST

/* Each TypeSpec is a function pointer over the next one, ten times; sos does not follow TypeSpecs. */
START_TEST(exponential_types_end)
{
    for (uint8_t i = 2; i <= 20; i++) {
        uint8_t signature[64] = {0x1b, 0, 10, 1};
        for (unsigned k = 0; k < 10; k++)
            memcpy(signature + 4 + 2 * k, (const uint8_t[]){0x12, (uint8_t)((i + 1) << 2 | 2)}, 2);
        METADATA_ROW(&writer, METADATA_TYPE_SPEC, metadata_writer_blob(&writer, signature, 24));
    }
    METADATA_ROW(&writer, METADATA_TYPE_SPEC, BLOB(0x12, 21 << 2 | 2)); /* itself */
    open_written();
    assert_no_name(METHOD(IL, 0, 1, 1, 0x12, 2 << 2 | 2), CDACQ_ERR_FUEL);
    assert_no_name(METHOD(IL, 0, 1, 1, 0x12, 21 << 2 | 2), CDACQ_ERR_FUEL);
}
END_TEST

/* ---- ReadyToRun ---- */

static const struct metadata *find_other(void *context, uint32_t index)
{
    (void)context;
    return index == 3 ? &m : NULL;
}

#define assert_entry(il, sos, ...)                                                      \
    do {                                                                                \
        struct name_entry_point entry;                                                  \
        static const uint8_t blob[] = {__VA_ARGS__};                                    \
        ck_assert_int_eq(name_entry_point_decode(blob, sizeof blob, &entry), CDACQ_OK); \
        assert_name(name_entry_point(&source, spelling_IL, &entry, &text), il);         \
        assert_name(name_entry_point(&source, spelling_SOS, &entry, &text), sos);       \
    } while (0)

#define assert_no_entry(status, ...)                                                    \
    do {                                                                                \
        struct name_entry_point entry;                                                  \
        static const uint8_t blob[] = {__VA_ARGS__};                                    \
        ck_assert_int_eq(name_entry_point_decode(blob, sizeof blob, &entry), CDACQ_OK); \
        assert_no_name(name_entry_point(&source, spelling_IL, &entry, &text), status);  \
        assert_no_name(name_entry_point(&source, spelling_SOS, &entry, &text), status); \
    } while (0)

START_TEST(entry_points)
{
    METADATA_ROW(&writer, METADATA_TYPE_SPEC, BLOB(0x15, 0x12, LIST, 1, 0x1d, 8));
    METADATA_ROW(&writer, METADATA_MEMBER_REF, 2 << 3 | CODED_PARENT_TYPE_SPEC, string("Add"),
                 BLOB(0x20, 1, 1, 0x13, 0));
    METADATA_ROW(&writer, METADATA_MEMBER_REF, 1 << 3 | CODED_PARENT_TYPE_REF, string("Of"),
                 BLOB(0x10, 1, 1, 1, 0x1e, 0));
    METADATA_ROW(&writer, METADATA_MEMBER_REF, 1 << 3 | CODED_PARENT_MODULE_REF, string("Call"), BLOB(0, 0, 1));
    METADATA_ROW(&writer, METADATA_MEMBER_REF, 1 << 3 | CODED_PARENT_TYPE_REF, string("Field"), BLOB(6, 8));
    open_written();
    source.module = find_other;
#define IL_TAKE "::Take(!0,!!0,class Ns.Outer`1/Inner<!0>&,class [System.Runtime]System.List`1<!!0[]>,int32)"
    /* Outer<string>.Inner.Take<List<int>.Enumerator> */
    assert_entry(
        "instance !0 [Own] Ns.Outer`1+Inner[System.String]" IL_TAKE,
        "Ns.Outer`1+Inner[[System.String, System.Private.CoreLib]].Take[[System.List`1+Enumerator[[System.Int32, "
        "System.Private.CoreLib]], System.Runtime]](System.String, Enumerator<Int32>, Inner<System.String> ByRef, "
        "System.List`1<Enumerator<Int32>[]>, Int32)",
        0x44, 0x15, 0x12, INNER, 1, 14, 1, 1, 0x15, 0x11, ENUMERATOR, 1, 8);
    /* The type is module 3's, and so is the method. */
    assert_entry(
        "instance !0 [Own] Ns.Outer`1+Inner[System.__Canon[],System.Byte*[*],System.IntPtr[,]]" IL_TAKE,
        "Ns.Outer`1+Inner[[System.__Canon[], System.Private.CoreLib],[System.Byte*[*], System.Private.CoreLib],"
        "[System.IntPtr[,], System.Private.CoreLib]].Take[[Ns.Outer`1, Own]](System.__Canon[], Ns.Outer`1, "
        "Inner<System.__Canon[]> ByRef, System.List`1<Ns.Outer`1[]>, Int32)",
        0x44, 0x3f, 3, 0x15, 0x12, INNER, 3, 0x1d, 0x3e, 0x14, 0x0f, 5, 1, 0, 0, 0x14, 0x18, 2, 0, 0, 1, 1, 0x3f, 3,
        0x12, OUTER);
    assert_entry("instance !0 [Own] Ns.Outer`1+Inner" IL_TAKE,
                 "Ns.Outer`1+Inner.Take[[System.Int32, System.Private.CoreLib]](!0, Int32, Inner<!0> ByRef, "
                 "System.List`1<Int32[]>, Int32)",
                 0x04, 1, 1, 8);
    assert_entry("instance void [System.Runtime] System.List`1[System.Int32[]]::Add(!0)",
                 "System.List`1[[System.Int32[], System.Private.CoreLib]].Add(!0)", 0x10, 1);
    assert_entry("instance void [System.Runtime] System.List`1[System.Boolean]::Add(!0)",
                 "System.List`1[[System.Boolean, System.Private.CoreLib]].Add(Boolean)", 0x50, 0x15, 0x12, LIST, 1, 2,
                 1);
    assert_entry("void [System.Runtime] System.List`1::Of(!!0)",
                 "System.List`1.Of[[System.Char, System.Private.CoreLib]](Char)", 0x14, 2, 1, 3);
    assert_no_entry(CDACQ_ERR_FORMAT, 0x10, 3); /* a module is no type */
    assert_no_entry(CDACQ_ERR_FORMAT, 0x10, 4);
    assert_no_entry(CDACQ_ERR_FORMAT, 0x10, 5);
    assert_no_entry(CDACQ_ERR_FORMAT, 0x48, 0x1d, 8, 9);                       /* a slot */
    assert_no_entry(CDACQ_ERR_FORMAT, 0x40, 0x15, 0x12, INNER, 1, 0x13, 0, 1); /* of a variable */
    assert_no_entry(CDACQ_ERR_MODULE, 0x40, 0x3f, 5, 0x12, 4, 1);              /* of an unknown module */
}
END_TEST

START_TEST(many_arguments_cost_fuel)
{
    enum { COUNT = 60000 };
    static uint8_t blob[8 + 2 * COUNT + 8] = {0x04, 4, 0xc0, 0, COUNT >> 8, COUNT & 0xff};
    memset(blob + 6, 0x45, COUNT); /* modifiers of the first */
    memset(blob + 6 + COUNT, 8, COUNT);
    uint8_t signature[8000] = {0x10, 2, 0x9f, 0x3c, 1};
    for (size_t i = 5; i + 1 < sizeof signature; i += 2)
        memcpy(signature + i, (const uint8_t[]){0x1e, 1}, 2);
    METADATA_ROW(&writer, METADATA_METHOD_DEF, 0, 0, 0, string("F"), metadata_writer_blob(&writer, signature, 8000), 1);
    open_written();
    struct name_entry_point entry;
    ck_assert_int_eq(name_entry_point_decode(blob, sizeof blob, &entry), CDACQ_OK);
    assert_no_name(name_entry_point(&source, spelling_SOS, &entry, &text), CDACQ_ERR_FUEL);
}
END_TEST

START_TEST(survives_random_signatures)
{
    uint64_t state = 11;
    source.type_definition = define_handle;
    source.pointer_size = 4;
    source.module = find_other;
    for (unsigned round = 0; round < 200000; round++) {
        uint8_t *signature = malloc(24);
        struct name_entry_point entry;
        for (unsigned i = 0; i < 24; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            signature[i] = (uint8_t)(state >> 60 ? state >> 40 & 0x1f : state >> 33);
        }
        for (size_t spelling = 0; spelling < ARRAY_SIZE(spellings); spelling++) {
            text_clear(&text);
            name_signature(spellings[spelling], signature, 24);
            if (name_entry_point_decode(signature, 24, &entry) == CDACQ_OK)
                name_entry_point(&source, spellings[spelling], &entry, &text);
        }
        free(signature);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("names_runtime");
    TCase *t = tcase_create("names_runtime");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, primitive_types);
    tcase_add_test(t, il_classes);
    tcase_add_test(t, il_composed);
    tcase_add_test(t, il_arrays);
    tcase_add_test(t, il_heads);
    tcase_add_test(t, function_pointers);
    tcase_add_test(t, sos_types);
    tcase_add_test(t, methods);
    tcase_add_test(t, failures_of_callbacks_are_the_name_s);
    tcase_add_test(t, types);
    tcase_add_test(t, type_handles);
    tcase_add_test(t, tokens_need_metadata);
    tcase_add_test(t, malformed_signatures);
    tcase_add_test(t, depth_and_length_have_their_caps);
    tcase_add_test(t, exponential_types_end);
    tcase_add_test(t, entry_points);
    tcase_add_test(t, many_arguments_cost_fuel);
    tcase_add_test(t, survives_random_signatures);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
