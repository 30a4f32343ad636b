#include "contracts/objects/exception_value.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "contracts/objects/field.h"
#include "contracts/objects/object.h"
#include "contracts/type_system/type_handle.h"
#include "formats/metadata_members.h"
#include "formats/names/signature.h"
#include "util/utf16.h"

uint64_t exception_value(struct exception_writer *w, const struct writing_exception *e, const char *name,
                         unsigned width)
{
    struct module_cache *cache = w->output->cache;
    struct object_field field;
    uint64_t value = 0;
    struct reader_task outer = reader_enter(cache->reader, FUEL_INDEX);
    bool found = object_field_find(cache, e->fields.method_table, name, &field) && !field.is_static;
    if (found)
        value = read_uint(cache->reader, object_field_address(cache->reader, e->fields.address, &field), width);
    if (!exception_leave_part(w, &outer) || !found)
        w->flaws |= EXCEPTION_TEXT_MISSING;
    return value;
}

/*
 * Whether a number's text has a sign or a separator, which are those of the thread's culture: "-" and "." here. Digits
 * and the words for infinity are not written.
 */
static bool text_is_of_culture(uint8_t element, const char *text)
{
    return text[0] == '-' || ((element == ELEMENT_R4 || element == ELEMENT_R8) && strchr(text, '.'));
}

/* The shortest digits that give the same number again. False: they need an exponent, which .NET writes otherwise. */
static bool format_real(char *to, size_t size, double value, bool single)
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(to, size, "%.*g", digits, value);
        if (single ? strtof(to, NULL) == (float)value : strtod(to, NULL) == value)
            break;
    }
    return !strpbrk(to, "enai");
}

/* Object.ToString() of a boxed primitive value. False if it is none, or has another form in .NET. */
static bool format_primitive(char *to, size_t size, uint8_t element, uint64_t bits)
{
    float single;
    double real;
    uint32_t low = (uint32_t)bits;
    switch (element) {
    case ELEMENT_BOOLEAN:
        snprintf(to, size, "%s", bits & 0xff ? "True" : "False");
        return true;
    case ELEMENT_I1:
        snprintf(to, size, "%d", (int8_t)bits);
        return true;
    case ELEMENT_U1:
        snprintf(to, size, "%u", (unsigned)(uint8_t)bits);
        return true;
    case ELEMENT_I2:
        snprintf(to, size, "%d", (int16_t)bits);
        return true;
    case ELEMENT_U2:
        snprintf(to, size, "%u", (unsigned)(uint16_t)bits);
        return true;
    case ELEMENT_I4:
        snprintf(to, size, "%" PRId32, (int32_t)bits);
        return true;
    case ELEMENT_U4:
        snprintf(to, size, "%" PRIu32, low);
        return true;
    case ELEMENT_I8:
    case ELEMENT_I:
        snprintf(to, size, "%" PRId64, (int64_t)bits);
        return true;
    case ELEMENT_U8:
    case ELEMENT_U:
        snprintf(to, size, "%" PRIu64, bits);
        return true;
    case ELEMENT_R4:
        memcpy(&single, &low, sizeof single);
        return format_real(to, size, (double)single, true);
    case ELEMENT_R8:
        memcpy(&real, &bits, sizeof real);
        return format_real(to, size, real, false);
    default:
        return false;
    }
}

/* Whether a type is System.Object, whose ToString() is the name of the type. */
static bool is_system_object(struct module_cache *cache, uint64_t method_table)
{
    const struct metadata *metadata;
    uint32_t token;
    bool equal = false;
    return type_handle_definition(cache, method_table, &metadata, &token) == CDACQ_OK &&
           metadata_type_is(metadata, token, "System", "Object", &equal) == CDACQ_OK && equal;
}

static void put_unit(struct exception_writer *w, uint16_t unit)
{
    char utf8[UTF8_PER_UTF16];
    uint8_t bytes[2];
    size_t taken;
    store_u16(bytes, unit, false);
    exception_put(w, utf8, (size_t)(utf16_to_utf8(utf8, bytes, 1, false, false, &taken) - utf8));
}

/* Whether the literal field `rid` has a value that begins with the `width` bytes `bits`. */
static bool constant_is(const struct metadata *metadata, uint32_t rid, uint64_t bits, unsigned width)
{
    CLEANUP_METADATA_BLOB struct metadata_blob blob;
    struct metadata_field field;
    bool found;
    uint32_t index;
    uint64_t value = 0;
    blob.allocated = NULL;
    if (metadata_field(metadata, rid, &field) != CDACQ_OK || !(field.flags & FIELD_FLAG_LITERAL) ||
        metadata_field_constant(metadata, rid, &found, &index) != CDACQ_OK || !found ||
        metadata_blob_read(metadata, index, &blob) != CDACQ_OK || blob.length != width)
        return false;
    for (unsigned i = 0; i < width; i++)
        value |= (uint64_t)blob.data[i] << 8 * i;
    return value == bits;
}

/* The name of an enum's value, the first if there are several. False: it is no enum, or the value has no name. */
static bool put_enum(struct exception_writer *w, uint64_t object, uint64_t method_table)
{
    struct module_cache *cache = w->output->cache;
    const struct metadata *metadata;
    struct object_field value;
    struct metadata_field field;
    char buffer[METADATA_STRING_CAP];
    const char *name;
    size_t length;
    uint32_t token, begin, end;
    bool is_enum;
    struct metadata_type_def type;
    if (type_handle_definition(cache, method_table, &metadata, &token) != CDACQ_OK ||
        metadata_type_def(metadata, metadata_rid(token), &type) != CDACQ_OK ||
        metadata_type_is(metadata, type.extends, "System", "Enum", &is_enum) != CDACQ_OK || !is_enum ||
        !object_field_declared(cache, method_table, "value__", &value) ||
        metadata_fields(metadata, metadata_rid(token), &begin, &end) != CDACQ_OK)
        return false;
    unsigned width = element_width(value.element, cache->reader->pointer_size);
    uint64_t bits = width ? read_uint(cache->reader, object_field_address(cache->reader, object, &value), width) : 0;
    for (uint32_t rid = begin; width && rid < end && reader_step(cache->reader, "the values of an enum"); rid++)
        if (constant_is(metadata, rid, bits, width)) {
            if (metadata_field(metadata, rid, &field) != CDACQ_OK ||
                metadata_string(metadata, field.name, buffer, &name, &length) != CDACQ_OK)
                return false;
            exception_put(w, name, length);
            return true;
        }
    return false;
}

void exception_put_object(struct exception_writer *w, uint64_t object)
{
    struct module_cache *cache = w->output->cache;
    struct reader *reader = cache->reader;
    char text[64];
    struct reader_task outer = reader_enter(reader, FUEL_INDEX);
    uint64_t method_table = object_method_table(cache->reader, object), value = object + reader->pointer_size, bits = 0;
    uint8_t element = method_table ? boxed_element(cache, method_table) : 0;
    unsigned width = element_width(element, reader->pointer_size);
    bool is_object = method_table && is_system_object(cache, method_table);
    bool named = method_table && !element && put_enum(w, object, method_table);
    if (width)
        bits = read_uint(reader, value, width);
    if (element == ELEMENT_I && reader->pointer_size == 4)
        bits = (uint64_t)(int32_t)bits;
    if (!exception_leave_part(w, &outer) || named)
        return;
    if (element == ELEMENT_STRING) {
        exception_put_string(w, object);
    } else if (element == ELEMENT_CHAR) {
        put_unit(w, (uint16_t)bits);
    } else if (element && format_primitive(text, sizeof text, element, bits)) {
        w->flaws |= text_is_of_culture(element, text) ? EXCEPTION_TEXT_INFERRED : 0;
        exception_puts(w, text);
    } else {
        if (!is_object)
            w->flaws |= EXCEPTION_TEXT_OVERRIDDEN;
        exception_put_type(w, method_table);
    }
}
