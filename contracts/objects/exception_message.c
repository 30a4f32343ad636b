/*
 * The texts are those of the framework's resources, which are the same in .NET 8 to 11, or their keys. What only some
 * releases write depends on a field that the others do not have. What follows an assembly's name comes from the runtime
 * itself, which has no keys.
 */
#include "contracts/objects/exception_message.h"

#include <inttypes.h>
#include <stdio.h>

#include "contracts/objects/exception_trace.h"
#include "contracts/objects/exception_value.h"
#include "contracts/objects/reference_list.h"
#include "formats/metadata_members.h"

#define HRESULT(value) ((int32_t)UINT32_C(value))

static const char core[] = "System.Private.CoreLib", xml[] = "System.Private.Xml",
                  options[] = "Microsoft.Extensions.Options"; /* part of the framework since .NET 11 */
static const char inner_prefix[] = "\n ---> ";

static const struct resource_text was_thrown = {"Exception_WasThrown", "Exception of type '", "' was thrown."};
static const struct resource_text end_of_inner = {"Exception_EndOfInnerExceptionStack",
                                                  "--- End of inner exception stack trace ---", NULL};
static const struct resource_text inner_number = {"AggregateException_InnerException", "(Inner Exception #", ") "};
static const struct resource_text argument = {"Arg_ArgumentException", "Value does not fall within the expected range.",
                                              NULL};
static const struct resource_text parameter = {"Arg_ParamName_Name", "(Parameter '", "')"};
static const struct resource_text actual_value = {"ArgumentOutOfRange_ActualValue", "Actual value was ", "."};
static const struct resource_text unmatched_value = {"SwitchExpressionException_UnmatchedValue", "Unmatched value was ",
                                                     "."};
static const struct resource_text culture = {"Argument_CultureInvalidIdentifier", "",
                                             " is an invalid culture identifier."};
static const struct resource_text object_name = {"ObjectDisposed_ObjectName_Name", "Object name: '", "'."};
static const struct resource_text no_file = {"IO_FileNotFound", "Unable to find the specified file.", NULL};
static const struct resource_text bad_image = {"Arg_BadImageFormatException",
                                               "Format of the executable (.exe) or library (.dll) is invalid.", NULL};
static const struct resource_text missing_member = {"MissingMember_Name", "Member '", "' not found."};
static const struct resource_text missing_method = {"MissingMethod_Name", "Method '", "' not found."};
static const struct resource_text missing_field = {"MissingField_Name", "Field '", "' not found."};
static const struct resource_text type_load = {"Arg_TypeLoadException", "Failure has occurred while loading a type.",
                                               NULL};
static const struct resource_text file_name = {"IO_FileName_Name", "File name: '", "'"};
static const struct resource_text directory_name = {"IO_DirectoryName_Name", "Directory path: '", "'"};
static const struct resource_text requested_by = {"IO_FileLoad_RequestedBy", "Requested by: ", ""};

/* ---- Exception ---- */

static void base_message(struct exception_writer *w, const struct writing_exception *e)
{
    if (e->fields.message) {
        exception_put_string(w, e->fields.message);
        return;
    }
    exception_begin_resource(w, &was_thrown);
    exception_put_type(w, e->fields.method_table);
    exception_end_resource(w, &was_thrown);
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
        exception_puts(w, "\n   ");
        exception_put_resource(w, &end_of_inner);
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

/* `prefix` and a text with a string: nothing for an empty string. */
static void put_named(struct exception_writer *w, const char *prefix, const struct resource_text *text, uint64_t string)
{
    if (!exception_has_text(w, string))
        return;
    exception_puts(w, prefix);
    exception_begin_resource(w, text);
    exception_put_string(w, string);
    exception_end_resource(w, text);
}

/* A text with ToString() of an object, on a line of its own: nothing for null. */
static void put_value(struct exception_writer *w, const struct resource_text *text, uint64_t object)
{
    if (!object)
        return;
    exception_puts(w, "\n");
    exception_begin_resource(w, text);
    exception_put_object(w, object);
    exception_end_resource(w, text);
}

/* ---- Messages ---- */

static void argument_message(struct exception_writer *w, const struct writing_exception *e)
{
    if (!e->fields.message && e->fields.hresult == HRESULT(0x80070057))
        exception_put_resource(w, &argument);
    else
        base_message(w, e);
    put_named(w, " ", &parameter, exception_member(w, e, "_paramName"));
}

static void range_message(struct exception_writer *w, const struct writing_exception *e)
{
    uint64_t value = exception_member(w, e, "_actualValue");
    argument_message(w, e);
    put_value(w, &actual_value, value);
}

static void culture_message(struct exception_writer *w, const struct writing_exception *e)
{
    char text[64];
    uint64_t name = exception_member(w, e, "_invalidCultureName");
    uint64_t number =
        exception_value(w, e, "_invalidCultureId", 8); /* a Nullable: whether it has a value, then the value */
    argument_message(w, e);
    if (number & 0xff) {
        snprintf(text, sizeof text, "%" PRId32 " (0x%04" PRIx32 ")", (int32_t)(number >> 32), (uint32_t)(number >> 32));
        exception_puts(w, "\n");
        exception_begin_resource(w, &culture);
        exception_puts(w, text);
        exception_end_resource(w, &culture);
    } else if (name) {
        exception_puts(w, "\n");
        exception_begin_resource(w, &culture);
        exception_put_string(w, name);
        exception_end_resource(w, &culture);
    }
}

static void disposed_message(struct exception_writer *w, const struct writing_exception *e)
{
    base_message(w, e);
    put_named(w, "\n", &object_name, exception_member(w, e, "_objectName"));
}

static void switch_message(struct exception_writer *w, const struct writing_exception *e)
{
    uint64_t value = exception_member(w, e, "<UnmatchedValue>k__BackingField");
    base_message(w, e);
    put_value(w, &unmatched_value, value);
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
        exception_put_resource(w, &no_file);
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
        exception_put_resource(w, &bad_image);
    else
        put_load_failure(w, e, file);
}

static void missing_message(struct exception_writer *w, const struct writing_exception *e,
                            const struct resource_text *text)
{
    uint64_t type = exception_member(w, e, "ClassName");
    if (!type) {
        base_message(w, e);
        return;
    }
    if (exception_member(w, e, "Signature")) /* part of the text, decoded by the runtime */
        w->flaws |= EXCEPTION_TEXT_OVERRIDDEN;
    exception_begin_resource(w, text);
    exception_put_string(w, type);
    exception_puts(w, exception_has_keys(w) ? ", " : ".");
    exception_put_string(w, exception_member(w, e, "MemberName"));
    exception_end_resource(w, text);
}

static void missing_member_message(struct exception_writer *w, const struct writing_exception *e)
{
    missing_message(w, e, &missing_member);
}

static void missing_method_message(struct exception_writer *w, const struct writing_exception *e)
{
    missing_message(w, e, &missing_method);
}

static void missing_field_message(struct exception_writer *w, const struct writing_exception *e)
{
    missing_message(w, e, &missing_field);
}

static void type_load_message(struct exception_writer *w, const struct writing_exception *e)
{
    uint64_t type = exception_member(w, e, "_className");
    if (e->fields.message) {
        exception_put_string(w, e->fields.message);
    } else if (!type && !exception_value(w, e, "_resourceId", 4)) {
        exception_put_resource(w, &type_load);
    } else { /* one of many resources of the runtime */
        w->flaws |= EXCEPTION_TEXT_OVERRIDDEN;
        exception_puts(w, "Could not load type '");
        exception_put_string(w, type);
        exception_puts(w, "' from assembly '");
        exception_put_string(w, exception_member(w, e, "_assemblyName"));
        exception_puts(w, "'.");
    }
}

/* ---- Types with several inner exceptions, or several messages ---- */

/* Element `index` of an array of references. False after the last one, and where the text has to end before it. */
static bool element_at(struct exception_writer *w, const struct object_array *array, uint32_t index, uint64_t *ret)
{
    struct reader *reader = w->output->cache->reader;
    if (index >= array->count || w->stopped)
        return false;
    /* The count is what the target says, and elements that are null cost no exception. */
    if (!w->exceptions_left || !w->elements_left) {
        w->flaws |= EXCEPTION_TEXT_CUT;
        return false;
    }
    w->elements_left--;
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    uint64_t element = read_pointer(reader, array->elements + (uint64_t)index * reader->pointer_size);
    *ret = element;
    return exception_leave_part(w, &outer);
}

/* The array in a field. Its count is 0 if there is none. */
static struct object_array read_list(struct exception_writer *w, const struct writing_exception *e, const char *name)
{
    struct reader *reader = w->output->cache->reader;
    struct object_array array = {0};
    uint64_t object = exception_member(w, e, name);
    struct reader_task outer = reader_enter(reader, FUEL_LOOKUP);
    if (object && !reference_array_read(reader, object, &array)) {
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
    char number[16];
    const struct object_array list = read_list(w, e, "_innerExceptions");
    uint64_t other;
    base_text(w, e);
    for (uint32_t i = 0; element_at(w, &list, i, &other); i++) {
        if (other == e->fields.inner)
            continue;
        snprintf(number, sizeof number, "%" PRIu32, i);
        exception_puts(w, inner_prefix);
        exception_put_resource(w, &inner_number);
        exception_puts(w, exception_has_keys(w) ? "" : number); /* it is formatted, and the key has no place for it */
        exception_end_resource(w, &inner_number);
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

static void options_message(struct exception_writer *w, const struct writing_exception *e)
{
    struct module_cache *cache = w->output->cache;
    struct object_array items;
    uint64_t list = exception_member(w, e, "<Failures>k__BackingField"), text;
    struct reader_task outer = reader_enter(cache->reader, FUEL_INDEX);
    bool known = list && reference_list_read(cache, list, &items);
    if (!exception_leave_part(w, &outer) || !known) { /* another collection, whose code would have to run */
        w->flaws |= EXCEPTION_TEXT_OVERRIDDEN;
        base_message(w, e);
        return;
    }
    for (uint32_t i = 0; element_at(w, &items, i, &text); i++) {
        if (i)
            exception_puts(w, "; ");
        exception_put_string(w, text);
    }
}

/* ---- Texts ---- */

/* For types that write the colon even if the message is empty. */
static void put_type_and_message(struct exception_writer *w, const struct writing_exception *e)
{
    exception_put_type(w, e->fields.method_table);
    exception_puts(w, ": ");
    exception_put_message(w, e);
}

static void file_text(struct exception_writer *w, const struct writing_exception *e, const char *file,
                      const char *fusion_log, const char *prefix)
{
    uint64_t log = exception_member(w, e, fusion_log), chain;
    put_type_and_message(w, e);
    put_named(w, "\n", &file_name, exception_member(w, e, file));
    if (exception_find_member(w, e, "_requestingAssemblyChain", &chain)) /* since .NET 11 */
        put_named(w, "\n", &requested_by, chain);
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

static void directory_text(struct exception_writer *w, const struct writing_exception *e)
{
    uint64_t path;
    if (!exception_find_member(w, e, "<DirectoryPath>k__BackingField", &path)) { /* up to .NET 10 */
        base_text(w, e);
        return;
    }
    put_type_and_message(w, e);
    put_named(w, "\n", &directory_name, path);
    put_inner_and_trace(w, e, inner_prefix);
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
    int32_t code = (int32_t)exception_value(w, e, "<NativeErrorCode>k__BackingField", 4);
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
    {core, "System.IO", "DirectoryNotFoundException", NULL, directory_text},
    {core, "System.Globalization", "CultureNotFoundException", culture_message, NULL},
    {core, "System.Reflection", "ReflectionTypeLoadException", loader_message, loader_text},
    {core, "System.Runtime.CompilerServices", "SwitchExpressionException", switch_message, NULL},
    {core, "System.Runtime.InteropServices", "ExternalException", NULL, external_text},
    {core, "System.Runtime.InteropServices", "COMException", NULL, external_text},
    {core, "System.ComponentModel", "Win32Exception", NULL, win32_text},
    {"System.Net.Primitives", "System.Net.Sockets", "SocketException", base_message, NULL},
    {core, "System.Security", "SecurityException", NULL, base_text},
    {options, "Microsoft.Extensions.Options", "OptionsValidationException", options_message, NULL},
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
    bool equal = false;
    if (metadata_type_def(metadata, metadata_rid(token), &type) != CDACQ_OK ||
        metadata_string(metadata, type.name, buffer, &name, &length) != CDACQ_OK)
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (strlen(kinds[i].name) == length && memcmp(kinds[i].name, name, length) == 0)
            return has_string(metadata, type.namespace_name, kinds[i].space) &&
                           metadata_assembly_is(metadata, kinds[i].assembly, &equal) == CDACQ_OK && equal
                       ? &kinds[i]
                       : NULL;
    return NULL;
}

const struct exception_kind *exception_kind_named(const char *assembly, const char *type)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        size_t space = strlen(kinds[i].space);
        if (strncmp(type, kinds[i].space, space) == 0 && type[space] == '.' &&
            strcmp(type + space + 1, kinds[i].name) == 0 && strcmp(assembly, kinds[i].assembly) == 0)
            return &kinds[i];
    }
    return NULL;
}
