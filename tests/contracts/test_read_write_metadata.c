/*
 * Metadata to which the process has added: rows that the image lacks are read from the pieces that the runtime keeps.
 * And methods whose IL was replaced.
 */
#include "contracts/dynamic_il.h"
#include "contracts/read_write_metadata.h"
#include "tests/support/check_main.h"
#include "tests/support/metadata_writer.h"
#include "tests/support/mock_support.h"

enum { FIRST_TYPE = 2, ADDED_TYPE, OLD_METHOD = 1, ADDED_METHOD };
enum { FROM_STRINGS = 3, FROM_BLOBS = 2, TABLES = 45 };

struct process {
    struct mock *mock;
    uint64_t module, assembly, store, old_code, added_code;
};

/* The metadata of the image, or, if `added`, what the runtime makes of it. */
static uint8_t *write_metadata(bool added, bool wide, size_t *ret_size)
{
    static const uint8_t signature[] = {0, 1, 1, 0x13, 0}, plain[] = {0, 0, 1};
    struct metadata_writer writer;
    metadata_writer_init(&writer);
    writer.uncompressed = added;
    writer.minimal_delta = wide;
    writer.wide_heaps = wide ? 7 : 0;
    METADATA_ROW(&writer, METADATA_TYPE_DEF, 1, metadata_writer_string(&writer, "First"),
                 metadata_writer_string(&writer, "Ns"), 0, 1, 1);
    METADATA_ROW(&writer, METADATA_METHOD_DEF, 0, 0, 0x10, metadata_writer_string(&writer, "Old"),
                 metadata_writer_blob(&writer, plain, sizeof plain), 1);
    if (added) {
        METADATA_ROW(&writer, METADATA_TYPE_DEF, 1, metadata_writer_string(&writer, "Added`1"),
                     metadata_writer_string(&writer, "Ns"), 0, 1, ADDED_METHOD);
        METADATA_ROW(&writer, METADATA_METHOD_DEF, 0, 0, 0x10, metadata_writer_string(&writer, "New"),
                     metadata_writer_blob(&writer, signature, sizeof signature), 1);
        METADATA_ROW(&writer, METADATA_GENERIC_PARAM, 0, 0, ADDED_TYPE << 1, metadata_writer_string(&writer, "T"));
    }
    uint8_t *metadata = metadata_writer_finish(&writer, ret_size);
    metadata_writer_deinit(&writer);
    return metadata;
}

static void put_segment(struct mock *mock, uint64_t segment, const void *bytes, size_t size, uint64_t next)
{
    uint64_t data = mock_alloc(mock, size + 16, 1);
    if (size)
        mock_write(mock, data, bytes, size);
    mock_set(mock, segment, "StgPoolSeg.m_pSegData", data);
    mock_set(mock, segment, "StgPoolSeg.m_pNextSeg", next);
    mock_set(mock, segment, "StgPoolSeg.m_cbSegSize", size + 16);
    mock_set(mock, segment, "StgPoolSeg.m_cbSegNext", size);
}

/* In two pieces, the first of `first` bytes. */
static void put_pool(struct mock *mock, uint64_t pool, const uint8_t *bytes, size_t size, size_t first)
{
    uint64_t second = mock_alloc(mock, mock_size_of(mock, "StgPoolSeg"), 8);
    put_segment(mock, second, bytes + first, size - first, 0);
    put_segment(mock, pool + mock_offset_of(mock, "StgPool.StgPoolSeg"), bytes, first, second);
}

static uint64_t pool_of(struct mock *mock, uint64_t store, unsigned table)
{
    return store + mock_offset_of(mock, "CMiniMdRW.m_Tables") + (uint64_t)table * mock_size_of(mock, "StgPool");
}

static uint64_t put_store(struct mock *mock, bool wide)
{
    size_t size;
    uint8_t *blob = write_metadata(true, wide, &size);
    struct bytes bytes = bytes_of_buffer(blob, size);
    struct metadata metadata;
    ck_assert_int_eq(metadata_open(&bytes, &metadata), CDACQ_OK);
    uint64_t store = mock_alloc(mock, mock_size_of(mock, "CMiniMdRW"), 8);
    uint64_t schema = store + mock_offset_of(mock, "CMiniMdRW.m_Schema");
    mock_set(mock, schema, "CMiniMdSchema.m_heaps", wide ? 7 : 0);
    mock_set(mock, schema, "CMiniMdSchema.m_sorted", 1);
    for (unsigned table = 0; table < TABLES; table++) {
        const struct metadata_table_layout *layout = &metadata.tables[table];
        uint64_t definition = store + mock_offset_of(mock, "CMiniMdRW.m_TableDefs") +
                              (uint64_t)table * mock_size_of(mock, "CMiniTableDef");
        mock_write_uint(mock, schema + mock_offset_of(mock, "CMiniMdSchema.m_cRecs") + table * 4, 4, layout->rows);
        mock_set(mock, definition, "CMiniTableDef.m_cbRec", layout->row_size);
        put_pool(mock, pool_of(mock, store, table), blob + layout->offset, (size_t)layout->rows * layout->row_size,
                 layout->rows ? layout->row_size : 0);
    }
    put_pool(mock, store + mock_offset_of(mock, "CMiniMdRW.m_StringHeap"), blob + metadata.strings.offset,
             metadata.strings.size, FROM_STRINGS);
    put_pool(mock, store + mock_offset_of(mock, "CMiniMdRW.m_BlobHeap"), blob + metadata.blobs.offset,
             metadata.blobs.size, FROM_BLOBS);
    put_pool(mock, store + mock_offset_of(mock, "CMiniMdRW.m_GuidHeap"), blob + metadata.guids.offset,
             metadata.guids.size, 0);
    free(blob);
    return store;
}

static struct process make_process(int arch, bool wide)
{
    size_t size;
    uint8_t *metadata = write_metadata(false, false, &size);
    struct process process = {.mock = mock_of_arch(arch, (uint64_t)arch + 11)};
    struct mock *mock = process.mock;
    mock_global(mock, "MethodDescTokenRemainderBitCount", 12);
    process.module = mock_module(
        mock, &(struct mock_module_options){.path = "/mock/own.dll", .metadata = metadata, .metadata_size = size});
    process.assembly = mock_get(mock, process.module, "Module.PEAssembly");
    process.store = put_store(mock, wide);
    uint64_t import = mock_alloc(mock, mock_size_of(mock, "MDInternalRW"), 8);
    mock_set(mock, import, "MDInternalRW.m_pStgdb", process.store);
    mock_set(mock, process.assembly, "PEAssembly.m_pMDImport", import);
    mock_set(mock, process.assembly, "PEAssembly.m_MDImportIsRW_Debugger_Use_Only", 1);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x10000});
    uint64_t old = mock_method_table(mock, process.module, FIRST_TYPE);
    uint64_t added = mock_method_table(mock, process.module, ADDED_TYPE);
    process.old_code = mock_method(
        heap, &(struct mock_method){.size = 32, .method_desc = mock_method_descs(mock, old, OLD_METHOD, 1, NULL)});
    process.added_code = mock_method(
        heap, &(struct mock_method){.size = 32, .method_desc = mock_method_descs(mock, added, ADDED_METHOD, 1, NULL)});
    free(metadata);
    mock_check(mock);
    return process;
}

/* The two names; NULL: it has none, but says why. The method of the image has its name in any case. */
static void check_added(struct process *process, const char *name)
{
    struct cdacq_method method = {.size = sizeof method};
    struct cdacq_target *target = mock_publish_and_open(process->mock);
    struct cdacq_session *session = mock_session(target);
    for (int again = 0; again < 2; again++) {
        ck_assert_int_eq(cdacq_session_method_at(session, process->added_code, &method, NULL), CDACQ_OK);
        ck_assert_pstr_eq(method.name, name);
        ck_assert(!method.error == (name != NULL));
        ck_assert_int_eq(cdacq_session_method_at(session, process->old_code, &method, NULL), CDACQ_OK);
        ck_assert_str_eq(method.name, "Ns.First.Old()");
        ck_assert_ptr_null(method.error);
    }
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(process->mock);
}

/* The metadata of a big-endian runtime is not read: none is known. */
static const char *expected(int arch)
{
    return arch & 2 ? NULL : "Ns.Added<T>.New(T)";
}

START_TEST(rows_that_the_image_lacks)
{
    for (int wide = 0; wide < 2; wide++) {
        struct process process = make_process(_i, wide);
        check_added(&process, expected(_i));
    }
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
        NO_ROW_SIZE,
        CIRCLE,
        MISSING,
        CASES
    };
    for (int damage = 0; damage < CASES; damage++) {
        struct process process = make_process(_i, true);
        struct mock *mock = process.mock;
        uint64_t import = mock_get(mock, process.assembly, "PEAssembly.m_pMDImport");
        uint64_t schema = process.store + mock_offset_of(mock, "CMiniMdRW.m_Schema");
        uint64_t types = pool_of(mock, process.store, METADATA_TYPE_DEF) + mock_offset_of(mock, "StgPool.StgPoolSeg");
        uint64_t definition = process.store + mock_offset_of(mock, "CMiniMdRW.m_TableDefs") +
                              METADATA_TYPE_DEF * (uint64_t)mock_size_of(mock, "CMiniTableDef");
        uint64_t used = mock_get(mock, types, "StgPoolSeg.m_cbSegNext");
        if (damage == NOT_WRITABLE)
            mock_set(mock, process.assembly, "PEAssembly.m_MDImportIsRW_Debugger_Use_Only", 0);
        else if (damage == NO_IMPORT)
            mock_set(mock, process.assembly, "PEAssembly.m_pMDImport", 0);
        else if (damage == NO_STORE)
            mock_set(mock, import, "MDInternalRW.m_pStgdb", 0x10);
        else if (damage == TOO_FULL)
            mock_set(mock, types, "StgPoolSeg.m_cbSegNext", used + used);
        else if (damage == PARTS_OF_ROWS)
            mock_set(mock, types, "StgPoolSeg.m_cbSegNext", used - 1);
        else if (damage == TOO_MANY_ROWS)
            mock_write_uint(mock, schema + mock_offset_of(mock, "CMiniMdSchema.m_cRecs") + METADATA_TYPE_DEF * 4, 4, 9);
        else if (damage == NO_ROW_SIZE)
            mock_set(mock, definition, "CMiniTableDef.m_cbRec", 0);
        else if (damage == CIRCLE)
            mock_set(mock, types, "StgPoolSeg.m_pNextSeg", types);
        else
            mock_set(mock, mock_get(mock, types, "StgPoolSeg.m_pNextSeg"), "StgPoolSeg.m_pSegData", 0x10);
        check_added(&process, NULL);
    }
}
END_TEST

/* ---- Replaced IL ---- */

START_TEST(methods_with_dynamic_il)
{
    static const uint32_t tokens[] = {0x06000001, 0x06000012, 0x06000023, 0x06000777};
    enum { SIZE = 17 };
    struct process process = make_process(_i, true);
    struct mock *mock = process.mock;
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
    mock_set(mock, process.module, "Module.DynamicILBlobTable", table);
    mock_set(mock, other, "Module.DynamicILBlobTable", unreadable);
    struct cdacq_target *target = mock_publish_and_open(mock);
    struct field_reader reader = mock_reader(target);
    for (unsigned i = 0; i < ARRAY_SIZE(tokens); i++)
        ck_assert(dynamic_il_exists(&reader, process.module, tokens[i]));
    ck_assert(!dynamic_il_exists(&reader, process.module, 0x06000002));
    ck_assert(!reader_failed(&reader.raw));
    ck_assert(dynamic_il_exists(&reader, other, 0x06000002));
    ck_assert(reader_failed(&reader.raw));
    cdacq_target_close(target);
    mock_destroy(mock);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("read_write_metadata");
    TCase *t = tcase_create("read_write_metadata");
    tcase_add_loop_test(t, rows_that_the_image_lacks, 0, ARCH_COUNT);
    tcase_add_loop_test(t, damaged_stores, 0, ARCH_COUNT);
    tcase_add_loop_test(t, methods_with_dynamic_il, 0, ARCH_COUNT);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
