/*
 * test_state_machine.c: from the MoveNext of a state machine to the method that it was made from, in metadata that no
 * compiler writes. What compilers write is tested by the names of real modules (test_names.c).
 */
#include "formats/names/state_machine.h"
#include "tests/support/check_main.h"
#include "tests/support/metadata_writer.h"
#include "tests/support/paged_bytes.h"

enum { METHODS = 1000, OUTER = 2, MACHINE = 3, MOVE_NEXT = METHODS + 1 };

static struct metadata_writer writer;
static struct metadata metadata;
static struct paged_bytes paged; /* as strict as metadata that is read in pieces */
static struct bytes bytes;
static uint8_t *written;

static uint32_t constructor_of(const char *space, const char *name, uint32_t *ret_type)
{
    uint32_t type = METADATA_ROW(&writer, METADATA_TYPE_REF, 1 << 2 | CODED_MODULE,
                                 metadata_writer_string(&writer, name), metadata_writer_string(&writer, space));
    uint32_t member = METADATA_ROW(&writer, METADATA_MEMBER_REF, type << 3 | CODED_PARENT_TYPE_REF,
                                   metadata_writer_string(&writer, ".ctor"), 0);
    if (ret_type)
        *ret_type = type;
    return member << 3 | 3;
}

static uint32_t attribute_of_method(uint32_t method, uint32_t constructor, const char *type)
{
    uint8_t blob[128] = {1, 0, (uint8_t)strlen(type)};
    memcpy(blob + 3, type, strlen(type));
    return METADATA_ROW(&writer, METADATA_CUSTOM_ATTRIBUTE, method << 5, constructor,
                        metadata_writer_blob(&writer, blob, 5 + strlen(type)));
}

/* A class of METHODS methods and, in it, a state machine with the one method MoveNext. */
static void setup(void)
{
    metadata_writer_init(&writer);
    uint32_t name = metadata_writer_string(&writer, "M"), signature = metadata_writer_blob(&writer, "\0\0\1", 3);
    for (uint32_t i = 0; i < METHODS; i++)
        METADATA_ROW(&writer, METADATA_METHOD_DEF, 0, 0, 0, name, signature, 1);
    METADATA_ROW(&writer, METADATA_METHOD_DEF, 0, 0, 0, metadata_writer_string(&writer, "MoveNext"), signature, 1);
    METADATA_ROW(&writer, METADATA_TYPE_DEF, 0, metadata_writer_string(&writer, "Outer"), 0, 0, 1, 1);
    METADATA_ROW(&writer, METADATA_TYPE_DEF, 2, metadata_writer_string(&writer, "<M>d__0"), 0, 0, 1, MOVE_NEXT);
    METADATA_ROW(&writer, METADATA_NESTED_CLASS, MACHINE, OUTER);
}

static void teardown(void)
{
    paged_bytes_close(&paged);
    free(written);
    written = NULL;
    metadata_writer_deinit(&writer);
}

/* Marks the state machine as the compiler does: before the methods, as the table is sorted. */
static void mark_machine(const char *interface_space, const char *interface)
{
    uint32_t type;
    constructor_of(interface_space, interface, &type);
    METADATA_ROW(&writer, METADATA_INTERFACE_IMPL, MACHINE, type << 2 | CODED_TYPE_REF);
    METADATA_ROW(&writer, METADATA_CUSTOM_ATTRIBUTE, MACHINE << 5 | 3,
                 constructor_of("System.Runtime.CompilerServices", "CompilerGeneratedAttribute", NULL), 0);
}

static enum cdacq_status resolve(struct state_machine *ret)
{
    size_t size;
    written = metadata_writer_finish(&writer, &size);
    bytes = paged_bytes_open(&paged, written, size);
    ck_assert_int_eq(metadata_open(&bytes, &metadata), CDACQ_OK);
    return state_machine_resolve(&metadata, metadata_token(METADATA_METHOD_DEF, MOVE_NEXT), ret);
}

START_TEST(the_attribute_names_the_type)
{
    static const struct {
        const char *attribute, *type;
        bool found;
    } rows[] = {
        {"AsyncStateMachineAttribute", "Outer+<M>d__0", true},
        {"IteratorStateMachineAttribute", "Ns.A+Outer+<M>d__0, Some.Assembly, Version=1.0", true},
        {"AsyncIteratorStateMachineAttribute", "Outer+<M>\\d__0", true},
        {"AsyncStateMachineAttribute", "Outer+<M>d__01", false},
        {"AsyncStateMachineAttribute", "Outer+<M>d__", false},
        {"AsyncStateMachineAttribute", "<M>d__0", false},
        {"AsyncStateMachineAttribute", "Outer+<M>d__0+Other", false},
        {"OtherAttribute", "Outer+<M>d__0", false},
    };
    struct state_machine machine;
    mark_machine("System.Runtime.CompilerServices", "IAsyncStateMachine");
    attribute_of_method(7, constructor_of("System.Runtime.CompilerServices", rows[_i].attribute, NULL), rows[_i].type);
    ck_assert_int_eq(resolve(&machine), CDACQ_OK);
    ck_assert_uint_eq(metadata_rid(machine.method), rows[_i].found ? 7 : MOVE_NEXT);
    ck_assert_uint_eq(machine.iterator, rows[_i].found && strstr(rows[_i].attribute, "Iterator") != NULL);
    ck_assert(machine.async);
}
END_TEST

START_TEST(a_type_that_is_no_state_machine_is_left)
{
    struct state_machine machine;
    mark_machine("System", "IDisposable");
    attribute_of_method(7, constructor_of("System.Runtime.CompilerServices", "AsyncStateMachineAttribute", NULL),
                        "Outer+<M>d__0");
    ck_assert_int_eq(resolve(&machine), CDACQ_OK);
    ck_assert_uint_eq(metadata_rid(machine.method), MOVE_NEXT);
    ck_assert(!machine.async && !machine.iterator);
}
END_TEST

/* In a table that is not sorted, each method would cost a pass over all rows. */
START_TEST(a_search_of_many_attributes_ends)
{
    struct state_machine machine;
    uint32_t other = constructor_of("System", "ObsoleteAttribute", NULL);
    for (uint32_t i = 0; i < 100 * 1000; i++)
        METADATA_ROW(&writer, METADATA_CUSTOM_ATTRIBUTE, METHODS << 5, other, 0);
    mark_machine("System.Runtime.CompilerServices", "IAsyncStateMachine");
    writer.uncompressed = true;
    ck_assert_int_eq(resolve(&machine), CDACQ_ERR_FUEL);
}
END_TEST

START_TEST(a_search_of_many_attributes_of_one_method_ends)
{
    bool hidden;
    size_t size;
    uint32_t other = constructor_of("System", "ObsoleteAttribute", NULL);
    for (uint32_t i = 0; i < 300 * 1000; i++)
        METADATA_ROW(&writer, METADATA_CUSTOM_ATTRIBUTE, 7 << 5, other, 0);
    written = metadata_writer_finish(&writer, &size);
    bytes = paged_bytes_open(&paged, written, size);
    ck_assert_int_eq(metadata_open(&bytes, &metadata), CDACQ_OK);
    ck_assert_int_eq(method_is_hidden(&metadata, metadata_token(METADATA_METHOD_DEF, 7), &hidden), CDACQ_ERR_FUEL);
    ck_assert_int_eq(method_is_hidden(&metadata, metadata_token(METADATA_METHOD_DEF, 8), &hidden), CDACQ_OK);
    ck_assert(!hidden);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("state_machine");
    TCase *tc = tcase_create("state_machine");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, the_attribute_names_the_type, 0, 8);
    tcase_add_test(tc, a_type_that_is_no_state_machine_is_left);
    tcase_add_test(tc, a_search_of_many_attributes_ends);
    tcase_add_test(tc, a_search_of_many_attributes_of_one_method_ends);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
