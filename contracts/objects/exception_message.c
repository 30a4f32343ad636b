/* The texts are those of the framework's resources, which are the same in .NET 8, 9 and 10. */
#include "contracts/objects/exception_message.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "contracts/objects/exception_trace.h"
#include "contracts/objects/field.h"
#include "contracts/objects/object.h"
#include "contracts/type_system/type_handle.h"
#include "formats/metadata_members.h"
#include "formats/names/signature.h"
#include "util/utf16.h"

#define HRESULT(value) ((int32_t)UINT32_C(value))

static const char inner_prefix[] = "\n ---> ";

/* ---- Exception ---- */

static void base_message(struct exception_writer *w, const struct writing_exception *e)
{
    if (e->fields.message) {
        exception_put_string(w, e->fields.message);
        return;
    }
    exception_puts(w, "Exception of type '");
    exception_put_type(w, e->fields.method_table);
    exception_puts(w, "' was thrown.");
}

/* The message after ": ", if it is not empty. */
static void put_message_after_colon(struct exception_writer *w, const struct writing_exception *e)
{
    w->pending = ": ";
    exception_put_message(w, e);
    w->pending = NULL;
}

/* Another exception's text or message. */
static void put_other(struct exception_writer *w, const struct writing_exception *e, uint64_t other,
                      void (*put)(struct exception_writer *w, const struct writing_exception *e))
{
    struct writing_exception exception;
    if (exception_enter(w, other, e, &exception))
        put(w, &exception);
}

static void base_text(struct exception_writer *w, const struct writing_exception *e)
{
    exception_put_type(w, e->fields.method_table);
    put_message_after_colon(w, e);
    if (e->fields.inner) {
        exception_puts(w, inner_prefix);
        put_other(w, e, e->fields.inner, exception_put_text);
        exception_puts(w, "\n   --- End of inner exception stack trace ---");
    }
    exception_put_trace(w, &e->fields, "\n");
}

/* The end of ToString() of types that do not mark the end of the inner exception, after a `prefix` of their own. */
static void put_inner_and_trace(struct exception_writer *w, const struct writing_exception *e, const char *prefix)
{
    if (e->fields.inner) {
        exception_puts(w, prefix);
        put_other(w, e, e->fields.inner, exception_put_text);
    }
    exception_put_trace(w, &e->fields, "\n");
}

/* ---- Values ---- */

/* A plain field of at most 8 bytes. */
static uint64_t read_value(struct exception_writer *w, const struct writing_exception *e, const char *name,
                           unsigned width)
{
    struct module_cache *cache = w->output->cache;
    struct object_field field;
    uint64_t value = 0;
    struct reader_task outer = reader_enter(&cache->reader->raw, FUEL_INDEX);
    bool found = object_field_find(cache, e->fields.method_table, name, &field) && !field.is_static;
    if (found)
        value = read_uint(&cache->reader->raw, object_field_address(cache->reader, e->fields.address, &field), width);
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

static bool put_unit(struct exception_writer *w, uint16_t unit)
{
    char utf8[UTF8_PER_UTF16];
    uint8_t bytes[2];
    size_t taken;
    store_u16(bytes, unit, false);
    exception_put(w, utf8, (size_t)(utf16_to_utf8(utf8, bytes, 1, false, false, &taken) - utf8));
    return true;
}

/* Whether the literal field `rid` has a value, of which `width` bytes are `bits`. */
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
    unsigned width = element_width(value.element, cache->reader->raw.pointer_size);
    uint64_t bits =
        width ? read_uint(&cache->reader->raw, object_field_address(cache->reader, object, &value), width) : 0;
    for (uint32_t rid = begin; width && rid < end && reader_step(&cache->reader->raw, "the values of an enum"); rid++)
        if (constant_is(metadata, rid, bits, width)) {
            if (metadata_field(metadata, rid, &field) != CDACQ_OK ||
                metadata_string(metadata, field.name, buffer, &name, &length) != CDACQ_OK)
                return false;
            exception_put(w, name, length);
            return true;
        }
    return false;
}

/* ToString() of an object. That of most types is code, in whose place the type's name is written. */
static void put_object(struct exception_writer *w, uint64_t object)
{
    struct module_cache *cache = w->output->cache;
    struct reader *raw = &cache->reader->raw;
    char text[64];
    struct reader_task outer = reader_enter(raw, FUEL_INDEX);
    uint64_t method_table = object_method_table(cache->reader, object), value = object + raw->pointer_size, bits = 0;
    uint8_t element = method_table ? boxed_element(cache, method_table) : 0;
    unsigned width = element_width(element, raw->pointer_size);
    bool is_object = method_table && is_system_object(cache, method_table);
    bool named = method_table && !element && put_enum(w, object, method_table);
    if (width)
        bits = read_uint(raw, value, width);
    if (element == ELEMENT_I && raw->pointer_size == 4)
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

/* `before`, a string, `after`: nothing for an empty string. */
static void put_between(struct exception_writer *w, const char *before, uint64_t string, const char *after)
{
    if (!exception_has_text(w, string))
        return;
    exception_puts(w, before);
    exception_put_string(w, string);
    exception_puts(w, after);
}

/* ---- Messages ---- */

static void argument_message(struct exception_writer *w, const struct writing_exception *e)
{
    if (!e->fields.message && e->fields.hresult == HRESULT(0x80070057))
        exception_puts(w, "Value does not fall within the expected range.");
    else
        base_message(w, e);
    put_between(w, " (Parameter '", exception_member(w, e, "_paramName"), "')");
}

static void range_message(struct exception_writer *w, const struct writing_exception *e)
{
    uint64_t value = exception_member(w, e, "_actualValue");
    argument_message(w, e);
    if (value) {
        exception_puts(w, "\nActual value was ");
        put_object(w, value);
        exception_puts(w, ".");
    }
}

static void culture_message(struct exception_writer *w, const struct writing_exception *e)
{
    char text[64];
    uint64_t name = exception_member(w, e, "_invalidCultureName");
    uint64_t number = read_value(w, e, "_invalidCultureId", 8); /* a Nullable: whether it has a value, then the value */
    argument_message(w, e);
    if (number & 0xff) {
        snprintf(text, sizeof text, "\n%" PRId32 " (0x%04" PRIx32 ") is an invalid culture identifier.",
                 (int32_t)(number >> 32), (uint32_t)(number >> 32));
        exception_puts(w, text);
    } else if (name) {
        exception_puts(w, "\n");
        exception_put_string(w, name);
        exception_puts(w, " is an invalid culture identifier.");
    }
}

static void disposed_message(struct exception_writer *w, const struct writing_exception *e)
{
    base_message(w, e);
    put_between(w, "\nObject name: '", exception_member(w, e, "_objectName"), "'.");
}

static void switch_message(struct exception_writer *w, const struct writing_exception *e)
{
    uint64_t value = exception_member(w, e, "<UnmatchedValue>k__BackingField");
    base_message(w, e);
    if (value) {
        exception_puts(w, "\nUnmatched value was ");
        put_object(w, value);
        exception_puts(w, ".");
    }
}

/* Types with a field _message of their own. */
static void own_message(struct exception_writer *w, const struct writing_exception *e)
{
    uint64_t message = exception_member(w, e, "_message"); /* that of the derived type is found first */
    if (message)
        exception_put_string(w, message);
    else
        base_message(w, e);
}

/* What the runtime says of a file and an HRESULT. */
static void put_load_failure(struct exception_writer *w, const struct writing_exception *e, uint64_t file)
{
    char text[32];
    exception_puts(w, "Could not load file or assembly '");
    exception_put_string(w, file);
    exception_puts(w, "'. ");
    switch ((uint32_t)e->fields.hresult) {
    case 0x80070002:
        exception_puts(w, "The system cannot find the file specified.\n");
        break;
    case 0x8007000b:
        exception_puts(w, "An attempt was made to load a program with an incorrect format.\n");
        break;
    case 0x80131621:
        exception_puts(w, "Could not find or load a specific file. (0x80131621)");
        break;
    default:
        snprintf(text, sizeof text, "(0x%08" PRIX32 ")", (uint32_t)e->fields.hresult);
        exception_puts(w, text);
        w->flaws |= EXCEPTION_TEXT_OVERRIDDEN;
    }
}

static void no_file_message(struct exception_writer *w, const struct writing_exception *e)
{
    uint64_t file = exception_member(w, e, "<FileName>k__BackingField");
    if (e->fields.message)
        exception_put_string(w, e->fields.message);
    else if (file)
        put_load_failure(w, e, file);
    else if (e->fields.hresult == HRESULT(0x80131500))
        exception_puts(w, "Unable to find the specified file.");
}

static void not_loaded_message(struct exception_writer *w, const struct writing_exception *e)
{
    if (e->fields.message)
        exception_put_string(w, e->fields.message);
    else
        put_load_failure(w, e, exception_member(w, e, "<FileName>k__BackingField"));
}

static void bad_image_message(struct exception_writer *w, const struct writing_exception *e)
{
    uint64_t file = exception_member(w, e, "_fileName");
    if (e->fields.message)
        exception_put_string(w, e->fields.message);
    else if (!file && e->fields.hresult == HRESULT(0x80131500))
        exception_puts(w, "Format of the executable (.exe) or library (.dll) is invalid.");
    else
        put_load_failure(w, e, file);
}

static void missing_message(struct exception_writer *w, const struct writing_exception *e, const char *what)
{
    uint64_t type = exception_member(w, e, "ClassName");
    if (!type) {
        base_message(w, e);
        return;
    }
    if (exception_member(w, e, "Signature")) /* part of the text, decoded by the runtime */
        w->flaws |= EXCEPTION_TEXT_OVERRIDDEN;
    exception_puts(w, what);
    exception_put_string(w, type);
    exception_puts(w, ".");
    exception_put_string(w, exception_member(w, e, "MemberName"));
    exception_puts(w, "' not found.");
}

static void missing_member_message(struct exception_writer *w, const struct writing_exception *e)
{
    missing_message(w, e, "Member '");
}

static void missing_method_message(struct exception_writer *w, const struct writing_exception *e)
{
    missing_message(w, e, "Method '");
}

static void missing_field_message(struct exception_writer *w, const struct writing_exception *e)
{
    missing_message(w, e, "Field '");
}

static void type_load_message(struct exception_writer *w, const struct writing_exception *e)
{
    uint64_t type = exception_member(w, e, "_className");
    if (e->fields.message) {
        exception_put_string(w, e->fields.message);
    } else if (!type && !read_value(w, e, "_resourceId", 4)) {
        exception_puts(w, "Failure has occurred while loading a type.");
    } else { /* one of many resources of the runtime */
        w->flaws |= EXCEPTION_TEXT_OVERRIDDEN;
        exception_puts(w, "Could not load type '");
        exception_put_string(w, type);
        exception_puts(w, "' from assembly '");
        exception_put_string(w, exception_member(w, e, "_assemblyName"));
        exception_puts(w, "'.");
    }
}

/* ---- Types with several inner exceptions ---- */

/* Element `index` of an array of references. False after the last one, and where the text has to end before it. */
static bool element_at(struct exception_writer *w, const struct object_array *array, uint32_t index, uint64_t *ret)
{
    struct reader *raw = &w->output->cache->reader->raw;
    if (index >= array->count || w->stopped)
        return false;
    /* The count is what the target says, and elements that are null cost no exception. */
    if (!w->exceptions_left || !w->elements_left) {
        w->flaws |= EXCEPTION_TEXT_CUT;
        return false;
    }
    w->elements_left--;
    struct reader_task outer = reader_enter(raw, FUEL_LOOKUP);
    uint64_t element = read_pointer(raw, array->elements + (uint64_t)index * raw->pointer_size);
    *ret = element;
    return exception_leave_part(w, &outer);
}

/* The array in a field. Its count is 0 if there is none. */
static struct object_array read_list(struct exception_writer *w, const struct writing_exception *e, const char *name)
{
    struct field_reader *reader = w->output->cache->reader;
    struct object_array array = {0};
    uint64_t object = exception_member(w, e, name);
    struct reader_task outer = reader_enter(&reader->raw, FUEL_LOOKUP);
    if (object && (!object_array_read(reader, object, &array) || array.element_size != reader->raw.pointer_size)) {
        array.count = 0;
        w->flaws |= EXCEPTION_TEXT_MISSING;
    }
    exception_leave_part(w, &outer);
    return array;
}

static void aggregate_message(struct exception_writer *w, const struct writing_exception *e)
{
    const struct object_array list = read_list(w, e, "_innerExceptions");
    uint64_t other;
    base_message(w, e);
    for (uint32_t i = 0; element_at(w, &list, i, &other); i++) {
        exception_puts(w, " (");
        put_other(w, e, other, exception_put_message);
        exception_puts(w, ")");
    }
}

static void aggregate_text(struct exception_writer *w, const struct writing_exception *e)
{
    char number[64];
    const struct object_array list = read_list(w, e, "_innerExceptions");
    uint64_t other;
    base_text(w, e);
    for (uint32_t i = 0; element_at(w, &list, i, &other); i++) {
        if (other == e->fields.inner)
            continue;
        snprintf(number, sizeof number, "\n ---> (Inner Exception #%" PRIu32 ") ", i);
        exception_puts(w, number);
        put_other(w, e, other, exception_put_text);
        exception_puts(w, "<---\n");
    }
}

/* What follows the text or message of a ReflectionTypeLoadException: those of the others, a line each. */
static void put_loader_exceptions(struct exception_writer *w, const struct writing_exception *e,
                                  void (*put)(struct exception_writer *w, const struct writing_exception *e))
{
    const struct object_array list = read_list(w, e, "<LoaderExceptions>k__BackingField");
    uint64_t other;
    for (uint32_t i = 0; element_at(w, &list, i, &other); i++) {
        if (!other)
            continue;
        exception_puts(w, "\n");
        put_other(w, e, other, put);
    }
}

static void loader_message(struct exception_writer *w, const struct writing_exception *e)
{
    base_message(w, e);
    put_loader_exceptions(w, e, exception_put_message);
}

static void loader_text(struct exception_writer *w, const struct writing_exception *e)
{
    base_text(w, e);
    put_loader_exceptions(w, e, exception_put_text);
}

/* ---- Texts ---- */

static void file_text(struct exception_writer *w, const struct writing_exception *e, const char *file,
                      const char *fusion_log, const char *prefix)
{
    uint64_t log = exception_member(w, e, fusion_log);
    exception_put_type(w, e->fields.method_table);
    exception_puts(w, ": ");
    exception_put_message(w, e);
    put_between(w, "\nFile name: '", exception_member(w, e, file), "'");
    put_inner_and_trace(w, e, prefix);
    if (log) {
        exception_puts(w, "\n\n");
        exception_put_string(w, log);
    }
}

static void bad_image_text(struct exception_writer *w, const struct writing_exception *e)
{
    file_text(w, e, "_fileName", "_fusionLog", " ---> ");
}

static void file_load_text(struct exception_writer *w, const struct writing_exception *e)
{
    file_text(w, e, "<FileName>k__BackingField", "<FusionLog>k__BackingField", inner_prefix);
}

static void external_text(struct exception_writer *w, const struct writing_exception *e)
{
    char number[32];
    exception_put_type(w, e->fields.method_table);
    snprintf(number, sizeof number, " (0x%08" PRIX32 ")", (uint32_t)e->fields.hresult);
    exception_puts(w, number);
    put_message_after_colon(w, e);
    put_inner_and_trace(w, e, inner_prefix);
}

static void win32_text(struct exception_writer *w, const struct writing_exception *e)
{
    char number[32];
    int32_t code = (int32_t)read_value(w, e, "<NativeErrorCode>k__BackingField", 4);
    if (code == 0 || code == e->fields.hresult) {
        external_text(w, e);
        return;
    }
    exception_put_type(w, e->fields.method_table);
    if (code < 0)
        snprintf(number, sizeof number, " (0x%08" PRIX32 ")", (uint32_t)code);
    else
        snprintf(number, sizeof number, " (%" PRId32 ")", code);
    exception_puts(w, number);
    put_message_after_colon(w, e);
    put_inner_and_trace(w, e, inner_prefix);
}

static const char core[] = "System.Private.CoreLib", xml[] = "System.Private.Xml";

static const struct exception_kind kinds[] = {
    {core, "System", "Exception", base_message, base_text},
    {core, "System", "ArgumentException", argument_message, NULL},
    {core, "System", "ArgumentOutOfRangeException", range_message, NULL},
    {core, "System", "ObjectDisposedException", disposed_message, NULL},
    {core, "System", "AggregateException", aggregate_message, aggregate_text},
    {core, "System", "BadImageFormatException", bad_image_message, bad_image_text},
    {core, "System", "MissingMemberException", missing_member_message, NULL},
    {core, "System", "MissingMethodException", missing_method_message, NULL},
    {core, "System", "MissingFieldException", missing_field_message, NULL},
    {core, "System", "TypeLoadException", type_load_message, NULL},
    {core, "System.IO", "FileNotFoundException", no_file_message, file_load_text},
    {core, "System.IO", "FileLoadException", not_loaded_message, file_load_text},
    {core, "System.Globalization", "CultureNotFoundException", culture_message, NULL},
    {core, "System.Reflection", "ReflectionTypeLoadException", loader_message, loader_text},
    {core, "System.Runtime.CompilerServices", "SwitchExpressionException", switch_message, NULL},
    {core, "System.Runtime.InteropServices", "ExternalException", NULL, external_text},
    {core, "System.Runtime.InteropServices", "COMException", NULL, external_text},
    {core, "System.ComponentModel", "Win32Exception", NULL, win32_text},
    {"System.Net.Primitives", "System.Net.Sockets", "SocketException", base_message, NULL},
    {core, "System.Security", "SecurityException", NULL, base_text},
    {"System.Text.Json", "System.Text.Json", "JsonException", own_message, NULL},
    {xml, "System.Xml", "XmlException", own_message, NULL},
    {xml, "System.Xml.Schema", "XmlSchemaException", own_message, NULL},
    {xml, "System.Xml.XPath", "XPathException", own_message, NULL},
    {xml, "System.Xml.Xsl", "XsltException", own_message, NULL},
};

const struct exception_kind *const exception_kind_base = &kinds[0];

static bool has_string(const struct metadata *metadata, uint32_t index, const char *string)
{
    bool equal = false;
    return metadata_string_equals(metadata, index, string, strlen(string), &equal) == CDACQ_OK && equal;
}

const struct exception_kind *exception_kind_find(const struct metadata *metadata, uint32_t token)
{
    struct metadata_type_def type;
    char buffer[METADATA_STRING_CAP];
    const char *name;
    size_t length;
    uint32_t assembly;
    if (metadata_type_def(metadata, metadata_rid(token), &type) != CDACQ_OK ||
        metadata_string(metadata, type.name, buffer, &name, &length) != CDACQ_OK ||
        metadata_assembly_name(metadata, &assembly) != CDACQ_OK)
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (strlen(kinds[i].name) == length && memcmp(kinds[i].name, name, length) == 0)
            return has_string(metadata, type.namespace_name, kinds[i].space) &&
                           has_string(metadata, assembly, kinds[i].assembly)
                       ? &kinds[i]
                       : NULL;
    return NULL;
}
