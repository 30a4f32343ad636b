/* object.c: the calls of cdacq/object.h. */
#include "contracts/objects/field.h"
#include "contracts/objects/object.h"
#include "contracts/objects/string.h"
#include "contracts/type_system/type_handle.h"
#include "formats/names/signature.h"
#include "formats/names/spelling.h"
#include "src/api/question.h"
#include "util/sized.h"

enum {
    TYPE_HANDLE_IS_DESC = 2,     /* a pointer or another type without a MethodTable */
    MT_CATEGORY_MASK = 0xc0000,  /* of the two bits that tell value types from others */
    MT_CATEGORY_VALUE = 0x40000, /* a struct, an enum or a primitive type */
};

static enum cdacq_status begin(struct cdacq_session *session, uint64_t object, struct cdacq_error *err)
{
    if (!session || !object)
        return error_set(err, CDACQ_ERR_ARGUMENT, object, session ? "no object" : "no session");
    session_begin_question(session);
    reader_begin(&session->reader.raw, FUEL_INDEX);
    return CDACQ_OK;
}

/* Type.ToString() of a MethodTable; NULL if it is not known. */
static const char *type_name(struct cdacq_session *session, uint64_t method_table)
{
    struct text text = {0};
    const struct name_source source = {0};
    struct reader_task outer = reader_enter(&session->reader.raw, FUEL_INDEX);
    struct namer n = namer_begin(&source, &type_spelling_reflection, &text);
    type_handle_feed(&session->modules, method_table, &n);
    const char *name =
        namer_end(&n) == CDACQ_OK && text.length ? session_intern(session, text.data, text.length) : NULL;
    reader_leave(&session->reader.raw, &outer);
    text_deinit(&text);
    return name;
}

enum cdacq_status cdacq_session_get_object(struct cdacq_session *session, uint64_t address, struct cdacq_object *ret,
                                           struct cdacq_error *err)
{
    struct object_array array;
    enum cdacq_status status = sized_check(ret, "struct cdacq_object", err);
    if (status == CDACQ_OK)
        status = begin(session, address, err);
    if (status < 0)
        return status;
    struct field_reader *reader = &session->reader;
    struct cdacq_object object = {.size = sizeof object,
                                  .address = address,
                                  .method_table = object_method_table(reader, address),
                                  .byte_size = object_size(reader, address)};
    if (object_array_read(reader, address, &array)) {
        object.is_array = true;
        object.length = array.count;
        object.rank = array.rank;
        object.element_size = array.element_size;
    } else if (!reader_failed(&reader->raw)) {
        struct reader_task outer = reader_enter(&reader->raw, FUEL_LOOKUP);
        object.length = string_length(reader, address);
        object.is_string = reader_leave(&reader->raw, &outer).status >= 0;
        object.length = object.is_string ? object.length : 0;
    }
    if (reader_failed(&reader->raw))
        return reader_status(&reader->raw, err);
    object.type = type_name(session, object.method_table);
    sized_copy(ret, &object, sizeof object);
    return CDACQ_OK;
}

/* ---- Values ---- */

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
        return CDACQ_VALUE_POINTER;
    case ELEMENT_VALUETYPE:
        return CDACQ_VALUE_STRUCT;
    default:
        return CDACQ_VALUE_UNSIGNED;
    }
}

/* Reads a value of the type `element`. `struct_width` is the width of a struct, or 0 if it is not known. */
static void read_value(struct field_reader *reader, uint8_t element, uint64_t address, uint32_t struct_width,
                       struct cdacq_value *ret)
{
    unsigned pointer = reader->raw.pointer_size, width = element_width(element, pointer);
    enum cdacq_value_kind kind = kind_of(element);
    if (kind == CDACQ_VALUE_REFERENCE || kind == CDACQ_VALUE_POINTER)
        width = pointer;
    else if (!width)
        kind = CDACQ_VALUE_STRUCT;
    *ret = (struct cdacq_value){.size = sizeof *ret,
                                .kind = kind,
                                .width = kind == CDACQ_VALUE_STRUCT ? struct_width : width,
                                .address = address};
    if (kind == CDACQ_VALUE_STRUCT)
        return;
    ret->bits = read_uint(&reader->raw, address, width);
    unsigned above = 64 - 8 * width;
    if (kind == CDACQ_VALUE_SIGNED)
        ret->bits = (uint64_t)((int64_t)(ret->bits << above) >> above);
}

enum cdacq_status cdacq_session_get_field(struct cdacq_session *session, uint64_t object, const char *name,
                                          struct cdacq_value *ret, struct cdacq_error *err)
{
    struct object_field field;
    struct cdacq_value value;
    enum cdacq_status status = sized_check(ret, "struct cdacq_value", err);
    if (status == CDACQ_OK)
        status = name ? begin(session, object, err) : error_set(err, CDACQ_ERR_ARGUMENT, 0, "no name");
    if (status < 0)
        return status;
    struct field_reader *reader = &session->reader;
    uint64_t method_table = object_method_table(reader, object);
    bool found = !reader_failed(&reader->raw) && object_field_find(&session->modules, method_table, name, &field);
    if (reader_failed(&reader->raw))
        return reader_status(&reader->raw, err);
    if (!found)
        return CDACQ_NOT_MANAGED;
    if (field.is_static)
        return error_set(err, CDACQ_ERR_CONTRACT, object,
                         "the field is static: this build does not read static fields");
    read_value(reader, field.element, object_field_address(reader, object, &field), 0, &value);
    if (reader_failed(&reader->raw))
        return reader_status(&reader->raw, err);
    sized_copy(ret, &value, sizeof value);
    return CDACQ_OK;
}

/* The type of an array's elements as an element type of metadata, which is what fields have. */
static uint8_t element_of(struct cdacq_session *session, uint64_t type)
{
    struct field_reader *reader = &session->reader;
    if (type & TYPE_HANDLE_IS_DESC)
        return ELEMENT_PTR;
    uint32_t flags = (uint32_t)read_field(reader, type, F_MethodTable_MTFlags);
    if ((flags & MT_CATEGORY_MASK) != MT_CATEGORY_VALUE)
        return ELEMENT_CLASS;
    uint8_t element = boxed_element(&session->modules, type);
    return element ? element : ELEMENT_VALUETYPE;
}

enum cdacq_status cdacq_session_get_element(struct cdacq_session *session, uint64_t array, uint32_t index,
                                            struct cdacq_value *ret, struct cdacq_error *err)
{
    struct object_array content;
    struct cdacq_value value;
    enum cdacq_status status = sized_check(ret, "struct cdacq_value", err);
    if (status == CDACQ_OK)
        status = begin(session, array, err);
    if (status < 0)
        return status;
    struct field_reader *reader = &session->reader;
    bool is_array = object_array_read(reader, array, &content);
    if (!reader_failed(&reader->raw) && (!is_array || index >= content.count))
        return error_set(err, CDACQ_ERR_ARGUMENT, array,
                         is_array ? "the array has no such element" : "the object is no array");
    if (is_array) {
        uint8_t element = element_of(session, content.element_type);
        read_value(reader, element, content.elements + (uint64_t)index * content.element_size, content.element_size,
                   &value);
    }
    if (reader_failed(&reader->raw))
        return reader_status(&reader->raw, err);
    if (value.width != content.element_size)
        return error_set(err, CDACQ_ERR_CORRUPT, array, "the array at 0x%llx: elements of %u bytes do not fit its type",
                         (unsigned long long)array, content.element_size);
    sized_copy(ret, &value, sizeof value);
    return CDACQ_OK;
}

/* ---- Strings ---- */

struct caller {
    int (*write)(const char *bytes, size_t length, void *context);
    void *context;
    bool stopped;
};

static bool pass_on(void *context, const char *utf8, size_t length)
{
    struct caller *caller = context;
    caller->stopped = caller->write(utf8, length, caller->context) != 0;
    return !caller->stopped;
}

enum cdacq_status cdacq_session_write_string(struct cdacq_session *session, uint64_t string, uint32_t max,
                                             int (*write)(const char *bytes, size_t length, void *context),
                                             void *context, struct cdacq_error *err)
{
    struct caller caller = {.write = write, .context = context};
    enum cdacq_status status =
        write ? begin(session, string, err) : error_set(err, CDACQ_ERR_ARGUMENT, 0, "no function to call");
    if (status < 0)
        return status;
    session->visits++; /* what `write` does is part of this question */
    string_each(&session->reader, string, max, pass_on, &caller);
    session->visits--;
    if (caller.stopped)
        return CDACQ_STOPPED;
    return reader_status(&session->reader.raw, err);
}
