#include "contracts/objects/field.h"

#include "contracts/native_aot/aot_name.h"
#include "contracts/objects/object.h"
#include "contracts/type_system/type_handle.h"
#include "formats/metadata_members.h"
#include "formats/names/signature.h"

/* FieldDesc.DWord1 and DWord2. */
enum {
    FIELD_TOKEN_MASK = 0xffffff,
    FIELD_IS_STATIC = 1 << 24,
    FIELD_IS_THREAD_STATIC = 1 << 25,
    FIELD_IS_IN_IMAGE = 1 << 26,
    FIELD_OFFSET_MASK = 0x7ffffff,
    FIELD_OFFSET_BITS = 27,
    FIELD_OFFSET_LAST = FIELD_OFFSET_MASK - 6, /* greater ones are marks, as of fields that edit-and-continue added */
    CANONICAL_TAG = 1,                         /* of EEClassOrCanonMT */
    FIELD_COUNT_MAX = 64 * 1024,               /* of a type, and of an object */
};

uint64_t method_table_parent(struct reader *reader, uint64_t method_table)
{
    if (!has_field(reader, F_MethodTable_RelatedType))
        return read_field(reader, method_table, F_MethodTable_ParentMethodTable);
    return method_table_is_array(reader, method_table) ? 0
                                                       : read_field(reader, method_table, F_MethodTable_RelatedType);
}

static uint64_t ee_class(struct reader *reader, uint64_t method_table)
{
    uint64_t value = read_field(reader, method_table, F_MethodTable_EEClassOrCanonMT);
    if (value & CANONICAL_TAG)
        value = read_field(reader, value & ~(uint64_t)CANONICAL_TAG, F_MethodTable_EEClassOrCanonMT);
    if (value & CANONICAL_TAG)
        reader_fail(reader, CDACQ_ERR_CORRUPT, method_table, "MethodTable.EEClassOrCanonMT");
    return value;
}

/* The row of a field by its name, 0 if there is none; *ret_count is the number of FieldDescs that the type has. */
static enum cdacq_status find_row(struct module_cache *cache, const struct metadata *metadata, uint32_t type,
                                  const char *name, uint32_t *ret_rid, uint32_t *ret_count)
{
    uint32_t begin, end;
    enum cdacq_status status = metadata_fields(metadata, type, &begin, &end);
    *ret_rid = *ret_count = 0;
    if (status == CDACQ_OK && end - begin > FIELD_COUNT_MAX)
        return CDACQ_ERR_CORRUPT;
    for (uint32_t rid = begin; status == CDACQ_OK && rid < end; rid++) {
        struct metadata_field field;
        bool equal = false;
        if (!reader_step(cache->reader, "the fields of a type"))
            return CDACQ_ERR_FUEL;
        status = metadata_field(metadata, rid, &field);
        if (status != CDACQ_OK || field.flags & FIELD_FLAG_LITERAL)
            continue;
        ++*ret_count;
        status = metadata_string_equals(metadata, field.name, name, strlen(name), &equal);
        if (status == CDACQ_OK && equal && !*ret_rid)
            *ret_rid = rid;
    }
    return status;
}

static bool read_desc(struct reader *reader, uint64_t method_table, uint64_t desc, struct object_field *ret)
{
    uint32_t first = (uint32_t)read_field(reader, desc, F_FieldDesc_DWord1);
    uint32_t second = (uint32_t)read_field(reader, desc, F_FieldDesc_DWord2);
    *ret = (struct object_field){.owner = method_table,
                                 .token = metadata_token(METADATA_FIELD, first & FIELD_TOKEN_MASK),
                                 .offset = second & FIELD_OFFSET_MASK,
                                 .element = (uint8_t)(second >> FIELD_OFFSET_BITS),
                                 .is_static = first & FIELD_IS_STATIC,
                                 .is_thread_static = first & FIELD_IS_THREAD_STATIC,
                                 .is_in_image = first & FIELD_IS_IN_IMAGE};
    return !reader_failed(reader);
}

static bool find_desc(struct reader *reader, uint64_t method_table, uint32_t rid, uint32_t count,
                      struct object_field *ret)
{
    uint64_t desc = read_field(reader, ee_class(reader, method_table), F_EEClass_FieldDescList);
    for (uint32_t i = 0; i < count && reader_step(reader, "the FieldDescs of a type"); i++) {
        if (!read_desc(reader, method_table, desc, ret))
            return false;
        if (metadata_rid(ret->token) == rid)
            return ret->offset <= FIELD_OFFSET_LAST;
        desc += reader->layout->sizes[T_FieldDesc];
    }
    return false;
}

/* The fields of a type that are no constants: rids [begin, end), and how many of these have a FieldDesc. */
static enum cdacq_status count_rows(struct module_cache *cache, const struct metadata *metadata, uint32_t type,
                                    uint32_t *ret_begin, uint32_t *ret_end, uint32_t *ret_count)
{
    enum cdacq_status status = metadata_fields(metadata, type, ret_begin, ret_end);
    *ret_count = 0;
    if (status == CDACQ_OK && *ret_end - *ret_begin > FIELD_COUNT_MAX)
        return CDACQ_ERR_CORRUPT;
    for (uint32_t rid = *ret_begin; status == CDACQ_OK && rid < *ret_end; rid++) {
        struct metadata_field field;
        if (!reader_step(cache->reader, "the fields of a type"))
            return CDACQ_ERR_FUEL;
        status = metadata_field(metadata, rid, &field);
        *ret_count += status == CDACQ_OK && !(field.flags & FIELD_FLAG_LITERAL);
    }
    return status;
}

/* Appends the instance or the static fields that a type itself declares, in the order of the metadata. */
static bool append_declared(struct module_cache *cache, uint64_t method_table, bool of_statics,
                            struct object_fields *ret)
{
    struct reader *reader = cache->reader;
    const struct metadata *metadata;
    uint32_t token, begin, end, count;
    enum cdacq_status status = type_handle_definition(cache, method_table, &metadata, &token);
    if (status == CDACQ_OK)
        status = count_rows(cache, metadata, metadata_rid(token), &begin, &end, &count);
    if (status != CDACQ_OK)
        return reader_fail(reader, status, method_table, "the fields of a type");
    uint64_t desc = count ? read_field(reader, ee_class(reader, method_table), F_EEClass_FieldDescList) : 0;
    for (uint32_t i = 0; i < count && reader_step(reader, "the FieldDescs of a type"); i++) {
        struct object_field field;
        if (!read_desc(reader, method_table, desc, &field))
            return false;
        uint32_t rid = metadata_rid(field.token);
        if (rid < begin || rid >= end)
            return reader_fail(reader, CDACQ_ERR_CORRUPT, desc, "FieldDesc.DWord1");
        if (field.is_static == of_statics && field.offset <= FIELD_OFFSET_LAST && !object_fields_append(ret, field))
            return reader_fail(reader, CDACQ_ERR_NOMEM, 0, "the fields of a type");
        if (ret->count > FIELD_COUNT_MAX)
            return reader_fail(reader, CDACQ_ERR_CORRUPT, method_table, "the fields of a type");
        desc += reader->layout->sizes[T_FieldDesc];
    }
    return !reader_failed(reader);
}

bool object_fields_read(struct module_cache *cache, uint64_t method_table, struct object_fields *ret)
{
    struct reader *reader = cache->reader;
    uint64_t types[HIERARCHY_MAX];
    unsigned count = 0;
    if (cache->aot || !has_field(reader, F_FieldDesc_DWord1) || !has_field(reader, F_FieldDesc_DWord2))
        return field_missing(reader, F_FieldDesc_DWord1);
    for (; method_table && reader_step(reader, "base types");
         method_table = method_table_parent(reader, method_table)) {
        if (count == HIERARCHY_MAX)
            return reader_fail(reader, CDACQ_ERR_CORRUPT, types[0], "the base types of a type");
        types[count++] = method_table;
    }
    while (count && !reader_failed(reader))
        if (!append_declared(cache, types[--count], false, ret))
            return false;
    return !reader_failed(reader);
}

bool object_statics_read(struct module_cache *cache, uint64_t method_table, struct object_fields *ret)
{
    if (cache->aot || !has_field(cache->reader, F_FieldDesc_DWord1) || !has_field(cache->reader, F_FieldDesc_DWord2))
        return field_missing(cache->reader, F_FieldDesc_DWord1);
    return append_declared(cache, method_table, true, ret);
}

bool object_field_name(struct module_cache *cache, const struct object_field *field, struct text *ret)
{
    char buffer[METADATA_STRING_CAP];
    const struct metadata *metadata;
    struct metadata_field row;
    const char *name;
    size_t length;
    uint32_t type;
    if (type_handle_definition(cache, field->owner, &metadata, &type) != CDACQ_OK ||
        metadata_field(metadata, metadata_rid(field->token), &row) != CDACQ_OK ||
        metadata_string(metadata, row.name, buffer, &name, &length) != CDACQ_OK)
        return false;
    text_escape(ret, name, length);
    return !ret->broken;
}

/* The element type of a number that the descriptor describes. */
static uint8_t element_of_width(unsigned width)
{
    return width == 1   ? ELEMENT_U1
           : width == 2 ? ELEMENT_U2
           : width == 4 ? ELEMENT_U4
           : width      ? ELEMENT_U8
                        : ELEMENT_CLASS;
}

/* A field that the descriptor has by its name: NativeAOT keeps no FieldDescs. */
static bool find_published(struct module_cache *cache, uint64_t method_table, const char *name,
                           struct object_field *ret)
{
    struct reader *reader = cache->reader;
    struct managed_field field;
    struct text type = {0};
    enum cdacq_status status = aot_name_type(cache->aot, reader, method_table, &type);
    bool found = status == CDACQ_OK && layout_managed_field(reader->layout, type.data, name, &field) &&
                 field.offset >= reader->pointer_size;
    text_deinit(&type);
    if (found)
        *ret = (struct object_field){.owner = method_table,
                                     .offset = field.offset - reader->pointer_size,
                                     .element = element_of_width(field.width)};
    return found;
}

bool object_field_declared(struct module_cache *cache, uint64_t method_table, const char *name,
                           struct object_field *ret)
{
    struct reader *reader = cache->reader;
    const struct metadata *metadata;
    uint32_t token, rid, count;
    if (cache->aot)
        return find_published(cache, method_table, name, ret);
    if (!has_field(reader, F_FieldDesc_DWord1) || !has_field(reader, F_FieldDesc_DWord2))
        return field_missing(reader, F_FieldDesc_DWord1);
    enum cdacq_status status = type_handle_definition(cache, method_table, &metadata, &token);
    if (status == CDACQ_OK)
        status = find_row(cache, metadata, metadata_rid(token), name, &rid, &count);
    if (status != CDACQ_OK)
        return reader_fail(reader, status, method_table, "the fields of a type");
    return rid && find_desc(reader, method_table, rid, count, ret);
}

bool object_field_find(struct module_cache *cache, uint64_t method_table, const char *name, struct object_field *ret)
{
    struct reader *reader = cache->reader;
    for (unsigned i = 0; method_table && i < HIERARCHY_MAX && reader_step(reader, "base types"); i++) {
        if (object_field_declared(cache, method_table, name, ret))
            return true;
        method_table = method_table_parent(cache->reader, method_table);
    }
    return false;
}

uint64_t object_field_address(const struct reader *reader, uint64_t object, const struct object_field *field)
{
    return object + reader->pointer_size + field->offset;
}

bool object_reference(struct module_cache *cache, uint64_t object, const char *name, uint64_t *ret)
{
    struct object_field field;
    uint64_t method_table = object_method_table(cache->reader, object);
    if (reader_failed(cache->reader) || !object_field_find(cache, method_table, name, &field) || field.is_static ||
        field.element != ELEMENT_CLASS)
        return false;
    *ret = read_pointer(cache->reader, object_field_address(cache->reader, object, &field));
    return !reader_failed(cache->reader);
}

uint8_t boxed_element(struct module_cache *cache, uint64_t method_table)
{
    static const struct {
        const char *name;
        uint8_t element;
    } rows[] = {
        {"Boolean", ELEMENT_BOOLEAN}, {"SByte", ELEMENT_I1},  {"Byte", ELEMENT_U1},       {"Int16", ELEMENT_I2},
        {"UInt16", ELEMENT_U2},       {"Int32", ELEMENT_I4},  {"UInt32", ELEMENT_U4},     {"Int64", ELEMENT_I8},
        {"UInt64", ELEMENT_U8},       {"IntPtr", ELEMENT_I},  {"UIntPtr", ELEMENT_U},     {"Single", ELEMENT_R4},
        {"Double", ELEMENT_R8},       {"Char", ELEMENT_CHAR}, {"String", ELEMENT_STRING},
    };
    const struct metadata *metadata;
    struct metadata_type_def type;
    bool equal;
    uint32_t token;
    if (type_handle_definition(cache, method_table, &metadata, &token) != CDACQ_OK ||
        metadata_type_def(metadata, metadata_rid(token), &type) != CDACQ_OK ||
        metadata_string_equals(metadata, type.namespace_name, "System", 6, &equal) != CDACQ_OK || !equal)
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (metadata_string_equals(metadata, type.name, rows[i].name, strlen(rows[i].name), &equal) == CDACQ_OK &&
            equal)
            return rows[i].element;
    return 0;
}

unsigned element_width(uint8_t element, unsigned pointer_size)
{
    static const uint8_t widths[] = {
        [ELEMENT_BOOLEAN] = 1, [ELEMENT_CHAR] = 2, [ELEMENT_I1] = 1, [ELEMENT_U1] = 1,
        [ELEMENT_I2] = 2,      [ELEMENT_U2] = 2,   [ELEMENT_I4] = 4, [ELEMENT_U4] = 4,
        [ELEMENT_I8] = 8,      [ELEMENT_U8] = 8,   [ELEMENT_R4] = 4, [ELEMENT_R8] = 8,
    };
    return element == ELEMENT_I || element == ELEMENT_U ? pointer_size : element < sizeof widths ? widths[element] : 0;
}
