#include "formats/metadata_members.h"

#include "util/binary_search.h"
#include "formats/metadata_access.h"
#include "formats/metadata_schema.h"

enum {
    TYPE_DEF_FIELD_LIST = 4,
    INTERFACE_IMPL_CLASS = 0,
    CONSTANT_PARENT = 1,
    CONSTANT_VALUE = 2,
    /* Tags of coded indexes (II.24.2.6). */
    HAS_CUSTOM_ATTRIBUTE_BITS = 5,
    HAS_CUSTOM_ATTRIBUTE_METHOD_DEF = 0,
    HAS_CUSTOM_ATTRIBUTE_TYPE_DEF = 3,
    HAS_CONSTANT_BITS = 2, /* a field has the tag 0 */
};

struct param_row {
    uint32_t flags;
    uint32_t sequence; /* 1 is the first parameter, 0 the return value */
    uint32_t name;
};

struct custom_attribute_row {
    uint32_t parent;
    uint32_t constructor; /* MethodDef or MemberRef */
    uint32_t value;
};

/* The rows of `members` that row `owner` of `table` lists: from its own cell to that of the next row. */
static enum cdacq_status member_list(const struct metadata *metadata, enum metadata_table table, unsigned column,
                                     enum metadata_table members, enum metadata_table indirect, uint32_t owner,
                                     uint32_t *ret_begin, uint32_t *ret_end)
{
    uint32_t begin, end = metadata_row_count(metadata, members) + 1, limit = end;
    if (metadata_row_count(metadata, indirect))
        return CDACQ_ERR_FORMAT;
    enum cdacq_status status = metadata_cell(metadata, table, owner, column, &begin);
    if (status == CDACQ_OK && owner < metadata_row_count(metadata, table))
        status = metadata_cell(metadata, table, owner + 1, column, &end);
    if (status != CDACQ_OK)
        return status;
    if (begin == 0 || begin > end || end > limit)
        return CDACQ_ERR_FORMAT;
    *ret_begin = begin;
    *ret_end = end;
    return CDACQ_OK;
}

enum cdacq_status metadata_fields(const struct metadata *metadata, uint32_t type, uint32_t *ret_begin,
                                  uint32_t *ret_end)
{
    return member_list(metadata, METADATA_TYPE_DEF, TYPE_DEF_FIELD_LIST, METADATA_FIELD, METADATA_FIELD_PTR, type,
                       ret_begin, ret_end);
}

enum cdacq_status metadata_params(const struct metadata *metadata, uint32_t method, uint32_t *ret_begin,
                                  uint32_t *ret_end)
{
    return member_list(metadata, METADATA_METHOD_DEF, METHOD_DEF_PARAM_LIST, METADATA_PARAM, METADATA_PARAM_PTR, method,
                       ret_begin, ret_end);
}

enum cdacq_status metadata_param_name(const struct metadata *metadata, uint32_t method, uint32_t sequence,
                                      bool *ret_found, uint32_t *ret_name)
{
    uint32_t begin = 0, end = 0;
    enum cdacq_status status = metadata_params(metadata, method, &begin, &end);
    if (status == CDACQ_OK && end - begin > METADATA_SCAN_CAP)
        status = CDACQ_ERR_FUEL;
    *ret_found = false;
    for (uint32_t rid = begin; status == CDACQ_OK && rid < end && !*ret_found; rid++) {
        struct param_row param;
        status = metadata_row(metadata, METADATA_PARAM, rid, &param, sizeof param);
        if (status == CDACQ_OK && param.sequence == sequence) {
            *ret_found = true;
            *ret_name = param.name;
        }
    }
    return status;
}

enum cdacq_status metadata_method_takes_nothing(const struct metadata *metadata, uint32_t method, bool *ret)
{
    enum { GENERIC = 0x10 }; /* II.23.2.1 */
    CLEANUP_METADATA_BLOB struct metadata_blob blob;
    struct metadata_method_def row;
    blob.allocated = NULL;
    enum cdacq_status status = metadata_method_def(metadata, method, &row);
    if (status == CDACQ_OK)
        status = metadata_blob_read(metadata, row.signature, &blob);
    if (status == CDACQ_OK && blob.length >= 2 && !(blob.data[0] & GENERIC) && blob.data[1] == 0)
        *ret = true;
    return status;
}

static enum cdacq_status names_equal(const struct metadata *metadata, uint32_t space_index, uint32_t name_index,
                                     const char *space, const char *name, bool *ret)
{
    enum cdacq_status status = metadata_string_equals(metadata, name_index, name, strlen(name), ret);
    if (status == CDACQ_OK && *ret)
        status = metadata_string_equals(metadata, space_index, space, strlen(space), ret);
    return status;
}

enum cdacq_status metadata_type_is(const struct metadata *metadata, uint32_t token, const char *space, const char *name,
                                   bool *ret)
{
    struct metadata_type_def definition;
    struct metadata_type_ref reference;
    enum cdacq_status status;
    *ret = false;
    switch (metadata_token_table(token)) {
    case METADATA_TYPE_DEF:
        status = metadata_type_def(metadata, metadata_rid(token), &definition);
        return status != CDACQ_OK ? status
                                  : names_equal(metadata, definition.namespace_name, definition.name, space, name, ret);
    case METADATA_TYPE_REF:
        status = metadata_type_ref(metadata, metadata_rid(token), &reference);
        return status != CDACQ_OK ? status
                                  : names_equal(metadata, reference.namespace_name, reference.name, space, name, ret);
    default:
        return CDACQ_OK;
    }
}

/* The type that a custom attribute's constructor belongs to, 0 if it is neither TypeDef nor TypeRef. */
static enum cdacq_status attribute_type(const struct metadata *metadata, uint32_t constructor, uint32_t *ret)
{
    struct metadata_member_ref reference;
    uint32_t owner = 0;
    enum cdacq_status status = CDACQ_OK;
    if (metadata_token_table(constructor) == METADATA_METHOD_DEF) {
        status = metadata_method_owner(metadata, metadata_rid(constructor), &owner);
        *ret = metadata_token(METADATA_TYPE_DEF, owner);
    } else if (metadata_token_table(constructor) == METADATA_MEMBER_REF) {
        status = metadata_member_ref(metadata, metadata_rid(constructor), &reference);
        if (status == CDACQ_OK)
            *ret = reference.parent;
    } else {
        *ret = 0;
    }
    return status;
}

/* The first row of a sorted column whose cell is not less than `key`. */
static enum cdacq_status first_row(const struct metadata *metadata, enum metadata_table table, unsigned column,
                                   uint32_t key, uint32_t *ret)
{
    enum cdacq_status status = CDACQ_OK;
    uint32_t cell = 0;
    *ret =
        1 + lower_bound(i, metadata_row_count(metadata, table),
                        status == CDACQ_OK &&
                            (status = metadata_cell(metadata, table, i + 1, column, &cell)) == CDACQ_OK && cell < key);
    return status;
}

enum cdacq_status metadata_field_constant(const struct metadata *metadata, uint32_t field, bool *ret_found,
                                          uint32_t *ret_value)
{
    uint32_t rid, cell, key = field << HAS_CONSTANT_BITS;
    *ret_found = false;
    if (metadata_search_cost(metadata, METADATA_CONSTANT) != 1)
        return CDACQ_OK; /* Reflection.Emit need not sort them */
    enum cdacq_status status = first_row(metadata, METADATA_CONSTANT, CONSTANT_PARENT, key, &rid);
    if (status != CDACQ_OK || rid > metadata_row_count(metadata, METADATA_CONSTANT))
        return status;
    status = metadata_cell(metadata, METADATA_CONSTANT, rid, CONSTANT_PARENT, &cell);
    if (status == CDACQ_OK && cell == key) {
        status = metadata_cell(metadata, METADATA_CONSTANT, rid, CONSTANT_VALUE, ret_value);
        *ret_found = status == CDACQ_OK;
    }
    return status;
}

enum cdacq_status metadata_attribute_find(const struct metadata *metadata, uint32_t owner_token, const char *space,
                                          const char *name, uint32_t after, uint32_t *ret_rid, uint32_t *ret_value)
{
    bool sorted = metadata_search_cost(metadata, METADATA_CUSTOM_ATTRIBUTE) == 1;
    uint32_t rows = metadata_row_count(metadata, METADATA_CUSTOM_ATTRIBUTE), rid = after + 1, cell;
    uint32_t tag = metadata_token_table(owner_token) == METADATA_TYPE_DEF ? HAS_CUSTOM_ATTRIBUTE_TYPE_DEF
                                                                          : HAS_CUSTOM_ATTRIBUTE_METHOD_DEF;
    uint32_t key = metadata_rid(owner_token) << HAS_CUSTOM_ATTRIBUTE_BITS | tag;
    enum cdacq_status status = CDACQ_OK;
    *ret_rid = 0;
    if (!sorted && rows > METADATA_SCAN_CAP)
        return CDACQ_ERR_FUEL;
    if (!after && sorted)
        status = first_row(metadata, METADATA_CUSTOM_ATTRIBUTE, CUSTOM_ATTRIBUTE_PARENT, key, &rid);
    for (; status == CDACQ_OK && rid <= rows; rid++) {
        struct custom_attribute_row attribute;
        uint32_t type = 0;
        bool equal = false;
        status = metadata_cell(metadata, METADATA_CUSTOM_ATTRIBUTE, rid, CUSTOM_ATTRIBUTE_PARENT, &cell);
        if (status == CDACQ_OK && cell != key) {
            if (sorted)
                break;
            continue;
        }
        if (status == CDACQ_OK)
            status = metadata_row(metadata, METADATA_CUSTOM_ATTRIBUTE, rid, &attribute, sizeof attribute);
        if (status == CDACQ_OK)
            status = attribute_type(metadata, attribute.constructor, &type);
        if (status == CDACQ_OK)
            status = metadata_type_is(metadata, type, space, name, &equal);
        if (status == CDACQ_OK && equal) {
            *ret_rid = rid;
            *ret_value = attribute.value;
            break;
        }
    }
    return status;
}

enum cdacq_status metadata_implements(const struct metadata *metadata, uint32_t type, const char *space,
                                      const char *name, bool *ret)
{
    bool sorted = metadata_search_cost(metadata, METADATA_INTERFACE_IMPL) == 1;
    uint32_t rows = metadata_row_count(metadata, METADATA_INTERFACE_IMPL), rid = 1;
    enum cdacq_status status = CDACQ_OK;
    *ret = false;
    if (!sorted && rows > METADATA_SCAN_CAP)
        return CDACQ_ERR_FUEL;
    if (sorted)
        status = first_row(metadata, METADATA_INTERFACE_IMPL, INTERFACE_IMPL_CLASS, type, &rid);
    for (; status == CDACQ_OK && rid <= rows && !*ret; rid++) {
        struct metadata_interface_impl row;
        status = metadata_interface_impl(metadata, rid, &row);
        if (status == CDACQ_OK && row.type == type)
            status = metadata_type_is(metadata, row.interface, space, name, ret);
        else if (sorted)
            break;
    }
    return status;
}
