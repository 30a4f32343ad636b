#include "tests/support/added_code.h"

#include "tests/support/metadata_writer.h"

enum { FIRST_TYPE = 2, ADDED_TYPE, OLD_METHOD = 1, ADDED_METHOD };
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

/* Two pieces, of which the first has `first` bytes. */
static void put_pieces(struct mock *mock, uint64_t segment, const uint8_t *bytes, size_t size, size_t first)
{
    uint64_t second = mock_alloc(mock, mock_size_of(mock, "StgPoolSeg"), 8);
    put_segment(mock, second, bytes + first, size - first, 0);
    put_segment(mock, segment, bytes, first, second);
}

uint64_t added_code_piece(const struct added_code *added, enum metadata_table table)
{
    return added->store + mock_offset_of(added->mock, "CMiniMdRW.m_Tables") +
           (uint64_t)table * mock_size_of(added->mock, "StgPool") + mock_offset_of(added->mock, "StgPool.StgPoolSeg");
}

uint64_t added_code_definition(const struct added_code *added, enum metadata_table table)
{
    return added->store + mock_offset_of(added->mock, "CMiniMdRW.m_TableDefs") +
           (uint64_t)table * mock_size_of(added->mock, "CMiniTableDef");
}

uint64_t added_code_row_count(const struct added_code *added, enum metadata_table table)
{
    return added->store + mock_offset_of(added->mock, "CMiniMdRW.m_Schema") +
           mock_offset_of(added->mock, "CMiniMdSchema.m_cRecs") + (uint64_t)table * 4;
}

static void put_store(struct added_code *added, bool wide)
{
    struct mock *mock = added->mock;
    size_t size;
    CLEANUP_FREE uint8_t *blob = write_metadata(true, wide, &size);
    struct bytes bytes = bytes_of_buffer(blob, size);
    struct metadata metadata;
    if (metadata_open(&bytes, &metadata) != CDACQ_OK)
        abort();
    uint64_t store = added->store = mock_alloc(mock, mock_size_of(mock, "CMiniMdRW"), 8);
    uint64_t schema = store + mock_offset_of(mock, "CMiniMdRW.m_Schema");
    mock_set(mock, schema, "CMiniMdSchema.m_heaps", wide ? 7 : 0);
    mock_set(mock, schema, "CMiniMdSchema.m_sorted", 1);
    for (unsigned table = 0; table < TABLES; table++) {
        const struct metadata_table_layout *layout = &metadata.tables[table];
        mock_write_uint(mock, added_code_row_count(added, table), 4, layout->rows);
        mock_set(mock, added_code_definition(added, table), "CMiniTableDef.m_cbRec", layout->row_size);
        put_pieces(mock, added_code_piece(added, table), blob + layout->offset, (size_t)layout->rows * layout->row_size,
                   layout->rows ? layout->row_size : 0);
    }
    uint64_t in_pool = mock_offset_of(mock, "StgPool.StgPoolSeg");
    put_pieces(mock, store + mock_offset_of(mock, "CMiniMdRW.m_StringHeap") + in_pool, blob + metadata.strings.offset,
               metadata.strings.size, FROM_STRINGS);
    put_pieces(mock, store + mock_offset_of(mock, "CMiniMdRW.m_BlobHeap") + in_pool, blob + metadata.blobs.offset,
               metadata.blobs.size, FROM_BLOBS);
    put_pieces(mock, store + mock_offset_of(mock, "CMiniMdRW.m_GuidHeap") + in_pool, blob + metadata.guids.offset,
               metadata.guids.size, 0);
}

struct added_code added_code_make(struct mock *mock, bool wide)
{
    size_t size;
    CLEANUP_FREE uint8_t *metadata = write_metadata(false, false, &size);
    struct added_code added = {.mock = mock};
    mock_global(mock, "MethodDescTokenRemainderBitCount", 12);
    added.module = mock_module(
        mock, &(struct mock_module_options){.path = "/mock/own.dll", .metadata = metadata, .metadata_size = size});
    added.assembly = mock_get(mock, added.module, "Module.PEAssembly");
    added.begin = added.import = mock_alloc(mock, mock_size_of(mock, "MDInternalRW"), 8);
    put_store(&added, wide);
    added.end = mock_alloc(mock, 8, 8);
    mock_set(mock, added.import, "MDInternalRW.m_pStgdb", added.store);
    mock_set(mock, added.assembly, "PEAssembly.m_pMDImport", added.import);
    mock_set(mock, added.assembly, "PEAssembly.m_MDImportIsRW_Debugger_Use_Only", 1);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x10000});
    uint64_t old = mock_method_descs(mock, mock_method_table(mock, added.module, FIRST_TYPE), OLD_METHOD, 1, NULL);
    uint64_t new = mock_method_descs(mock, mock_method_table(mock, added.module, ADDED_TYPE), ADDED_METHOD, 1, NULL);
    added.old_code = mock_method(heap, &(struct mock_method){.size = 32, .method_desc = old});
    added.added_code = mock_method(heap, &(struct mock_method){.size = 32, .method_desc = new});
    return added;
}
