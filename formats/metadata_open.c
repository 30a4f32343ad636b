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
    else if (strcmp(stream->name, "#JTD") == 0)
        *minimal = true;
    else if ((strcmp(stream->name, "#~") == 0 || strcmp(stream->name, "#-") == 0) && !tables->offset)
        *tables = *stream;
}

/* Reads the row counts of the tables in `valid` at *offset, which advances. */
static enum cdacq_status read_row_counts(struct metadata *metadata, uint64_t valid, uint64_t *offset)
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
            metadata->tables[table].rows = rows;
    }
    return CDACQ_OK;
}

static enum cdacq_status read_tables(struct metadata *metadata, const struct stream *stream, bool minimal)
{
    const uint8_t *p;
    enum cdacq_status status = bytes_require(&metadata->bytes, stream->offset, TABLES_HEADER_SIZE, &p);
    if (status != CDACQ_OK)
        return status;
    uint8_t heap_sizes = p[6];
    uint64_t valid = load_u64(p + 8, false), offset = stream->offset + TABLES_HEADER_SIZE;
    metadata->sorted = load_u64(p + 16, false);
    metadata->uncompressed = stream->name[1] == '-';

    status = read_row_counts(metadata, valid, &offset);
    if (status != CDACQ_OK)
        return status;
    if (heap_sizes & HEAP_EXTRA_DATA)
        offset += 4;
    metadata_lay_out_columns(metadata, heap_sizes, minimal);
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
