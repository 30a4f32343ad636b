#include "contracts/read_write_metadata.h"

#include "util/binary_search.h"
#include "formats/byte_writer.h"

DEFINE_VECTOR_FUNCTIONS(metadata_pieces, struct metadata_piece);

enum {
    TABLES = METADATA_GENERIC_PARAM_CONSTRAINT + 1, /* TBL_COUNT */
    HEAPS = 7,                                      /* bits of those whose indexes have four bytes */
    ROOT_SIZE = 24,
    TABLES_HEADER_SIZE = 24,
    BLOB_MAX = 256 * 1024 * 1024,
    PIECES_MAX = 4096, /* an edit adds some four */
};

static const char loop[] = "pieces of a module's metadata";

/* A stream of the blob; its name is padded to four bytes. */
struct blob_stream {
    char name[12];
    uint8_t name_size;
    uint64_t offset, size;
};

void read_write_metadata_deinit(struct read_write_metadata *metadata)
{
    free(metadata->header);
    metadata_pieces_deinit(&metadata->pieces);
}

const struct metadata_piece *read_write_metadata_piece(const struct read_write_metadata *metadata, uint64_t offset)
{
    const struct metadata_piece *pieces = metadata->pieces.items;
    return &pieces[lower_bound_in_memory(i, metadata->pieces.count, pieces[i].offset <= offset) - 1];
}

bool read_write_metadata_agrees(const struct read_write_metadata *metadata, const struct metadata *opened)
{
    for (unsigned table = 0; table < TABLES; table++)
        if (metadata->row_sizes[table] && metadata->row_sizes[table] != opened->tables[table].row_size)
            return false;
    return true;
}

/* The runtime's store of the module's metadata, or 0. */
static uint64_t find_store(struct field_reader *reader, uint64_t module)
{
    uint64_t assembly = read_optional(reader, module, F_Module_PEAssembly);
    if (!assembly || !has_field(reader, F_CMiniMdRW_m_Tables) || reader->raw.big_endian ||
        !read_optional(reader, assembly, F_PEAssembly_m_MDImportIsRW_Debugger_Use_Only))
        return 0;
    uint64_t import = read_field(reader, assembly, F_PEAssembly_m_pMDImport);
    uint64_t store = import ? read_field(reader, import, F_MDInternalRW_m_pStgdb) : 0;
    return reader_failed(&reader->raw) ? 0 : store;
}

/* Adds the pieces of a heap, or of a table whose rows have `row_size` bytes. */
static bool add_pool(struct field_reader *reader, uint64_t pool, unsigned row_size, struct read_write_metadata *ret)
{
    uint64_t segment = field_address(reader, pool, F_StgPool_StgPoolSeg);
    while (segment && reader_step(&reader->raw, loop)) {
        struct metadata_piece piece = {ret->size, read_field(reader, segment, F_StgPoolSeg_m_pSegData),
                                       read_field(reader, segment, F_StgPoolSeg_m_cbSegNext)};
        uint64_t room = read_field(reader, segment, F_StgPoolSeg_m_cbSegSize);
        if (reader_failed(&reader->raw))
            return false;
        if (piece.size > room || piece.size % row_size || piece.size > BLOB_MAX - ret->size)
            return reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, segment, "StgPoolSeg.m_cbSegNext");
        if (ret->pieces.count == PIECES_MAX)
            return reader_fail(&reader->raw, CDACQ_ERR_FUEL, segment, loop);
        if (piece.size && !metadata_pieces_append(&ret->pieces, piece))
            return reader_fail(&reader->raw, CDACQ_ERR_NOMEM, segment, loop);
        ret->size += piece.size;
        segment = read_field(reader, segment, F_StgPoolSeg_m_pNextSeg);
    }
    return !reader_failed(&reader->raw);
}

/* The size of a table's rows. 0, and the reader fails, if it cannot be read. */
static unsigned row_size_of(struct field_reader *reader, uint64_t store, unsigned table)
{
    uint64_t definition = field_address(reader, store, F_CMiniMdRW_m_TableDefs) +
                          (uint64_t)table * reader->layout->sizes[T_CMiniTableDef];
    unsigned size = (unsigned)read_field(reader, definition, F_CMiniTableDef_m_cbRec);
    return size ? size : (unsigned)reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, definition, "CMiniTableDef.m_cbRec");
}

static bool add_table(struct field_reader *reader, uint64_t store, unsigned table, uint32_t rows,
                      struct read_write_metadata *ret)
{
    uint64_t pools = field_address(reader, store, F_CMiniMdRW_m_Tables), from = ret->size;
    uint64_t pool = pools + (uint64_t)table * reader->layout->sizes[T_StgPool];
    unsigned row_size = row_size_of(reader, store, table);
    if (!row_size || !add_pool(reader, pool, row_size, ret))
        return false;
    ret->row_sizes[table] = (uint16_t)row_size;
    return ret->size - from == (uint64_t)rows * row_size ||
           reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, pool, "CMiniMdSchema.m_cRecs");
}

static void put_stream(struct byte_writer *writer, const struct blob_stream *stream)
{
    put_u32(writer, (uint32_t)stream->offset);
    put_u32(writer, (uint32_t)stream->size);
    put_bytes(writer, stream->name, stream->name_size);
}

/* The streams, and then the header of the tables' stream, which is the first. */
static bool make_header(const uint32_t rows[TABLES], unsigned heaps, uint64_t sorted, const struct blob_stream *streams,
                        size_t count, struct read_write_metadata *ret)
{
    struct byte_writer writer = {0};
    uint64_t present = 0;
    put_u32(&writer, 0x424a5342);
    put_u16(&writer, 1);
    put_u16(&writer, 1);
    put_u32(&writer, 0);
    put_u32(&writer, 4);
    put_bytes(&writer, "v4\0", 4);
    put_u16(&writer, 0);
    put_u16(&writer, (unsigned)count);
    for (size_t i = 0; i < count; i++)
        put_stream(&writer, &streams[i]);
    for (unsigned table = 0; table < TABLES; table++)
        present |= (uint64_t)(rows[table] != 0) << table;
    put_u32(&writer, 0);
    put_u8(&writer, 2);
    put_u8(&writer, 0);
    put_u8(&writer, heaps);
    put_u8(&writer, 1);
    put_u64(&writer, present);
    put_u64(&writer, sorted);
    for (unsigned table = 0; table < TABLES; table++)
        if (rows[table])
            put_u32(&writer, rows[table]);
    ret->header = writer.data;
    return !writer.broken;
}

/* A store that was made for edits has every index in four bytes, which a `#JTD` stream says of a blob. */
static bool is_wide(struct field_reader *reader, uint64_t store, unsigned heaps)
{
    enum { STRINGS_WIDE = 1, FLAGS = 4, NAMES = 2, OTHERS = 3 };
    return row_size_of(reader, store, METADATA_TYPE_DEF) == FLAGS + NAMES * (heaps & STRINGS_WIDE ? 4 : 2) + OTHERS * 4;
}

static bool find_pieces(struct field_reader *reader, uint64_t store, struct read_write_metadata *ret)
{
    struct blob_stream streams[] = {
        {"#-", 4, 0, 0}, {"#Strings", 12, 0, 0}, {"#Blob", 8, 0, 0}, {"#GUID", 8, 0, 0}, {"#JTD", 8, 0, 0}};
    static const enum layout_field pools[] = {F_CMiniMdRW_m_StringHeap, F_CMiniMdRW_m_BlobHeap, F_CMiniMdRW_m_GuidHeap};
    uint64_t schema = field_address(reader, store, F_CMiniMdRW_m_Schema);
    uint64_t counts = field_address(reader, schema, F_CMiniMdSchema_m_cRecs);
    uint64_t sorted = read_field(reader, schema, F_CMiniMdSchema_m_sorted);
    unsigned heaps = (unsigned)read_field(reader, schema, F_CMiniMdSchema_m_heaps) & HEAPS;
    size_t stream_count = ARRAY_SIZE(streams) - !is_wide(reader, store, heaps);
    uint32_t rows[TABLES];
    ret->header_size = ROOT_SIZE + TABLES_HEADER_SIZE;
    for (size_t i = 0; i < stream_count; i++)
        ret->header_size += 8u + streams[i].name_size;
    streams[0].offset = ret->header_size - TABLES_HEADER_SIZE;
    for (unsigned table = 0; table < TABLES; table++) {
        rows[table] = read_u32(&reader->raw, counts + table * 4u);
        ret->header_size += rows[table] ? 4 : 0;
    }
    ret->size = ret->header_size;
    for (unsigned table = 0; table < TABLES && !reader_failed(&reader->raw); table++)
        if (rows[table] && !add_table(reader, store, table, rows[table], ret))
            return false;
    streams[0].size = ret->size - streams[0].offset;
    for (size_t i = 0; i < ARRAY_SIZE(pools); i++) {
        struct blob_stream *stream = &streams[1 + i];
        stream->offset = ret->size;
        if (!add_pool(reader, field_address(reader, store, pools[i]), 1, ret))
            return false;
        stream->size = ret->size - stream->offset;
    }
    streams[4].offset = ret->size;
    return make_header(rows, heaps, sorted, streams, stream_count, ret) ||
           reader_fail(&reader->raw, CDACQ_ERR_NOMEM, store, loop);
}

bool read_write_metadata_find(struct field_reader *reader, uint64_t module, struct read_write_metadata *ret)
{
    *ret = (struct read_write_metadata){0};
    uint64_t store = find_store(reader, module);
    return store && find_pieces(reader, store, ret);
}
