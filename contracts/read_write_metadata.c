#include "contracts/read_write_metadata.h"

#include "descriptors/fields.h"
#include "descriptors/layout.h"
#include "target/reader.h"
#include "util/binary_search.h"
#include "formats/byte_writer.h"
#include "formats/metadata_schema.h"

DEFINE_VECTOR_FUNCTIONS(metadata_pieces, struct metadata_piece);

enum {
    TABLES = METADATA_GENERIC_PARAM_CONSTRAINT + 1, /* TBL_COUNT */
    HEAPS = HEAP_STRINGS_WIDE | HEAP_GUIDS_WIDE | HEAP_BLOBS_WIDE,
    ROOT_SIZE = 24,
    TABLES_HEADER_SIZE = 24,
    BLOB_MAX = 256 * 1024 * 1024,
    PIECES_MAX = 4096, /* an edit adds some four */
};

static const char loop[] = "pieces of a module's metadata";

/* What the header of the tables' stream says. */
struct stream_tables {
    uint32_t rows[TABLES];
    uint64_t sizes[TABLES]; /* of all rows, in bytes */
    uint64_t sorted;
    uint8_t heaps; /* bits of HEAPS */
    bool wide;     /* every index has four bytes, which a `#JTD` stream says of a blob */
};

/* A stream of the blob; its name is padded to four bytes. The offset is from the end of the header. */
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

bool read_write_metadata_exists(struct reader *reader, uint64_t module)
{
    uint64_t assembly = read_optional(reader, module, F_Module_PEAssembly);
    return read_optional(reader, assembly, F_PEAssembly_MDImportIsRW) != 0;
}

/* The runtime's store of the module's metadata, or 0. */
static uint64_t find_store(struct reader *reader, uint64_t module)
{
    if (!has_field(reader, F_CMiniMdRW_Tables) || !reader->layout->sizes[T_TableRW] || reader->big_endian ||
        !read_write_metadata_exists(reader, module))
        return 0;
    uint64_t assembly = read_field(reader, module, F_Module_PEAssembly);
    uint64_t import = read_field(reader, assembly, F_PEAssembly_MDImport);
    uint64_t database = import ? read_field(reader, import, F_MDInternalRW_Stgdb) : 0;
    uint64_t store = database ? field_address(reader, database, F_CLiteWeightStgdbRW_MiniMd) : 0;
    return reader_failed(reader) ? 0 : store;
}

/* Adds the pieces of a heap or table. */
static bool add_pool(struct reader *reader, uint64_t pool, struct read_write_metadata *ret)
{
    static const struct piece_fields {
        enum layout_field data, size, next;
    } of_pool = {F_StgPool_SegData, F_StgPool_DataSize, F_StgPool_NextSegment},
      of_segment = {F_StgPoolSeg_SegData, F_StgPoolSeg_DataSize, F_StgPoolSeg_NextSegment};
    const struct piece_fields *fields = &of_pool;
    for (uint64_t at = pool; at && reader_step(reader, loop); fields = &of_segment) {
        struct metadata_piece piece = {ret->size, read_field(reader, at, fields->data),
                                       read_field(reader, at, fields->size)};
        if (reader_failed(reader))
            return false;
        if (piece.size > BLOB_MAX - ret->size)
            return reader_fail(reader, CDACQ_ERR_CORRUPT, at, layout_field_name(fields->size));
        if (ret->pieces.count == PIECES_MAX)
            return reader_fail(reader, CDACQ_ERR_FUEL, at, loop);
        if (piece.size && !metadata_pieces_append(&ret->pieces, piece))
            return reader_fail(reader, CDACQ_ERR_NOMEM, at, loop);
        ret->size += piece.size;
        at = read_field(reader, at, fields->next);
    }
    return !reader_failed(reader);
}

/* Whether the tables' sizes are those that their rows have if indexes are as wide as `tables` says. */
static bool have_layout(const struct stream_tables *tables)
{
    const struct metadata_referenced_rows none = {0};
    struct metadata metadata = {0};
    for (unsigned table = 0; table < TABLES; table++)
        metadata.tables[table].rows = tables->rows[table];
    metadata_lay_out_columns(&metadata, &none, tables->heaps, tables->wide);
    for (unsigned table = 0; table < TABLES; table++)
        if (tables->sizes[table] != (uint64_t)tables->rows[table] * metadata.tables[table].row_size)
            return false;
    return true;
}

/*
 * Adds the rows of all tables. How wide their columns are is seen from their sizes: the runtime makes every index four
 * bytes wide before an edit, and also when something else than an edit makes the tables grow, which
 * CMiniMdRW.All4ByteColumns does not say.
 */
static bool add_tables(struct reader *reader, uint64_t store, struct stream_tables *tables,
                       struct read_write_metadata *ret)
{
    uint64_t schema = field_address(reader, store, F_CMiniMdRW_Schema);
    uint64_t counts = field_address(reader, schema, F_CMiniMdSchema_RecordCounts);
    uint64_t pools = field_address(reader, store, F_CMiniMdRW_Tables);
    tables->sorted = read_field(reader, schema, F_CMiniMdSchema_Sorted);
    tables->heaps = (uint8_t)(read_field(reader, schema, F_CMiniMdSchema_Heaps) & HEAPS);
    for (unsigned table = 0; table < TABLES; table++) {
        uint64_t from = ret->size;
        tables->rows[table] = read_u32(reader, counts + table * 4u);
        if (tables->rows[table] && !add_pool(reader, pools + (uint64_t)table * reader->layout->sizes[T_TableRW], ret))
            return false;
        tables->sizes[table] = ret->size - from;
    }
    if (reader_failed(reader) || have_layout(tables))
        return !reader_failed(reader);
    tables->wide = true;
    return have_layout(tables) || reader_fail(reader, CDACQ_ERR_CORRUPT, counts, "CMiniMdSchema.RecordCounts");
}

static void put_stream(struct byte_writer *writer, const struct blob_stream *stream, uint64_t header_size)
{
    put_u32(writer, (uint32_t)(header_size + stream->offset));
    put_u32(writer, (uint32_t)stream->size);
    put_bytes(writer, stream->name, stream->name_size);
}

/* The streams, and then the header of the tables' stream, which is the first. */
static bool make_header(const struct stream_tables *tables, struct blob_stream *streams, size_t count,
                        struct read_write_metadata *ret)
{
    struct byte_writer writer = {0};
    uint64_t present = 0;
    size_t tables_header_size = TABLES_HEADER_SIZE;
    ret->header_size = ROOT_SIZE;
    for (size_t i = 0; i < count; i++)
        ret->header_size += 8u + streams[i].name_size;
    for (unsigned table = 0; table < TABLES; table++) {
        present |= (uint64_t)(tables->rows[table] != 0) << table;
        tables_header_size += tables->rows[table] ? 4 : 0;
    }
    ret->header_size += tables_header_size;
    put_u32(&writer, 0x424a5342);
    put_u16(&writer, 1);
    put_u16(&writer, 1);
    put_u32(&writer, 0);
    put_u32(&writer, 4);
    put_bytes(&writer, "v4\0", 4);
    put_u16(&writer, 0);
    put_u16(&writer, (unsigned)count);
    streams[0].size += tables_header_size;
    put_stream(&writer, &streams[0], ret->header_size - tables_header_size);
    for (size_t i = 1; i < count; i++)
        put_stream(&writer, &streams[i], ret->header_size);
    put_u32(&writer, 0);
    put_u8(&writer, 2);
    put_u8(&writer, 0);
    put_u8(&writer, tables->heaps);
    put_u8(&writer, 1);
    put_u64(&writer, present);
    put_u64(&writer, tables->sorted);
    for (unsigned table = 0; table < TABLES; table++)
        if (tables->rows[table])
            put_u32(&writer, tables->rows[table]);
    ret->header = writer.data;
    return !writer.broken;
}

static bool find_pieces(struct reader *reader, uint64_t store, struct read_write_metadata *ret)
{
    struct blob_stream streams[] = {
        {"#-", 4, 0, 0}, {"#Strings", 12, 0, 0}, {"#Blob", 8, 0, 0}, {"#GUID", 8, 0, 0}, {"#JTD", 8, 0, 0}};
    static const enum layout_field heaps[] = {F_CMiniMdRW_StringHeap, F_CMiniMdRW_BlobHeap, F_CMiniMdRW_GuidHeap};
    struct stream_tables tables = {0};
    if (!add_tables(reader, store, &tables, ret))
        return false;
    streams[0].size = ret->size;
    for (size_t i = 0; i < ARRAY_SIZE(heaps); i++) {
        struct blob_stream *stream = &streams[1 + i];
        stream->offset = ret->size;
        if (!add_pool(reader, field_address(reader, store, heaps[i]), ret))
            return false;
        stream->size = ret->size - stream->offset;
    }
    streams[4].offset = ret->size;
    if (!make_header(&tables, streams, ARRAY_SIZE(streams) - !tables.wide, ret))
        return reader_fail(reader, CDACQ_ERR_NOMEM, store, loop);
    for (size_t i = 0; i < ret->pieces.count; i++)
        ret->pieces.items[i].offset += ret->header_size;
    ret->size += ret->header_size;
    return true;
}

bool read_write_metadata_find(struct reader *reader, uint64_t module, struct read_write_metadata *ret)
{
    *ret = (struct read_write_metadata){0};
    uint64_t store = find_store(reader, module);
    return store && find_pieces(reader, store, ret);
}
