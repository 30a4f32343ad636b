#include "tests/support/metadata_find.h"

#include "formats/metadata_access.h"

enum cdacq_status metadata_method_at(const struct metadata *metadata, uint32_t element, uint32_t *ret_method)
{
    uint32_t method = element;
    if (metadata->tables[METADATA_METHOD_PTR].rows) {
        enum cdacq_status status = metadata_cell(metadata, METADATA_METHOD_PTR, element, 0, &method);
        if (status != CDACQ_OK)
            return status;
    }
    if (method - 1 >= metadata->tables[METADATA_METHOD_DEF].rows)
        return CDACQ_ERR_FORMAT;
    *ret_method = method;
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
