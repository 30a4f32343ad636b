/* Opening: the stream headers, the row counts and the offset of each table. */
#include "formats/metadata.h"
#include "formats/metadata_access.h"
#include "formats/metadata_schema.h"

enum {
    ROOT_SIGNATURE = 0x424a5342, /* "BSJB" */
    ROOT_FIXED_SIZE = 16,        /* up to the version string */
    VERSION_CAP = 256,
    STREAM_CAP = 32,      /* compilers write five or six */
    STREAM_NAME_CAP = 32, /* NUL included (II.24.2.2) */
    TABLES_HEADER_SIZE = 24,
};

struct stream {
    uint64_t offset;
    uint32_t size;
    char name[STREAM_NAME_CAP];
};

/* Reads the stream header at *offset, which advances. Names are padded to four bytes. */
static enum cdacq_status read_stream_header(const struct metadata *metadata, uint64_t *offset, struct stream *ret)
{
    const uint8_t *p;
    enum cdacq_status status = bytes_require(&metadata->bytes, *offset, 8, &p);
    if (status != CDACQ_OK)
        return status;
    struct stream stream = {.offset = load_u32(p, false), .size = load_u32(p + 4, false)};
    *offset += 8;
    for (size_t length = 0; length < STREAM_NAME_CAP; length += 4) {
        status = bytes_require(&metadata->bytes, *offset, 4, &p);
        if (status != CDACQ_OK)
            return status;
        memcpy(stream.name + length, p, 4);
        *offset += 4;
        if (memchr(p, '\0', 4)) {
            if (!range_fits(stream.offset, stream.size, metadata->bytes.size))
                return CDACQ_ERR_FORMAT;
            *ret = stream;
            return CDACQ_OK;
        }
    }
    return CDACQ_ERR_FORMAT;
}

/* Assigns a stream by its name; the first of several with the same name counts. */
static void assign_stream(struct metadata *metadata, const struct stream *stream, struct stream *tables, bool *minimal)
{
    struct metadata_heap heap = {stream->offset, stream->size};
    if (strcmp(stream->name, "#Strings") == 0 && !metadata->strings.offset)
        metadata->strings = heap;
    else if (strcmp(stream->name, "#GUID") == 0 && !metadata->guids.offset)
        metadata->guids = heap;
    else if (strcmp(stream->name, "#Blob") == 0 && !metadata->blobs.offset)
        metadata->blobs = heap;
    else if (strcmp(stream->name, "#Pdb") == 0 && !metadata->pdb.offset)
        metadata->pdb = heap;
    else if (strcmp(stream->name, "#JTD") == 0)
        *minimal = true;
    else if ((strcmp(stream->name, "#~") == 0 || strcmp(stream->name, "#-") == 0) && !tables->offset)
        *tables = *stream;
}

/* Reads the row counts of the tables in `valid` at *offset, which advances. `ret` has METADATA_TABLE_COUNT elements. */
static enum cdacq_status read_row_counts(const struct metadata *metadata, uint64_t valid, uint64_t *offset,
                                         uint32_t *ret)
{
    for (unsigned table = 0; table < 64; table++) {
        if (!(valid >> table & 1))
            continue;
        const uint8_t *p;
        enum cdacq_status status = bytes_require(&metadata->bytes, *offset, 4, &p);
        if (status != CDACQ_OK)
            return status;
        *offset += 4;
        uint32_t rows = load_u32(p, false);
        if (rows > METADATA_ROW_COUNT_CAP)
            return CDACQ_ERR_FORMAT;
        if (table < METADATA_TABLE_COUNT) /* rows of other tables come last, so that their layout does not matter */
            ret[table] = rows;
    }
    return CDACQ_OK;
}

/* Reads the row counts of the type system's tables that the #Pdb stream gives, if there is one. */
static enum cdacq_status read_referenced_rows(const struct metadata *metadata, struct metadata_referenced_rows *ret)
{
    enum { PDB_ID_AND_ENTRY_POINT_SIZE = 24, PDB_STREAM_FIXED_SIZE = 32 };
    const uint8_t *p;
    if (!metadata->pdb.offset)
        return CDACQ_OK;
    if (metadata->pdb.size < PDB_STREAM_FIXED_SIZE)
        return CDACQ_ERR_FORMAT;
    enum cdacq_status status = bytes_require(&metadata->bytes, metadata->pdb.offset, PDB_STREAM_FIXED_SIZE, &p);
    if (status != CDACQ_OK)
        return status;
    uint64_t offset = metadata->pdb.offset + PDB_STREAM_FIXED_SIZE;
    status = read_row_counts(metadata, load_u64(p + PDB_ID_AND_ENTRY_POINT_SIZE, false), &offset, ret->rows);
    return status == CDACQ_OK && offset > metadata->pdb.offset + metadata->pdb.size ? CDACQ_ERR_FORMAT : status;
}

static enum cdacq_status read_tables(struct metadata *metadata, const struct stream *stream, bool minimal)
{
    const uint8_t *p;
    struct metadata_referenced_rows referenced = {0};
    uint32_t rows[METADATA_TABLE_COUNT] = {0};
    enum cdacq_status status = bytes_require(&metadata->bytes, stream->offset, TABLES_HEADER_SIZE, &p);
    if (status != CDACQ_OK)
        return status;
    uint8_t heap_sizes = p[6];
    uint64_t valid = load_u64(p + 8, false), offset = stream->offset + TABLES_HEADER_SIZE;
    metadata->sorted = load_u64(p + 16, false);
    metadata->uncompressed = stream->name[1] == '-';

    status = read_row_counts(metadata, valid, &offset, rows);
    if (status == CDACQ_OK)
        status = read_referenced_rows(metadata, &referenced);
    if (status != CDACQ_OK)
        return status;
    for (unsigned table = 0; table < METADATA_TABLE_COUNT; table++)
        metadata->tables[table].rows = rows[table];
    if (heap_sizes & HEAP_EXTRA_DATA)
        offset += 4;
    metadata_lay_out_columns(metadata, &referenced, heap_sizes, minimal);
    for (unsigned table = 0; table < METADATA_TABLE_COUNT; table++) {
        metadata->tables[table].offset = offset;
        offset += (uint64_t)metadata->tables[table].rows * metadata->tables[table].row_size;
    }
    return offset <= stream->offset + stream->size ? CDACQ_OK : CDACQ_ERR_FORMAT;
}

enum cdacq_status metadata_open(const struct bytes *bytes, struct metadata *ret)
{
    struct metadata metadata = {.bytes = *bytes};
    struct stream tables = {0};
    bool minimal = false;
    const uint8_t *p;

    enum cdacq_status status = bytes_require(&metadata.bytes, 0, ROOT_FIXED_SIZE, &p);
    if (status != CDACQ_OK)
        return status;
    uint32_t version_size = load_u32(p + 12, false);
    if (load_u32(p, false) != ROOT_SIGNATURE || version_size > VERSION_CAP)
        return CDACQ_ERR_FORMAT;
    uint64_t offset = ROOT_FIXED_SIZE + align_up(version_size, 4);
    status = bytes_require(&metadata.bytes, offset, 4, &p);
    if (status != CDACQ_OK)
        return status;
    unsigned stream_count = load_u16(p + 2, false);
    offset += 4;
    if (stream_count > STREAM_CAP)
        return CDACQ_ERR_FORMAT;

    for (unsigned i = 0; i < stream_count; i++) {
        struct stream stream;
        status = read_stream_header(&metadata, &offset, &stream);
        if (status != CDACQ_OK)
            return status;
        assign_stream(&metadata, &stream, &tables, &minimal);
    }
    if (!tables.offset)
        return CDACQ_ERR_FORMAT;
    status = read_tables(&metadata, &tables, minimal);
    if (status == CDACQ_OK)
        *ret = metadata;
    return status;
}
