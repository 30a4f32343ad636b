/* Relations between rows. Sorted tables are searched by key, others row by row. */
#include "util/binary_search.h"
#include "formats/metadata_access.h"
#include "formats/metadata_schema.h"

enum { PARAMETERS_SCANNED = 256 }; /* of a method, where its list is not sorted */

static bool is_sorted(const struct metadata *metadata, enum metadata_table table)
{
    return !metadata->uncompressed || metadata->sorted >> table & 1;
}

uint32_t metadata_search_cost(const struct metadata *metadata, enum metadata_table table)
{
    return is_sorted(metadata, table) ? 1 : metadata->tables[table].rows;
}

/* The first row whose cell is not less than `key`; one past the last row if there is none. The column is sorted. */
static enum cdacq_status first_row(const struct metadata *metadata, enum metadata_table table, unsigned column,
                                   uint32_t key, uint32_t *ret)
{
    enum cdacq_status status = CDACQ_OK;
    uint32_t cell;
    *ret =
        1 + lower_bound(i, metadata->tables[table].rows,
                        status == CDACQ_OK &&
                            (status = metadata_cell(metadata, table, i + 1, column, &cell)) == CDACQ_OK && cell < key);
    return status;
}

/* The first row from `from` on whose cell is `key`, 0 if there is none. */
static enum cdacq_status scan(const struct metadata *metadata, enum metadata_table table, unsigned column,
                              uint32_t from, uint32_t key, uint32_t *ret)
{
    uint32_t rows = metadata->tables[table].rows;
    if (rows > METADATA_SCAN_CAP)
        return CDACQ_ERR_FUEL;
    for (uint32_t rid = from; rid <= rows; rid++) {
        uint32_t cell;
        enum cdacq_status status = metadata_cell(metadata, table, rid, column, &cell);
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

enum cdacq_status metadata_find_row(const struct metadata *metadata, enum metadata_table table, unsigned column,
                                    uint32_t key, uint32_t *ret)
{
    uint32_t rid, cell;
    if (!is_sorted(metadata, table))
        return scan(metadata, table, column, 1, key, ret);
    enum cdacq_status status = first_row(metadata, table, column, key, &rid);
    if (status != CDACQ_OK)
        return status;
    if (rid > metadata->tables[table].rows) {
        *ret = 0;
        return CDACQ_OK;
    }
    status = metadata_cell(metadata, table, rid, column, &cell);
    if (status == CDACQ_OK)
        *ret = cell == key ? rid : 0;
    return status;
}

enum cdacq_status metadata_enclosing(const struct metadata *metadata, uint32_t type, uint32_t *ret_type)
{
    uint32_t rid, enclosing = 0;
    enum cdacq_status status = metadata_find_row(metadata, METADATA_NESTED_CLASS, NESTED_CLASS_NESTED, type, &rid);
    if (status == CDACQ_OK && rid)
        status = metadata_cell(metadata, METADATA_NESTED_CLASS, rid, NESTED_CLASS_ENCLOSING, &enclosing);
    if (status == CDACQ_OK)
        *ret_type = enclosing;
    return status;
}

/* The number of elements in the method lists of all types. */
static uint32_t method_list_length(const struct metadata *metadata)
{
    return MAX(metadata->tables[METADATA_METHOD_PTR].rows, metadata->tables[METADATA_METHOD_DEF].rows);
}

/* The element of the method lists that is a MethodDef. Most often the two are the same, which is tried first. */
static enum cdacq_status find_method_element(const struct metadata *metadata, uint32_t method, uint32_t *ret)
{
    uint32_t rows = metadata->tables[METADATA_METHOD_PTR].rows, cell, element = method;
    enum cdacq_status status = CDACQ_OK;
    if (method - 1 >= metadata->tables[METADATA_METHOD_DEF].rows)
        return CDACQ_ERR_FORMAT;
    if (rows) {
        cell = 0;
        if (method <= rows)
            status = metadata_cell(metadata, METADATA_METHOD_PTR, method, METHOD_PTR_METHOD, &cell);
        if (status == CDACQ_OK && cell != method)
            status = scan(metadata, METADATA_METHOD_PTR, METHOD_PTR_METHOD, 1, method, &element);
    }
    if (status == CDACQ_OK && !element)
        status = CDACQ_ERR_FORMAT;
    if (status == CDACQ_OK)
        *ret = element;
    return status;
}

/* Elements [begin, end) of a list of `length`: those of a TypeDef, by the column of the list. */
static enum cdacq_status list_of(const struct metadata *metadata, uint32_t type, unsigned column, uint32_t length,
                                 uint32_t *ret_begin, uint32_t *ret_end)
{
    uint32_t begin, end = length + 1;
    enum cdacq_status status = metadata_cell(metadata, METADATA_TYPE_DEF, type, column, &begin);
    if (status == CDACQ_OK && type < metadata->tables[METADATA_TYPE_DEF].rows)
        status = metadata_cell(metadata, METADATA_TYPE_DEF, type + 1, column, &end);
    if (status != CDACQ_OK)
        return status;
    if (begin == 0 || begin > end || end > length + 1)
        return CDACQ_ERR_FORMAT;
    *ret_begin = begin;
    *ret_end = end;
    return CDACQ_OK;
}

enum cdacq_status metadata_methods(const struct metadata *metadata, uint32_t type, uint32_t *ret_begin,
                                   uint32_t *ret_end)
{
    return list_of(metadata, type, TYPE_DEF_METHOD_LIST, method_list_length(metadata), ret_begin, ret_end);
}

enum cdacq_status metadata_fields(const struct metadata *metadata, uint32_t type, uint32_t *ret_begin,
                                  uint32_t *ret_end)
{
    if (metadata->tables[METADATA_FIELD_PTR].rows)
        return CDACQ_ERR_FORMAT;
    return list_of(metadata, type, TYPE_DEF_FIELD_LIST, metadata->tables[METADATA_FIELD].rows, ret_begin, ret_end);
}

/* Searches every type: the method lists in a `#-` stream under construction need not ascend. */
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
    uint32_t element, after, begin, end;
    enum cdacq_status status = find_method_element(metadata, method, &element);
    if (status == CDACQ_OK)
        status = first_row(metadata, METADATA_TYPE_DEF, TYPE_DEF_METHOD_LIST, element + 1, &after);
    if (status != CDACQ_OK)
        return status;
    uint32_t type = after - 1; /* the last type whose list does not begin after the element */
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
    uint32_t rows = metadata->tables[METADATA_GENERIC_PARAM].rows, cell = 0, after;
    enum cdacq_status status =
        first_row(metadata, METADATA_GENERIC_PARAM, GENERIC_PARAM_OWNER, generics.owner, &generics.first);
    if (status == CDACQ_OK && generics.first <= rows)
        status = metadata_cell(metadata, METADATA_GENERIC_PARAM, generics.first, GENERIC_PARAM_OWNER, &cell);
    if (status == CDACQ_OK && cell == generics.owner) { /* most have none and need no second search */
        status = first_row(metadata, METADATA_GENERIC_PARAM, GENERIC_PARAM_OWNER, generics.owner + 1, &after);
        if (status == CDACQ_OK)
            generics.count = after - generics.first;
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
            status = metadata_cell(metadata, METADATA_GENERIC_PARAM, rid, GENERIC_PARAM_NUMBER, &cell);
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
        enum cdacq_status status = metadata_cell(metadata, METADATA_GENERIC_PARAM, rid, GENERIC_PARAM_NUMBER, &cell);
        if (status != CDACQ_OK)
            return status;
        if (cell != number)
            rid = 0;
    }
    *ret_rid = rid;
    return CDACQ_OK;
}

enum cdacq_status metadata_parameter(const struct metadata *metadata, uint32_t method, uint32_t number,
                                     uint32_t *ret_rid)
{
    uint32_t begin, end = metadata->tables[METADATA_PARAM].rows + 1, limit = end, cell = 0;
    enum cdacq_status status = metadata_cell(metadata, METADATA_METHOD_DEF, method, METHOD_DEF_PARAM_LIST, &begin);
    if (status == CDACQ_OK && method < metadata->tables[METADATA_METHOD_DEF].rows)
        status = metadata_cell(metadata, METADATA_METHOD_DEF, method + 1, METHOD_DEF_PARAM_LIST, &end);
    if (status != CDACQ_OK)
        return status;
    if (metadata->tables[METADATA_PARAM_PTR].rows)
        begin = end = 1;
    if (begin == 0 || begin > end || end > limit)
        return CDACQ_ERR_FORMAT;
    uint32_t rid = begin + lower_bound(i, end - begin,
                                       status == CDACQ_OK &&
                                           (status = metadata_cell(metadata, METADATA_PARAM, begin + i, PARAM_SEQUENCE,
                                                                   &cell)) == CDACQ_OK &&
                                           cell < number);
    if (status == CDACQ_OK && rid < end)
        status = metadata_cell(metadata, METADATA_PARAM, rid, PARAM_SEQUENCE, &cell);
    if (status != CDACQ_OK)
        return status;
    *ret_rid = rid < end && cell == number ? rid : 0;
    /* Compilers sort them, which ECMA-335 II.22.33 only advises. */
    for (rid = begin; !*ret_rid && rid < MIN(end, begin + PARAMETERS_SCANNED); rid++) {
        status = metadata_cell(metadata, METADATA_PARAM, rid, PARAM_SEQUENCE, &cell);
        if (status != CDACQ_OK)
            return status;
        *ret_rid = cell == number ? rid : 0;
    }
    return CDACQ_OK;
}

enum cdacq_status metadata_next_row(const struct metadata *metadata, enum metadata_table table, unsigned column,
                                    uint32_t key, uint32_t *rid)
{
    uint32_t cell = 0;
    if (!is_sorted(metadata, table))
        return scan(metadata, table, column, *rid + 1, key, rid);
    if (!*rid)
        return metadata_find_row(metadata, table, column, key, rid);
    enum cdacq_status status = CDACQ_OK;
    uint32_t next = *rid < metadata->tables[table].rows ? *rid + 1 : 0;
    if (next)
        status = metadata_cell(metadata, table, next, column, &cell);
    if (status == CDACQ_OK)
        *rid = next && cell == key ? next : 0;
    return status;
}

enum cdacq_status metadata_next_nested(const struct metadata *metadata, uint32_t enclosing, uint32_t *rid,
                                       uint32_t *ret_type)
{
    enum cdacq_status status = scan(metadata, METADATA_NESTED_CLASS, NESTED_CLASS_ENCLOSING, *rid + 1, enclosing, rid);
    return status == CDACQ_OK && *rid
               ? metadata_cell(metadata, METADATA_NESTED_CLASS, *rid, NESTED_CLASS_NESTED, ret_type)
               : status;
}

enum cdacq_status metadata_next_attribute(const struct metadata *metadata, uint32_t parent_token, uint32_t *rid)
{
    enum { TAG_BITS = 5, TYPE_DEF_TAG = 3, PARAM_TAG = 4 };
    uint32_t table = metadata_token_table(parent_token);
    uint32_t tag = table == METADATA_TYPE_DEF ? TYPE_DEF_TAG : table == METADATA_PARAM ? PARAM_TAG : 0;
    return metadata_next_row(metadata, METADATA_CUSTOM_ATTRIBUTE, CUSTOM_ATTRIBUTE_PARENT,
                             metadata_rid(parent_token) << TAG_BITS | tag, rid);
}

enum cdacq_status metadata_method_reference(const struct metadata *metadata, uint32_t token,
                                            struct metadata_member_ref *ret)
{
    struct metadata_method_def definition;
    uint32_t rid = metadata_rid(token), owner;
    if (metadata_token_table(token) == METADATA_MEMBER_REF)
        return metadata_member_ref(metadata, rid, ret);
    enum cdacq_status status = metadata_token_table(token) == METADATA_METHOD_DEF
                                   ? metadata_method_owner(metadata, rid, &owner)
                                   : CDACQ_ERR_FORMAT;
    if (status == CDACQ_OK)
        status = metadata_method_def(metadata, rid, &definition);
    if (status == CDACQ_OK)
        *ret = (struct metadata_member_ref){.parent = metadata_token(METADATA_TYPE_DEF, owner),
                                            .name = definition.name,
                                            .signature = definition.signature};
    return status;
}

enum cdacq_status metadata_next_method_impl(const struct metadata *metadata, uint32_t type, uint32_t *rid)
{
    return metadata_next_row(metadata, METADATA_METHOD_IMPL, METHOD_IMPL_CLASS, type, rid);
}
