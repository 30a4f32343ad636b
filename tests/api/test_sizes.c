/*
 * test_sizes.c: structs that the library fills, for callers of other versions. The smaller struct of an older caller is
 * not overrun; the larger struct of a newer caller gets zeros in the fields that this library does not have.
 */
#include <inttypes.h>
#include <stdio.h>

#include "tests/support/check_main.h"
#include "tests/support/elf_support.h"
#include "tests/support/mock_support.h"
#include "tests/support/stress_mock.h"

enum {
    ROOM = 8192,
    UNTOUCHED = 0x5a,
    RECORD_LEAST = offsetof(struct cdacq_jitdump_record, as) + sizeof(struct cdacq_jitdump_samply_debug_info2),
};

static struct mock *mock;
static struct cdacq_target *target;
static struct cdacq_session *session;
static uint64_t method_start;
static const char *perf_map; /* of one line, of the method */
static int perf_map_fd;
static struct cdacq_jitdump *jitdump;
static const char *jitdump_path;
static int jitdump_fd;
static struct cdacq_error error;

static void setup(void)
{
    mock = mock_of_arch(0, 1);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
    static const struct mock_clause clauses[] = {{.try_start = 1, .try_end = 5, .handler_start = 9, .handler_end = 12}};
    method_start = mock_method(heap, &(struct mock_method){.size = 100,
                                                           .method_desc = mock_dynamic_method_desc(mock, "A"),
                                                           .clauses = clauses,
                                                           .clause_count = ARRAY_SIZE(clauses)});
    struct stress_mock stress;
    stress_mock_init(&stress, mock, false);
    stress_mock_deinit(&stress);
    target = mock_publish_and_open(mock);
    session = mock_session(target);
    char line[80];
    int length = snprintf(line, sizeof line, "%" PRIx64 " 64 void [A] A::A()\n", method_start);
    perf_map = memory_file(line, (size_t)length, &perf_map_fd);
}

static void teardown(void)
{
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
    close(perf_map_fd);
    cdacq_jitdump_close(jitdump);
    if (jitdump_fd)
        close(jitdump_fd);
    jitdump = NULL; /* all tests may run in one process */
    jitdump_fd = 0;
}

/* Clears a pointer into the memory of a handle, which is another one in each call. */
static void clear_pointer(uint8_t *ret, size_t offset)
{
    size_t size;
    memcpy(&size, ret, sizeof size);
    if (size >= offset + sizeof(void *))
        memset(ret + offset, 0, sizeof(void *));
}

static enum cdacq_status fill_method(void *ret)
{
    enum cdacq_status status = cdacq_session_method_at(session, method_start, ret, &error);
    if (status == CDACQ_OK)
        clear_pointer(ret, offsetof(struct cdacq_method, name));
    return status;
}

static enum cdacq_status fill_methods(void *ret)
{
    enum cdacq_status status = cdacq_session_methods_at(session, &method_start, 1, ret, &error);
    if (status == CDACQ_OK)
        clear_pointer(ret, offsetof(struct cdacq_method, name));
    return status;
}

static enum cdacq_status fill_target_info(void *ret)
{
    return cdacq_target_get_info(target, ret, &error);
}

static enum cdacq_status fill_process_info(void *ret)
{
    return cdacq_target_get_process_info(target, ret, &error);
}

static enum cdacq_status fill_jit_manager_info(void *ret)
{
    return cdacq_session_get_jit_manager_info(session, CDACQ_CODE_JITTED, ret, &error);
}

static enum cdacq_status fill_stress_log(void *ret)
{
    return cdacq_session_get_stress_log(session, ret, &error);
}

static int discard(const void *bytes, size_t size, void *context)
{
    (void)bytes, (void)size, (void)context;
    return 0;
}

static enum cdacq_status fill_written_perf_map(void *ret)
{
    const struct cdacq_sink sink = {.size = sizeof sink, .write = discard};
    return cdacq_session_write_perf_map(session, 0, &sink, ret, &error);
}

static enum cdacq_status fill_written_jitdump(void *ret)
{
    const struct cdacq_sink sink = {.size = offsetof(struct cdacq_sink, left_out), .write = discard}; /* an older one */
    return cdacq_session_write_jitdump(session, 0, &sink, ret, &error);
}

static enum cdacq_status fill_verification(void *ret)
{
    return cdacq_target_verify(target, perf_map, NULL, NULL, ret, &error);
}

/* The first record of a kind; valid until the next call. */
static const struct cdacq_jitdump_record *record_of(enum cdacq_jitdump_kind kind)
{
    static struct cdacq_jitdump_record record = {.size = sizeof record};
    uint8_t bytes[512];
    size_t size = 0;
#define PUT(...)                                                      \
    do {                                                              \
        const uint32_t words_[] = {__VA_ARGS__};                      \
        for (size_t i_ = 0; i_ < ARRAY_SIZE(words_); i_++, size += 4) \
            store_u32(bytes + size, words_[i_], false);               \
    } while (0)
    PUT(0x4a695444, 1, 40, 62, 0, 1, 0, 0, 0, 0);
    PUT(2, 52, 0, 0, 0x1000, 0, 1, 0, 0x1000, 0, 7, 0, 'A');                 /* a debug entry */
    PUT(827346259, 48 + 8 + 20 + 20 + 8 + 16, 0, 0, 1, 4, 1, 4, 1, 1, 1, 1); /* and one of each of samply's lists */
    PUT(0x00414141, 0x00414141);
    PUT(0, 0, 3, 4, 5);
    PUT(0, 1, 0, 6, 7);
    PUT(8, 9);
    PUT(10, 0, 12, 13);
    PUT(0, 80, 0, 0, 1, 1, 0x1000, 0, 0x1000, 0, 20, 0, 1, 0, 'A');
    PUT(0, 0, 0, 0, 0); /* its code */
#undef PUT
    cdacq_jitdump_close(jitdump);
    if (!jitdump_fd)
        jitdump_path = memory_file(bytes, size, &jitdump_fd);
    ck_assert_int_eq(cdacq_jitdump_open(jitdump_path, 0, &jitdump, &error), CDACQ_OK);
    do
        ck_assert_int_eq(cdacq_jitdump_next(jitdump, &record, &error), CDACQ_OK);
    while (record.kind != kind);
    ck_assert_msg(!record.error, "%s", record.error);
    return &record;
}

static enum cdacq_status fill_record(void *ret)
{
    record_of(CDACQ_JITDUMP_HEADER);
    enum cdacq_status status = cdacq_jitdump_next(jitdump, ret, &error);
    if (status == CDACQ_OK)
        clear_pointer(ret, offsetof(struct cdacq_jitdump_record, opaque.bytes));
    return status;
}

static enum cdacq_status fill_entry(void *ret)
{
    uint64_t cursor = 0;
    enum cdacq_status status =
        cdacq_jitdump_record_next_entry(record_of(CDACQ_JITDUMP_DEBUG_INFO), &cursor, ret, &error);
    if (status == CDACQ_OK)
        clear_pointer(ret, offsetof(struct cdacq_jitdump_entry, name));
    return status;
}

static enum cdacq_status fill_function(void *ret)
{
    return cdacq_jitdump_record_get_function(record_of(CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2), 0, ret, &error);
}

static enum cdacq_status fill_inline_call(void *ret)
{
    return cdacq_jitdump_record_get_inline_call(record_of(CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2), 0, ret, &error);
}

static enum cdacq_status fill_range(void *ret)
{
    return cdacq_jitdump_record_get_range(record_of(CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2), 0, ret, &error);
}

static enum cdacq_status fill_line_record(void *ret)
{
    return cdacq_jitdump_record_get_line_record(record_of(CDACQ_JITDUMP_SAMPLY_DEBUG_INFO2), 0, ret, &error);
}

static const struct {
    const char *name;
    size_t size;
    size_t least; /* that a caller's struct has */
    enum cdacq_status (*fill)(void *ret);
} filled[] = {
#define FILLED(name, fill)                                                           \
    {                                                                                \
        "struct cdacq_" #name, sizeof(struct cdacq_##name), 2 * sizeof(size_t), fill \
    }
    FILLED(method, fill_method),
    FILLED(method, fill_methods),
    FILLED(target_info, fill_target_info),
    FILLED(process_info, fill_process_info),
    FILLED(jit_manager_info, fill_jit_manager_info),
    FILLED(stress_log, fill_stress_log),
    FILLED(written, fill_written_perf_map),
    FILLED(written, fill_written_jitdump),
    FILLED(verification, fill_verification),
    FILLED(jitdump_entry, fill_entry),
    FILLED(jitdump_function, fill_function),
    FILLED(jitdump_inline_call, fill_inline_call),
    FILLED(jitdump_range, fill_range),
    FILLED(jitdump_line_record, fill_line_record),
    {"struct cdacq_jitdump_record", sizeof(struct cdacq_jitdump_record), RECORD_LEAST, fill_record},
#undef FILLED
};

/* The bytes after a call by a caller whose struct has `size` bytes. */
static enum cdacq_status fill(size_t which, size_t size, uint8_t *ret)
{
    memset(ret, UNTOUCHED, ROOM);
    memcpy(ret, &size, sizeof size);
    return filled[which].fill(ret);
}

static bool all_are(const uint8_t *bytes, size_t count, uint8_t value)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

START_TEST(older_and_newer_callers)
{
    static _Alignas(16) uint8_t own[ROOM], other[ROOM];
    size_t which = (size_t)_i, full = filled[which].size;
    ck_assert_int_eq(fill(which, full, own), CDACQ_OK);
    ck_assert(all_are(own + full, ROOM - full, UNTOUCHED));
    for (size_t size = filled[which].least; size <= full + 64; size += sizeof(size_t)) {
        size_t both = size < full ? size : full;
        ck_assert_int_eq(fill(which, size, other), CDACQ_OK);
        ck_assert_mem_eq(other, &size, sizeof size);
        for (size_t at = sizeof size; at < both; at++)
            ck_assert_msg(other[at] == own[at], "byte %zu of %zu: %#x, and %#x for a caller of today", at, size,
                          other[at], own[at]);
        ck_assert(all_are(other + both, size - both, 0));
        ck_assert(all_are(other + size, ROOM - size, UNTOUCHED));
    }
}
END_TEST

START_TEST(sizes_that_are_none)
{
    static _Alignas(16) uint8_t bytes[ROOM];
    const size_t sizes[] = {0, 1, sizeof(size_t), filled[_i].least - 1, 4097, (size_t)-1};
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        error.message[0] = '\0';
        ck_assert_int_eq(fill((size_t)_i, sizes[i], bytes), CDACQ_ERR_ARGUMENT);
        ck_assert_mem_eq(bytes, &sizes[i], sizeof sizes[i]);
        ck_assert(all_are(bytes + sizeof(size_t), ROOM - sizeof(size_t), UNTOUCHED));
        char expected[128];
        snprintf(expected, sizeof expected, "%s: size is not set", filled[_i].name);
        ck_assert_str_eq(error.message, expected);
    }
}
END_TEST

START_TEST(no_struct)
{
    ck_assert_int_eq(cdacq_target_get_info(target, NULL, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_str_eq(error.message, "struct cdacq_target_info: NULL");
}
END_TEST

/* The first element's size is the distance to the next element; the library writes the sizes of the others. */
START_TEST(arrays_of_methods)
{
    enum { COUNT = 40 };
    static struct cdacq_method own[COUNT];
    static _Alignas(struct cdacq_method) uint8_t other[COUNT * (sizeof own[0] + 32)];
    uint64_t ips[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        ips[i] = method_start + 10 * i; /* the last are after its end */
    const size_t sizes[] = {sizeof own[0] - 16, sizeof own[0], sizeof own[0] + 32};
    own[0].size = sizeof own[0];
    ck_assert_int_eq(cdacq_session_methods_at(session, ips, COUNT, own, &error), CDACQ_OK);
    for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
        size_t size = sizes[s], both = size < sizeof own[0] ? size : sizeof own[0];
        memset(other, UNTOUCHED, sizeof other);
        memcpy(other, &size, sizeof size);
        ck_assert_int_eq(cdacq_session_methods_at(session, ips, COUNT, (struct cdacq_method *)other, &error), CDACQ_OK);
        for (size_t i = 0; i < COUNT; i++) {
            ck_assert_uint_eq(own[i].size, sizeof own[i]);
            ck_assert_mem_eq(other + i * size, &size, sizeof size);
            ck_assert_mem_eq(other + i * size + sizeof size, (uint8_t *)&own[i] + sizeof size, both - sizeof size);
            ck_assert(all_are(other + i * size + both, size - both, 0));
        }
        ck_assert(all_are(other + COUNT * size, sizeof other - COUNT * size, UNTOUCHED));
    }
    ck_assert_int_eq(cdacq_session_methods_at(session, ips, 0, NULL, &error), CDACQ_OK);
}
END_TEST

/* ---- What visitors receive ---- */

static size_t visited;

#define VISITOR(name)                                                       \
    static int visit_##name(const struct cdacq_##name *item, void *context) \
    {                                                                       \
        (void)context;                                                      \
        ck_assert_uint_eq(item->size, sizeof *item);                        \
        visited++;                                                          \
        return 0;                                                           \
    }                                                                       \
    static int stop_##name(const struct cdacq_##name *item, void *context)  \
    {                                                                       \
        (void)item, (void)context;                                          \
        return 1;                                                           \
    }

/* Runs one of the visits, which ends where the visitor asks for it. */
#define CHECK_VISIT(name, call)                                           \
    do {                                                                  \
        int (*visit)(const struct cdacq_##name *, void *) = visit_##name; \
        visited = 0;                                                      \
        ck_assert_int_eq(call, CDACQ_OK);                                 \
        ck_assert_msg(visited > 0, #name);                                \
        visit = stop_##name;                                              \
        ck_assert_int_eq(call, CDACQ_STOPPED);                            \
    } while (0)

VISITOR(method)
VISITOR(code_range_info)
VISITOR(runtime_info)
VISITOR(contract_info)
VISITOR(mapped_file)
VISITOR(descriptor_item)
VISITOR(code_heap_info)
VISITOR(exception_clause)
VISITOR(comparison)
VISITOR(jitdump_place)

START_TEST(items_of_visitors)
{
    struct cdacq_block block;
    struct cdacq_verification sum = {.size = sizeof sum};
    ck_assert_int_eq(cdacq_session_code_block_at(session, method_start, &block, &error), CDACQ_OK);
    CHECK_VISIT(method, cdacq_session_visit_methods(session, 0, visit, NULL, &error));
    CHECK_VISIT(code_range_info, cdacq_session_visit_code_ranges(session, visit, NULL, &error));
    CHECK_VISIT(runtime_info, cdacq_target_visit_runtimes(target, visit, NULL, &error));
    CHECK_VISIT(contract_info, cdacq_target_visit_contracts(target, visit, NULL, &error));
    CHECK_VISIT(mapped_file, cdacq_target_visit_mapped_files(target, visit, NULL, &error));
    CHECK_VISIT(descriptor_item, cdacq_target_visit_descriptor(target, visit, NULL, &error));
    CHECK_VISIT(code_heap_info, cdacq_session_visit_code_heaps(session, CDACQ_CODE_JITTED, visit, NULL, &error));
    CHECK_VISIT(exception_clause, cdacq_block_visit_exception_clauses(&block, session, visit, NULL, &error));
    record_of(CDACQ_JITDUMP_LOAD);
    CHECK_VISIT(jitdump_place, cdacq_jitdump_visit_places(jitdump, visit, NULL, &error));
    CHECK_VISIT(comparison, cdacq_target_verify(target, perf_map, visit, NULL, &sum, &error));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("sizes");
    TCase *tc = tcase_create("sizes");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, older_and_newer_callers, 0, ARRAY_SIZE(filled));
    tcase_add_loop_test(tc, sizes_that_are_none, 0, ARRAY_SIZE(filled));
    tcase_add_test(tc, no_struct);
    tcase_add_test(tc, arrays_of_methods);
    tcase_add_test(tc, items_of_visitors);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
