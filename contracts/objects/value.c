#include "contracts/objects/value.h"

#include "contracts/type_system/field_type.h"
#include "contracts/type_system/method_table_flags.h"
#include "formats/names/signature.h"

static uint32_t flags_of(struct reader *reader, uint64_t method_table)
{
    return (uint32_t)read_field(reader, method_table, F_MethodTable_MTFlags);
}

bool method_table_is_value(struct reader *reader, uint64_t method_table)
{
    return (flags_of(reader, method_table) & MT_VALUE_MASK) == MT_VALUE && !reader_failed(reader);
}

uint64_t struct_size(struct reader *reader, uint64_t method_table)
{
    uint64_t size = read_field(reader, method_table, F_MethodTable_BaseSize),
             header = 2 * (uint64_t)reader->pointer_size;
    return size < header ? 0 : size - header;
}

static enum cdacq_value_kind kind_of(uint8_t element)
{
    switch (element) {
    case ELEMENT_BOOLEAN:
        return CDACQ_VALUE_BOOLEAN;
    case ELEMENT_CHAR:
        return CDACQ_VALUE_CHARACTER;
    case ELEMENT_I1:
    case ELEMENT_I2:
    case ELEMENT_I4:
    case ELEMENT_I8:
    case ELEMENT_I:
        return CDACQ_VALUE_SIGNED;
    case ELEMENT_R4:
    case ELEMENT_R8:
        return CDACQ_VALUE_REAL;
    case ELEMENT_CLASS:
        return CDACQ_VALUE_REFERENCE;
    case ELEMENT_PTR:
    case ELEMENT_FNPTR:
    case ELEMENT_BYREF:
        return CDACQ_VALUE_POINTER;
    case ELEMENT_VALUETYPE:
        return CDACQ_VALUE_STRUCT;
    default:
        return CDACQ_VALUE_UNSIGNED;
    }
}

/* What is known of a value of the type `element` before it is read. */
static struct cdacq_value form_value(const struct reader *reader, uint8_t element, uint64_t address,
                                     uint32_t struct_width, uint64_t type)
{
    unsigned pointer = reader->pointer_size, width = element_width(element, pointer);
    enum cdacq_value_kind kind = kind_of(element);
    if (kind == CDACQ_VALUE_REFERENCE || kind == CDACQ_VALUE_POINTER)
        width = pointer;
    else if (!width)
        kind = CDACQ_VALUE_STRUCT;
    return (struct cdacq_value){.size = sizeof(struct cdacq_value),
                                .kind = kind,
                                .width = kind == CDACQ_VALUE_STRUCT ? struct_width : width,
                                .address = address,
                                .method_table = type};
}

/* Takes the bits of a value that is no struct. */
static void take_bits(struct cdacq_value *value, uint64_t bits)
{
    unsigned above = 64 - 8 * value->width;
    value->bits =
        value->kind == CDACQ_VALUE_SIGNED ? (uint64_t)((int64_t)(bits << above) >> above) : bits << above >> above;
}

/* Reads a value of the type `element`. `struct_width` is the width of a struct, or 0 if it is not known. */
static void read_value(struct reader *reader, uint8_t element, uint64_t address, uint32_t struct_width, uint64_t type,
                       struct cdacq_value *ret)
{
    *ret = form_value(reader, element, address, struct_width, type);
    if (ret->kind != CDACQ_VALUE_STRUCT)
        take_bits(ret, read_uint(reader, address, ret->width));
}

/* The type of a value as struct cdacq_value has it: that of an enum or a struct. */
static uint64_t type_of_value(struct reader *reader, uint8_t element, uint64_t type)
{
    if (!type || element == ELEMENT_CLASS || element == ELEMENT_PTR)
        return 0;
    return element == ELEMENT_VALUETYPE || (flags_of(reader, type) & MT_CATEGORY_MASK) == MT_CATEGORY_ENUM ? type : 0;
}

/* Whether a field of this element type may be of an enum or a struct. */
static bool may_have_type(uint8_t element)
{
    return element == ELEMENT_VALUETYPE || (element >= ELEMENT_BOOLEAN && element <= ELEMENT_U8) ||
           element == ELEMENT_I || element == ELEMENT_U;
}

void field_value_read(struct module_cache *cache, const struct object_field *field, uint64_t base,
                      struct cdacq_value *ret)
{
    struct reader *reader = cache->reader;
    uint64_t type = 0;
    if (!cache->aot && may_have_type(field->element)) {
        type = type_of_value(reader, field->element, field_type_find(cache, field->owner, field->token));
        reader_recover(reader, FAILURE_BUT_FUEL); /* a value has a number without its type, too */
    }
    read_value(reader, field->element, base + field->offset, 0, type, ret);
}

/* The type of an array's elements, or of a boxed value, as an element type of metadata, which is what fields have. */
uint8_t type_handle_element(struct module_cache *cache, uint64_t type)
{
    struct reader *reader = cache->reader;
    struct object_fields fields = {0};
    if (type & TYPE_DESC_TAG)
        return ELEMENT_PTR;
    uint32_t flags = flags_of(reader, type);
    if ((flags & MT_VALUE_MASK) != MT_VALUE)
        return ELEMENT_CLASS;
    uint8_t element = boxed_element(cache, type);
    if (element || (flags & MT_CATEGORY_MASK) != MT_CATEGORY_ENUM)
        return element ? element : ELEMENT_VALUETYPE;
    if (object_fields_read(cache, type, &fields) && fields.count == 1) /* value__, of the number's type */
        element = fields.items[0].element;
    object_fields_deinit(&fields);
    return element ? element : ELEMENT_VALUETYPE;
}

void typed_value_read(struct module_cache *cache, uint8_t element, uint64_t type, uint64_t address,
                      struct cdacq_value *ret)
{
    struct reader *reader = cache->reader;
    uint64_t width = element == ELEMENT_VALUETYPE && type ? struct_size(reader, type) : 0;
    read_value(reader, element, address, (uint32_t)MIN(width, (uint64_t)UINT32_MAX),
               type_of_value(reader, element, type), ret);
}

void typed_value_of_bits(struct module_cache *cache, uint8_t element, uint64_t type, uint64_t bits,
                         struct cdacq_value *ret)
{
    struct reader *reader = cache->reader;
    uint64_t width = element == ELEMENT_VALUETYPE && type ? struct_size(reader, type) : 0;
    *ret = form_value(reader, element, 0, (uint32_t)MIN(width, (uint64_t)UINT32_MAX),
                      type_of_value(reader, element, type));
    if (ret->kind == CDACQ_VALUE_STRUCT)
        ret->bits = bits;
    else
        take_bits(ret, bits);
}

void field_value_of_bits(struct module_cache *cache, const struct object_field *field, uint64_t bits,
                         struct cdacq_value *ret)
{
    uint64_t type = may_have_type(field->element) ? field_type_find(cache, field->owner, field->token) : 0;
    reader_recover(cache->reader, FAILURE_BUT_FUEL); /* as field_value_read() */
    typed_value_of_bits(cache, field->element, type, field->offset < 8 ? bits >> 8 * field->offset : 0, ret);
}

void element_value_read(struct module_cache *cache, const struct object_array *array, uint64_t index,
                        struct cdacq_value *ret)
{
    struct reader *reader = cache->reader;
    uint8_t element = type_handle_element(cache, array->element_type);
    uint64_t address = array->elements + index * array->element_size;
    read_value(reader, element, address, array->element_size, type_of_value(reader, element, array->element_type), ret);
    if (!reader_failed(reader) && ret->width != array->element_size)
        reader_fail(reader, CDACQ_ERR_CORRUPT, address, "elements of that width, which do not fit the array's type,");
}

bool boxed_value_read(struct module_cache *cache, uint64_t object, struct cdacq_value *ret)
{
    struct reader *reader = cache->reader;
    uint64_t type = object_method_table(reader, object);
    if (reader_failed(reader) || cache->aot || !method_table_is_value(reader, type))
        return false;
    uint8_t element = type_handle_element(cache, type);
    read_value(reader, element, object + reader->pointer_size, 0, type_of_value(reader, element, type), ret);
    return !reader_failed(reader);
}

bool nullable_value_read(struct module_cache *cache, const struct cdacq_value *value, bool *ret_has_value,
                         struct cdacq_value *ret)
{
    struct reader *reader = cache->reader;
    struct object_field has_value, inner;
    if (cache->aot || !value->method_table || !value->address || value->kind != CDACQ_VALUE_STRUCT ||
        (flags_of(reader, value->method_table) & MT_CATEGORY_MASK) != MT_CATEGORY_NULLABLE ||
        !object_field_declared(cache, value->method_table, "hasValue", &has_value) ||
        !object_field_declared(cache, value->method_table, "value", &inner))
        return false;
    *ret_has_value = read_u8(reader, value->address + has_value.offset) != 0;
    *ret = (struct cdacq_value){.size = sizeof *ret};
    if (*ret_has_value)
        field_value_read(cache, &inner, value->address, ret);
    return !reader_failed(reader);
}
