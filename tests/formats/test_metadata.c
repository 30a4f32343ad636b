#include "formats/metadata_members.h"

#include "formats/pe.h"
#include "tests/support/check_main.h"
#include "tests/support/fixture_file.h"
#include "tests/support/metadata_find.h"
#include "tests/support/metadata_writer.h"
#include "tests/support/paged_bytes.h"

/* ---- An assembly that a compiler wrote ---- */

static uint8_t *file;
static struct bytes_extent part;
static struct bytes fixture_bytes;
static struct metadata fixture;

static void setup_fixture(void)
{
    size_t size;
    struct pe pe;
    file = fixture_file("names/Names.dll", &size);
    static struct bytes whole;
    whole = bytes_of_buffer(file, size);
    ck_assert_int_eq(pe_open(&whole, false, &pe), CDACQ_OK);
    ck_assert_int_eq(pe_metadata(&pe, &part, &fixture_bytes), CDACQ_OK);
    ck_assert_int_eq(metadata_open(&fixture_bytes, &fixture), CDACQ_OK);
}

static void teardown_fixture(void)
{
    free(file);
}

static void assert_string(const struct metadata *m, uint32_t index, const char *expected)
{
    char buffer[METADATA_STRING_CAP];
    const char *string;
    size_t length;
    bool equal;
    ck_assert_int_eq(metadata_string(m, index, buffer, &string, &length), CDACQ_OK);
    ck_assert_uint_eq(length, strlen(expected));
    ck_assert_mem_eq(string, expected, length);
    ck_assert_int_eq(metadata_string_equals(m, index, expected, length, &equal), CDACQ_OK);
    ck_assert(equal);
}

START_TEST(reads_rows)
{
    struct metadata_module module;
    struct metadata_type_def type;
    struct metadata_assembly_ref reference;
    uint32_t name;
    ck_assert(!fixture.uncompressed);
    ck_assert_int_eq(metadata_module(&fixture, 1, &module), CDACQ_OK);
    assert_string(&fixture, module.name, "Names.dll");
    ck_assert_int_eq(metadata_assembly_name(&fixture, &name), CDACQ_OK);
    assert_string(&fixture, name, "Names");
    ck_assert_int_eq(metadata_type_def(&fixture, 1, &type), CDACQ_OK);
    assert_string(&fixture, type.name, "<Module>");
    assert_string(&fixture, type.namespace_name, "");
    ck_assert_int_eq(metadata_assembly_ref(&fixture, 1, &reference), CDACQ_OK);
    assert_string(&fixture, reference.name, "System.Runtime");
    ck_assert_uint_eq(reference.version[0], 10);
    ck_assert_int_eq(metadata_type_def(&fixture, 0, &type), CDACQ_ERR_FORMAT);
    ck_assert_int_eq(metadata_type_def(&fixture, metadata_row_count(&fixture, METADATA_TYPE_DEF) + 1, &type),
                     CDACQ_ERR_FORMAT);
}
END_TEST

START_TEST(reads_the_mvid)
{
    uint8_t mvid[16], zero[16] = {0};
    ck_assert_int_eq(metadata_mvid(&fixture, mvid), CDACQ_OK);
    ck_assert_mem_ne(mvid, zero, 16);
    ck_assert_uint_eq(mvid[7] >> 4, 4); /* the compiler's hash of its input, marked as a random GUID */
}
END_TEST

START_TEST(every_method_has_its_owner)
{
    uint32_t methods = 0;
    for (uint32_t type = 1; type <= metadata_row_count(&fixture, METADATA_TYPE_DEF); type++) {
        uint32_t begin, end, owner, method;
        ck_assert_int_eq(metadata_methods(&fixture, type, &begin, &end), CDACQ_OK);
        for (; begin < end; begin++, methods++) {
            ck_assert_int_eq(metadata_method_at(&fixture, begin, &method), CDACQ_OK);
            ck_assert_int_eq(metadata_method_owner(&fixture, method, &owner), CDACQ_OK);
            ck_assert_uint_eq(owner, type);
        }
    }
    ck_assert_uint_eq(methods, metadata_row_count(&fixture, METADATA_METHOD_DEF));
    uint32_t owner = 99;
    ck_assert_int_eq(metadata_method_owner(&fixture, methods + 1, &owner), CDACQ_ERR_FORMAT);
    ck_assert_int_eq(metadata_method_owner(&fixture, 0, &owner), CDACQ_ERR_FORMAT);
    ck_assert_uint_eq(owner, 99);
}
END_TEST

START_TEST(finds_types_and_methods)
{
    static const uint8_t go[] = {0x30, 1, 4, 0x13, 1, 0x13, 0, 0x13, 1, 0x1e, 0, 0x1d, 0x13, 2};
    uint32_t outer, plain, deep, method, other;
    ck_assert_int_eq(metadata_find_type(&fixture, "Ns.Inner", "Outer`1", 0, &outer), CDACQ_OK);
    ck_assert_uint_ne(outer, 0);
    ck_assert_int_eq(metadata_find_type(&fixture, "", "Plain", outer, &plain), CDACQ_OK);
    ck_assert_int_eq(metadata_find_type(&fixture, "", "Deep`2", plain, &deep), CDACQ_OK);
    ck_assert_uint_ne(deep, 0);
    ck_assert_int_eq(metadata_enclosing(&fixture, deep, &other), CDACQ_OK);
    ck_assert_uint_eq(other, plain);
    ck_assert_int_eq(metadata_find_type(&fixture, "", "Plain", 0, &other), CDACQ_OK);
    ck_assert_uint_eq(other, 0);
    ck_assert_int_eq(metadata_find_type(&fixture, "Ns", "Outer`1", 0, &other), CDACQ_OK);
    ck_assert_uint_eq(other, 0);

    ck_assert_int_eq(metadata_find_method(&fixture, deep, "Go", NULL, 0, &method), CDACQ_OK);
    ck_assert_uint_ne(method, 0);
    ck_assert_int_eq(metadata_find_method(&fixture, deep, "Go", go, sizeof go, &other), CDACQ_OK);
    ck_assert_uint_eq(other, method);
    ck_assert_int_eq(metadata_find_method(&fixture, deep, "Go", go, sizeof go - 1, &other), CDACQ_OK);
    ck_assert_uint_eq(other, 0);
    ck_assert_int_eq(metadata_find_method(&fixture, plain, "Go", NULL, 0, &other), CDACQ_OK);
    ck_assert_uint_eq(other, 0);
}
END_TEST

START_TEST(finds_events)
{
    uint32_t outer, type, found = 0;
    bool has = true;
    ck_assert_int_eq(metadata_find_type(&fixture, "Ns.Inner", "Outer`1", 0, &outer), CDACQ_OK);
    for (type = 1; type <= metadata_row_count(&fixture, METADATA_TYPE_DEF); type++) {
        ck_assert_int_eq(metadata_has_event(&fixture, type, "Happened", 8, &has), CDACQ_OK);
        found += has;
    }
    ck_assert_uint_eq(found, 1);
    ck_assert_int_eq(metadata_has_event(&fixture, outer, "Happen", 6, &has), CDACQ_OK);
    ck_assert(!has);
    ck_assert_int_eq(metadata_has_event(&fixture, 0, "Happened", 8, &has), CDACQ_OK);
    ck_assert(!has);
}
END_TEST

START_TEST(lists_generic_parameters)
{
    uint32_t outer, plain, deep, rid;
    struct metadata_generics generics;
    struct metadata_generic_param param;
    static const char *const names[] = {"TOuter", "TDeep", "TMore"};
    ck_assert_int_eq(metadata_find_type(&fixture, "Ns.Inner", "Outer`1", 0, &outer), CDACQ_OK);
    ck_assert_int_eq(metadata_find_type(&fixture, "", "Plain", outer, &plain), CDACQ_OK);
    ck_assert_int_eq(metadata_find_type(&fixture, "", "Deep`2", plain, &deep), CDACQ_OK);
    ck_assert_int_eq(metadata_generics(&fixture, metadata_token(METADATA_TYPE_DEF, deep), &generics), CDACQ_OK);
    ck_assert_uint_eq(generics.count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(metadata_generics_at(&fixture, &generics, i, &rid), CDACQ_OK);
        ck_assert_int_eq(metadata_generic_param(&fixture, rid, &param), CDACQ_OK);
        ck_assert_uint_eq(param.number, i);
        ck_assert_uint_eq(param.owner, metadata_token(METADATA_TYPE_DEF, deep));
        assert_string(&fixture, param.name, names[i]);
    }
    ck_assert_int_eq(metadata_generics_at(&fixture, &generics, 3, &rid), CDACQ_OK);
    ck_assert_uint_eq(rid, 0);
    ck_assert_int_eq(metadata_generics(&fixture, metadata_token(METADATA_TYPE_DEF, 1), &generics), CDACQ_OK);
    ck_assert_uint_eq(generics.count, 0);
}
END_TEST

/* Asks everything, to see that all calls end and stay within memory. */
static void read_everything(const struct metadata *m)
{
    enum { ROWS = 300 };
    char buffer[METADATA_STRING_CAP];
    const char *string;
    size_t length;
    uint8_t mvid[16];
    uint32_t number, begin, end;
    metadata_mvid(m, mvid);
    metadata_assembly_name(m, &number);
    for (uint32_t rid = 1; rid <= MIN(metadata_row_count(m, METADATA_METHOD_DEF), (uint32_t)ROWS); rid++) {
        struct metadata_method_def method;
        struct metadata_blob blob;
        metadata_method_owner(m, rid, &number);
        if (metadata_method_def(m, rid, &method) != CDACQ_OK)
            continue;
        metadata_string(m, method.name, buffer, &string, &length);
        if (metadata_blob_read(m, method.signature, &blob) == CDACQ_OK)
            metadata_blob_deinit(&blob);
    }
    for (uint32_t rid = 1; rid <= MIN(metadata_row_count(m, METADATA_TYPE_DEF), (uint32_t)ROWS); rid++) {
        struct metadata_generics generics;
        metadata_enclosing(m, rid, &number);
        metadata_methods(m, rid, &begin, &end);
        if (metadata_generics(m, metadata_token(METADATA_TYPE_DEF, rid), &generics) == CDACQ_OK)
            metadata_generics_at(m, &generics, 0, &number);
    }
    if (metadata_row_count(m, METADATA_TYPE_DEF) <= ROWS) {
        metadata_find_type(m, "Ns", "None", 1, &number);
        metadata_find_method(m, 2, "None", NULL, 0, &number);
    }
}

START_TEST(survives_truncation)
{
    for (uint64_t size = 0; size < fixture_bytes.size; size += size < 1024 ? 1 : 53) {
        struct paged_bytes paged;
        struct bytes bytes = paged_bytes_open(&paged, bytes_window(&fixture_bytes, 0, fixture_bytes.size), size);
        struct metadata m;
        ck_assert_int_eq(metadata_open(&bytes, &m), CDACQ_ERR_FORMAT); /* a stream no longer fits */
        paged_bytes_close(&paged);
    }
}
END_TEST

START_TEST(a_missing_part_is_missing)
{
    const uint8_t *data = bytes_window(&fixture_bytes, 0, fixture_bytes.size);
    for (uint64_t at = 0; at < fixture_bytes.size; at += 64) {
        struct paged_bytes paged;
        struct bytes bytes = paged_bytes_open(&paged, data, fixture_bytes.size);
        struct metadata m;
        paged.missing_begin = at;
        paged.missing_end = at + 64;
        enum cdacq_status status = metadata_open(&bytes, &m);
        ck_assert(status == CDACQ_OK || status == CDACQ_ERR_MEMORY);
        for (uint32_t rid = 1; status == CDACQ_OK && rid <= metadata_row_count(&fixture, METADATA_METHOD_DEF); rid++) {
            uint32_t owner, expected;
            enum cdacq_status answer = metadata_method_owner(&m, rid, &owner);
            ck_assert(answer == CDACQ_OK || answer == CDACQ_ERR_MEMORY);
            ck_assert_int_eq(metadata_method_owner(&fixture, rid, &expected), CDACQ_OK);
            ck_assert(answer != CDACQ_OK || owner == expected);
        }
        paged_bytes_close(&paged);
    }
}
END_TEST

START_TEST(survives_mutation)
{
    size_t size = (size_t)fixture_bytes.size;
    uint8_t *data = malloc(size);
    uint64_t state = 7;
    unsigned opened = 0;
    for (unsigned round = 0; round < 1500; round++) {
        struct paged_bytes paged;
        struct metadata m;
        memcpy(data, bytes_window(&fixture_bytes, 0, size), size);
        for (unsigned i = 0; i < 6; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            data[(state >> 33) % (i < 1 ? MIN(size, (size_t)256) : size)] = (uint8_t)(state >> 25);
        }
        struct bytes bytes = paged_bytes_open(&paged, data, size);
        if (metadata_open(&bytes, &m) == CDACQ_OK) {
            opened++;
            read_everything(&m);
        }
        paged_bytes_close(&paged);
    }
    ck_assert_uint_gt(opened, 50);
    free(data);
}
END_TEST

/* ---- Written metadata ---- */

static struct metadata_writer writer;
static uint8_t *written;
static struct paged_bytes written_source;
static struct bytes written_bytes;

static void setup_writer(void)
{
    metadata_writer_init(&writer);
}

static void teardown_writer(void)
{
    paged_bytes_close(&written_source);
    free(written);
    written = NULL;
    metadata_writer_deinit(&writer);
}

static enum cdacq_status open_written(struct metadata *ret)
{
    size_t size;
    paged_bytes_close(&written_source);
    free(written);
    written = metadata_writer_finish(&writer, &size);
    written_bytes = paged_bytes_open(&written_source, written, size);
    return metadata_open(&written_bytes, ret);
}

static uint32_t add_type(const char *name, uint32_t method_list)
{
    return METADATA_ROW(&writer, METADATA_TYPE_DEF, 1, metadata_writer_string(&writer, name), 0, 0, 1, method_list);
}

static uint32_t add_method(const char *name)
{
    static const uint8_t signature[] = {0, 0, 1};
    return METADATA_ROW(&writer, METADATA_METHOD_DEF, 0, 0, 0, metadata_writer_string(&writer, name),
                        metadata_writer_blob(&writer, signature, sizeof signature), 1);
}

static void assert_owner(const struct metadata *m, uint32_t method, uint32_t expected)
{
    uint32_t owner;
    ck_assert_int_eq(metadata_method_owner(m, method, &owner), CDACQ_OK);
    ck_assert_uint_eq(owner, expected);
}

START_TEST(indirection_in_uncompressed_tables)
{
    struct metadata m;
    uint32_t begin, end, method;
    writer.uncompressed = true;
    add_type("A", 1);
    add_type("B", 3);
    for (unsigned i = 0; i < 4; i++)
        add_method("M");
    METADATA_ROW(&writer, METADATA_METHOD_PTR, 4); /* A: 4 and 1; B: 3 and 2 */
    METADATA_ROW(&writer, METADATA_METHOD_PTR, 1);
    METADATA_ROW(&writer, METADATA_METHOD_PTR, 3);
    METADATA_ROW(&writer, METADATA_METHOD_PTR, 2);
    ck_assert_int_eq(open_written(&m), CDACQ_OK);
    ck_assert(m.uncompressed);
    assert_owner(&m, 1, 2);
    assert_owner(&m, 2, 3);
    assert_owner(&m, 3, 3);
    assert_owner(&m, 4, 2);
    ck_assert_int_eq(metadata_methods(&m, 2, &begin, &end), CDACQ_OK);
    ck_assert_uint_eq(begin, 1);
    ck_assert_uint_eq(end, 3);
    ck_assert_int_eq(metadata_method_at(&m, 1, &method), CDACQ_OK);
    ck_assert_uint_eq(method, 4);

    writer.tables[METADATA_METHOD_PTR].cells[0] = 9; /* a method that is not there; 4 is in no list now */
    ck_assert_int_eq(open_written(&m), CDACQ_OK);
    ck_assert_int_eq(metadata_method_at(&m, 1, &method), CDACQ_ERR_FORMAT);
    ck_assert_int_eq(metadata_method_owner(&m, 4, &method), CDACQ_ERR_FORMAT);
}
END_TEST

START_TEST(method_lists_that_do_not_ascend)
{
    static const uint32_t lists[] = {3, 3, 1, 3};
    struct metadata m;
    uint32_t owner;
    writer.tables[METADATA_TYPE_DEF].cells[5] = 0; /* `<Module>` has none */
    for (unsigned i = 0; i < ARRAY_SIZE(lists); i++)
        add_type("T", lists[i]);
    for (unsigned i = 0; i < 3; i++)
        add_method("M");
    writer.uncompressed = true;
    ck_assert_int_eq(open_written(&m), CDACQ_OK);
    assert_owner(&m, 1, 4);
    assert_owner(&m, 2, 4);
    assert_owner(&m, 3, 5);
    writer.uncompressed = false; /* compressed tables must ascend */
    ck_assert_int_eq(open_written(&m), CDACQ_OK);
    ck_assert_int_eq(metadata_method_owner(&m, 1, &owner), CDACQ_ERR_FORMAT);
}
END_TEST

START_TEST(empty_types_own_nothing)
{
    struct metadata m;
    add_type("A", 1);
    add_type("B", 1);
    add_type("C", 2);
    add_type("D", 2);
    add_method("M");
    ck_assert_int_eq(open_written(&m), CDACQ_OK);
    assert_owner(&m, 1, 3);
}
END_TEST

START_TEST(searches_unsorted_tables)
{
    struct metadata m;
    struct metadata_generics generics;
    uint32_t rid, found;
    for (uint32_t i = 0; i < 6; i++)
        add_type("T", 1);
    METADATA_ROW(&writer, METADATA_NESTED_CLASS, 6, 3);
    METADATA_ROW(&writer, METADATA_NESTED_CLASS, 3, 2);
    METADATA_ROW(&writer, METADATA_GENERIC_PARAM, 1, 0, 5 << 1, metadata_writer_string(&writer, "Second"));
    METADATA_ROW(&writer, METADATA_GENERIC_PARAM, 0, 0, 3 << 1, metadata_writer_string(&writer, "Other"));
    METADATA_ROW(&writer, METADATA_GENERIC_PARAM, 0, 0, 5 << 1, metadata_writer_string(&writer, "First"));
    writer.uncompressed = true;
    ck_assert_int_eq(open_written(&m), CDACQ_OK);
    ck_assert_uint_eq(metadata_search_cost(&m, METADATA_GENERIC_PARAM), 3);
    ck_assert_int_eq(metadata_enclosing(&m, 3, &found), CDACQ_OK);
    ck_assert_uint_eq(found, 2);
    ck_assert_int_eq(metadata_enclosing(&m, 6, &found), CDACQ_OK);
    ck_assert_uint_eq(found, 3);
    ck_assert_int_eq(metadata_enclosing(&m, 5, &found), CDACQ_OK);
    ck_assert_uint_eq(found, 0);
    ck_assert_int_eq(metadata_generics(&m, 0x02000005, &generics), CDACQ_OK);
    ck_assert_uint_eq(generics.count, 2);
    ck_assert_int_eq(metadata_generics_at(&m, &generics, 0, &rid), CDACQ_OK);
    ck_assert_uint_eq(rid, 3);
    ck_assert_int_eq(metadata_generics_at(&m, &generics, 1, &rid), CDACQ_OK);
    ck_assert_uint_eq(rid, 1);
    ck_assert_int_eq(metadata_generics_at(&m, &generics, 2, &rid), CDACQ_OK);
    ck_assert_uint_eq(rid, 0);

    writer.sorted = UINT64_C(1) << METADATA_GENERIC_PARAM; /* it is marked as sorted, so it is searched as sorted */
    ck_assert_int_eq(open_written(&m), CDACQ_OK);
    ck_assert_uint_eq(metadata_search_cost(&m, METADATA_GENERIC_PARAM), 1);
}
END_TEST

/* The same rows, whatever the widths. */
START_TEST(widths_of_columns)
{
    struct metadata m;
    struct metadata_member_ref member;
    struct metadata_type_def type;
    struct metadata_method_def method;
    struct metadata_type_ref reference;
    uint8_t mvid[16];
    writer.uncompressed = _i & 1;
    writer.minimal_delta = _i >> 1 & 1;
    writer.extra_data = _i >> 2 & 1;
    writer.wide_heaps = (uint8_t)(_i >> 3);
    uint32_t name = metadata_writer_string(&writer, "Name");
    METADATA_ROW(&writer, METADATA_TYPE_DEF, 0x100001, name, 0, 1 << 2 | CODED_TYPE_REF, 1, 1);
    METADATA_ROW(&writer, METADATA_TYPE_REF, 1 << 2 | CODED_ASSEMBLY_REF, name, 0);
    METADATA_ROW(&writer, METADATA_ASSEMBLY_REF, 1, 2, 3, 4, 0, 0, name, 0, 0);
    METADATA_ROW(&writer, METADATA_MEMBER_REF, 1 << 3 | CODED_PARENT_METHOD_DEF, name, 0);
    METADATA_ROW(&writer, METADATA_TYPE_SPEC, 0x77);
    METADATA_ROW(&writer, METADATA_METHOD_SPEC, 1 << 1 | 1, 0x78);
    add_method("M");
    ck_assert_int_eq(open_written(&m), CDACQ_OK);
    ck_assert_int_eq(metadata_mvid(&m, mvid), CDACQ_OK);
    ck_assert_uint_eq(mvid[15], 15);
    ck_assert_int_eq(metadata_type_def(&m, 2, &type), CDACQ_OK);
    ck_assert_uint_eq(type.flags, 0x100001);
    ck_assert_uint_eq(type.extends, 0x01000001);
    assert_string(&m, type.name, "Name");
    ck_assert_int_eq(metadata_type_ref(&m, 1, &reference), CDACQ_OK);
    ck_assert_uint_eq(reference.scope, 0x23000001);
    ck_assert_int_eq(metadata_member_ref(&m, 1, &member), CDACQ_OK);
    ck_assert_uint_eq(member.parent, 0x06000001);
    assert_string(&m, member.name, "Name");
    ck_assert_int_eq(metadata_method_def(&m, 1, &method), CDACQ_OK);
    assert_string(&m, method.name, "M");
    uint32_t spec[2]; /* the method and its instantiation */
    ck_assert_int_eq(metadata_row(&m, METADATA_METHOD_SPEC, 1, spec, sizeof spec), CDACQ_OK);
    ck_assert_uint_eq(spec[0], 0x0a000001);
    ck_assert_uint_eq(spec[1], 0x78);
    struct metadata_type_spec type_spec;
    ck_assert_int_eq(metadata_type_spec(&m, 1, &type_spec), CDACQ_OK);
    ck_assert_uint_eq(type_spec.signature, 0x77);
}
END_TEST

START_TEST(wide_row_indexes)
{
    struct metadata m;
    uint32_t owner;
    METADATA_ROW(&writer, METADATA_MEMBER_REF, 60000 << 3 | CODED_PARENT_METHOD_DEF, 0, 0);
    for (uint32_t i = 0; i < 70000; i++) {
        METADATA_ROW(&writer, METADATA_METHOD_DEF, 0, 0, 0, 1, 0, 1);
        if (i % 1000 == 0)
            METADATA_ROW(&writer, METADATA_TYPE_DEF, 1, 1, 0, 0, 1, i + 1);
    }
    ck_assert_int_eq(open_written(&m), CDACQ_OK);
    struct metadata_member_ref member;
    ck_assert_int_eq(metadata_member_ref(&m, 1, &member), CDACQ_OK);
    ck_assert_uint_eq(metadata_rid(member.parent), 60000);
    assert_owner(&m, 1, 2);
    assert_owner(&m, 69999, 71);
    written_source.page_count = 0;
    memset(written_source.touched, 0, sizeof written_source.touched);
    ck_assert_int_eq(metadata_method_owner(&m, 34567, &owner), CDACQ_OK);
    ck_assert_uint_le(written_source.page_count, 2);
}
END_TEST

START_TEST(strings)
{
    struct metadata m;
    char longest[METADATA_STRING_CAP + 1], buffer[METADATA_STRING_CAP];
    const char *string = "before";
    size_t length = 3;
    uint32_t indexes[3];
    const size_t lengths[] = {63, 1023, METADATA_STRING_CAP - 1};
    memset(longest, 'x', sizeof longest);
    longest[METADATA_STRING_CAP] = '\0';
    uint32_t too_long = metadata_writer_string(&writer, longest);
    for (unsigned i = 0; i < 3; i++)
        indexes[i] = metadata_writer_string(&writer, longest + METADATA_STRING_CAP - lengths[i]);
    uint32_t end = writer.strings_size;
    metadata_writer_string(&writer, "cut");
    writer.strings_size--; /* its NUL */
    ck_assert_int_eq(open_written(&m), CDACQ_OK);
    for (unsigned i = 0; i < 3; i++)
        assert_string(&m, indexes[i], longest + METADATA_STRING_CAP - lengths[i]);
    assert_string(&m, 0, "");
    ck_assert_int_eq(metadata_string(&m, too_long, buffer, &string, &length), CDACQ_ERR_FORMAT);
    ck_assert_int_eq(metadata_string(&m, end, buffer, &string, &length), CDACQ_ERR_FORMAT);
    ck_assert_int_eq(metadata_string(&m, end + 3, buffer, &string, &length), CDACQ_ERR_FORMAT);
    ck_assert_int_eq(metadata_string(&m, UINT32_MAX, buffer, &string, &length), CDACQ_ERR_FORMAT);
    ck_assert_str_eq(string, "before");
    ck_assert_uint_eq(length, 3);
}
END_TEST

START_TEST(a_string_before_a_missing_page)
{
    struct metadata m;
    char buffer[METADATA_STRING_CAP];
    const char *string;
    size_t length;
    uint32_t index = metadata_writer_string(&writer, "Known");
    uint32_t next = metadata_writer_string(&writer, "This one is not there");
    ck_assert_int_eq(open_written(&m), CDACQ_OK);
    written_source.missing_begin = m.strings.offset + next;
    written_source.missing_end = UINT64_MAX;
    assert_string(&m, index, "Known");
    ck_assert_int_eq(metadata_string(&m, next, buffer, &string, &length), CDACQ_ERR_MEMORY);
}
END_TEST

START_TEST(blobs)
{
    static uint8_t data[METADATA_BLOB_CAP + 1];
    const size_t sizes[] = {0, 1, 127, 128, 256, 257, 0x3fff, 0x4000, METADATA_BLOB_CAP};
    uint32_t indexes[ARRAY_SIZE(sizes)];
    struct metadata m;
    struct metadata_blob blob;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 7);
    for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++)
        indexes[i] = metadata_writer_blob(&writer, data, sizes[i]);
    uint32_t too_long = metadata_writer_blob(&writer, data, METADATA_BLOB_CAP + 1);
    uint32_t cut = metadata_writer_blob(&writer, data, 5);
    writer.blobs_size--;
    ck_assert_int_eq(open_written(&m), CDACQ_OK);
    for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
        ck_assert_int_eq(metadata_blob_read(&m, indexes[i], &blob), CDACQ_OK);
        ck_assert_uint_eq(blob.length, sizes[i]);
        ck_assert_int_eq(memcmp(blob.data, data, sizes[i]), 0);
        metadata_blob_deinit(&blob);
    }
    ck_assert_int_eq(metadata_blob_read(&m, 0, &blob), CDACQ_OK);
    ck_assert_uint_eq(blob.length, 0);
    ck_assert_int_eq(metadata_blob_read(&m, too_long, &blob), CDACQ_ERR_FORMAT);
    ck_assert_int_eq(metadata_blob_read(&m, cut, &blob), CDACQ_ERR_FORMAT);
    ck_assert_int_eq(metadata_blob_read(&m, writer.blobs_size, &blob), CDACQ_ERR_FORMAT);
    written_source.missing_begin = m.blobs.offset + indexes[5] + 200;
    written_source.missing_end = written_source.missing_begin + 1;
    ck_assert_int_eq(metadata_blob_read(&m, indexes[5], &blob), CDACQ_ERR_MEMORY);
    metadata_blob_deinit(NULL);
}
END_TEST

START_TEST(claims_more_rows_than_there_are)
{
    static const uint32_t claims[] = {100, 0xffffff, 0x1000000, UINT32_MAX};
    struct metadata m = {.sorted = 42};
    add_type("A", 1);
    for (unsigned i = 0; i < ARRAY_SIZE(claims); i++) {
        writer.claimed_rows[METADATA_TYPE_DEF] = claims[i];
        ck_assert_int_eq(open_written(&m), CDACQ_ERR_FORMAT);
    }
    writer.claimed_rows[METADATA_TYPE_DEF] = 0;
    writer.claimed_rows[METADATA_GENERIC_PARAM_CONSTRAINT] = 0xffffff;
    ck_assert_int_eq(open_written(&m), CDACQ_ERR_FORMAT);
    ck_assert_uint_eq(m.sorted, 42);
}
END_TEST

START_TEST(refuses_bad_roots)
{
    struct metadata m;
    ck_assert_int_eq(open_written(&m), CDACQ_OK);
    const struct {
        size_t offset;
        uint32_t value;
    } bad[] = {
        {0, 0},           /* signature */
        {12, 0x1000},     /* version string */
        {12, UINT32_MAX}, /* */
        {20, 0xffff0000}, /* streams */
        {24, UINT32_MAX}, /* offset of the first */
        {28, UINT32_MAX}, /* size */
        {32, 0x61616161}, /* name: no tables any more */
    };
    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
        uint8_t before[4];
        memcpy(before, written + bad[i].offset, 4);
        store_u32(written + bad[i].offset, bad[i].value, false);
        ck_assert_int_eq(metadata_open(&written_bytes, &m), CDACQ_ERR_FORMAT);
        memcpy(written + bad[i].offset, before, 4);
    }
    ck_assert_int_eq(metadata_open(&written_bytes, &m), CDACQ_OK);
}
END_TEST

START_TEST(bad_references_are_errors)
{
    struct metadata m;
    struct metadata_member_ref member;
    uint8_t mvid[16];
    METADATA_ROW(&writer, METADATA_MEMBER_REF, 1 << 3 | 7, 0, 0); /* a tag that means no table */
    writer.tables[METADATA_MODULE].cells[2] = 0;                  /* no MVID */
    ck_assert_int_eq(open_written(&m), CDACQ_OK);
    ck_assert_int_eq(metadata_member_ref(&m, 1, &member), CDACQ_ERR_FORMAT);
    ck_assert_int_eq(metadata_mvid(&m, mvid), CDACQ_ERR_FORMAT);
    writer.tables[METADATA_MODULE].cells[2] = 2; /* past the heap */
    ck_assert_int_eq(open_written(&m), CDACQ_OK);
    ck_assert_int_eq(metadata_mvid(&m, mvid), CDACQ_ERR_FORMAT);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("metadata");
    TCase *t = tcase_create("fixture");
    tcase_add_checked_fixture(t, setup_fixture, teardown_fixture);
    tcase_add_test(t, reads_rows);
    tcase_add_test(t, reads_the_mvid);
    tcase_add_test(t, every_method_has_its_owner);
    tcase_add_test(t, finds_types_and_methods);
    tcase_add_test(t, finds_events);
    tcase_add_test(t, lists_generic_parameters);
    tcase_add_test(t, survives_truncation);
    tcase_add_test(t, a_missing_part_is_missing);
    tcase_add_test(t, survives_mutation);
    suite_add_tcase(s, t);

    t = tcase_create("written");
    tcase_add_checked_fixture(t, setup_writer, teardown_writer);
    tcase_add_test(t, indirection_in_uncompressed_tables);
    tcase_add_test(t, method_lists_that_do_not_ascend);
    tcase_add_test(t, empty_types_own_nothing);
    tcase_add_test(t, searches_unsorted_tables);
    tcase_add_loop_test(t, widths_of_columns, 0, 64);
    tcase_add_test(t, wide_row_indexes);
    tcase_add_test(t, strings);
    tcase_add_test(t, a_string_before_a_missing_page);
    tcase_add_test(t, blobs);
    tcase_add_test(t, claims_more_rows_than_there_are);
    tcase_add_test(t, refuses_bad_roots);
    tcase_add_test(t, bad_references_are_errors);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
