/*
 * Metadata to which the process has added: rows that the image lacks are read from the pieces that the runtime keeps.
 * And methods whose IL was replaced.
 */
#include <unistd.h>

#include "contracts/dynamic_il.h"
#include "tests/support/added_code.h"
#include "tests/support/check_main.h"
#include "tests/support/mock_support.h"

static struct added_code make(int arch, bool wide)
{
    struct added_code added = added_code_make(mock_of_arch(arch, (uint64_t)arch + 11), wide);
    mock_check(added.mock);
    return added;
}

/* The two names; NULL: it has none, but says why. The method of the image has its name in any case. */
static void check_opened(const struct added_code *added, struct cdacq_target *target, const char *name)
{
    struct cdacq_method method = {.size = sizeof method};
    struct cdacq_session *session = mock_session(target);
    for (int again = 0; again < 2; again++) {
        ck_assert_int_eq(cdacq_session_method_at(session, added->added_code, &method, NULL), CDACQ_OK);
        ck_assert_pstr_eq(method.name, name);
        ck_assert(!method.error == (name != NULL));
        ck_assert_int_eq(cdacq_session_method_at(session, added->old_code, &method, NULL), CDACQ_OK);
        ck_assert_str_eq(method.name, "Ns.First.Old()");
        ck_assert_ptr_null(method.error);
    }
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(added->mock);
}

static void check_added(const struct added_code *added, const char *name)
{
    check_opened(added, mock_publish_and_open(added->mock), name);
}

/* The metadata of a big-endian runtime is not read: none is known. */
static const char *expected(int arch)
{
    return arch & 2 ? NULL : "Ns.Added<T>.New(T)";
}

START_TEST(rows_that_the_image_lacks)
{
    for (int wide = 0; wide < 2; wide++) {
        struct added_code added = make(_i, wide);
        check_added(&added, expected(_i));
    }
}
END_TEST

/* Where .NET 11.0.0 has all of it, by the names that it publishes: as a mock of x64 with an even seed. */
START_TEST(the_layout_of_net_11)
{
    struct mock *mock = mock_create(&(struct mock_options){.version = MOCK_NET_11});
    struct added_code added = added_code_make(mock, _i);
    ck_assert_uint_eq(mock_offset_of(mock, "CMiniMdRW.GuidHeap"), 5696);
    check_added(&added, "Ns.Added<T>.New(T)");
}
END_TEST

/* What is damaged takes the names of what was added, and no others. */
START_TEST(damaged_stores)
{
    enum {
        NOT_WRITABLE,
        NO_IMPORT,
        NO_STORE,
        TOO_FULL,
        PARTS_OF_ROWS,
        TOO_MANY_ROWS,
        NARROW_HEAPS,
        CYCLE,
        MISSING,
        CASES
    };
    for (int damage = 0; damage < CASES; damage++) {
        struct added_code added = make(_i, true);
        struct mock *mock = added.mock;
        uint64_t types = added_code_table(&added, METADATA_TYPE_DEF),
                 next = mock_get(mock, types, "StgPool.NextSegment");
        uint64_t used = mock_get(mock, types, "StgPool.DataSize");
        if (damage == NOT_WRITABLE)
            mock_set(mock, added.assembly, "PEAssembly.MDImportIsRW", 0);
        else if (damage == NO_IMPORT)
            mock_set(mock, added.assembly, "PEAssembly.MDImport", 0);
        else if (damage == NO_STORE)
            mock_set(mock, added.import, "MDInternalRW.Stgdb", 0x10);
        else if (damage == TOO_FULL)
            mock_set(mock, types, "StgPool.DataSize", used + used);
        else if (damage == PARTS_OF_ROWS)
            mock_set(mock, types, "StgPool.DataSize", used - 1);
        else if (damage == TOO_MANY_ROWS)
            mock_write_uint(mock, added_code_row_count(&added, METADATA_TYPE_DEF), 4, 9);
        else if (damage == NARROW_HEAPS)
            mock_set(mock, added.store + mock_offset_of(mock, "CMiniMdRW.Schema"), "CMiniMdSchema.Heaps", 0);
        else if (damage == CYCLE)
            mock_set(mock, next, "StgPoolSeg.NextSegment", next);
        else
            mock_set(mock, next, "StgPoolSeg.SegData", 0x10);
        check_added(&added, NULL);
    }
}
END_TEST

/* ---- Replaced IL ---- */

START_TEST(methods_with_dynamic_il)
{
    static const uint32_t tokens[] = {0x06000001, 0x06000012, 0x06000023, 0x06000777};
    enum { SIZE = 17 };
    struct added_code added = make(_i, true);
    struct mock *mock = added.mock;
    uint64_t table = mock_alloc(mock, mock_size_of(mock, "DynamicILBlobTable"), 8);
    uint64_t entry_size = mock_size_of(mock, "DynamicILBlobTable"), entries = mock_alloc(mock, SIZE * entry_size, 8);
    uint64_t token_at = entries + mock_offset_of(mock, "DynamicILBlobTable.EntryMethodToken");
    for (unsigned i = 0; i < SIZE; i++)
        mock_write_uint(mock, token_at + i * entry_size, 4, 0);
    for (unsigned i = 0; i < ARRAY_SIZE(tokens); i++) {
        uint64_t at = tokens[i] % SIZE;
        while (mock_read_uint(mock, token_at + at * entry_size, 4))
            at = (at + tokens[i] % (SIZE - 1) + 1) % SIZE;
        mock_write_uint(mock, token_at + at * entry_size, 4, tokens[i]);
    }
    mock_set(mock, table, "DynamicILBlobTable.Table", entries);
    mock_set(mock, table, "DynamicILBlobTable.TableSize", SIZE);
    uint64_t unreadable = mock_alloc(mock, mock_size_of(mock, "DynamicILBlobTable"), 8);
    mock_set(mock, unreadable, "DynamicILBlobTable.Table", 0x10);
    mock_set(mock, unreadable, "DynamicILBlobTable.TableSize", 0xffffffff);
    uint64_t other = mock_module(mock, &(struct mock_module_options){0});
    mock_set(mock, added.module, "Module.DynamicILBlobTable", table);
    mock_set(mock, other, "Module.DynamicILBlobTable", unreadable);
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct reader reader = mock_reader(target);
    for (unsigned i = 0; i < ARRAY_SIZE(tokens); i++)
        ck_assert(dynamic_il_exists(&reader, added.module, tokens[i]));
    ck_assert(!dynamic_il_exists(&reader, added.module, 0x06000002));
    ck_assert(!reader_failed(&reader));
    ck_assert(dynamic_il_exists(&reader, other, 0x06000002));
    ck_assert(reader_failed(&reader));
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("read_write_metadata");
    TCase *t = tcase_create("read_write_metadata");
    tcase_add_loop_test(t, rows_that_the_image_lacks, 0, ARCH_COUNT);
    tcase_add_loop_test(t, the_layout_of_net_11, 0, 2);
    tcase_add_loop_test(t, damaged_stores, 0, ARCH_COUNT);
    tcase_add_loop_test(t, methods_with_dynamic_il, 0, ARCH_COUNT);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
