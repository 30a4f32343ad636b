/* test_method_il.c: the IL of a method in the image of a mock's module: both forms of its header, and damage to it. */
#include <stdlib.h>

#include "contracts/method_il.h"
#include "contracts/module_cache.h"
#include "src/lookup/opened_session.h"
#include "tests/support/check_main.h"
#include "tests/support/metadata_writer.h"
#include "tests/support/mock_support.h"

enum { RVA = 0x2800, IMAGE_END = 0x3000, METHOD = 0x06000001, WITHOUT_IL = 0x06000002, AT_END = 0x06000003 };

static struct mock *mock;
static struct cdacq_target *target;
static struct cdacq_session *session;
static uint64_t module, base;

static void setup(int arch)
{
    static const uint8_t signature[] = {0, 0, 1};
    struct metadata_writer writer;
    size_t size;
    metadata_writer_init(&writer);
    METADATA_ROW(&writer, METADATA_TYPE_DEF, 1, metadata_writer_string(&writer, "T"), 0, 0, 1, 1);
    uint32_t blob = metadata_writer_blob(&writer, signature, sizeof signature);
    const uint32_t rvas[] = {RVA, 0, IMAGE_END - 1};
    for (size_t i = 0; i < ARRAY_SIZE(rvas); i++)
        METADATA_ROW(&writer, METADATA_METHOD_DEF, rvas[i], 0, 0x10, metadata_writer_string(&writer, "M"), blob, 1);
    uint8_t *metadata = metadata_writer_finish(&writer, &size);
    metadata_writer_deinit(&writer);
    mock = mock_of_version(arch, 2, MOCK_NET_11);
    module = mock_module(mock, &(struct mock_module_options){.metadata = metadata, .metadata_size = size});
    base = mock_get(mock, module, "Module.Base");
    free(metadata);
    target = mock_publish_and_open(mock);
    session = mock_session(target);
}

static void teardown(void)
{
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
}

/* The size of a method's code, whose bytes count up from `first`; -1: it has none, or cannot be read. */
static int code_size(uint32_t token, uint8_t first)
{
    struct window window;
    struct il_code code;
    reader_begin(&session->resolver.reader, FUEL_INDEX);
    const struct module *opened = module_cache_get(&session->resolver.modules, module);
    ck_assert(opened && opened->status >= 0);
    if (!method_il_read(opened, token, &window, &code))
        return -1;
    for (uint32_t i = 0; i < code.size; i++)
        ck_assert_uint_eq(code.bytes[i], (uint8_t)(first + i));
    int size = (int)code.size;
    window_deinit(&window);
    return size;
}

static void put(uint32_t rva, const uint8_t *header, size_t size, uint32_t code, uint8_t first)
{
    mock_write(mock, base + rva, header, size);
    for (uint32_t i = 0; i < code && rva + size + i < IMAGE_END; i++)
        mock_write_uint(mock, base + rva + size + i, 1, (uint8_t)(first + i));
}

/* A header of 12 bytes: 3 words, and the size of the code. */
static void put_fat(uint32_t code, uint8_t kind, uint8_t words)
{
    uint8_t header[12] = {kind, (uint8_t)(words << 4)};
    store_u32(header + 4, code, false);
    put(RVA, header, sizeof header, MIN(code, 300u), 9);
}

START_TEST(both_headers)
{
    setup(_i);
    for (uint8_t size = 0; size < 64; size += 7) {
        put(RVA, &(uint8_t){(uint8_t)(size << 2 | 2)}, 1, size, 5);
        ck_assert_int_eq(code_size(METHOD, 5), size);
    }
    put_fat(300, 3, 3);
    ck_assert_int_eq(code_size(METHOD, 9), 300);
    put(IMAGE_END - 1, &(uint8_t){2}, 1, 0, 0); /* the last byte of the image */
    ck_assert_int_eq(code_size(AT_END, 0), 0);
    teardown();
}
END_TEST

START_TEST(damaged)
{
    setup(_i);
    ck_assert_int_eq(code_size(WITHOUT_IL, 0), -1);
    ck_assert_int_eq(code_size(0x06000004, 0), -1); /* no such row */
    ck_assert_int_eq(code_size(0x0600ffff, 0), -1);
    put_fat(300, 3, 3);
    ck_assert_int_eq(code_size(METHOD, 9), 300);
    put_fat(300, 1, 3); /* no such kind of header */
    ck_assert_int_eq(code_size(METHOD, 9), -1);
    put_fat(300, 3, 2); /* nor size */
    ck_assert_int_eq(code_size(METHOD, 9), -1);
    const uint32_t sizes[] = {IMAGE_END - RVA - 11, 0x10000, 0x7fffffff, UINT32_MAX - 11, UINT32_MAX};
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) { /* beyond the end of the image */
        put_fat(sizes[i], 3, 3);
        ck_assert_int_eq(code_size(METHOD, 9), -1);
    }
    put(IMAGE_END - 1, &(uint8_t){1 << 2 | 2}, 1, 0, 0);
    ck_assert_int_eq(code_size(AT_END, 0), -1);
    put(IMAGE_END - 1, &(uint8_t){3}, 1, 0, 0); /* a header of which the image has one byte */
    ck_assert_int_eq(code_size(AT_END, 0), -1);
    teardown();
}
END_TEST

/* The token of the locals' signature; UINT32_MAX: it cannot be read. */
static uint32_t local_signature(uint32_t token)
{
    uint32_t found = UINT32_MAX;
    reader_begin(&session->resolver.reader, FUEL_INDEX);
    const struct module *opened = module_cache_get(&session->resolver.modules, module);
    ck_assert(method_il_local_signature(opened, token, &found) == (found != UINT32_MAX));
    return found;
}

START_TEST(signatures_of_locals)
{
    setup(_i);
    uint8_t header[12] = {0x13, 3 << 4};
    store_u32(header + 8, 0x11000007, false);
    put(RVA, header, sizeof header, 0, 0);
    ck_assert_uint_eq(local_signature(METHOD), 0x11000007);
    put(RVA, &(uint8_t){3 << 2 | 2}, 1, 3, 5);
    ck_assert_uint_eq(local_signature(METHOD), 0);
    ck_assert_uint_eq(local_signature(WITHOUT_IL), UINT32_MAX);
    teardown();
}
END_TEST

/* IL that was replaced while the process ran is not in the image. */
START_TEST(replaced)
{
    setup(_i);
    put(RVA, &(uint8_t){3 << 2 | 2}, 1, 3, 5);
    ck_assert_int_eq(code_size(METHOD, 5), 3);
    uint64_t table = mock_new(mock, "DynamicILBlobTable", 0), entry = mock_new(mock, "DynamicILBlobTable", 0);
    mock_set(mock, entry, "DynamicILBlobTable.EntryMethodToken", METHOD);
    mock_set(mock, table, "DynamicILBlobTable.Table", entry);
    mock_set(mock, table, "DynamicILBlobTable.TableSize", 1);
    mock_set(mock, module, "Module.DynamicILBlobTable", table);
    ck_assert_int_eq(code_size(METHOD, 5), -1);
    mock_set(mock, entry, "DynamicILBlobTable.EntryMethodToken", AT_END);
    ck_assert_int_eq(code_size(METHOD, 5), 3);
    mock_set(mock, table, "DynamicILBlobTable.Table", 24); /* whether it was replaced cannot be read */
    ck_assert_int_eq(code_size(METHOD, 5), -1);
    teardown();
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("method_il");
    TCase *tcase = tcase_create("method_il");
    tcase_add_loop_test(tcase, both_headers, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, damaged, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, signatures_of_locals, 0, ARCH_COUNT);
    tcase_add_loop_test(tcase, replaced, 0, ARCH_COUNT);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
