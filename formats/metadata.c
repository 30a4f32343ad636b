#include "formats/metadata.h"

enum {
    ROOT_SIGNATURE = 0x424a5342, /* "BSJB" */
    ROOT_FIXED_SIZE = 16,        /* up to the version string */
    VERSION_CAP = 256,
    STREAM_CAP = 32,      /* compilers write five or six */
    STREAM_NAME_CAP = 32, /* NUL included (II.24.2.2) */
    TABLES_HEADER_SIZE = 24,
    ROW_COUNT_CAP = 0xffffff, /* what a token can address */
    WINDOW_CAP = 256,         /* bytes asked for at once when a length is not known or large */
    STRING_WINDOW = 64,       /* a guess that most strings fit into */
};

enum heap_size_flags {
    HEAP_STRINGS_WIDE = 0x01,
    HEAP_GUIDS_WIDE = 0x02,
    HEAP_BLOBS_WIDE = 0x04,
    HEAP_EXTRA_DATA = 0x40, /* four bytes between row counts and rows */
};

/* ---- Schema: what the columns hold ---- */

enum column_kind {
    NONE = 0,
    U2,
    U4,
    STRING,
    GUID,
    BLOB,
    TABLE = 0x40, /* + table: a rid */
    CODED = 0x80, /* + enum coded_index */
};

enum coded_index {
    TYPE_DEF_OR_REF,
    HAS_CONSTANT,
    HAS_CUSTOM_ATTRIBUTE,
    HAS_FIELD_MARSHAL,
    HAS_DECL_SECURITY,
    MEMBER_REF_PARENT,
    HAS_SEMANTICS,
    METHOD_DEF_OR_REF,
    MEMBER_FORWARDED,
    IMPLEMENTATION,
    CUSTOM_ATTRIBUTE_TYPE,
    RESOLUTION_SCOPE,
    TYPE_OR_METHOD_DEF,
};

enum { NO_TABLE = 0xff };

/* Which tables a coded index chooses from, by tag (II.24.2.6). */
static const struct coded_schema {
    uint8_t tag_bits, tag_count;
    uint8_t tables[22];
} coded_schemas[] = {
    [TYPE_DEF_OR_REF] = {2, 3, {METADATA_TYPE_DEF, METADATA_TYPE_REF, METADATA_TYPE_SPEC}},
    [HAS_CONSTANT] = {2, 3, {METADATA_FIELD, METADATA_PARAM, METADATA_PROPERTY}},
    [HAS_CUSTOM_ATTRIBUTE] = {5,
                              22,
                              {METADATA_METHOD_DEF,        METADATA_FIELD,         METADATA_TYPE_REF,
                               METADATA_TYPE_DEF,          METADATA_PARAM,         METADATA_INTERFACE_IMPL,
                               METADATA_MEMBER_REF,        METADATA_MODULE,        METADATA_DECL_SECURITY,
                               METADATA_PROPERTY,          METADATA_EVENT,         METADATA_STAND_ALONE_SIG,
                               METADATA_MODULE_REF,        METADATA_TYPE_SPEC,     METADATA_ASSEMBLY,
                               METADATA_ASSEMBLY_REF,      METADATA_FILE,          METADATA_EXPORTED_TYPE,
                               METADATA_MANIFEST_RESOURCE, METADATA_GENERIC_PARAM, METADATA_GENERIC_PARAM_CONSTRAINT,
                               METADATA_METHOD_SPEC}},
    [HAS_FIELD_MARSHAL] = {1, 2, {METADATA_FIELD, METADATA_PARAM}},
    [HAS_DECL_SECURITY] = {2, 3, {METADATA_TYPE_DEF, METADATA_METHOD_DEF, METADATA_ASSEMBLY}},
    [MEMBER_REF_PARENT] =
        {3, 5, {METADATA_TYPE_DEF, METADATA_TYPE_REF, METADATA_MODULE_REF, METADATA_METHOD_DEF, METADATA_TYPE_SPEC}},
    [HAS_SEMANTICS] = {1, 2, {METADATA_EVENT, METADATA_PROPERTY}},
    [METHOD_DEF_OR_REF] = {1, 2, {METADATA_METHOD_DEF, METADATA_MEMBER_REF}},
    [MEMBER_FORWARDED] = {1, 2, {METADATA_FIELD, METADATA_METHOD_DEF}},
    [IMPLEMENTATION] = {2, 3, {METADATA_FILE, METADATA_ASSEMBLY_REF, METADATA_EXPORTED_TYPE}},
    [CUSTOM_ATTRIBUTE_TYPE] = {3, 5, {NO_TABLE, NO_TABLE, METADATA_METHOD_DEF, METADATA_MEMBER_REF, NO_TABLE}},
    [RESOLUTION_SCOPE] = {2, 4, {METADATA_MODULE, METADATA_MODULE_REF, METADATA_ASSEMBLY_REF, METADATA_TYPE_REF}},
    [TYPE_OR_METHOD_DEF] = {1, 2, {METADATA_TYPE_DEF, METADATA_METHOD_DEF}},
};

#define T(table) (TABLE + METADATA_##table)
#define C(coded) (CODED + (coded))

/* The columns of every table (II.22), in order. */
static const uint8_t schema[METADATA_TABLE_COUNT][METADATA_COLUMN_CAP] = {
    [METADATA_MODULE] = {U2, STRING, GUID, GUID, GUID},
    [METADATA_TYPE_REF] = {C(RESOLUTION_SCOPE), STRING, STRING},
    [METADATA_TYPE_DEF] = {U4, STRING, STRING, C(TYPE_DEF_OR_REF), T(FIELD), T(METHOD_DEF)},
    [METADATA_FIELD_PTR] = {T(FIELD)},
    [METADATA_FIELD] = {U2, STRING, BLOB},
    [METADATA_METHOD_PTR] = {T(METHOD_DEF)},
    [METADATA_METHOD_DEF] = {U4, U2, U2, STRING, BLOB, T(PARAM)},
    [METADATA_PARAM_PTR] = {T(PARAM)},
    [METADATA_PARAM] = {U2, U2, STRING},
    [METADATA_INTERFACE_IMPL] = {T(TYPE_DEF), C(TYPE_DEF_OR_REF)},
    [METADATA_MEMBER_REF] = {C(MEMBER_REF_PARENT), STRING, BLOB},
    [METADATA_CONSTANT] = {U2, C(HAS_CONSTANT), BLOB},
    [METADATA_CUSTOM_ATTRIBUTE] = {C(HAS_CUSTOM_ATTRIBUTE), C(CUSTOM_ATTRIBUTE_TYPE), BLOB},
    [METADATA_FIELD_MARSHAL] = {C(HAS_FIELD_MARSHAL), BLOB},
    [METADATA_DECL_SECURITY] = {U2, C(HAS_DECL_SECURITY), BLOB},
    [METADATA_CLASS_LAYOUT] = {U2, U4, T(TYPE_DEF)},
    [METADATA_FIELD_LAYOUT] = {U4, T(FIELD)},
    [METADATA_STAND_ALONE_SIG] = {BLOB},
    [METADATA_EVENT_MAP] = {T(TYPE_DEF), T(EVENT)},
    [METADATA_EVENT_PTR] = {T(EVENT)},
    [METADATA_EVENT] = {U2, STRING, C(TYPE_DEF_OR_REF)},
    [METADATA_PROPERTY_MAP] = {T(TYPE_DEF), T(PROPERTY)},
    [METADATA_PROPERTY_PTR] = {T(PROPERTY)},
    [METADATA_PROPERTY] = {U2, STRING, BLOB},
    [METADATA_METHOD_SEMANTICS] = {U2, T(METHOD_DEF), C(HAS_SEMANTICS)},
    [METADATA_METHOD_IMPL] = {T(TYPE_DEF), C(METHOD_DEF_OR_REF), C(METHOD_DEF_OR_REF)},
    [METADATA_MODULE_REF] = {STRING},
    [METADATA_TYPE_SPEC] = {BLOB},
    [METADATA_IMPL_MAP] = {U2, C(MEMBER_FORWARDED), STRING, T(MODULE_REF)},
    [METADATA_FIELD_RVA] = {U4, T(FIELD)},
    [METADATA_ENC_LOG] = {U4, U4},
    [METADATA_ENC_MAP] = {U4},
    [METADATA_ASSEMBLY] = {U4, U2, U2, U2, U2, U4, BLOB, STRING, STRING},
    [METADATA_ASSEMBLY_PROCESSOR] = {U4},
    [METADATA_ASSEMBLY_OS] = {U4, U4, U4},
    [METADATA_ASSEMBLY_REF] = {U2, U2, U2, U2, U4, BLOB, STRING, STRING, BLOB},
    [METADATA_ASSEMBLY_REF_PROCESSOR] = {U4, T(ASSEMBLY_REF)},
    [METADATA_ASSEMBLY_REF_OS] = {U4, U4, U4, T(ASSEMBLY_REF)},
    [METADATA_FILE] = {U4, STRING, BLOB},
    [METADATA_EXPORTED_TYPE] = {U4, U4, STRING, STRING, C(IMPLEMENTATION)},
    [METADATA_MANIFEST_RESOURCE] = {U4, U4, STRING, C(IMPLEMENTATION)},
    [METADATA_NESTED_CLASS] = {T(TYPE_DEF), T(TYPE_DEF)},
    [METADATA_GENERIC_PARAM] = {U2, U2, C(TYPE_OR_METHOD_DEF), STRING},
    [METADATA_METHOD_SPEC] = {C(METHOD_DEF_OR_REF), BLOB},
    [METADATA_GENERIC_PARAM_CONSTRAINT] = {T(GENERIC_PARAM), C(TYPE_DEF_OR_REF)},
};

#undef T
#undef C

/* Columns that are read, by position. */
enum {
    MODULE_NAME = 1,
    MODULE_MVID = 2,
    TYPE_REF_SCOPE = 0,
    TYPE_REF_NAME = 1,
    TYPE_REF_NAMESPACE = 2,
    TYPE_DEF_FLAGS = 0,
    TYPE_DEF_NAME = 1,
    TYPE_DEF_NAMESPACE = 2,
    TYPE_DEF_EXTENDS = 3,
    TYPE_DEF_METHOD_LIST = 5,
    METHOD_PTR_METHOD = 0,
    METHOD_DEF_RVA = 0,
    METHOD_DEF_IMPL_FLAGS = 1,
    METHOD_DEF_FLAGS = 2,
    METHOD_DEF_NAME = 3,
    METHOD_DEF_SIGNATURE = 4,
    MEMBER_REF_PARENT_COLUMN = 0,
    MEMBER_REF_NAME = 1,
    MEMBER_REF_SIGNATURE = 2,
    MODULE_REF_NAME = 0,
    TYPE_SPEC_SIGNATURE = 0,
    ASSEMBLY_NAME = 7,
    ASSEMBLY_REF_FLAGS = 4,
    ASSEMBLY_REF_NAME = 6,
    ASSEMBLY_REF_CULTURE = 7,
    NESTED_CLASS_NESTED = 0,
    NESTED_CLASS_ENCLOSING = 1,
    GENERIC_PARAM_NUMBER = 0,
    GENERIC_PARAM_FLAGS = 1,
    GENERIC_PARAM_OWNER = 2,
    GENERIC_PARAM_NAME = 3,
    METHOD_SPEC_METHOD = 0,
    METHOD_SPEC_INSTANTIATION = 1,
};

/* ---- Opening ---- */

/* A window, or why there is none: past the end of the source is malformed, within it is missing. */
static inline enum cdacq_status metadata_window(const struct metadata *metadata, uint64_t offset, size_t count,
                                                const uint8_t **ret)
{
    if (UNLIKELY(!range_fits(offset, count, metadata->bytes.size)))
        return CDACQ_ERR_FORMAT;
    const uint8_t *p = bytes_window(&metadata->bytes, offset, count);
    if (UNLIKELY(!p))
        return CDACQ_ERR_MEMORY;
    *ret = p;
    return CDACQ_OK;
}

struct stream {
    uint64_t offset;
    uint32_t size;
    char name[STREAM_NAME_CAP];
};

/* Reads the stream header at *offset and moves *offset behind it: names are padded to four bytes. */
static enum cdacq_status read_stream_header(const struct metadata *metadata, uint64_t *offset, struct stream *ret)
{
    const uint8_t *p;
    enum cdacq_status status = metadata_window(metadata, *offset, 8, &p);
    if (status != CDACQ_OK)
        return status;
    struct stream stream = {.offset = load_u32(p, false), .size = load_u32(p + 4, false)};
    *offset += 8;
    for (size_t length = 0; length < STREAM_NAME_CAP; length += 4) {
        status = metadata_window(metadata, *offset, 4, &p);
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

/* Remembers what a stream is for; the first of several with the same name counts. */
static void place_stream(struct metadata *metadata, const struct stream *stream, struct stream *tables, bool *minimal)
{
    struct metadata_heap heap = {stream->offset, stream->size};
    if (strcmp(stream->name, "#Strings") == 0 && !metadata->strings.offset)
        metadata->strings = heap;
    else if (strcmp(stream->name, "#US") == 0 && !metadata->user_strings.offset)
        metadata->user_strings = heap;
    else if (strcmp(stream->name, "#GUID") == 0 && !metadata->guids.offset)
        metadata->guids = heap;
    else if (strcmp(stream->name, "#Blob") == 0 && !metadata->blobs.offset)
        metadata->blobs = heap;
    else if (strcmp(stream->name, "#JTD") == 0)
        *minimal = true;
    else if ((strcmp(stream->name, "#~") == 0 || strcmp(stream->name, "#-") == 0) && !tables->offset)
        *tables = *stream;
}

static bool is_wide_index(const struct metadata *metadata, uint8_t kind, uint8_t heap_sizes, bool minimal)
{
    /* In a `#-` stream a list column may go through an indirection table, which then decides. */
    static const uint8_t indirect[METADATA_TABLE_COUNT] = {
        [METADATA_FIELD] = METADATA_FIELD_PTR,       [METADATA_METHOD_DEF] = METADATA_METHOD_PTR,
        [METADATA_PARAM] = METADATA_PARAM_PTR,       [METADATA_EVENT] = METADATA_EVENT_PTR,
        [METADATA_PROPERTY] = METADATA_PROPERTY_PTR,
    };
    uint32_t rows = 0;
    unsigned tag_bits = 0;
    switch (kind) {
    case STRING:
        return heap_sizes & HEAP_STRINGS_WIDE;
    case GUID:
        return heap_sizes & HEAP_GUIDS_WIDE;
    case BLOB:
        return heap_sizes & HEAP_BLOBS_WIDE;
    default:
        break;
    }
    if (kind < CODED) {
        uint8_t table = kind - TABLE;
        rows = metadata->tables[table].rows;
        if (indirect[table])
            rows = MAX(rows, metadata->tables[indirect[table]].rows);
    } else {
        const struct coded_schema *coded = &coded_schemas[kind - CODED];
        tag_bits = coded->tag_bits;
        for (unsigned i = 0; i < coded->tag_count; i++)
            if (coded->tables[i] != NO_TABLE)
                rows = MAX(rows, metadata->tables[coded->tables[i]].rows);
    }
    return minimal || rows >> (16 - tag_bits) != 0;
}

static void lay_out_table(struct metadata *metadata, unsigned table, uint8_t heap_sizes, bool minimal)
{
    struct metadata_table_layout *layout = &metadata->tables[table];
    uint8_t size = 0;
    for (unsigned i = 0; i < METADATA_COLUMN_CAP && schema[table][i] != NONE; i++) {
        uint8_t kind = schema[table][i];
        bool wide = kind == U4 || (kind != U2 && is_wide_index(metadata, kind, heap_sizes, minimal));
        layout->column_offset[i] = size;
        layout->column_width[i] = wide ? 4 : 2;
        size += layout->column_width[i];
    }
    layout->row_size = size;
}

/* Reads the row counts of the tables in `valid`, which lie at *offset, and moves *offset behind them. */
static enum cdacq_status read_row_counts(struct metadata *metadata, uint64_t valid, uint64_t *offset)
{
    for (unsigned table = 0; table < 64; table++) {
        if (!(valid >> table & 1))
            continue;
        const uint8_t *p;
        enum cdacq_status status = metadata_window(metadata, *offset, 4, &p);
        if (status != CDACQ_OK)
            return status;
        *offset += 4;
        uint32_t rows = load_u32(p, false);
        if (rows > ROW_COUNT_CAP)
            return CDACQ_ERR_FORMAT;
        if (table < METADATA_TABLE_COUNT) /* later ones stand behind ours, so that their form does not matter */
            metadata->tables[table].rows = rows;
    }
    return CDACQ_OK;
}

static enum cdacq_status read_tables(struct metadata *metadata, const struct stream *stream, bool minimal)
{
    const uint8_t *p;
    enum cdacq_status status = metadata_window(metadata, stream->offset, TABLES_HEADER_SIZE, &p);
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
    for (unsigned table = 0; table < METADATA_TABLE_COUNT; table++) {
        lay_out_table(metadata, table, heap_sizes, minimal);
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

    enum cdacq_status status = metadata_window(&metadata, 0, ROOT_FIXED_SIZE, &p);
    if (status != CDACQ_OK)
        return status;
    uint32_t version_size = load_u32(p + 12, false);
    if (load_u32(p, false) != ROOT_SIGNATURE || version_size > VERSION_CAP)
        return CDACQ_ERR_FORMAT;
    uint64_t offset = ROOT_FIXED_SIZE + align_up(version_size, 4);
    status = metadata_window(&metadata, offset, 4, &p);
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
        place_stream(&metadata, &stream, &tables, &minimal);
    }
    if (!tables.offset)
        return CDACQ_ERR_FORMAT;
    status = read_tables(&metadata, &tables, minimal);
    if (status == CDACQ_OK)
        *ret = metadata;
    return status;
}

/* ---- Cells and rows ---- */

static inline uint32_t load_cell(const uint8_t *row, const struct metadata_table_layout *layout, unsigned column)
{
    const uint8_t *p = row + layout->column_offset[column];
    return layout->column_width[column] == 4 ? load_u32(p, false) : load_u16(p, false);
}

static inline uint64_t row_offset(const struct metadata_table_layout *layout, uint32_t rid)
{
    return layout->offset + (uint64_t)(rid - 1) * layout->row_size;
}

static inline enum cdacq_status read_cell(const struct metadata *metadata, enum metadata_table table, uint32_t rid,
                                          unsigned column, uint32_t *ret)
{
    const struct metadata_table_layout *layout = &metadata->tables[table];
    const uint8_t *p;
    if (UNLIKELY(rid - 1 >= layout->rows))
        return CDACQ_ERR_FORMAT;
    unsigned width = layout->column_width[column];
    enum cdacq_status status =
        metadata_window(metadata, row_offset(layout, rid) + layout->column_offset[column], width, &p);
    if (LIKELY(status == CDACQ_OK))
        *ret = width == 4 ? load_u32(p, false) : load_u16(p, false);
    return status;
}

static enum cdacq_status read_row(const struct metadata *metadata, enum metadata_table table, uint32_t rid,
                                  uint32_t ret[METADATA_COLUMN_CAP])
{
    const struct metadata_table_layout *layout = &metadata->tables[table];
    const uint8_t *p;
    if (rid - 1 >= layout->rows)
        return CDACQ_ERR_FORMAT;
    enum cdacq_status status = metadata_window(metadata, row_offset(layout, rid), layout->row_size, &p);
    if (status != CDACQ_OK)
        return status;
    for (unsigned i = 0; i < METADATA_COLUMN_CAP; i++)
        ret[i] = layout->column_width[i] ? load_cell(p, layout, i) : 0;
    return CDACQ_OK;
}

/* A coded index as a token; false where its tag means no table. */
static bool decode(enum coded_index coded, uint32_t value, uint32_t *ret)
{
    const struct coded_schema *coded_schema = &coded_schemas[coded];
    uint32_t tag = value & ((1u << coded_schema->tag_bits) - 1), rid = value >> coded_schema->tag_bits;
    if (tag >= coded_schema->tag_count || coded_schema->tables[tag] == NO_TABLE || rid > ROW_COUNT_CAP)
        return false;
    *ret = metadata_token(coded_schema->tables[tag], rid);
    return true;
}

enum cdacq_status metadata_module(const struct metadata *metadata, struct metadata_module *ret)
{
    uint32_t row[METADATA_COLUMN_CAP];
    enum cdacq_status status = read_row(metadata, METADATA_MODULE, 1, row);
    if (status == CDACQ_OK)
        *ret = (struct metadata_module){.name = row[MODULE_NAME], .mvid = row[MODULE_MVID]};
    return status;
}

enum cdacq_status metadata_mvid(const struct metadata *metadata, uint8_t ret[16])
{
    struct metadata_module module;
    const uint8_t *p;
    enum cdacq_status status = metadata_module(metadata, &module);
    if (status != CDACQ_OK)
        return status;
    uint64_t offset = (uint64_t)(module.mvid - 1) * 16; /* 0, none, lands far outside */
    if (!range_fits(offset, 16, metadata->guids.size))
        return CDACQ_ERR_FORMAT;
    status = metadata_window(metadata, metadata->guids.offset + offset, 16, &p);
    if (status == CDACQ_OK)
        memcpy(ret, p, 16);
    return status;
}

enum cdacq_status metadata_type_ref(const struct metadata *metadata, uint32_t rid, struct metadata_type_ref *ret)
{
    uint32_t row[METADATA_COLUMN_CAP], scope;
    enum cdacq_status status = read_row(metadata, METADATA_TYPE_REF, rid, row);
    if (status != CDACQ_OK)
        return status;
    if (!decode(RESOLUTION_SCOPE, row[TYPE_REF_SCOPE], &scope))
        return CDACQ_ERR_FORMAT;
    *ret = (struct metadata_type_ref){
        .scope = scope, .name = row[TYPE_REF_NAME], .namespace_name = row[TYPE_REF_NAMESPACE]};
    return CDACQ_OK;
}

enum cdacq_status metadata_type_def(const struct metadata *metadata, uint32_t rid, struct metadata_type_def *ret)
{
    uint32_t row[METADATA_COLUMN_CAP], extends;
    enum cdacq_status status = read_row(metadata, METADATA_TYPE_DEF, rid, row);
    if (status != CDACQ_OK)
        return status;
    if (!decode(TYPE_DEF_OR_REF, row[TYPE_DEF_EXTENDS], &extends))
        return CDACQ_ERR_FORMAT;
    *ret = (struct metadata_type_def){.flags = row[TYPE_DEF_FLAGS],
                                      .name = row[TYPE_DEF_NAME],
                                      .namespace_name = row[TYPE_DEF_NAMESPACE],
                                      .extends = extends,
                                      .method_list = row[TYPE_DEF_METHOD_LIST]};
    return CDACQ_OK;
}

enum cdacq_status metadata_method_def(const struct metadata *metadata, uint32_t rid, struct metadata_method_def *ret)
{
    uint32_t row[METADATA_COLUMN_CAP];
    enum cdacq_status status = read_row(metadata, METADATA_METHOD_DEF, rid, row);
    if (status == CDACQ_OK)
        *ret = (struct metadata_method_def){.rva = row[METHOD_DEF_RVA],
                                            .impl_flags = (uint16_t)row[METHOD_DEF_IMPL_FLAGS],
                                            .flags = (uint16_t)row[METHOD_DEF_FLAGS],
                                            .name = row[METHOD_DEF_NAME],
                                            .signature = row[METHOD_DEF_SIGNATURE]};
    return status;
}

enum cdacq_status metadata_member_ref(const struct metadata *metadata, uint32_t rid, struct metadata_member_ref *ret)
{
    uint32_t row[METADATA_COLUMN_CAP], parent;
    enum cdacq_status status = read_row(metadata, METADATA_MEMBER_REF, rid, row);
    if (status != CDACQ_OK)
        return status;
    if (!decode(MEMBER_REF_PARENT, row[MEMBER_REF_PARENT_COLUMN], &parent))
        return CDACQ_ERR_FORMAT;
    *ret = (struct metadata_member_ref){
        .parent = parent, .name = row[MEMBER_REF_NAME], .signature = row[MEMBER_REF_SIGNATURE]};
    return CDACQ_OK;
}

enum cdacq_status metadata_method_spec(const struct metadata *metadata, uint32_t rid, struct metadata_method_spec *ret)
{
    uint32_t row[METADATA_COLUMN_CAP], method;
    enum cdacq_status status = read_row(metadata, METADATA_METHOD_SPEC, rid, row);
    if (status != CDACQ_OK)
        return status;
    if (!decode(METHOD_DEF_OR_REF, row[METHOD_SPEC_METHOD], &method))
        return CDACQ_ERR_FORMAT;
    *ret = (struct metadata_method_spec){.method = method, .instantiation = row[METHOD_SPEC_INSTANTIATION]};
    return CDACQ_OK;
}

enum cdacq_status metadata_generic_param(const struct metadata *metadata, uint32_t rid,
                                         struct metadata_generic_param *ret)
{
    uint32_t row[METADATA_COLUMN_CAP], owner;
    enum cdacq_status status = read_row(metadata, METADATA_GENERIC_PARAM, rid, row);
    if (status != CDACQ_OK)
        return status;
    if (!decode(TYPE_OR_METHOD_DEF, row[GENERIC_PARAM_OWNER], &owner))
        return CDACQ_ERR_FORMAT;
    *ret = (struct metadata_generic_param){.number = (uint16_t)row[GENERIC_PARAM_NUMBER],
                                           .flags = (uint16_t)row[GENERIC_PARAM_FLAGS],
                                           .owner = owner,
                                           .name = row[GENERIC_PARAM_NAME]};
    return CDACQ_OK;
}

enum cdacq_status metadata_assembly_ref(const struct metadata *metadata, uint32_t rid,
                                        struct metadata_assembly_ref *ret)
{
    uint32_t row[METADATA_COLUMN_CAP];
    enum cdacq_status status = read_row(metadata, METADATA_ASSEMBLY_REF, rid, row);
    if (status != CDACQ_OK)
        return status;
    *ret = (struct metadata_assembly_ref){
        .flags = row[ASSEMBLY_REF_FLAGS], .name = row[ASSEMBLY_REF_NAME], .culture = row[ASSEMBLY_REF_CULTURE]};
    for (unsigned i = 0; i < ARRAY_SIZE(ret->version); i++)
        ret->version[i] = (uint16_t)row[i];
    return CDACQ_OK;
}

enum cdacq_status metadata_type_spec(const struct metadata *metadata, uint32_t rid, uint32_t *ret_signature)
{
    return read_cell(metadata, METADATA_TYPE_SPEC, rid, TYPE_SPEC_SIGNATURE, ret_signature);
}

enum cdacq_status metadata_module_ref_name(const struct metadata *metadata, uint32_t rid, uint32_t *ret_name)
{
    return read_cell(metadata, METADATA_MODULE_REF, rid, MODULE_REF_NAME, ret_name);
}

enum cdacq_status metadata_assembly_name(const struct metadata *metadata, uint32_t *ret_name)
{
    if (!metadata_row_count(metadata, METADATA_ASSEMBLY)) {
        *ret_name = 0;
        return CDACQ_OK;
    }
    return read_cell(metadata, METADATA_ASSEMBLY, 1, ASSEMBLY_NAME, ret_name);
}

/* ---- Heaps ---- */

/*
 * At least one byte of [offset, offset + *count), as many as the source has together: what lies behind may be missing
 * without being needed. Sets *count to how many.
 */
static enum cdacq_status heap_window(const struct metadata *metadata, const struct metadata_heap *heap, uint32_t offset,
                                     size_t *count, const uint8_t **ret)
{
    if (offset >= heap->size)
        return CDACQ_ERR_FORMAT;
    size_t n = MIN(*count, (size_t)(heap->size - offset));
    enum cdacq_status status = metadata_window(metadata, heap->offset + offset, n, ret);
    while (status == CDACQ_ERR_MEMORY && n > 1) {
        n /= 2;
        status = metadata_window(metadata, heap->offset + offset, n, ret);
    }
    *count = n;
    return status;
}

/* The string at `index` where it did not end in its first window. */
static enum cdacq_status read_long_string(const struct metadata *metadata, uint32_t index, char *buffer,
                                          size_t *ret_length)
{
    for (size_t length = 0; length < METADATA_STRING_CAP;) {
        size_t count = MIN((size_t)WINDOW_CAP, METADATA_STRING_CAP - length);
        const uint8_t *p;
        enum cdacq_status status = heap_window(metadata, &metadata->strings, index + (uint32_t)length, &count, &p);
        if (status != CDACQ_OK)
            return status;
        const uint8_t *nul = memchr(p, '\0', count);
        size_t n = nul ? (size_t)(nul - p) : count;
        memcpy(buffer + length, p, n);
        length += n;
        if (nul) {
            *ret_length = length;
            return CDACQ_OK;
        }
    }
    return CDACQ_ERR_FORMAT;
}

enum cdacq_status metadata_string(const struct metadata *metadata, uint32_t index, char buffer[METADATA_STRING_CAP],
                                  const char **ret, size_t *ret_length)
{
    size_t count = STRING_WINDOW, length = 0;
    const uint8_t *p;
    if (index == 0) { /* the empty string, even of a heap that is not there */
        *ret = "";
        *ret_length = 0;
        return CDACQ_OK;
    }
    enum cdacq_status status = heap_window(metadata, &metadata->strings, index, &count, &p);
    if (status != CDACQ_OK)
        return status;
    const uint8_t *nul = memchr(p, '\0', count);
    if (nul) {
        *ret = (const char *)p;
        *ret_length = (size_t)(nul - p);
        return CDACQ_OK;
    }
    status = read_long_string(metadata, index, buffer, &length);
    if (status == CDACQ_OK) {
        *ret = buffer;
        *ret_length = length;
    }
    return status;
}

enum cdacq_status metadata_string_equals(const struct metadata *metadata, uint32_t index, const char *string,
                                         size_t length, bool *ret)
{
    char buffer[METADATA_STRING_CAP];
    const char *found;
    size_t found_length;
    enum cdacq_status status = metadata_string(metadata, index, buffer, &found, &found_length);
    if (status == CDACQ_OK)
        *ret = found_length == length && memcmp(found, string, length) == 0;
    return status;
}

/* The compressed length at `index` of #Blob (II.24.2.4); *ret_offset is where the bytes begin. */
static enum cdacq_status read_blob_length(const struct metadata *metadata, uint32_t index, uint32_t *ret_offset,
                                          uint32_t *ret_length)
{
    size_t count = 4;
    const uint8_t *p;
    enum cdacq_status status = heap_window(metadata, &metadata->blobs, index, &count, &p);
    if (status != CDACQ_OK)
        return status;
    size_t width = p[0] < 0x80 ? 1 : p[0] < 0xc0 ? 2 : p[0] < 0xe0 ? 4 : 0;
    if (!width || width > metadata->blobs.size - index)
        return CDACQ_ERR_FORMAT;
    if (width > count)
        return CDACQ_ERR_MEMORY;
    *ret_length = width == 1   ? p[0]
                  : width == 2 ? (p[0] & 0x3fu) << 8 | p[1]
                               : (p[0] & 0x1fu) << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    *ret_offset = index + (uint32_t)width;
    return CDACQ_OK;
}

static enum cdacq_status copy_blob(const struct metadata *metadata, uint64_t offset, size_t length, uint8_t *to)
{
    for (size_t done = 0; done < length;) {
        size_t count = MIN((size_t)WINDOW_CAP, length - done);
        const uint8_t *p;
        enum cdacq_status status = metadata_window(metadata, offset + done, count, &p);
        if (status != CDACQ_OK)
            return status;
        memcpy(to + done, p, count);
        done += count;
    }
    return CDACQ_OK;
}

enum cdacq_status metadata_blob_read(const struct metadata *metadata, uint32_t index, struct metadata_blob *ret)
{
    CLEANUP_FREE uint8_t *allocated = NULL;
    uint32_t offset = 0, length = 0;
    if (index != 0) {
        enum cdacq_status status = read_blob_length(metadata, index, &offset, &length);
        if (status != CDACQ_OK)
            return status;
    }
    if (length > METADATA_BLOB_CAP || !range_fits(offset, length, MAX(metadata->blobs.size, offset)))
        return CDACQ_ERR_FORMAT;
    if (length > sizeof ret->small) {
        allocated = malloc(length);
        if (!allocated)
            return CDACQ_ERR_NOMEM;
    }
    uint8_t *data = allocated ? allocated : ret->small;
    enum cdacq_status status = copy_blob(metadata, metadata->blobs.offset + offset, length, data);
    if (status != CDACQ_OK)
        return status;
    ret->data = data;
    ret->length = length;
    ret->allocated = take_ptr(allocated);
    return CDACQ_OK;
}

void metadata_blob_deinit(struct metadata_blob *blob)
{
    if (!blob)
        return;
    free(blob->allocated);
    blob->allocated = NULL;
}

/* ---- Searches ---- */

static bool is_sorted(const struct metadata *metadata, enum metadata_table table)
{
    return !metadata->uncompressed || metadata->sorted >> table & 1;
}

uint32_t metadata_search_cost(const struct metadata *metadata, enum metadata_table table)
{
    return is_sorted(metadata, table) ? 1 : metadata->tables[table].rows;
}

/* The first row whose cell is not less than `key`, one past the last row where there is none. The column is sorted. */
static enum cdacq_status lower_bound(const struct metadata *metadata, enum metadata_table table, unsigned column,
                                     uint32_t key, uint32_t *ret)
{
    uint32_t low = 1, high = metadata->tables[table].rows + 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2, cell;
        enum cdacq_status status = read_cell(metadata, table, middle, column, &cell);
        if (UNLIKELY(status != CDACQ_OK))
            return status;
        if (cell < key)
            low = middle + 1;
        else
            high = middle;
    }
    *ret = low;
    return CDACQ_OK;
}

/* The first row at or behind `from` whose cell is `key`, 0 where there is none: for tables that are not sorted. */
static enum cdacq_status scan(const struct metadata *metadata, enum metadata_table table, unsigned column,
                              uint32_t from, uint32_t key, uint32_t *ret)
{
    uint32_t rows = metadata->tables[table].rows;
    if (rows > METADATA_SCAN_CAP)
        return CDACQ_ERR_FUEL;
    for (uint32_t rid = from; rid <= rows; rid++) {
        uint32_t cell;
        enum cdacq_status status = read_cell(metadata, table, rid, column, &cell);
        if (status != CDACQ_OK)
            return status;
        if (cell == key) {
            *ret = rid;
            return CDACQ_OK;
        }
    }
    *ret = 0;
    return CDACQ_OK;
}

/* A row whose cell is `key`, 0 where there is none. */
static enum cdacq_status find_row(const struct metadata *metadata, enum metadata_table table, unsigned column,
                                  uint32_t key, uint32_t *ret)
{
    uint32_t rid, cell;
    if (!is_sorted(metadata, table))
        return scan(metadata, table, column, 1, key, ret);
    enum cdacq_status status = lower_bound(metadata, table, column, key, &rid);
    if (status != CDACQ_OK)
        return status;
    if (rid > metadata->tables[table].rows) {
        *ret = 0;
        return CDACQ_OK;
    }
    status = read_cell(metadata, table, rid, column, &cell);
    if (status == CDACQ_OK)
        *ret = cell == key ? rid : 0;
    return status;
}

enum cdacq_status metadata_enclosing(const struct metadata *metadata, uint32_t type, uint32_t *ret_type)
{
    uint32_t rid, enclosing = 0;
    enum cdacq_status status = find_row(metadata, METADATA_NESTED_CLASS, NESTED_CLASS_NESTED, type, &rid);
    if (status == CDACQ_OK && rid)
        status = read_cell(metadata, METADATA_NESTED_CLASS, rid, NESTED_CLASS_ENCLOSING, &enclosing);
    if (status == CDACQ_OK)
        *ret_type = enclosing;
    return status;
}

/* How many elements the method lists of all types have together. */
static uint32_t method_list_length(const struct metadata *metadata)
{
    return MAX(metadata->tables[METADATA_METHOD_PTR].rows, metadata->tables[METADATA_METHOD_DEF].rows);
}

/* The reverse of metadata_method_at. Most often the two are the same, so that is looked at first. */
static enum cdacq_status find_method_element(const struct metadata *metadata, uint32_t method, uint32_t *ret)
{
    uint32_t rows = metadata->tables[METADATA_METHOD_PTR].rows, cell, element = method;
    enum cdacq_status status = CDACQ_OK;
    if (method - 1 >= metadata->tables[METADATA_METHOD_DEF].rows)
        return CDACQ_ERR_FORMAT;
    if (rows) {
        cell = 0;
        if (method <= rows)
            status = read_cell(metadata, METADATA_METHOD_PTR, method, METHOD_PTR_METHOD, &cell);
        if (status == CDACQ_OK && cell != method)
            status = scan(metadata, METADATA_METHOD_PTR, METHOD_PTR_METHOD, 1, method, &element);
    }
    if (status == CDACQ_OK && !element)
        status = CDACQ_ERR_FORMAT;
    if (status == CDACQ_OK)
        *ret = element;
    return status;
}

enum cdacq_status metadata_method_at(const struct metadata *metadata, uint32_t element, uint32_t *ret_method)
{
    uint32_t method = element;
    if (metadata->tables[METADATA_METHOD_PTR].rows) {
        enum cdacq_status status = read_cell(metadata, METADATA_METHOD_PTR, element, METHOD_PTR_METHOD, &method);
        if (status != CDACQ_OK)
            return status;
    }
    if (method - 1 >= metadata->tables[METADATA_METHOD_DEF].rows)
        return CDACQ_ERR_FORMAT;
    *ret_method = method;
    return CDACQ_OK;
}

enum cdacq_status metadata_methods(const struct metadata *metadata, uint32_t type, uint32_t *ret_begin,
                                   uint32_t *ret_end)
{
    uint32_t begin, end = method_list_length(metadata) + 1, limit = end;
    enum cdacq_status status = read_cell(metadata, METADATA_TYPE_DEF, type, TYPE_DEF_METHOD_LIST, &begin);
    if (status == CDACQ_OK && type < metadata->tables[METADATA_TYPE_DEF].rows)
        status = read_cell(metadata, METADATA_TYPE_DEF, type + 1, TYPE_DEF_METHOD_LIST, &end);
    if (status != CDACQ_OK)
        return status;
    if (begin == 0 || begin > end || end > limit)
        return CDACQ_ERR_FORMAT;
    *ret_begin = begin;
    *ret_end = end;
    return CDACQ_OK;
}

/* For method lists that do not ascend, which a `#-` stream under construction may have: looks at every type. */
static enum cdacq_status scan_method_owner(const struct metadata *metadata, uint32_t element, uint32_t *ret)
{
    uint32_t rows = metadata->tables[METADATA_TYPE_DEF].rows;
    if (rows > METADATA_SCAN_CAP)
        return CDACQ_ERR_FUEL;
    for (uint32_t type = 1; type <= rows; type++) {
        uint32_t begin, end;
        enum cdacq_status status = metadata_methods(metadata, type, &begin, &end);
        if (status == CDACQ_ERR_FORMAT)
            continue;
        if (status != CDACQ_OK)
            return status;
        if (element >= begin && element < end) {
            *ret = type;
            return CDACQ_OK;
        }
    }
    return CDACQ_ERR_FORMAT;
}

enum cdacq_status metadata_method_owner(const struct metadata *metadata, uint32_t method, uint32_t *ret_type)
{
    uint32_t element, behind, begin, end;
    enum cdacq_status status = find_method_element(metadata, method, &element);
    if (status == CDACQ_OK)
        status = lower_bound(metadata, METADATA_TYPE_DEF, TYPE_DEF_METHOD_LIST, element + 1, &behind);
    if (status != CDACQ_OK)
        return status;
    uint32_t type = behind - 1; /* the last type whose list does not begin behind the element */
    status = type ? metadata_methods(metadata, type, &begin, &end) : CDACQ_ERR_FORMAT;
    if (status == CDACQ_OK && (element < begin || element >= end))
        status = CDACQ_ERR_FORMAT;
    if (status == CDACQ_ERR_FORMAT && metadata->uncompressed)
        return scan_method_owner(metadata, element, ret_type);
    if (status == CDACQ_OK)
        *ret_type = type;
    return status;
}

static enum cdacq_status count_scattered_generics(const struct metadata *metadata, uint32_t owner, uint32_t *ret)
{
    uint32_t count = 0;
    for (uint32_t rid = 0;; count++) {
        enum cdacq_status status = scan(metadata, METADATA_GENERIC_PARAM, GENERIC_PARAM_OWNER, rid + 1, owner, &rid);
        if (status != CDACQ_OK)
            return status;
        if (!rid)
            break;
    }
    *ret = count;
    return CDACQ_OK;
}

enum cdacq_status metadata_generics(const struct metadata *metadata, uint32_t owner_token,
                                    struct metadata_generics *ret)
{
    struct metadata_generics generics = {0};
    bool of_method = metadata_token_table(owner_token) == METADATA_METHOD_DEF;
    generics.owner = metadata_rid(owner_token) << 1 | of_method;
    if (!is_sorted(metadata, METADATA_GENERIC_PARAM)) {
        enum cdacq_status status = count_scattered_generics(metadata, generics.owner, &generics.count);
        if (status == CDACQ_OK)
            *ret = generics;
        return status;
    }
    uint32_t rows = metadata->tables[METADATA_GENERIC_PARAM].rows, cell = 0, behind;
    enum cdacq_status status =
        lower_bound(metadata, METADATA_GENERIC_PARAM, GENERIC_PARAM_OWNER, generics.owner, &generics.first);
    if (status == CDACQ_OK && generics.first <= rows)
        status = read_cell(metadata, METADATA_GENERIC_PARAM, generics.first, GENERIC_PARAM_OWNER, &cell);
    if (status == CDACQ_OK && cell == generics.owner) { /* most have none, and are spared the second search */
        status = lower_bound(metadata, METADATA_GENERIC_PARAM, GENERIC_PARAM_OWNER, generics.owner + 1, &behind);
        if (status == CDACQ_OK)
            generics.count = behind - generics.first;
    }
    if (status == CDACQ_OK)
        *ret = generics;
    return status;
}

static enum cdacq_status find_scattered_generic(const struct metadata *metadata, uint32_t owner, uint32_t number,
                                                uint32_t *ret)
{
    for (uint32_t rid = 0;;) {
        uint32_t cell;
        enum cdacq_status status = scan(metadata, METADATA_GENERIC_PARAM, GENERIC_PARAM_OWNER, rid + 1, owner, &rid);
        if (status == CDACQ_OK && rid)
            status = read_cell(metadata, METADATA_GENERIC_PARAM, rid, GENERIC_PARAM_NUMBER, &cell);
        if (status != CDACQ_OK)
            return status;
        if (!rid || cell == number) {
            *ret = rid;
            return CDACQ_OK;
        }
    }
}

enum cdacq_status metadata_generics_at(const struct metadata *metadata, const struct metadata_generics *generics,
                                       uint32_t number, uint32_t *ret_rid)
{
    uint32_t cell, rid = 0;
    if (number < generics->count && !generics->first)
        return find_scattered_generic(metadata, generics->owner, number, ret_rid);
    if (number < generics->count) { /* sorted by owner, then by number (II.22.20) */
        rid = generics->first + number;
        enum cdacq_status status = read_cell(metadata, METADATA_GENERIC_PARAM, rid, GENERIC_PARAM_NUMBER, &cell);
        if (status != CDACQ_OK)
            return status;
        if (cell != number)
            rid = 0;
    }
    *ret_rid = rid;
    return CDACQ_OK;
}

static enum cdacq_status is_named_type(const struct metadata *metadata, uint32_t rid, const char *namespace_name,
                                       const char *name, uint32_t enclosing, bool *ret)
{
    struct metadata_type_def type;
    uint32_t found;
    bool equal = false;
    enum cdacq_status status = metadata_type_def(metadata, rid, &type);
    if (status == CDACQ_OK)
        status = metadata_string_equals(metadata, type.name, name, strlen(name), &equal);
    if (status == CDACQ_OK && equal)
        status = metadata_string_equals(metadata, type.namespace_name, namespace_name, strlen(namespace_name), &equal);
    if (status == CDACQ_OK && equal) {
        status = metadata_enclosing(metadata, rid, &found);
        equal = status == CDACQ_OK && found == enclosing;
    }
    if (status == CDACQ_OK)
        *ret = equal;
    return status;
}

enum cdacq_status metadata_find_type(const struct metadata *metadata, const char *namespace_name, const char *name,
                                     uint32_t enclosing, uint32_t *ret_type)
{
    uint32_t rows = metadata->tables[METADATA_TYPE_DEF].rows;
    if (rows > METADATA_SCAN_CAP)
        return CDACQ_ERR_FUEL;
    for (uint32_t rid = 1; rid <= rows; rid++) {
        bool found;
        enum cdacq_status status = is_named_type(metadata, rid, namespace_name, name, enclosing, &found);
        if (status != CDACQ_OK)
            return status;
        if (found) {
            *ret_type = rid;
            return CDACQ_OK;
        }
    }
    *ret_type = 0;
    return CDACQ_OK;
}

static enum cdacq_status is_named_method(const struct metadata *metadata, uint32_t rid, const char *name,
                                         const void *signature, size_t signature_length, bool *ret)
{
    CLEANUP_METADATA_BLOB struct metadata_blob blob;
    struct metadata_method_def method;
    bool equal;
    blob.allocated = NULL;
    enum cdacq_status status = metadata_method_def(metadata, rid, &method);
    if (status == CDACQ_OK)
        status = metadata_string_equals(metadata, method.name, name, strlen(name), &equal);
    if (status == CDACQ_OK && equal && signature) {
        status = metadata_blob_read(metadata, method.signature, &blob);
        equal = status == CDACQ_OK && blob.length == signature_length &&
                memcmp(blob.data, signature, signature_length) == 0;
    }
    if (status == CDACQ_OK)
        *ret = equal;
    return status;
}

enum cdacq_status metadata_find_method(const struct metadata *metadata, uint32_t type, const char *name,
                                       const void *signature, size_t signature_length, uint32_t *ret_method)
{
    uint32_t element, end;
    enum cdacq_status status = metadata_methods(metadata, type, &element, &end);
    if (status != CDACQ_OK)
        return status;
    if (end - element > METADATA_SCAN_CAP)
        return CDACQ_ERR_FUEL;
    for (; element < end; element++) {
        uint32_t rid;
        bool found = false;
        status = metadata_method_at(metadata, element, &rid);
        if (status == CDACQ_OK)
            status = is_named_method(metadata, rid, name, signature, signature_length, &found);
        if (status != CDACQ_OK)
            return status;
        if (found) {
            *ret_method = rid;
            return CDACQ_OK;
        }
    }
    *ret_method = 0;
    return CDACQ_OK;
}
