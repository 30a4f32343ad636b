#include "formats/names/names.h"

#include <time.h>

#include "formats/pe.h"
#include "tests/support/check_main.h"
#include "tests/support/emulation.h"
#include "tests/support/fixture_file.h"
#include "tests/support/metadata_find.h"
#include "tests/support/metadata_writer.h"
#include "tests/support/paged_bytes.h"
#include "tests/support/type_names.h"

static struct text text;
#define CSHARP (&name_spelling_csharp)
#define TYPES  (name_spelling_csharp.owner)

static void teardown_text(void)
{
    text_deinit(&text);
}

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

/* ---- An assembly that a compiler wrote, against what System.Reflection.Metadata says ---- */

static uint8_t *file;
static struct bytes whole, fixture_bytes;
static struct bytes_extent part;
static struct metadata fixture;
static struct name_source fixture_source = {.metadata = &fixture};

static void setup_fixture(void)
{
    size_t size;
    struct pe pe;
    file = fixture_file("names/Names.dll", &size);
    whole = bytes_of_buffer(file, size);
    ck_assert_int_eq(pe_open(&whole, false, &pe), CDACQ_OK);
    ck_assert_int_eq(pe_metadata(&pe, &part, &fixture_bytes), CDACQ_OK);
    ck_assert_int_eq(metadata_open(&fixture_bytes, &fixture), CDACQ_OK);
}

static void teardown_fixture(void)
{
    free(file);
    teardown_text();
}

enum { COUNT = 353 };

/* Reads expected.txt; `lines[rid]` is the name of a method. */
static char *read_expected(char *lines[], uint32_t count)
{
    size_t size;
    char *expected = (char *)fixture_file("names/expected.txt", &size), *at = expected;
    for (uint32_t rid = 1; rid <= count; rid++) {
        char *tab = strchr(at, '\t'), *end = strchr(at, '\n');
        ck_assert(tab && end && tab < end);
        ck_assert_uint_eq(strtoul(at, NULL, 16), metadata_token(METADATA_METHOD_DEF, rid));
        *end = '\0';
        lines[rid] = tab + 1;
        at = end + 1;
    }
    ck_assert_str_eq(at, "");
    return expected;
}

START_TEST(names_every_method_of_the_fixture)
{
    char *lines[COUNT + 1];
    ck_assert_uint_eq(metadata_row_count(&fixture, METADATA_METHOD_DEF), COUNT);
    char *expected = read_expected(lines, COUNT);
    for (uint32_t rid = 1; rid <= COUNT; rid++)
        assert_name(name_method(&fixture_source, CSHARP, metadata_token(METADATA_METHOD_DEF, rid), NULL, &text),
                    lines[rid]);
    free(expected);
}
END_TEST

static void put_number(void *context, bool of_method, uint32_t index, struct namer *n)
{
    (void)context;
    text_printf(n->text, "%c%u", of_method ? 'm' : 't', index);
}

/* Methods by their names in C#, and what a person wrote. All others keep their names. */
static const char *const written_names[][2] = {
    {"Ns.Inner.Compiled.<Local>g__Inner|2_0<T>(int, ref Ns.Inner.Compiled.<>c__DisplayClass2_0<T>)",
     "local function Inner in Ns.Inner.Compiled.Local<T>(T)"},
    {"Ns.Inner.Compiled.<Local>g__Static|2_1<T, S>(S)", "local function Static in Ns.Inner.Compiled.Local<T>(T)"},
    {"Ns.Inner.Written<T>.<Sum>g__Each|13_2<U>(U)", "local function Each in Ns.Inner.Written<T>.Sum(int[])"},
    {"Ns.Inner.Written<T>.<Sum>g__Plus|13_3(int)", "local function Plus in Ns.Inner.Written<T>.Sum(int[])"},
    {"Ns.Inner.Implicit.<System.Collections.IEnumerable.GetEnumerator>b__1_0()",
     "lambda in Ns.Inner.Implicit.System.Collections.IEnumerable.GetEnumerator()"},
    {"Ns.Inner.Shape.<System-Collections-Generic-IEnumerable<System-Collections-Generic-KeyValuePair<System-String,"
     "System-Int32[]>>-GetEnumerator>d__2.MoveNext()",
     "Ns.Inner.Shape.System.Collections.Generic.IEnumerable<System.Collections.Generic.KeyValuePair<string, "
     "int[]>>.GetEnumerator()"},
    {"Ns.Inner.Compiled.<>c.<Lambda>b__0_0(int)", "lambda in Ns.Inner.Compiled.Lambda()"},
    {"Ns.Inner.Compiled.<>c__DisplayClass1_0<T>.<Closure>b__0(T)", "lambda in Ns.Inner.Compiled.Closure<T>(int)"},
    {"Ns.Inner.Compiled.<Async>d__4.MoveNext()", "Ns.Inner.Compiled.Async(int)"},
    {"Ns.Inner.Compiled.<Both>d__5<T>.MoveNext()", "Ns.Inner.Compiled.Both<T>(T)"},
    {"Ns.Inner.Compiled.<Iterate>d__3<T>.MoveNext()", "Ns.Inner.Compiled.Iterate<T>(T)"},
    {"Ns.Inner.Written<T>.<<Sum>g__Each|13_2>d<U>.MoveNext()", "local function Each in Ns.Inner.Written<T>.Sum(int[])"},
    {"Ns.Inner.Written<T>.<>c.<get_Property>b__3_0()", "lambda in Ns.Inner.Written<T>.Property.get()"},
    {"Ns.Inner.Written<T>.<>c.<.ctor>b__14_1(int)", "lambda in Ns.Inner.Written<T>..ctor(int)"},
    {"Ns.Inner.Written<T>.<>c.<.cctor>b__15_0(int)", "lambda in Ns.Inner.Written<T>..cctor()"},
    {"Ns.Inner.Written<T>.<>c.<.cctor>b__15_1()", "lambda in Ns.Inner.Written<T>..cctor()"},
    {"Ns.Inner.Written<T>.<>c__DisplayClass10_0<U>.<Generic>b__0(U, T)", "lambda in Ns.Inner.Written<T>.Generic<U>(U)"},
    {"Ns.Inner.Written<T>.<>c__DisplayClass11_0.<Twice>b__0()", "lambda in Ns.Inner.Written<T>.Twice"},
    {"Ns.Inner.Written<T>.<>c__DisplayClass12_0.<Twice>b__0()", "lambda in Ns.Inner.Written<T>.Twice"},
    {"Ns.Inner.Written<T>.<>c__DisplayClass13_0.<Sum>b__0(int)", "lambda in Ns.Inner.Written<T>.Sum(int[])"},
    {"Ns.Inner.Written<T>.<>c__DisplayClass13_0.<Sum>g__Deep|4(int, ref Ns.Inner.Written<T>.<>c__DisplayClass13_1)",
     "local function Deep in Ns.Inner.Written<T>.Sum(int[])"},
    {"Ns.Inner.Written<T>.<>c__DisplayClass13_0.<Sum>g__Add|1(int)",
     "local function Add in Ns.Inner.Written<T>.Sum(int[])"},
    {"Ns.Inner.Written<T>.<>c__DisplayClass14_0.<.ctor>b__0()", "lambda in Ns.Inner.Written<T>..ctor(int)"},
    {"Ns.Inner.Written<T>.<>c__DisplayClass9_0.<Lambdas>b__0(int)", "lambda in Ns.Inner.Written<T>.Lambdas(int)"},
    {"Ns.Inner.Written<T>.<Fetch>d__4.MoveNext()", "Ns.Inner.Written<T>.Fetch(int)"},
    {"Ns.Inner.Written<T>.<Fetch>d__5<U>.MoveNext()", "Ns.Inner.Written<T>.Fetch<U>(U, T)"},
    {"Ns.Inner.Written<T>.<Items>d__7.MoveNext()", "Ns.Inner.Written<T>.Items(T)"},
    {"Ns.Inner.Written<T>.<Items>d__7.<>m__Finally1()", "Ns.Inner.Written<T>.Items(T)"},
    {"Ns.Inner.Written<T>.<Only>d__6<U>.MoveNext()", "Ns.Inner.Written<T>.Only<U>(U, T)"},
    {"Ns.Inner.Written<T>.<Stream>d__8<U>.MoveNext()", "Ns.Inner.Written<T>.Stream<U>(T, U)"},
    {"Ns.Inner.Implicit.<System-Collections-Generic-IEnumerable<System-Int32>-GetEnumerator>d__0.MoveNext()",
     "Ns.Inner.Implicit.System.Collections.Generic.IEnumerable<int>.GetEnumerator()"},
    {"Ns.Inner.Implicit.<System-Collections-IEnumerable-GetEnumerator>d__1.MoveNext()",
     "Ns.Inner.Implicit.System.Collections.IEnumerable.GetEnumerator()"},
    {"Ns.Inner.Extended.<>c__DisplayClass9_0.<get_Later>b__0()", "lambda in Ns.Inner.Extended.Later.get(string)"},
    {"Ns.Inner.Written<T>.Inner.<Go>d__0.MoveNext()", "Ns.Inner.Written<T>.Inner.Go(T)"},
    {"Ns.Inner.Written<T>.<>c__DisplayClass10_0<U>.<<Generic>b__0>d.MoveNext()",
     "lambda in Ns.Inner.Written<T>.Generic<U>(U)"},
    {"Ns.Inner.Written<T>.<>c__DisplayClass13_0.<<Sum>g__Add|1>d.MoveNext()",
     "local function Add in Ns.Inner.Written<T>.Sum(int[])"},
    {"Ns.Inner.Written<T>.<>c__DisplayClass9_0.<<Lambdas>b__0>d.MoveNext()",
     "lambda in Ns.Inner.Written<T>.Lambdas(int)"},
};

/* Types that are local to a file have names with a hash. */
static bool is_file_local(const char *name)
{
    return strstr(name, "__Hidden") != NULL;
}

START_TEST(names_what_was_written)
{
    char *lines[COUNT + 1];
    char *expected = read_expected(lines, COUNT);
    size_t found = 0;
    for (uint32_t rid = 1; rid <= COUNT; rid++) {
        const char *written = lines[rid];
        for (size_t i = 0; i < ARRAY_SIZE(written_names); i++)
            if (strcmp(lines[rid], written_names[i][0]) == 0) {
                written = written_names[i][1];
                found++;
            }
        if (is_file_local(lines[rid]))
            written = strstr(lines[rid], "Seen") ? "Ns.Inner.Hidden.Seen(Ns.Inner.Hidden)" : "Ns.Inner.Hidden..ctor()";
        assert_name(
            name_method(&fixture_source, &name_spelling_source, metadata_token(METADATA_METHOD_DEF, rid), NULL, &text),
            written);
    }
    ck_assert_uint_eq(found, ARRAY_SIZE(written_names));
    free(expected);
}
END_TEST

/* The arguments of the compiler's types and methods are those of the method that was written. */
START_TEST(arguments_of_what_was_written)
{
    static const struct {
        const char *name, *written;
        uint32_t types, methods;
    } cases[] = {
        {"Ns.Inner.Written<T>.<Fetch>d__5<U>.MoveNext()", "Ns.Inner.Written<t0>.Fetch<t1>(t1, t0)", 2, 0},
        {"Ns.Inner.Written<T>.<Sum>g__Each|13_2<U>(U)", "local function Each in Ns.Inner.Written<t0>.Sum(int[])", 1, 1},
        {"Ns.Inner.Compiled.<Local>g__Static|2_1<T, S>(S)", "local function Static in Ns.Inner.Compiled.Local<m0>(m0)",
         0, 2},
        {"Ns.Inner.Written<T>.<>c__DisplayClass10_0<U>.<<Generic>b__0>d.MoveNext()",
         "lambda in Ns.Inner.Written<t0>.Generic<t1>(t1)", 2, 0},
        {"Ns.Inner.Written<T>.<>c__DisplayClass11_0.<Twice>b__0()", "lambda in Ns.Inner.Written<t0>.Twice", 1, 0},
        {"Ns.Inner.Written<T>.<Fetch>d__5<U>.MoveNext()", "Ns.Inner.Written<T>.Fetch<U>(U, T)", 1, 0}, /* too few */
    };
    char *lines[COUNT + 1];
    char *expected = read_expected(lines, COUNT);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct name_instance instance = {
            .argument = put_number, .type_count = cases[i].types, .method_count = cases[i].methods};
        uint32_t rid = 1;
        while (rid < COUNT && strcmp(lines[rid], cases[i].name) != 0)
            rid++;
        assert_name(name_method(&fixture_source, &name_spelling_source, metadata_token(METADATA_METHOD_DEF, rid),
                                &instance, &text),
                    cases[i].written);
    }
    free(expected);
}
END_TEST

/* What attributes and MethodImpls add to a name is left out if it cannot be read. */
static void drop(char *name, const char *word, const char *instead)
{
    for (char *at; (at = strstr(name, word));) {
        memmove(at + strlen(instead), at + strlen(word), strlen(at + strlen(word)) + 1);
        memcpy(at, instead, strlen(instead));
    }
}

static const char *undecorated(const char *name, char ret[4096])
{
    ck_assert_uint_lt(strlen(name), 4096);
    strcpy(ret, name);
    drop(ret, "params ", "");
    drop(ret, "ref readonly ", "ref ");
    drop(ret, "(in ", "(ref ");
    drop(ret, "(out ", "(ref ");
    drop(ret, " in ", " ref ");
    drop(ret, " out ", " ref ");
    drop(ret, ".Chars[", ".this[");
    drop(ret, ".init(", ".set(");
    return ret;
}

/* The code of an extension member has the metadata's name if its declaration cannot be read. */
static bool is_undeclared(const char *name)
{
    static const char *const prefixes[] = {"get_", "set_", "op_"};
    const char *owner = "Ns.Inner.Extended.";
    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
        if (strncmp(name, owner, strlen(owner)) == 0 &&
            strncmp(name + strlen(owner), prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static void count_lost(void *context, enum cdacq_status status)
{
    ck_assert_int_eq(status, CDACQ_ERR_MEMORY);
    ++*(unsigned *)context;
}

/* A name that differs from the whole one never does so without a word. */
START_TEST(names_what_is_there_when_parts_are_missing)
{
    char own[4096], its[4096];
    unsigned interfaces = 0, undeclared = 0;
    char *lines[COUNT + 1];
    char *expected = read_expected(lines, COUNT);
    const uint8_t *data = bytes_window(&fixture_bytes, 0, fixture_bytes.size);
    unsigned named = 0, missing = 0;
    for (uint64_t at = 0; at < fixture_bytes.size; at += 128) {
        struct paged_bytes paged;
        struct metadata m;
        unsigned lost = 0;
        struct name_source source = {.metadata = &m, .part_lost = count_lost, .context = &lost};
        struct bytes bytes = paged_bytes_open(&paged, data, fixture_bytes.size);
        paged.missing_begin = at;
        paged.missing_end = at + 128;
        if (metadata_open(&bytes, &m) == CDACQ_OK)
            for (uint32_t rid = 1; rid <= COUNT; rid++) {
                text_clear(&text);
                lost = 0;
                enum cdacq_status status =
                    name_method(&source, CSHARP, metadata_token(METADATA_METHOD_DEF, rid), NULL, &text);
                ck_assert_msg(status != CDACQ_OK || lost || strcmp(text.data, lines[rid]) == 0, "%s", text.data);
                if (status == CDACQ_OK && strcmp(text.data, lines[rid]) != 0 &&
                    (strstr(text.data, ".System.") || strstr(text.data, "<System.ValueTuple")))
                    interfaces++; /* with the interface as the metadata spell it */
                else if (status == CDACQ_OK && is_undeclared(text.data))
                    undeclared += strcmp(text.data, lines[rid]) != 0;
                else if (status == CDACQ_OK)
                    ck_assert_str_eq(undecorated(text.data, own), undecorated(lines[rid], its));
                else
                    ck_assert_int_eq(status, CDACQ_ERR_MEMORY);
                status == CDACQ_OK ? named++ : missing++;
            }
        paged_bytes_close(&paged);
    }
    ck_assert_uint_gt(named, 9 * missing);
    ck_assert_uint_lt(interfaces, missing);
    ck_assert_uint_gt(undeclared, 0);
    ck_assert_uint_lt(undeclared, missing);
    ck_assert_uint_gt(missing, 0);
    free(expected);
}
END_TEST

START_TEST(names_types)
{
    uint32_t outer, plain, deep;
    ck_assert_int_eq(metadata_find_type(&fixture, "Ns.Inner", "Outer`1", 0, &outer), CDACQ_OK);
    ck_assert_int_eq(metadata_find_type(&fixture, "", "Plain", outer, &plain), CDACQ_OK);
    ck_assert_int_eq(metadata_find_type(&fixture, "", "Deep`2", plain, &deep), CDACQ_OK);
    assert_name(name_type(&fixture_source, TYPES, 0x02000001, &text), "<Module>");
    assert_name(name_type(&fixture_source, TYPES, 0x02000000 | deep, &text),
                "Ns.Inner.Outer<TOuter>.Plain.Deep<TDeep, TMore>");
    assert_no_name(name_type(&fixture_source, TYPES, 0x02000000, &text), CDACQ_ERR_FORMAT);
    assert_no_name(name_type(&fixture_source, TYPES, 0x02ffffff, &text), CDACQ_ERR_FORMAT);
    assert_no_name(name_type(&fixture_source, TYPES, 0x0a000001, &text), CDACQ_ERR_FORMAT);
    assert_no_name(name_method(&fixture_source, CSHARP, 0x02000002, NULL, &text), CDACQ_ERR_FORMAT);
    assert_no_name(name_method(&fixture_source, CSHARP, 0x06000000, NULL, &text), CDACQ_ERR_FORMAT);
    assert_no_name(name_method(&fixture_source, CSHARP, 0x0600ffff, NULL, &text), CDACQ_ERR_FORMAT);
}
END_TEST

static void put_letter(struct namer *n, const struct type_arguments *arguments)
{
    text_putc(n->text, (char)('p' + arguments->number));
    if (arguments->number == 4)
        namer_fail(n, CDACQ_ERR_MEMORY);
}

static enum cdacq_status name_instance(uint32_t rid, uint32_t count)
{
    struct namer n = namer_begin(&fixture_source, TYPES, &text);
    const struct named_type type = {.metadata = &fixture, .token = metadata_token(METADATA_TYPE_DEF, rid)};
    type_instance(&n, &type, &(struct type_arguments){.left = count, .put = put_letter});
    return namer_end(&n);
}

START_TEST(names_instances)
{
    uint32_t outer, plain, deep;
    ck_assert_int_eq(metadata_find_type(&fixture, "Ns.Inner", "Outer`1", 0, &outer), CDACQ_OK);
    ck_assert_int_eq(metadata_find_type(&fixture, "", "Plain", outer, &plain), CDACQ_OK);
    ck_assert_int_eq(metadata_find_type(&fixture, "", "Deep`2", plain, &deep), CDACQ_OK);
    assert_name(name_instance(deep, 3), "Ns.Inner.Outer<p>.Plain.Deep<q, r>");
    assert_name(name_instance(plain, 1), "Ns.Inner.Outer<p>.Plain");
    assert_name(name_instance(outer, 0), "Ns.Inner.Outer`1");
    assert_name(name_instance(1, 0), "<Module>");
    assert_no_name(name_instance(deep, 5), CDACQ_ERR_MEMORY); /* the callback's failure */
}
END_TEST

/* The member references of the fixture: their types are mostly those of the framework. */
START_TEST(names_member_references)
{
    unsigned named = 0, fields = 0;
    for (uint32_t rid = 1; rid <= metadata_row_count(&fixture, METADATA_MEMBER_REF); rid++) {
        text_clear(&text);
        enum cdacq_status status =
            name_method(&fixture_source, CSHARP, metadata_token(METADATA_MEMBER_REF, rid), NULL, &text);
        ck_assert(status == CDACQ_OK || status == CDACQ_ERR_FORMAT);
        status == CDACQ_OK ? named++ : fields++;
        if (status == CDACQ_OK)
            ck_assert(strchr(text.data, '.') && text.data[text.length - 1] == ')');
    }
    ck_assert_uint_gt(named, 50);
    ck_assert_uint_gt(fields, 0);
}
END_TEST

START_TEST(survives_mutation)
{
    size_t size = (size_t)fixture_bytes.size;
    uint8_t *data = malloc(size);
    uint64_t state = 3;
    for (int round = 0; round < rounds(400, 40); round++) {
        struct paged_bytes paged;
        struct metadata m;
        struct name_source source = {.metadata = &m};
        memcpy(data, bytes_window(&fixture_bytes, 0, size), size);
        for (unsigned i = 0; i < 30; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            data[200 + (state >> 33) % (size - 200)] = (uint8_t)(state >> 25);
        }
        struct bytes bytes = paged_bytes_open(&paged, data, size);
        if (metadata_open(&bytes, &m) == CDACQ_OK) {
            for (uint32_t rid = 1; rid <= MIN(metadata_row_count(&m, METADATA_METHOD_DEF), (uint32_t)COUNT); rid++) {
                text_clear(&text);
                name_method(&source, CSHARP, metadata_token(METADATA_METHOD_DEF, rid), NULL, &text);
            }
            for (uint32_t rid = 1; rid <= MIN(metadata_row_count(&m, METADATA_MEMBER_REF), 100u); rid++) {
                text_clear(&text);
                name_method(&source, CSHARP, metadata_token(METADATA_MEMBER_REF, rid), NULL, &text);
            }
        }
        paged_bytes_close(&paged);
    }
    free(data);
}
END_TEST

/* ---- Written metadata ---- */

static struct metadata_writer writer;
static uint8_t *written;
static struct bytes written_bytes;
static struct metadata m;
static struct name_source source;

static void setup_writer(void)
{
    metadata_writer_init(&writer);
    source = (struct name_source){.metadata = &m};
}

static void teardown_writer(void)
{
    free(written);
    written = NULL;
    metadata_writer_deinit(&writer);
    teardown_text();
}

static void open_written(void)
{
    size_t size;
    free(written);
    written = metadata_writer_finish(&writer, &size);
    written_bytes = bytes_of_buffer(written, size);
    ck_assert_int_eq(metadata_open(&written_bytes, &m), CDACQ_OK);
}

/* A method `C.N` with that signature. */
static enum cdacq_status name_signature(const void *signature, size_t length)
{
    const struct dynamic_method method = {.owner = "C", .name = "N", .signature = signature, .length = length};
    return name_dynamic(&source, CSHARP, &method, &text);
}

static uint32_t string(const char *s)
{
    return metadata_writer_string(&writer, s);
}

#define BLOB(...) metadata_writer_blob(&writer, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static uint32_t add_type(uint32_t flags, const char *namespace_name, const char *name)
{
    return METADATA_ROW(&writer, METADATA_TYPE_DEF, flags, string(name), *namespace_name ? string(namespace_name) : 0,
                        0, 1, writer.tables[METADATA_METHOD_DEF].rows + 1);
}

static uint32_t add_method(const char *name, uint32_t signature)
{
    return METADATA_ROW(&writer, METADATA_METHOD_DEF, 0, 0, 0, string(name), signature, 1);
}

enum { PUBLIC = 1, NESTED = 2 };

START_TEST(levels_list_what_they_add)
{
    uint32_t outer = add_type(PUBLIC, "Ns", "Outer`1"), lying = add_type(NESTED, "Odd", "Lying`7");
    uint32_t fewer = add_type(NESTED, "", "Fewer`1");
    add_method("M`1", BLOB(0, 1, 1, 0x15, 0x12, 0x0c, 2, 8, 14)); /* (Outer.Lying<int, string>) */
    METADATA_ROW(&writer, METADATA_NESTED_CLASS, lying, outer);
    METADATA_ROW(&writer, METADATA_NESTED_CLASS, fewer, lying);
    METADATA_ROW(&writer, METADATA_GENERIC_PARAM, 0, 0, outer << 1, string("T"));
    METADATA_ROW(&writer, METADATA_GENERIC_PARAM, 0, 0, lying << 1, string("T"));
    METADATA_ROW(&writer, METADATA_GENERIC_PARAM, 1, 0, lying << 1, string("U\n"));
    METADATA_ROW(&writer, METADATA_GENERIC_PARAM, 0, 0, fewer << 1, string("T"));
    open_written();
    assert_name(name_type(&source, TYPES, 0x02000000 | outer, &text), "Ns.Outer<T>");
    assert_name(name_type(&source, TYPES, 0x02000000 | lying, &text), "Ns.Outer<T>.Odd.Lying`7<U\\x0a>");
    assert_name(name_method(&source, CSHARP, 0x06000001, NULL, &text),
                "Ns.Outer<T>.Odd.Lying`7.Fewer`1.M`1(Ns.Outer<int>.Odd.Lying`7<string>)");
}
END_TEST

static uint32_t add_static(uint32_t flags, const char *name, uint32_t signature)
{
    enum { STATIC = 0x10 };
    return METADATA_ROW(&writer, METADATA_METHOD_DEF, 0, 0, STATIC | flags, string(name), signature, 1);
}

/* The code of an extension member, of which the grouping types of the class have four declarations that are not its. */
START_TEST(extension_members_need_their_declaration)
{
    enum { SPECIAL = 0x0800 };
    uint32_t type = METADATA_ROW(&writer, METADATA_TYPE_REF, 1 << 2 | CODED_ASSEMBLY_REF, string("ExtensionAttribute"),
                                 string("System.Runtime.CompilerServices"));
    uint32_t constructor = METADATA_ROW(&writer, METADATA_MEMBER_REF, type << 3 | CODED_PARENT_TYPE_REF,
                                        string(".ctor"), BLOB(0x20, 0, 1));
    uint32_t owner = add_type(PUBLIC, "", "E");
    METADATA_ROW(&writer, METADATA_CUSTOM_ATTRIBUTE, owner << 5 | 3, constructor << 3 | 3, BLOB(1, 0, 0, 0));
    uint32_t count = BLOB(0, 1, 8, 14), none = BLOB(0, 0, 8);
    uint32_t with = add_static(0, "get_Count", count), without = add_static(0, "get_Plain", count);
    uint32_t broken = add_static(0, "get_Broken", count), alone = add_static(0, "get_", count);
    uint32_t lying = add_type(NESTED, "", "<G>$0"), other = add_type(NESTED, "", "<H>$0");
    add_static(SPECIAL, "get_Plain", count);
    uint32_t group = add_type(NESTED, "", "<G>$1");
    add_static(0, "get_Plain", count);
    add_static(SPECIAL, "get_Plain", none);
    add_static(SPECIAL, "get_Plains", count);
    add_static(SPECIAL, "get_Broken", 0x7fff);
    add_static(SPECIAL, "get_", count);
    add_static(SPECIAL, "get_Count", count);
    METADATA_ROW(&writer, METADATA_NESTED_CLASS, other, owner);
    METADATA_ROW(&writer, METADATA_NESTED_CLASS, group, owner);
    METADATA_ROW(&writer, METADATA_NESTED_CLASS, 0x7fff, lying);
    writer.uncompressed = true;
    open_written();
    assert_name(name_method(&source, CSHARP, 0x06000000 | with, NULL, &text), "E.Count.get(string)");
    assert_name(name_method(&source, CSHARP, 0x06000000 | without, NULL, &text), "E.get_Plain(string)");
    assert_name(name_method(&source, CSHARP, 0x06000000 | broken, NULL, &text), "E.get_Broken(string)");
    assert_name(name_method(&source, CSHARP, 0x06000000 | alone, NULL, &text), "E.get_(string)");
    assert_name(name_method(&source, &name_spelling_stack_trace, 0x06000000 | with, NULL, &text),
                "E.get_Count(String)");
}
END_TEST

/* Its types are those of reflection: without a name for a function pointer, and with reserved characters escaped. */
START_TEST(stack_traces_name_parameters)
{
    static const char *const names[] = {"c", "a", "e", "b", "d"}; /* Param rows need not be in order */
    static const uint32_t numbers[] = {3, 1, 5, 2, 4};
    add_type(PUBLIC, "Ns", "Odd[,]");
    /* void (delegate*<int, void>[], ref delegate*<...>* with a sentinel, Odd[,], delegate*<int, void>, int) */
    uint32_t rid = add_method("M", BLOB(0, 5, 1, 0x1d, 0x1b, 0, 1, 1, 8, 0x10, 0x0f, 0x1b, 5, 2, 1, 8, 0x41, 8, 0x12,
                                        2 << 2, 0x1b, 0, 1, 1, 8, 8));
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        METADATA_ROW(&writer, METADATA_PARAM, 0, numbers[i], string(names[i]));
    open_written();
    assert_name(name_method(&source, &name_spelling_stack_trace, metadata_token(METADATA_METHOD_DEF, rid), NULL, &text),
                "Ns.Odd\\[\\,\\].M([] a, *& b, Odd\\[\\,\\] c,  d, Int32 e)");
}
END_TEST

START_TEST(names_member_references_of_every_parent)
{
    uint32_t type = add_type(PUBLIC, "Ns", "Own`1");
    uint32_t method = add_method("V", BLOB(5, 1, 1, 8));
    METADATA_ROW(&writer, METADATA_GENERIC_PARAM, 0, 0, type << 1, string("T"));
    uint32_t list =
        METADATA_ROW(&writer, METADATA_TYPE_REF, 1 << 2 | CODED_ASSEMBLY_REF, string("List`1"), string("Ns"));
    uint32_t inner = METADATA_ROW(&writer, METADATA_TYPE_REF, list << 2 | CODED_SCOPE_TYPE_REF, string("Inner"), 0);
    uint32_t spec = METADATA_ROW(&writer, METADATA_TYPE_SPEC, BLOB(0x15, 0x12, (uint8_t)(inner << 2 | 1), 1, 8));
    uint32_t array = METADATA_ROW(&writer, METADATA_TYPE_SPEC, BLOB(0x14, 0x08, 2, 0, 0));
    METADATA_ROW(&writer, METADATA_MODULE_REF, string("native"));
    uint32_t add = BLOB(0x20, 1, 1, 0x13, 0), generic = BLOB(0x30, 2, 1, 1, 0x1e, 1);
    METADATA_ROW(&writer, METADATA_MEMBER_REF, spec << 3 | CODED_PARENT_TYPE_SPEC, string("Add"), add);
    METADATA_ROW(&writer, METADATA_MEMBER_REF, list << 3 | CODED_PARENT_TYPE_REF, string("Add"), add);
    METADATA_ROW(&writer, METADATA_MEMBER_REF, type << 3 | CODED_PARENT_TYPE_DEF, string("Add"), add);
    METADATA_ROW(&writer, METADATA_MEMBER_REF, 1 << 3 | CODED_PARENT_MODULE_REF, string("Call"), generic);
    METADATA_ROW(&writer, METADATA_MEMBER_REF, method << 3 | CODED_PARENT_METHOD_DEF, string("V"),
                 BLOB(5, 3, 1, 8, 0x41, 14, 8));
    METADATA_ROW(&writer, METADATA_MEMBER_REF, array << 3 | CODED_PARENT_TYPE_SPEC, string("Get"),
                 BLOB(0x20, 2, 8, 8, 8));
    METADATA_ROW(&writer, METADATA_MEMBER_REF, list << 3 | CODED_PARENT_TYPE_REF, string("Field"), BLOB(6, 8));
    open_written();
    assert_name(name_method(&source, CSHARP, 0x0a000001, NULL, &text), "Ns.List<int>.Inner.Add(!0)");
    assert_name(name_method(&source, CSHARP, 0x0a000002, NULL, &text), "Ns.List`1.Add(!0)");
    assert_name(name_method(&source, CSHARP, 0x0a000003, NULL, &text), "Ns.Own<T>.Add(T)");
    assert_name(name_method(&source, CSHARP, 0x0a000004, NULL, &text), "<Module>.Call<!!0, !!1>(!!1)");
    assert_name(name_method(&source, CSHARP, 0x0a000005, NULL, &text), "Ns.Own<T>.V(int, __arglist)");
    assert_name(name_method(&source, CSHARP, 0x0a000006, NULL, &text), "int[,].Get(int, int)");
    assert_no_name(name_method(&source, CSHARP, 0x0a000007, NULL, &text), CDACQ_ERR_FORMAT);
    assert_name(name_method(&source, CSHARP, 0x06000001, NULL, &text), "Ns.Own<T>.V(int, __arglist)");
    assert_name(name_type(&source, TYPES, 0x1b000001, &text), "Ns.List<int>.Inner");
    assert_name(name_type(&source, TYPES, 0x01000002, &text), "Ns.List`1.Inner");
}
END_TEST

START_TEST(nesting_in_cycles_has_no_name)
{
    uint32_t a = add_type(NESTED, "", "A"), b = add_type(NESTED, "", "B"), self = add_type(NESTED, "", "Self");
    add_method("M", BLOB(0, 0, 1));
    METADATA_ROW(&writer, METADATA_NESTED_CLASS, a, b);
    METADATA_ROW(&writer, METADATA_NESTED_CLASS, b, a);
    METADATA_ROW(&writer, METADATA_NESTED_CLASS, self, self);
    METADATA_ROW(&writer, METADATA_TYPE_REF, 1 << 2 | CODED_SCOPE_TYPE_REF, string("R"), 0);
    open_written();
    assert_no_name(name_type(&source, TYPES, 0x02000000 | a, &text), CDACQ_ERR_FUEL);
    assert_no_name(name_method(&source, CSHARP, 0x06000001, NULL, &text), CDACQ_ERR_FUEL);
    assert_no_name(name_type(&source, TYPES, 0x01000001, &text), CDACQ_ERR_FUEL);
}
END_TEST

START_TEST(type_specs_in_cycles_have_no_name)
{
    METADATA_ROW(&writer, METADATA_TYPE_SPEC, BLOB(0x12, 1 << 2 | 2));       /* itself */
    METADATA_ROW(&writer, METADATA_TYPE_SPEC, BLOB(0x0f, 0x12, 2 << 2 | 2)); /* a pointer to itself */
    open_written();
    assert_no_name(name_type(&source, TYPES, 0x1b000001, &text), CDACQ_ERR_FUEL);
    assert_no_name(name_type(&source, TYPES, 0x1b000002, &text), CDACQ_ERR_FUEL);
}
END_TEST

/* Each TypeSpec is a function pointer with ten parameters of the next one: 10^30 types to print. */
START_TEST(exponential_types_end)
{
    enum { LEVELS = 30 };
    for (uint8_t i = 1; i <= LEVELS; i++) {
        uint8_t signature[64] = {0x1b, 0, 10, 1};
        size_t length = 4;
        for (unsigned k = 0; k < 10; k++, length += 2) {
            signature[length] = i == LEVELS ? 0x1c : 0x12;
            signature[length + 1] = i == LEVELS ? 0x1c : (uint8_t)((i + 1) << 2 | 2);
        }
        if (i == LEVELS)
            signature[2] = 20;
        METADATA_ROW(&writer, METADATA_TYPE_SPEC, metadata_writer_blob(&writer, signature, length));
    }
    open_written();
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    assert_no_name(name_type(&source, TYPES, 0x1b000001, &text), CDACQ_ERR_FUEL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    ck_assert_int_lt(end.tv_sec - begin.tv_sec, 10);
}
END_TEST

START_TEST(many_unsorted_rows_cost_fuel)
{
    uint32_t type = add_type(PUBLIC, "", "T");
    uint8_t signature[4096 + 4] = {0, 0x88, 0, 1}; /* 2048 parameters */
    for (size_t i = 0; i < 2048; i++) {
        signature[4 + 2 * i] = 0x12;
        signature[5 + 2 * i] = 3 << 2; /* a nested type: each asks the unsorted table */
    }
    uint32_t method = add_method("M", metadata_writer_blob(&writer, signature, sizeof signature));
    uint32_t nested = add_type(NESTED, "", "N");
    ck_assert_uint_eq(nested, 3);
    for (uint32_t i = 0; i < 20000; i++)
        METADATA_ROW(&writer, METADATA_NESTED_CLASS, i == 19999 ? nested : 9999, type);
    writer.uncompressed = true;
    open_written();
    assert_name(name_type(&source, TYPES, 0x02000003, &text), "T.N");
    assert_no_name(name_method(&source, CSHARP, 0x06000000 | method, NULL, &text), CDACQ_ERR_FUEL);
    assert_no_name(name_signature(signature, sizeof signature), CDACQ_ERR_FUEL);
}
END_TEST

START_TEST(text_has_its_cap)
{
    char name[3001];
    memset(name, 'n', 3000);
    name[3000] = '\0';
    uint32_t type = add_type(PUBLIC, "", name);
    uint8_t signature[3 + 60] = {0, 30, 1};
    for (unsigned i = 0; i < 30; i++) {
        signature[3 + 2 * i] = 0x12;
        signature[4 + 2 * i] = (uint8_t)(type << 2);
    }
    add_method("M", metadata_writer_blob(&writer, signature, sizeof signature));
    open_written();
    assert_no_name(name_method(&source, CSHARP, 0x06000001, NULL, &text), CDACQ_ERR_FUEL);
}
END_TEST

/* ---- Signatures that stand alone ---- */

#define SIGNATURE(...)  (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})
#define TYPE(...)       name_signature_type(&source, TYPES, SIGNATURE(__VA_ARGS__), &text, NULL)
#define PARAMETERS(...) name_signature(SIGNATURE(__VA_ARGS__))

START_TEST(primitive_types)
{
    static const struct {
        uint8_t element;
        const char *name;
    } primitives[] = {
        {1, "void"},
        {2, "bool"},
        {3, "char"},
        {4, "sbyte"},
        {5, "byte"},
        {6, "short"},
        {7, "ushort"},
        {8, "int"},
        {9, "uint"},
        {10, "long"},
        {11, "ulong"},
        {12, "float"},
        {13, "double"},
        {14, "string"},
        {0x16, "System.TypedReference"},
        {0x18, "nint"},
        {0x19, "nuint"},
        {0x1c, "object"},
        {0x3e, "System.__Canon"},
    };
    for (unsigned i = 0; i < ARRAY_SIZE(primitives); i++)
        assert_name(TYPE(primitives[i].element), primitives[i].name);
    const uint8_t bad[] = {0, 0x17, 0x1a, 0x23, 0x3a, 0x3c, 0x40, 0x41, 0x7f, 0x80, 0xff};
    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++)
        assert_no_name(TYPE(bad[i]), CDACQ_ERR_FORMAT);
    assert_no_name(name_signature_type(&source, TYPES, "", 0, &text, NULL), CDACQ_ERR_FORMAT);
    assert_no_name(name_signature_type(&source, TYPES, NULL, 0, &text, NULL), CDACQ_ERR_FORMAT);
}
END_TEST

START_TEST(composed_types)
{
    size_t length = 0;
    assert_name(TYPE(0x1d, 0x1d, 8), "int[][]");
    assert_name(TYPE(0x1d, 0x14, 8, 2, 0, 0), "int[][,]");
    assert_name(TYPE(0x14, 0x1d, 8, 3, 1, 5, 2, 0, 1), "int[,,][]");
    assert_name(TYPE(0x14, 8, 1, 0, 0), "int[*]");
    assert_name(TYPE(0x1d, 0x0f, 0x1d, 8), "int[]*[]");
    assert_name(TYPE(0x10, 0x0f, 0x0f, 1), "ref void**");
    assert_name(TYPE(0x1f, 5, 0x20, 5, 0x45, 0x1d, 0x1f, 5, 8), "int[]");
    assert_name(TYPE(0x13, 0x81, 0), "!256");
    assert_name(TYPE(0x1e, 3), "!!3");
    assert_name(TYPE(0x1b, 0, 2, 1, 8, 0x10, 14), "delegate*<int, ref string, void>");
    assert_name(TYPE(0x1d, 0x1b, 5, 2, 8, 8, 0x41, 14), "delegate*<int, string, int>[]");
    assert_name(TYPE(0x1b, 9, 1, 0x1b, 0, 0, 1, 0x1b, 0, 0, 8), "delegate* unmanaged<delegate*<int>, delegate*<void>>");
    assert_name(name_signature_type(&source, TYPES, SIGNATURE(0x1d, 8, 99), &text, &length), "int[]");
    ck_assert_uint_eq(length, 2);
    assert_no_name(TYPE(0x14, 8, 0, 0, 0), CDACQ_ERR_FORMAT);  /* no dimension */
    assert_no_name(TYPE(0x14, 8, 33, 0, 0), CDACQ_ERR_FORMAT); /* too many */
    assert_no_name(TYPE(0x14, 8, 2, 3, 1, 1, 1, 0), CDACQ_ERR_FORMAT);
    assert_no_name(TYPE(0x14, 8, 2, 0), CDACQ_ERR_FORMAT);
    assert_no_name(TYPE(0x15, 8, 1, 8), CDACQ_ERR_FORMAT); /* an instance of a primitive */
    assert_no_name(TYPE(0x0f), CDACQ_ERR_FORMAT);
    assert_no_name(TYPE(0x1b, 6, 0, 1), CDACQ_ERR_FORMAT);
}
END_TEST

START_TEST(tokens_need_metadata)
{
    source.metadata = NULL;
    assert_name(PARAMETERS(0, 2, 1, 8, 14), "C.N(int, string)");
    assert_no_name(PARAMETERS(0, 1, 1, 0x12, 4), CDACQ_ERR_MODULE);
    assert_no_name(PARAMETERS(0, 1, 1, 0x15, 0x12, 4, 1, 8), CDACQ_ERR_MODULE);
    assert_no_name(name_method(&source, CSHARP, 0x06000001, NULL, &text), CDACQ_ERR_MODULE);
    assert_no_name(name_type(&source, TYPES, 0x02000001, &text), CDACQ_ERR_MODULE);
    assert_no_name(TYPE(0x3b, 1), CDACQ_ERR_MODULE);
}
END_TEST

START_TEST(tokens_out_of_range)
{
    open_written();
    assert_name(TYPE(0x12, 4), "<Module>");
    assert_no_name(TYPE(0x12, 0), CDACQ_ERR_FORMAT);
    assert_no_name(TYPE(0x12, 8), CDACQ_ERR_FORMAT);
    assert_no_name(TYPE(0x12, 7), CDACQ_ERR_FORMAT); /* no such tag */
    assert_no_name(TYPE(0x12, 0xdf, 0xff, 0xff, 0xfc), CDACQ_ERR_FORMAT);
    assert_no_name(TYPE(0x12, 0xe0, 0, 0, 0), CDACQ_ERR_FORMAT);
    assert_no_name(TYPE(0x12, 0xc0, 0, 0), CDACQ_ERR_FORMAT);
}
END_TEST

START_TEST(parameters)
{
    assert_name(PARAMETERS(0, 0, 1), "C.N()");
    assert_name(PARAMETERS(0x20, 1, 0x1d, 8, 0x10, 2), "C.N(ref bool)");
    assert_name(PARAMETERS(0x10, 1, 1, 1, 0x1e, 0), "C.N(!!0)");
    assert_name(PARAMETERS(5, 0, 1), "C.N(__arglist)");
    assert_name(PARAMETERS(5, 2, 1, 8, 0x41, 14), "C.N(int, __arglist)");
    assert_no_name(PARAMETERS(6, 8), CDACQ_ERR_FORMAT);       /* a field */
    assert_no_name(PARAMETERS(7, 1, 8), CDACQ_ERR_FORMAT);    /* locals */
    assert_no_name(PARAMETERS(0x28, 0, 8), CDACQ_ERR_FORMAT); /* a property */
    assert_no_name(PARAMETERS(0, 2, 1, 8), CDACQ_ERR_FORMAT);
    assert_no_name(PARAMETERS(0, 0xdf, 0xff, 0xff, 0xff, 1, 8, 8), CDACQ_ERR_FORMAT);
    assert_no_name(PARAMETERS(0, 1), CDACQ_ERR_FORMAT);
    assert_no_name(name_signature("", 0), CDACQ_ERR_FORMAT);
}
END_TEST

START_TEST(depth_has_its_cap)
{
    uint8_t deep[200000];
    memset(deep, 0x0f, sizeof deep);
    assert_no_name(name_signature_type(&source, TYPES, deep, sizeof deep, &text, NULL), CDACQ_ERR_FUEL);
    memset(deep, 0x1d, sizeof deep);
    assert_no_name(name_signature_type(&source, TYPES, deep, sizeof deep, &text, NULL), CDACQ_ERR_FUEL);
    memset(deep, 0x45, sizeof deep);
    assert_no_name(name_signature_type(&source, TYPES, deep, sizeof deep, &text, NULL), CDACQ_ERR_FORMAT);
    for (size_t i = 0; i + 2 < sizeof deep; i += 3)
        memcpy(deep + i, "\x1b\x00\x01", 3); /* function pointers that return function pointers */
    assert_no_name(name_signature_type(&source, TYPES, deep, sizeof deep, &text, NULL), CDACQ_ERR_FORMAT);
    deep[0] = 0;
    deep[1] = 0;
    memset(deep + 2, 0x0f, sizeof deep - 2); /* as a return type, which is skipped */
    assert_no_name(name_signature(deep, sizeof deep), CDACQ_ERR_FORMAT);
}
END_TEST

/* A type handle is named by its number; 0x99 cannot be. */
static void put_handle(void *context, uint64_t address, struct namer *n)
{
    (void)context;
    text_printf(n->text, "H%llx", (unsigned long long)address);
    if (address == 0x99)
        namer_fail(n, CDACQ_ERR_MEMORY);
}

static enum cdacq_status define_handle(void *context, uint64_t address, const struct metadata **ret_metadata,
                                       uint32_t *ret_token)
{
    (void)context;
    *ret_metadata = &m;
    *ret_token = 0x02000000 | (uint32_t)address;
    return CDACQ_OK;
}

START_TEST(type_handles)
{
    assert_no_name(PARAMETERS(0, 1, 1, 0x21, 1, 0, 0, 0, 0, 0, 0, 0), CDACQ_ERR_FORMAT); /* no callback */
    source.type_handle = put_handle;
    source.pointer_size = 8;
    assert_name(PARAMETERS(0, 2, 0x21, 1, 0, 0, 0, 0, 0, 0, 0, 0x21, 8, 7, 6, 5, 4, 3, 2, 1, 8),
                "C.N(H102030405060708, int)");
    assert_name(PARAMETERS(0, 1, 1, 0x1d, 0x22, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0x21, 2, 0, 0, 0, 0, 0, 0, 0), "C.N(H2[])");
    assert_no_name(PARAMETERS(0, 1, 1, 0x21, 0x99, 0, 0, 0, 0, 0, 0, 0), CDACQ_ERR_MEMORY);
    assert_no_name(PARAMETERS(0, 1, 1, 0x21, 1, 0, 0, 0, 0, 0, 0), CDACQ_ERR_FORMAT);
    source.big_endian = true;
    assert_name(PARAMETERS(0, 1, 1, 0x21, 8, 7, 6, 5, 4, 3, 2, 1), "C.N(H807060504030201)");
    source.pointer_size = 4;
    assert_name(PARAMETERS(0, 2, 1, 0x21, 1, 2, 3, 4, 8), "C.N(H1020304, int)");
    source.big_endian = false;
    assert_name(PARAMETERS(0, 2, 1, 0x21, 1, 2, 3, 4, 8), "C.N(H4030201, int)");
}
END_TEST

START_TEST(instances_of_type_handles)
{
    uint32_t type = add_type(PUBLIC, "Ns", "List`1");
    open_written();
    source.type_handle = put_handle;
    source.pointer_size = 4;
    assert_no_name(TYPE(0x15, 0x21, (uint8_t)type, 0, 0, 0, 1, 8), CDACQ_ERR_FORMAT);
    source.type_definition = define_handle;
    assert_name(TYPE(0x15, 0x21, (uint8_t)type, 0, 0, 0, 1, 0x21, 5, 0, 0, 0), "Ns.List<H5>");
}
END_TEST

/* The type's parameter 0 is an int[], the method's a string. */
static void feed_argument(void *context, bool of_method, uint32_t index, struct namer *n)
{
    ck_assert_ptr_eq(context, &source);
    ck_assert_uint_eq(index, 0);
    type_primitive(n, of_method ? ELEMENT_STRING : ELEMENT_I4);
    if (!of_method)
        type_array(n, NULL);
}

static enum cdacq_status name_substituted(const void *signature, size_t length)
{
    const struct name_instance instance = {
        .argument = feed_argument, .type_count = 1, .method_count = 1, .context = &source};
    struct namer n = namer_begin(&source, TYPES, &text);
    struct signature s = signature_at(signature, length, 0, false);
    n.instance = &instance;
    type_signature(&n, &s, &m);
    return namer_end(&n);
}

START_TEST(type_parameters_are_substituted)
{
    uint32_t type = add_type(PUBLIC, "Ns", "Pair`2");
    open_written();
#define SUBSTITUTED(...) name_substituted(SIGNATURE(__VA_ARGS__))
    assert_name(SUBSTITUTED(0x10, 0x13, 0), "ref int[]");
    assert_name(SUBSTITUTED(0x1e, 0), "string");
    assert_name(SUBSTITUTED(0x14, 0x13, 0, 2, 0, 0), "int[,][]");
    assert_name(SUBSTITUTED(0x1d, 0x15, 0x12, (uint8_t)(type << 2), 2, 0x1e, 0, 0x13, 0), "Ns.Pair<string, int[]>[]");
    assert_name(SUBSTITUTED(0x13, 1), "!1");
    assert_name(SUBSTITUTED(0x1e, 1), "!!1");
}
END_TEST

/* ---- ReadyToRun ---- */

static const struct metadata *find_other(void *context, uint32_t index)
{
    (void)context;
    return index == 3 ? &fixture : NULL;
}

START_TEST(entry_points)
{
    struct name_entry_point entry;
    static const uint8_t plain[] = {0x04, 7, 2, 8, 0x3e, 0xaa};
    ck_assert_int_eq(name_entry_point_decode(plain, sizeof plain, &entry), CDACQ_OK);
    ck_assert_uint_eq(entry.token, 0x06000007);
    ck_assert_uint_eq(entry.module, 0);
    ck_assert_uint_eq(entry.argument_count, 2);
    ck_assert_uint_eq(entry.length, 5);
    ck_assert_ptr_null(entry.owner);
    ck_assert_uint_eq(entry.owner_element, 0);

    static const uint8_t owned[] = {0x40, 0x15, 0x11, 0x08, 1, 0x3e, 0x81, 0x23};
    ck_assert_int_eq(name_entry_point_decode(owned, sizeof owned, &entry), CDACQ_OK);
    ck_assert_uint_eq(entry.token, 0x06000123);
    ck_assert_uint_eq(entry.owner_element, ELEMENT_VALUETYPE);
    ck_assert_uint_eq(entry.owner_token, 0x02000002);
    ck_assert_uint_eq(entry.owner_length, 5);

    /* The type is another module's: so is the MethodDef. */
    static const uint8_t foreign[] = {0x40, 0x3f, 3, 0x15, 0x12, 0x08, 1, 0x3f, 9, 0x12, 4, 5};
    ck_assert_int_eq(name_entry_point_decode(foreign, sizeof foreign, &entry), CDACQ_OK);
    ck_assert_uint_eq(entry.module, 3);
    ck_assert_uint_eq(entry.context, 0);
    ck_assert_uint_eq(entry.token, 0x06000005);

    static const uint8_t updated[] = {0x80 | 0x80, 0x01 | 0x80, 0};
    ck_assert_int_eq(name_entry_point_decode(updated, sizeof updated, &entry), CDACQ_ERR_FORMAT);
    static const uint8_t member[] = {0x80, 0xd1, 4, 0x40, 0x12, 0x08, 6}; /* flags 0xd1 take two bytes */
    ck_assert_int_eq(name_entry_point_decode(member, sizeof member, &entry), CDACQ_ERR_FORMAT);
    static const uint8_t member_ok[] = {0x80, 0xd1, 4, 0x3f, 3, 0x12, 0x08, 6};
    ck_assert_int_eq(name_entry_point_decode(member_ok, sizeof member_ok, &entry), CDACQ_OK);
    ck_assert_uint_eq(entry.flags, 0xd1);
    ck_assert_uint_eq(entry.token, 0x0a000006);
    ck_assert_uint_eq(entry.context, 4);
    ck_assert_uint_eq(entry.module, 4);
    ck_assert_uint_eq(entry.owner_module, 3);
    ck_assert_uint_eq(entry.owner_token, 0x02000002);

    static const uint8_t of_string[] = {0x44, 0x0e, 9, 1, 8};
    ck_assert_int_eq(name_entry_point_decode(of_string, sizeof of_string, &entry), CDACQ_OK);
    ck_assert_uint_eq(entry.owner_element, ELEMENT_STRING);
    ck_assert_uint_eq(entry.owner_token, 0);

    static const uint8_t slot[] = {0x48, 0x1d, 8, 9};
    ck_assert_int_eq(name_entry_point_decode(slot, sizeof slot, &entry), CDACQ_OK);
    ck_assert_uint_eq(entry.slot, 9);
    ck_assert_uint_eq(entry.token, 0);

    entry.length = 77;
    for (size_t length = 0; length < sizeof foreign; length++)
        ck_assert_int_eq(name_entry_point_decode(foreign, length, &entry), CDACQ_ERR_FORMAT);
    static const uint8_t unknown[] = {0x82, 0x00, 5};
    ck_assert_int_eq(name_entry_point_decode(unknown, sizeof unknown, &entry), CDACQ_ERR_FORMAT);
    static const uint8_t endless[] = {0x04, 5, 0xdf, 0xff, 0xff, 0xff, 8};
    ck_assert_int_eq(name_entry_point_decode(endless, sizeof endless, &entry), CDACQ_ERR_FORMAT);
    static const uint8_t none[] = {0, 0};
    ck_assert_int_eq(name_entry_point_decode(none, sizeof none, &entry), CDACQ_ERR_FORMAT);
    ck_assert_uint_eq(entry.length, 77);
}
END_TEST

START_TEST(entry_points_as_instantiated)
{
    setup_fixture();
    uint32_t outer, take, type = add_type(PUBLIC, "Ns", "Own`1");
    add_method("Convert", BLOB(0x30, 1, 0, 1));
    METADATA_ROW(&writer, METADATA_GENERIC_PARAM, 0, 0, type << 1, string("T"));
    METADATA_ROW(&writer, METADATA_MEMBER_REF, type << 3 | CODED_PARENT_TYPE_DEF, string("Ref"), BLOB(0x20, 0, 1));
    open_written();
    source.module = find_other;
    ck_assert_int_eq(metadata_find_type(&fixture, "Ns.Inner", "Outer`1", 0, &outer), CDACQ_OK);
    ck_assert_int_eq(metadata_find_method(&fixture, outer, "Take", NULL, 0, &take), CDACQ_OK);
    struct name_entry_point entry;

    const uint8_t own[] = {0x44, 0x15, 0x12, (uint8_t)(type << 2), 1, 8, 1, 2, 0x3b, 1, 0x3e};
    ck_assert_int_eq(name_entry_point_decode(own, sizeof own, &entry), CDACQ_OK);
    assert_name(name_entry_point(&source, CSHARP, &entry, &text), "Ns.Own<int>.Convert<T, System.__Canon>()");

    /* The type is module 3's; the argument's token is ours, and the argument's argument again module 3's. */
    const uint8_t foreign[] = {
        0x40, 0x3f, 3, 0x15, 0x12,   (uint8_t)(outer << 2), 1, 0x15, 0x12, (uint8_t)(type << 2), 1,
        0x3d, 0x3f, 3, 0x12, 8 << 2, (uint8_t)take};
    ck_assert_int_eq(name_entry_point_decode(foreign, sizeof foreign, &entry), CDACQ_OK);
    text_clear(&text);
    ck_assert_int_eq(name_entry_point(&source, CSHARP, &entry, &text), CDACQ_OK);
    struct text expected = {0};
    text_puts(&expected, "Ns.Inner.Outer<Ns.Own<");
    struct name_source other = {.metadata = &fixture};
    ck_assert_int_eq(name_signature_type(&other, TYPES, SIGNATURE(0x12, 8 << 2), &expected, NULL), CDACQ_OK);
    text_puts(&expected, ">>.Take(Ns.Inner.Outer<Ns.Own<");
    ck_assert_msg(strncmp(text.data, expected.data, expected.length) == 0, "%s", text.data);
    text_deinit(&expected);

    const uint8_t plain[] = {0, 1};
    ck_assert_int_eq(name_entry_point_decode(plain, sizeof plain, &entry), CDACQ_OK);
    assert_name(name_entry_point(&source, CSHARP, &entry, &text), "Ns.Own<T>.Convert()");
    const uint8_t member[] = {0x14, 1, 1, 8};
    ck_assert_int_eq(name_entry_point_decode(member, sizeof member, &entry), CDACQ_OK);
    assert_name(name_entry_point(&source, CSHARP, &entry, &text), "Ns.Own<T>.Ref<int>()");
    const uint8_t owned_member[] = {0x50, 0x15, 0x12, (uint8_t)(type << 2), 1, 8, 1};
    ck_assert_int_eq(name_entry_point_decode(owned_member, sizeof owned_member, &entry), CDACQ_OK);
    assert_name(name_entry_point(&source, CSHARP, &entry, &text), "Ns.Own<int>.Ref()");
    const uint8_t unknown[] = {0x40, 0x3f, 5, 0x12, 4, 1};
    ck_assert_int_eq(name_entry_point_decode(unknown, sizeof unknown, &entry), CDACQ_OK);
    assert_no_name(name_entry_point(&source, CSHARP, &entry, &text), CDACQ_ERR_MODULE);
    const uint8_t slot[] = {0x48, 0x1d, 8, 9};
    ck_assert_int_eq(name_entry_point_decode(slot, sizeof slot, &entry), CDACQ_OK);
    assert_no_name(name_entry_point(&source, CSHARP, &entry, &text), CDACQ_ERR_FORMAT);
    free(file);
}
END_TEST

START_TEST(survives_random_signatures)
{
    uint64_t state = 11;
    add_type(PUBLIC, "Ns", "T`2");
    METADATA_ROW(&writer, METADATA_TYPE_REF, 1 << 2 | CODED_ASSEMBLY_REF, string("R`1"), 0);
    METADATA_ROW(&writer, METADATA_TYPE_SPEC, BLOB(0x15, 0x12, 8, 2, 8, 8));
    open_written();
    source.type_handle = put_handle;
    source.pointer_size = 4;
    for (int round = 0; round < rounds(200000, 5000); round++) {
        uint8_t *signature = malloc(24);
        struct name_entry_point entry;
        for (unsigned i = 0; i < 24; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            signature[i] = (uint8_t)(state >> 60 ? state >> 40 & 0x1f : state >> 33);
        }
        text_clear(&text);
        name_signature(signature, 24);
        name_signature_type(&source, TYPES, signature, 24, &text, NULL);
        if (name_entry_point_decode(signature, 24, &entry) == CDACQ_OK)
            name_entry_point(&source, CSHARP, &entry, &text);
        free(signature);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("names");
    TCase *t = tcase_create("fixture");
    tcase_add_checked_fixture(t, setup_fixture, teardown_fixture);
    tcase_add_test(t, names_every_method_of_the_fixture);
    tcase_add_test(t, names_what_was_written);
    tcase_add_test(t, arguments_of_what_was_written);
    tcase_add_test(t, names_what_is_there_when_parts_are_missing);
    tcase_add_test(t, names_types);
    tcase_add_test(t, names_instances);
    tcase_add_test(t, names_member_references);
    tcase_add_test(t, survives_mutation);
    suite_add_tcase(s, t);

    t = tcase_create("written");
    tcase_add_checked_fixture(t, setup_writer, teardown_writer);
    tcase_add_test(t, levels_list_what_they_add);
    tcase_add_test(t, extension_members_need_their_declaration);
    tcase_add_test(t, stack_traces_name_parameters);
    tcase_add_test(t, names_member_references_of_every_parent);
    tcase_add_test(t, nesting_in_cycles_has_no_name);
    tcase_add_test(t, type_specs_in_cycles_have_no_name);
    tcase_add_test(t, exponential_types_end);
    tcase_add_test(t, many_unsorted_rows_cost_fuel);
    tcase_add_test(t, text_has_its_cap);
    tcase_add_test(t, primitive_types);
    tcase_add_test(t, composed_types);
    tcase_add_test(t, tokens_need_metadata);
    tcase_add_test(t, tokens_out_of_range);
    tcase_add_test(t, parameters);
    tcase_add_test(t, depth_has_its_cap);
    tcase_add_test(t, type_handles);
    tcase_add_test(t, instances_of_type_handles);
    tcase_add_test(t, type_parameters_are_substituted);
    tcase_add_test(t, entry_points);
    tcase_add_test(t, entry_points_as_instantiated);
    tcase_add_test(t, survives_random_signatures);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
