#include "contracts/objects/reference_list.h"

#include "contracts/objects/field.h"
#include "contracts/type_system/type_handle.h"
#include "formats/metadata_members.h"

bool reference_array_read(struct reader *reader, uint64_t object, struct object_array *ret)
{
    struct object_array array;
    if (!object_array_read(reader, object, &array) || array.element_size != reader->pointer_size)
        return false;
    *ret = array;
    return true;
}

/* Whether a MethodTable is of List<T>. */
static bool is_list(struct module_cache *cache, uint64_t method_table)
{
    const struct metadata *metadata;
    uint32_t token;
    bool equal = false;
    enum cdacq_status status = type_handle_definition(cache, method_table, &metadata, &token);
    if (status == CDACQ_OK)
        status = metadata_type_is(metadata, token, "System.Collections.Generic", "List`1", &equal);
    if (status == CDACQ_OK && equal)
        status = metadata_assembly_is(metadata, "System.Private.CoreLib", &equal);
    if (status != CDACQ_OK)
        reader_fail(cache->reader, status, method_table, "the type of a list");
    return status == CDACQ_OK && equal;
}

bool reference_list_read(struct module_cache *cache, uint64_t object, struct object_array *ret)
{
    struct reader *reader = cache->reader;
    struct object_array array;
    struct object_field size;
    uint64_t items;
    if (reference_array_read(reader, object, ret))
        return true;
    uint64_t type = object_method_table(reader, object);
    if (reader_failed(reader) || !is_list(cache, type) || !object_field_declared(cache, type, "_size", &size) ||
        !object_reference(cache, object, "_items", &items) || !reference_array_read(reader, items, &array))
        return false;
    uint64_t count = read_uint(reader, object_field_address(reader, object, &size), 4);
    if (!reader_failed(reader) && count > array.count)
        reader_fail(reader, CDACQ_ERR_CORRUPT, object, "List<T>._size");
    if (reader_failed(reader))
        return false;
    array.count = (uint32_t)count;
    *ret = array;
    return true;
}
