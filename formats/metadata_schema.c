/* The columns of every table and the tables of every coded index. */
#include "formats/metadata_schema.h"

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
    HAS_CUSTOM_DEBUG_INFORMATION,
};

enum { NO_TABLE = 0xff };

/* Which tables a coded index chooses from, by tag (II.24.2.6). */
static const struct coded_schema {
    uint8_t tag_bits, tag_count;
    uint8_t tables[27];
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
    [HAS_CUSTOM_DEBUG_INFORMATION] =
        {5, 27, {METADATA_METHOD_DEF,        METADATA_FIELD,          METADATA_TYPE_REF,
                 METADATA_TYPE_DEF,          METADATA_PARAM,          METADATA_INTERFACE_IMPL,
                 METADATA_MEMBER_REF,        METADATA_MODULE,         METADATA_DECL_SECURITY,
                 METADATA_PROPERTY,          METADATA_EVENT,          METADATA_STAND_ALONE_SIG,
                 METADATA_MODULE_REF,        METADATA_TYPE_SPEC,      METADATA_ASSEMBLY,
                 METADATA_ASSEMBLY_REF,      METADATA_FILE,           METADATA_EXPORTED_TYPE,
                 METADATA_MANIFEST_RESOURCE, METADATA_GENERIC_PARAM,  METADATA_GENERIC_PARAM_CONSTRAINT,
                 METADATA_METHOD_SPEC,       METADATA_DOCUMENT,       METADATA_LOCAL_SCOPE,
                 METADATA_LOCAL_VARIABLE,    METADATA_LOCAL_CONSTANT, METADATA_IMPORT_SCOPE}},
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
    [METADATA_DOCUMENT] = {BLOB, GUID, BLOB, GUID},
    [METADATA_METHOD_DEBUG_INFORMATION] = {T(DOCUMENT), BLOB},
    [METADATA_LOCAL_SCOPE] = {T(METHOD_DEF), T(IMPORT_SCOPE), T(LOCAL_VARIABLE), T(LOCAL_CONSTANT), U4, U4},
    [METADATA_LOCAL_VARIABLE] = {U2, U2, STRING},
    [METADATA_LOCAL_CONSTANT] = {STRING, BLOB},
    [METADATA_IMPORT_SCOPE] = {T(IMPORT_SCOPE), BLOB},
    [METADATA_STATE_MACHINE_METHOD] = {T(METHOD_DEF), T(METHOD_DEF)},
    [METADATA_CUSTOM_DEBUG_INFORMATION] = {C(HAS_CUSTOM_DEBUG_INFORMATION), GUID, BLOB},
};

#undef T
#undef C

static bool is_wide_index(const uint32_t *all_rows, uint8_t kind, uint8_t heap_sizes, bool minimal)
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
        rows = all_rows[table];
        if (indirect[table])
            rows = MAX(rows, all_rows[indirect[table]]);
    } else {
        const struct coded_schema *coded = &coded_schemas[kind - CODED];
        tag_bits = coded->tag_bits;
        for (unsigned i = 0; i < coded->tag_count; i++)
            if (coded->tables[i] != NO_TABLE)
                rows = MAX(rows, all_rows[coded->tables[i]]);
    }
    return minimal || rows >> (16 - tag_bits) != 0;
}

void metadata_lay_out_columns(struct metadata *metadata, const struct metadata_referenced_rows *referenced,
                              uint8_t heap_sizes, bool minimal)
{
    uint32_t rows[METADATA_TABLE_COUNT];
    for (unsigned table = 0; table < METADATA_TABLE_COUNT; table++)
        rows[table] = MAX(metadata->tables[table].rows, referenced->rows[table]);
    for (unsigned table = 0; table < METADATA_TABLE_COUNT; table++) {
        struct metadata_table_layout *layout = &metadata->tables[table];
        uint8_t size = 0;
        for (unsigned i = 0; i < METADATA_COLUMN_CAP && schema[table][i] != NONE; i++) {
            uint8_t kind = schema[table][i];
            bool wide = kind == U4 || (kind != U2 && is_wide_index(rows, kind, heap_sizes, minimal));
            layout->column_offset[i] = size;
            layout->column_width[i] = wide ? 4 : 2;
            size += layout->column_width[i];
        }
        layout->row_size = size;
    }
}

bool metadata_resolve_cell(enum metadata_table table, unsigned column, uint32_t *value)
{
    if (schema[table][column] < CODED)
        return true;
    const struct coded_schema *coded = &coded_schemas[schema[table][column] - CODED];
    uint32_t tag = *value & ((1u << coded->tag_bits) - 1), rid = *value >> coded->tag_bits;
    if (tag >= coded->tag_count || coded->tables[tag] == NO_TABLE || rid > METADATA_ROW_COUNT_CAP)
        return false;
    *value = metadata_token(coded->tables[tag], rid);
    return true;
}

bool metadata_encode_cell(enum metadata_table table, unsigned column, uint32_t token, uint32_t *ret)
{
    const struct coded_schema *coded = &coded_schemas[schema[table][column] - CODED];
    for (uint32_t tag = 0; tag < coded->tag_count; tag++)
        if (coded->tables[tag] == metadata_token_table(token)) {
            *ret = metadata_rid(token) << coded->tag_bits | tag;
            return true;
        }
    return false;
}
