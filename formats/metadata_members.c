#include "formats/metadata_members.h"

#include "formats/metadata_access.h"
#include "formats/metadata_schema.h"

enum { HAS_CONSTANT_BITS = 2 }; /* of the coded index (II.24.2.6), in which a field has the tag 0 */

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

enum cdacq_status metadata_method_named(const struct metadata *metadata, uint32_t type, const char *name, size_t length,
                                        uint32_t *ret)
{
    struct metadata_method_def row;
    uint32_t begin, end, found = 0;
    enum cdacq_status status = metadata_methods(metadata, type, &begin, &end);
    bool is_only = true, equal = false, indirect = metadata_row_count(metadata, METADATA_METHOD_PTR);
    for (uint32_t rid = begin; status == CDACQ_OK && rid < end && !indirect; rid++) {
        status = metadata_method_def(metadata, rid, &row);
        if (status == CDACQ_OK)
            status = metadata_string_equals(metadata, row.name, name, length, &equal);
        if (status == CDACQ_OK && equal) {
            is_only = !found;
            found = rid;
        }
    }
    if (status == CDACQ_OK)
        *ret = is_only ? found : 0;
    return status;
}

enum cdacq_status metadata_has_event(const struct metadata *metadata, uint32_t type, const char *name, size_t length,
                                     bool *ret)
{
    uint32_t maps = metadata_row_count(metadata, METADATA_EVENT_MAP), parent = 0, event = 0, string;
    uint32_t end = metadata_row_count(metadata, METADATA_EVENT) + 1;
    enum cdacq_status status = CDACQ_OK;
    bool equal = false;
    if (maps > METADATA_SCAN_CAP)
        return CDACQ_ERR_FUEL;
    if (metadata_row_count(metadata, METADATA_EVENT_PTR))
        maps = 0;
    for (uint32_t map = 1; map <= maps && status == CDACQ_OK && !event; map++) { /* it is not sorted */
        status = metadata_cell(metadata, METADATA_EVENT_MAP, map, EVENT_MAP_PARENT, &parent);
        if (status != CDACQ_OK || parent != type)
            continue;
        status = metadata_cell(metadata, METADATA_EVENT_MAP, map, EVENT_MAP_EVENT_LIST, &event);
        if (status == CDACQ_OK && map < maps)
            status = metadata_cell(metadata, METADATA_EVENT_MAP, map + 1, EVENT_MAP_EVENT_LIST, &end);
    }
    for (; event && event < end && status == CDACQ_OK && !equal; event++) {
        status = metadata_cell(metadata, METADATA_EVENT, event, EVENT_NAME, &string);
        if (status == CDACQ_OK)
            status = metadata_string_equals(metadata, string, name, length, &equal);
    }
    if (status == CDACQ_OK)
        *ret = equal;
    return status;
}

enum cdacq_status metadata_assembly_is(const struct metadata *metadata, const char *name, bool *ret)
{
    uint32_t index;
    *ret = false;
    enum cdacq_status status = metadata_assembly_name(metadata, &index);
    return status == CDACQ_OK ? metadata_string_equals(metadata, index, name, strlen(name), ret) : status;
}

enum cdacq_status metadata_method_is(const struct metadata *metadata, uint32_t token, const char *space,
                                     const char *type, const char *method, bool *ret)
{
    struct metadata_method_def row;
    uint32_t owner, rid = metadata_rid(token);
    bool equal = false;
    *ret = false;
    if (metadata_token_table(token) != METADATA_METHOD_DEF)
        return CDACQ_OK;
    enum cdacq_status status = metadata_method_def(metadata, rid, &row);
    if (status == CDACQ_OK)
        status = metadata_string_equals(metadata, row.name, method, strlen(method), &equal);
    if (status == CDACQ_OK && equal)
        status = metadata_method_owner(metadata, rid, &owner);
    if (status == CDACQ_OK && equal)
        status = metadata_type_is(metadata, metadata_token(METADATA_TYPE_DEF, owner), space, type, ret);
    return status;
}

enum cdacq_status metadata_field_constant(const struct metadata *metadata, uint32_t field, bool *ret_found,
                                          uint32_t *ret_value)
{
    uint32_t rid = 0;
    *ret_found = false;
    if (metadata_search_cost(metadata, METADATA_CONSTANT) != 1)
        return CDACQ_OK; /* Reflection.Emit need not sort them */
    enum cdacq_status status =
        metadata_find_row(metadata, METADATA_CONSTANT, CONSTANT_PARENT, field << HAS_CONSTANT_BITS, &rid);
    if (status == CDACQ_OK && rid) {
        status = metadata_cell(metadata, METADATA_CONSTANT, rid, CONSTANT_VALUE, ret_value);
        *ret_found = status == CDACQ_OK;
    }
    return status;
}

/* Whether an interface of a TypeDef is the token, or namespace.name if there is none. */
static enum cdacq_status find_interface(const struct metadata *metadata, uint32_t type, uint32_t token,
                                        const char *space, const char *name, bool *ret)
{
    struct metadata_interface_impl row;
    uint32_t rid = 0;
    *ret = false;
    for (uint32_t i = 0; i < METADATA_SCAN_CAP; i++) {
        enum cdacq_status status =
            metadata_next_row(metadata, METADATA_INTERFACE_IMPL, INTERFACE_IMPL_CLASS, type, &rid);
        if (status == CDACQ_OK && rid)
            status = metadata_interface_impl(metadata, rid, &row);
        if (status == CDACQ_OK && rid && token)
            *ret = row.interface == token;
        else if (status == CDACQ_OK && rid)
            status = metadata_type_is(metadata, row.interface, space, name, ret);
        if (status != CDACQ_OK || !rid || *ret)
            return status;
    }
    return CDACQ_ERR_FUEL;
}

enum cdacq_status metadata_implements(const struct metadata *metadata, uint32_t type, const char *space,
                                      const char *name, bool *ret)
{
    return find_interface(metadata, type, 0, space, name, ret);
}

enum cdacq_status metadata_implements_token(const struct metadata *metadata, uint32_t type, uint32_t token, bool *ret)
{
    return find_interface(metadata, type, token, NULL, NULL, ret);
}
