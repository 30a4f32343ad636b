#include "contracts/objects/reference_name.h"

#include <inttypes.h>

#include "contracts/objects/field.h"
#include "contracts/objects/object.h"
#include "contracts/objects/value.h"
#include "contracts/type_system/field_type.h"
#include "formats/names/signature.h"

enum { DEPTH_MAX = 16 }; /* structs within structs */

/* The last field of a type at or before an offset from its first field. False: there is none. */
static bool field_before(struct module_cache *cache, uint64_t method_table, uint64_t offset, struct object_field *ret)
{
    struct object_fields fields = {0};
    bool found = false;
    object_fields_read(cache, method_table, &fields);
    for (size_t i = 0; i < fields.count; i++) {
        const struct object_field *field = &fields.items[i];
        if (field->offset > offset || (found && field->offset < ret->offset))
            continue;
        *ret = *field;
        found = true;
    }
    object_fields_deinit(&fields);
    return found && !reader_failed(cache->reader);
}

/* Appends the fields from a type to the reference at the offset, with dots between them. */
static bool append_fields(struct module_cache *cache, uint64_t method_table, uint64_t offset, struct text *ret)
{
    for (unsigned depth = 0; depth < DEPTH_MAX; depth++) {
        struct object_field field;
        if (!field_before(cache, method_table, offset, &field))
            return false;
        if (ret->length)
            text_printf(ret, ".");
        if (!object_field_name(cache, &field, ret))
            return false;
        offset -= field.offset;
        uint64_t type = field.element == ELEMENT_VALUETYPE ? field_type_find(cache, field.owner, field.token) : 0;
        if (!type) {
            if (offset) /* in a struct that is not known, or in an inline array */
                text_printf(ret, "+0x%" PRIx64, offset);
            return !reader_failed(cache->reader);
        }
        method_table = type;
    }
    return false;
}

/* Appends the indices of an element: "[3]", "[1,2]". */
static void append_index(const struct object_array *array, uint64_t index, struct text *ret)
{
    int64_t indices[ARRAY_RANK_MAX];
    for (uint32_t i = array->rank; i-- > 0;) {
        uint32_t length = array->lengths[i] ? array->lengths[i] : 1;
        indices[i] = (int64_t)(index % length) + (array->rank > 1 ? array->lower_bounds[i] : 0);
        index /= length;
    }
    for (uint32_t i = 0; i < array->rank; i++)
        text_printf(ret, "%s%" PRId64, i ? "," : "[", indices[i]);
    text_printf(ret, "]");
}

bool reference_name_append(struct module_cache *cache, uint64_t object, uint64_t offset, struct text *ret)
{
    struct reader *reader = cache->reader;
    struct object_array array;
    if (!object_array_read(reader, object, &array)) {
        uint64_t method_table = reader_failed(reader) ? 0 : object_method_table(reader, object);
        return !reader_failed(reader) && offset >= reader->pointer_size &&
               append_fields(cache, method_table, offset - reader->pointer_size, ret);
    }
    uint64_t first = array.elements - object, index;
    if (offset < first || !array.element_size || (index = (offset - first) / array.element_size) >= array.count)
        return false;
    append_index(&array, index, ret);
    if (method_table_is_value(reader, array.element_type) && !reader_failed(reader))
        return append_fields(cache, array.element_type, (offset - first) % array.element_size, ret);
    return !reader_failed(reader);
}
