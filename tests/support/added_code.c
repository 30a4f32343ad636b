#include "tests/support/added_code.h"

#include "tests/support/il_versions.h"
#include "tests/support/metadata_writer.h"

enum { FIRST_TYPE = 2, ADDED_TYPE, OLD_METHOD = 1, ADDED_METHOD = ADDED_CODE_METHOD };
enum { FROM_STRINGS = 3, FROM_BLOBS = 2, TABLES = 45 };

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

/* Where the store's fields are. */
struct store_layout {
    uint32_t database, database_size, store, schema, heaps, sorted, row_counts, tables, table_size, strings, blobs,
        guids;
    struct piece_layout {
        uint32_t data, next, used;
    } pool, segment; /* the first piece is a part of its pool */
};

static struct store_layout layout_of_mock(struct mock *mock)
{
    uint32_t store = mock_offset_of(mock, "CLiteWeightStgdbRW.MiniMd");
    uint32_t schema = mock_offset_of(mock, "CMiniMdRW.Schema");
    return (struct store_layout){
        .database = mock_offset_of(mock, "MDInternalRW.Stgdb"),
        .database_size = mock_size_of(mock, "CLiteWeightStgdbRW"),
        .store = store,
        .schema = schema,
        .heaps = schema + mock_offset_of(mock, "CMiniMdSchema.Heaps"),
        .sorted = schema + mock_offset_of(mock, "CMiniMdSchema.Sorted"),
        .row_counts = schema + mock_offset_of(mock, "CMiniMdSchema.RecordCounts"),
        .tables = mock_offset_of(mock, "CMiniMdRW.Tables"),
        .table_size = mock_size_of(mock, "TableRW"),
        .strings = mock_offset_of(mock, "CMiniMdRW.StringHeap"),
        .blobs = mock_offset_of(mock, "CMiniMdRW.BlobHeap"),
        .guids = mock_offset_of(mock, "CMiniMdRW.GuidHeap"),
        .pool = {mock_offset_of(mock, "StgPool.SegData"), mock_offset_of(mock, "StgPool.NextSegment"),
                 mock_offset_of(mock, "StgPool.DataSize")},
        .segment = {mock_offset_of(mock, "StgPoolSeg.SegData"), mock_offset_of(mock, "StgPoolSeg.NextSegment"),
                    mock_offset_of(mock, "StgPoolSeg.DataSize")},
    };
}

static void put_piece(struct mock *mock, uint64_t piece, const struct piece_layout *layout, const void *bytes,
                      size_t size, uint64_t next)
{
    unsigned word = mock_pointer_size(mock);
    uint64_t data = mock_alloc(mock, size + 16, 1);
    if (size)
        mock_write(mock, data, bytes, size);
    mock_write_uint(mock, piece + layout->data, word, data);
    mock_write_uint(mock, piece + layout->next, word, next);
    mock_write_uint(mock, piece + layout->used, 4, size);
}

/* Two pieces, of which the first has `first` bytes. */
static void put_pieces(const struct added_code *added, const struct store_layout *layout, uint32_t pool,
                       const uint8_t *bytes, size_t size, size_t first)
{
    uint64_t second = mock_alloc(added->mock, 64, 8);
    put_piece(added->mock, second, &layout->segment, bytes + first, size - first, 0);
    put_piece(added->mock, added->store + pool, &layout->pool, bytes, first, second);
}

uint64_t added_code_table(const struct added_code *added, enum metadata_table table)
{
    struct store_layout layout = layout_of_mock(added->mock);
    return added->store + layout.tables + (uint64_t)table * layout.table_size;
}

uint64_t added_code_row_count(const struct added_code *added, enum metadata_table table)
{
    return added->store + layout_of_mock(added->mock).row_counts + (uint64_t)table * 4;
}

static void put_store(struct added_code *added, const struct store_layout *layout, bool wide)
{
    struct mock *mock = added->mock;
    size_t size;
    CLEANUP_FREE uint8_t *blob = write_metadata(true, wide, &size);
    struct bytes bytes = bytes_of_buffer(blob, size);
    struct metadata metadata;
    if (metadata_open(&bytes, &metadata) != CDACQ_OK)
        abort();
    uint64_t database = mock_alloc(mock, layout->database_size, 8), store = added->store = database + layout->store;
    mock_write_uint(mock, added->import + layout->database, mock_pointer_size(mock), database);
    mock_write_uint(mock, store + layout->heaps, 1, wide ? 7 : 0);
    mock_write_uint(mock, store + layout->sorted, 8, 1);
    for (unsigned table = 0; table < TABLES; table++) {
        const struct metadata_table_layout *rows = &metadata.tables[table];
        mock_write_uint(mock, store + layout->row_counts + table * 4u, 4, rows->rows);
        put_pieces(added, layout, layout->tables + table * layout->table_size, blob + rows->offset,
                   (size_t)rows->rows * rows->row_size, rows->rows ? rows->row_size : 0);
    }
    put_pieces(added, layout, layout->strings, blob + metadata.strings.offset, metadata.strings.size, FROM_STRINGS);
    put_pieces(added, layout, layout->blobs, blob + metadata.blobs.offset, metadata.blobs.size, FROM_BLOBS);
    put_pieces(added, layout, layout->guids, blob + metadata.guids.offset, metadata.guids.size, 0);
}

struct added_code added_code_make(struct mock *mock, bool wide)
{
    const struct store_layout layout = layout_of_mock(mock);
    size_t size;
    CLEANUP_FREE uint8_t *metadata = write_metadata(false, false, &size);
    struct added_code added = {.mock = mock};
    mock_global(mock, "MethodDescTokenRemainderBitCount", 12);
    added.module = mock_module(
        mock, &(struct mock_module_options){.path = "/mock/own.dll", .metadata = metadata, .metadata_size = size});
    added.assembly = mock_get(mock, added.module, "Module.PEAssembly");
    added.begin = added.import = mock_alloc(mock, layout.database + 8, 8);
    put_store(&added, &layout, wide);
    const uint64_t versions[] = {0, 0, il_version_put(mock, IL_VERSION_EDIT, 0)};
    (void)il_versions_put(mock, added.module, versions, ARRAY_SIZE(versions));
    added.end = mock_alloc(mock, 8, 8);
    mock_set(mock, added.assembly, "PEAssembly.MDImport", added.import);
    mock_set(mock, added.assembly, "PEAssembly.MDImportIsRW", 1);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x10000});
    uint64_t old = mock_method_descs(mock, mock_method_table(mock, added.module, FIRST_TYPE), OLD_METHOD, 1, NULL);
    uint64_t new = mock_method_descs(mock, mock_method_table(mock, added.module, ADDED_TYPE), ADDED_METHOD, 1, NULL);
    added.old_code = mock_method(heap, &(struct mock_method){.size = 32, .method_desc = old});
    added.added_code = mock_method(heap, &(struct mock_method){.size = 32, .method_desc = new});
    return added;
}
