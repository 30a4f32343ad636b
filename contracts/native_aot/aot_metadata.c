#include "contracts/native_aot/aot_metadata.h"

#include <stdio.h>

#include "contracts/ready_to_run/native_format.h"
#include "formats/names/type_walk.h"

enum {
    DEPTH_MAX = 32,      /* types within types */
    FUEL = 16 * 1024,    /* handles of one name */
    ARGUMENTS_MAX = 256, /* of a type or a method */
};

/* How a named type is written. */
enum type_flags {
    WITH_NAMESPACE = 1,
    WITH_PLUS = 2, /* before a nested type; otherwise a dot */
};

/* What type variables stand for: handles of types, of generic parameters, or of strings. */
struct variables {
    uint32_t count;
    aot_handle items[ARGUMENTS_MAX];
};

/* A name that is being written. */
struct writer {
    const struct native_section *metadata;
    struct text *text;
    unsigned depth, fuel;
    bool failed;
    struct variables of_type, of_method;
};

static void put_named(struct writer *w, aot_handle type, unsigned flags);
static void put_csharp(struct writer *w, aot_handle type);

static void fail(struct writer *w)
{
    w->failed = true;
}

/* ---- Records ---- */

static uint32_t next(struct writer *w, uint32_t *offset)
{
    uint32_t value = 0;
    if (!w->fuel || !native_unsigned(w->metadata, offset, &value))
        fail(w);
    w->fuel -= w->fuel != 0;
    return w->failed ? 0 : value;
}

static aot_handle next_handle(struct writer *w, uint32_t *offset)
{
    enum { TYPE_BITS = 7 };
    uint32_t value = next(w, offset);
    return aot_handle_of(value & ((1u << TYPE_BITS) - 1), value >> TYPE_BITS);
}

static void skip(struct writer *w, uint32_t *offset, unsigned count)
{
    while (count-- && !w->failed)
        next(w, offset);
}

static void skip_list(struct writer *w, uint32_t *offset)
{
    uint32_t count = next(w, offset);
    while (count-- && !w->failed)
        next(w, offset);
}

/* A list of handles of any type or, if `type` is not 0, of handles of that type. */
static void read_list(struct writer *w, uint32_t *offset, enum aot_handle_type type, struct variables *ret)
{
    uint32_t count = next(w, offset);
    if (count > ARGUMENTS_MAX)
        fail(w);
    ret->count = 0;
    for (uint32_t i = 0; i < count && !w->failed; i++)
        ret->items[ret->count++] = type ? aot_handle_of(type, next(w, offset)) : next_handle(w, offset);
}

/* The handle with which a record of a composed type begins. */
static aot_handle first_handle(struct writer *w, aot_handle record)
{
    uint32_t offset = aot_handle_offset(record);
    return next_handle(w, &offset);
}

/* A string: its length and its bytes in UTF-8. NULL, and the name fails, if it cannot be read. */
static const char *read_string(struct writer *w, uint32_t offset, uint32_t *ret_length)
{
    uint32_t length = 0;
    *ret_length = 0;
    if (!offset) /* no name */
        return "";
    length = next(w, &offset);
    if (w->failed || !range_fits(offset, length, w->metadata->size)) {
        fail(w);
        return NULL;
    }
    *ret_length = length;
    return (const char *)w->metadata->bytes + offset;
}

static void put_string(struct writer *w, uint32_t offset)
{
    uint32_t length;
    const char *string = read_string(w, offset, &length);
    if (string)
        text_escape(w->text, string, length);
}

struct type_definition {
    uint32_t space, name, enclosing; /* offsets of records */
    uint32_t parameters;             /* offset of the list of generic parameters */
};

static struct type_definition read_definition(struct writer *w, aot_handle type)
{
    struct type_definition ret = {0};
    uint32_t offset = aot_handle_offset(type);
    skip(w, &offset, 2); /* flags, base type */
    ret.space = next(w, &offset);
    ret.name = next(w, &offset);
    skip(w, &offset, 2); /* size, packing */
    ret.enclosing = next(w, &offset);
    for (unsigned i = 0; i < 5; i++) /* nested types, methods, fields, properties, events */
        skip_list(w, &offset);
    ret.parameters = offset;
    return ret;
}

/* Where the attributes of a type are listed. */
static uint32_t attributes_of_type(struct writer *w, aot_handle type)
{
    uint32_t offset = read_definition(w, type).parameters;
    skip_list(w, &offset);
    skip_list(w, &offset); /* interfaces */
    return offset;
}

struct method_record {
    uint32_t name, signature;
    uint32_t parameters; /* offset of the list */
};

static struct method_record read_method(struct writer *w, aot_handle method)
{
    struct method_record ret = {0};
    uint32_t offset = aot_handle_offset(method);
    skip(w, &offset, 2); /* flags */
    ret.name = next(w, &offset);
    ret.signature = next(w, &offset);
    ret.parameters = offset;
    return ret;
}

/* ---- Names of types, as the runtime writes them ---- */

static bool enter(struct writer *w)
{
    if (w->failed || w->depth == DEPTH_MAX) {
        fail(w);
        return false;
    }
    w->depth++;
    return true;
}

/* A namespace: definitions and references begin with the same fields. */
static void put_namespace(struct writer *w, enum aot_handle_type type, uint32_t space)
{
    uint32_t offset = space;
    if (!space || !enter(w))
        return;
    aot_handle parent = next_handle(w, &offset);
    uint32_t name = next(w, &offset);
    size_t before = w->text->length;
    if (!w->failed && aot_handle_type(parent) == type && aot_handle_offset(parent)) {
        put_namespace(w, type, aot_handle_offset(parent));
        if (w->text->length > before)
            text_putc(w->text, '.');
    }
    put_string(w, name);
    w->depth--;
}

static void put_space(struct writer *w, enum aot_handle_type type, uint32_t space)
{
    size_t before = w->text->length;
    put_namespace(w, type, space);
    if (w->text->length > before)
        text_putc(w->text, '.');
}

static void put_definition(struct writer *w, aot_handle type, unsigned flags)
{
    struct type_definition definition = read_definition(w, type);
    if (w->failed)
        return;
    if (definition.enclosing) {
        put_named(w, aot_handle_of(AOT_TYPE_DEFINITION, definition.enclosing), flags);
        text_putc(w->text, flags & WITH_PLUS ? '+' : '.');
    } else if (flags & WITH_NAMESPACE) {
        put_space(w, AOT_NAMESPACE_DEFINITION, definition.space);
    }
    put_string(w, definition.name);
}

static void put_reference(struct writer *w, aot_handle type, unsigned flags)
{
    uint32_t offset = aot_handle_offset(type);
    aot_handle parent = next_handle(w, &offset);
    uint32_t name = next(w, &offset);
    if (w->failed)
        return;
    if (aot_handle_offset(parent) && aot_handle_type(parent) != AOT_NAMESPACE_REFERENCE) {
        put_named(w, parent, flags);
        text_putc(w->text, flags & WITH_PLUS ? '+' : '.');
    } else if (flags & WITH_NAMESPACE) {
        put_space(w, AOT_NAMESPACE_REFERENCE, aot_handle_offset(parent));
    }
    put_string(w, name);
}

static void put_array(struct writer *w, aot_handle type, unsigned flags)
{
    uint32_t offset = aot_handle_offset(type);
    put_named(w, next_handle(w, &offset), flags);
    uint32_t rank = next(w, &offset);
    if (rank > SIGNATURE_RANK_CAP)
        fail(w);
    text_putc(w->text, '[');
    if (rank <= 1)
        text_putc(w->text, '*');
    for (uint32_t i = 1; i < rank && !w->failed; i++)
        text_putc(w->text, ',');
    text_putc(w->text, ']');
}

static aot_handle variable_of(struct writer *w, aot_handle variable)
{
    const struct variables *variables = aot_handle_type(variable) == AOT_METHOD_VARIABLE ? &w->of_method : &w->of_type;
    uint32_t offset = aot_handle_offset(variable), number = next(w, &offset);
    return number < variables->count ? variables->items[number] : 0;
}

/* The name of a generic parameter: number, flags, kind, name. */
static void put_parameter_name(struct writer *w, aot_handle parameter)
{
    uint32_t offset = aot_handle_offset(parameter);
    skip(w, &offset, 3);
    put_string(w, next(w, &offset));
}

static void put_by_type(struct writer *w, aot_handle type, unsigned flags)
{
    switch (aot_handle_type(type)) {
    case AOT_TYPE_DEFINITION:
        put_definition(w, type, flags);
        break;
    case AOT_TYPE_REFERENCE:
        put_reference(w, type, flags);
        break;
    case AOT_TYPE_SPECIFICATION:
    case AOT_TYPE_INSTANCE: /* arguments are not written */
        put_named(w, first_handle(w, type), flags);
        break;
    case AOT_VECTOR_SIGNATURE:
        put_named(w, first_handle(w, type), flags);
        text_puts(w->text, "[]");
        break;
    case AOT_ARRAY_SIGNATURE:
        put_array(w, type, flags);
        break;
    case AOT_POINTER_SIGNATURE:
        put_named(w, first_handle(w, type), 0);
        text_putc(w->text, '*');
        break;
    case AOT_BYREF_SIGNATURE:
        put_named(w, first_handle(w, type), 0);
        text_putc(w->text, '&');
        break;
    case AOT_TYPE_VARIABLE:
    case AOT_METHOD_VARIABLE:
        put_named(w, variable_of(w, type), flags);
        break;
    case AOT_GENERIC_PARAMETER:
        put_parameter_name(w, type);
        break;
    case AOT_STRING:
        put_string(w, aot_handle_offset(type));
        break;
    case AOT_FUNCTION_POINTER_SIGNATURE: /* the runtime writes nothing */
        break;
    default:
        text_puts(w->text, "???");
    }
}

static void put_named(struct writer *w, aot_handle type, unsigned flags)
{
    if (!enter(w))
        return;
    put_by_type(w, type, flags);
    w->depth--;
}

/* ---- Names of types in C# ---- */

/* The arguments of a type that are still to be written, one level of the type after the other. */
struct arguments {
    const struct variables *variables; /* NULL: not known */
    uint32_t used;
};

/* A level's name without `N, and N arguments: `<T, U>`, or `<,>` if they are not known. */
static void put_level(struct writer *w, uint32_t name, struct arguments *arguments)
{
    uint32_t length, arity = 0;
    const char *string = read_string(w, name, &length);
    const char *mark = string ? memrchr(string, '`', length) : NULL;
    for (const char *digit = mark ? mark + 1 : NULL; digit && digit < string + length; digit++) {
        bool fits = *digit >= '0' && *digit <= '9' && arity < ARGUMENTS_MAX;
        arity = fits ? arity * 10 + (uint32_t)(*digit - '0') : 0;
        if (!fits)
            break;
    }
    if (!string)
        return;
    text_escape(w->text, string, arity ? (size_t)(mark - string) : length);
    for (uint32_t i = 0; i < arity && i < ARGUMENTS_MAX && !w->failed; i++) {
        bool known = arguments->variables && arguments->used < arguments->variables->count;
        text_puts(w->text, i ? (known ? ", " : ",") : "<");
        if (known)
            put_csharp(w, arguments->variables->items[arguments->used++]);
    }
    if (arity)
        text_putc(w->text, '>');
}

static void put_levels(struct writer *w, aot_handle type, struct arguments *arguments)
{
    uint32_t offset = aot_handle_offset(type), name = 0;
    if (!enter(w))
        return;
    if (aot_handle_type(type) == AOT_TYPE_DEFINITION) {
        struct type_definition definition = read_definition(w, type);
        name = definition.name;
        if (definition.enclosing) {
            put_levels(w, aot_handle_of(AOT_TYPE_DEFINITION, definition.enclosing), arguments);
            text_putc(w->text, '.');
        } else {
            put_space(w, AOT_NAMESPACE_DEFINITION, definition.space);
        }
    } else if (aot_handle_type(type) == AOT_TYPE_REFERENCE) {
        aot_handle parent = next_handle(w, &offset);
        name = next(w, &offset);
        if (aot_handle_offset(parent) && aot_handle_type(parent) != AOT_NAMESPACE_REFERENCE) {
            put_levels(w, parent, arguments);
            text_putc(w->text, '.');
        } else {
            put_space(w, AOT_NAMESPACE_REFERENCE, aot_handle_offset(parent));
        }
    } else {
        fail(w);
    }
    if (!w->failed)
        put_level(w, name, arguments);
    w->depth--;
}

/* Replaces `System.Int32` from `begin` by `int`. */
static void abbreviate(struct writer *w, size_t begin)
{
    static const char space[] = "System.";
    const char *written = w->text->data ? w->text->data + begin : "";
    size_t length = w->text->length - begin, prefix = sizeof space - 1;
    if (length <= prefix || memcmp(written, space, prefix) != 0)
        return;
    const char *word = type_primitive_word(written + prefix, length - prefix, PRIMITIVE_CSHARP);
    if (!word)
        return;
    text_cut(w->text, begin);
    text_puts(w->text, word);
}

/* Whether the text from `begin` is a word. */
static bool is_written(const struct writer *w, size_t begin, const char *word)
{
    size_t length = strlen(word);
    return w->text->data && w->text->length - begin == length && memcmp(w->text->data + begin, word, length) == 0;
}

/* An instance of a generic type. `T?` and tuples have a syntax of their own. */
static void put_instance(struct writer *w, aot_handle type)
{
    uint32_t offset = aot_handle_offset(type);
    aot_handle definition = next_handle(w, &offset);
    struct variables *variables = w->failed ? NULL : malloc(sizeof *variables);
    size_t begin = w->text->length;
    if (!variables) {
        fail(w);
        return;
    }
    read_list(w, &offset, 0, variables);
    struct arguments arguments = {.variables = variables};
    put_named(w, definition, WITH_NAMESPACE);
    char tuple[32];
    snprintf(tuple, sizeof tuple, "System.ValueTuple`%u", variables->count);
    bool nullable = is_written(w, begin, "System.Nullable`1") && variables->count == 1;
    bool is_tuple = variables->count > 1 && variables->count < 8 && is_written(w, begin, tuple);
    text_cut(w->text, begin);
    if (nullable || is_tuple) {
        for (uint32_t i = 0; i < variables->count && !w->failed; i++) {
            text_puts(w->text, i ? ", " : is_tuple ? "(" : "");
            put_csharp(w, variables->items[i]);
        }
        text_putc(w->text, is_tuple ? ')' : '?');
    } else {
        put_levels(w, definition, &arguments);
    }
    free(variables);
}

/* The element of arrays of arrays, whose brackets C# writes in the other order. */
static void put_csharp_array(struct writer *w, aot_handle type)
{
    aot_handle element = type;
    unsigned levels = 0;
    while (!w->failed && levels < DEPTH_MAX &&
           (aot_handle_type(element) == AOT_VECTOR_SIGNATURE || aot_handle_type(element) == AOT_ARRAY_SIGNATURE)) {
        element = first_handle(w, element);
        levels++;
    }
    put_csharp(w, element);
    for (aot_handle array = type; levels-- && !w->failed; array = first_handle(w, array)) {
        uint32_t offset = aot_handle_offset(array), rank = 1;
        if (aot_handle_type(array) == AOT_ARRAY_SIGNATURE) {
            next_handle(w, &offset);
            rank = next(w, &offset);
        }
        if (rank > SIGNATURE_RANK_CAP)
            fail(w);
        text_putc(w->text, '[');
        for (uint32_t i = 1; i < rank && !w->failed; i++)
            text_putc(w->text, ',');
        text_putc(w->text, ']');
    }
}

static void put_csharp_by_type(struct writer *w, aot_handle type)
{
    struct arguments unknown = {0};
    size_t begin = w->text->length;
    switch (aot_handle_type(type)) {
    case AOT_TYPE_DEFINITION:
    case AOT_TYPE_REFERENCE:
        put_levels(w, type, &unknown);
        abbreviate(w, begin);
        break;
    case AOT_TYPE_SPECIFICATION:
        put_csharp(w, first_handle(w, type));
        break;
    case AOT_TYPE_INSTANCE:
        put_instance(w, type);
        break;
    case AOT_VECTOR_SIGNATURE:
    case AOT_ARRAY_SIGNATURE:
        put_csharp_array(w, type);
        break;
    case AOT_POINTER_SIGNATURE:
        put_csharp(w, first_handle(w, type));
        text_putc(w->text, '*');
        break;
    case AOT_BYREF_SIGNATURE:
        text_puts(w->text, "ref ");
        put_csharp(w, first_handle(w, type));
        break;
    case AOT_MODIFIED_TYPE: {
        uint32_t offset = aot_handle_offset(type) + 1; /* a byte: whether it is optional */
        next_handle(w, &offset);
        put_csharp(w, next_handle(w, &offset));
        break;
    }
    case AOT_TYPE_VARIABLE:
    case AOT_METHOD_VARIABLE: {
        uint32_t offset = aot_handle_offset(type);
        aot_handle argument = variable_of(w, type);
        if (argument)
            put_csharp(w, argument);
        else
            text_printf(w->text, aot_handle_type(type) == AOT_METHOD_VARIABLE ? "!!%u" : "!%u", next(w, &offset));
        break;
    }
    case AOT_FUNCTION_POINTER_SIGNATURE:
        text_puts(w->text, "delegate*");
        break;
    case AOT_GENERIC_PARAMETER:
    case AOT_STRING:
        put_by_type(w, type, 0);
        break;
    default:
        fail(w);
    }
}

static void put_csharp(struct writer *w, aot_handle type)
{
    if (!enter(w))
        return;
    put_csharp_by_type(w, type);
    w->depth--;
}

/* ---- Methods ---- */

/* What the variables of the owner stand for: its own parameters, or the arguments of an instance. */
static void read_type_variables(struct writer *w, aot_handle owner, struct variables *ret)
{
    uint32_t offset;
    ret->count = 0;
    if (aot_handle_type(owner) == AOT_TYPE_DEFINITION) {
        offset = read_definition(w, owner).parameters;
        read_list(w, &offset, AOT_GENERIC_PARAMETER, ret);
    } else if (aot_handle_type(owner) == AOT_TYPE_SPECIFICATION) {
        aot_handle signature = first_handle(w, owner);
        if (w->failed || aot_handle_type(signature) != AOT_TYPE_INSTANCE)
            return;
        offset = aot_handle_offset(signature);
        next_handle(w, &offset);
        read_list(w, &offset, 0, ret);
    }
}

/* What the method's record adds to its name. */
struct method_parts {
    uint32_t name, signature;
    uint32_t parameters; /* offset of the list of records of parameters; 0: none */
};

static struct method_parts read_parts(struct writer *w, const struct aot_method_name *method)
{
    struct method_parts parts = {aot_handle_offset(method->name), aot_handle_offset(method->signature), 0};
    if (method->method) {
        struct method_record record = read_method(w, method->method);
        uint32_t offset = record.parameters;
        parts = (struct method_parts){record.name, record.signature, record.parameters};
        skip_list(w, &offset);
        read_list(w, &offset, AOT_GENERIC_PARAMETER, &w->of_method);
    } else if (method->arguments) {
        uint32_t offset = aot_handle_offset(method->arguments);
        read_list(w, &offset, 0, &w->of_method);
    }
    read_type_variables(w, method->owner, &w->of_type);
    return parts;
}

/* Puts the list of type arguments of a method. */
static void put_method_arguments(struct writer *w, const char *open, const char *separator, const char *close)
{
    for (uint32_t i = 0; i < w->of_method.count && !w->failed; i++) {
        text_puts(w->text, i ? separator : open);
        put_named(w, w->of_method.items[i], 0);
    }
    if (w->of_method.count)
        text_puts(w->text, close);
}

/* The name of the parameter with a number, from 1, in the sorted list of records that begins at `at`. */
struct parameter_names {
    uint32_t at, left;
    uint32_t sequence, name; /* of the current one; 0: none */
};

static void next_parameter(struct writer *w, struct parameter_names *names)
{
    names->sequence = 0;
    if (!names->left || w->failed)
        return;
    names->left--;
    uint32_t offset = next(w, &names->at);
    skip(w, &offset, 1); /* flags */
    names->sequence = next(w, &offset);
    names->name = next(w, &offset);
}

static struct parameter_names first_parameter(struct writer *w, uint32_t list)
{
    struct parameter_names names = {.at = list};
    if (!list)
        return names;
    names.left = next(w, &names.at);
    next_parameter(w, &names);
    if (!names.sequence) /* that of the result */
        next_parameter(w, &names);
    return names;
}

static void put_parameters(struct writer *w, const struct method_parts *parts, enum aot_name_style style)
{
    uint32_t offset = parts->signature;
    skip(w, &offset, 3); /* calling convention, number of generic parameters, return type */
    uint32_t count = next(w, &offset);
    struct parameter_names names = first_parameter(w, style == AOT_STACK_TRACE ? parts->parameters : 0);
    text_putc(w->text, '(');
    for (uint32_t i = 1; i <= count && !w->failed; i++) {
        aot_handle type = next_handle(w, &offset);
        text_puts(w->text, i > 1 ? ", " : "");
        if (style == AOT_CSHARP) {
            put_csharp(w, type);
            continue;
        }
        put_named(w, type, 0);
        if (names.sequence != i)
            continue;
        size_t before = w->text->length;
        text_putc(w->text, ' ');
        put_string(w, names.name);
        if (w->text->length == before + 1) /* it has no name */
            text_cut(w->text, before);
        next_parameter(w, &names);
    }
    text_putc(w->text, ')');
}

static void put_owner(struct writer *w, aot_handle owner, enum aot_name_style style)
{
    struct arguments arguments = {.variables = &w->of_type};
    if (style == AOT_STACK_TRACE) {
        put_named(w, owner, WITH_NAMESPACE);
        return;
    }
    aot_handle type = owner;
    if (aot_handle_type(type) == AOT_TYPE_SPECIFICATION)
        type = first_handle(w, type);
    if (aot_handle_type(type) == AOT_TYPE_INSTANCE)
        type = first_handle(w, type);
    if (aot_handle_type(type) == AOT_TYPE_DEFINITION || aot_handle_type(type) == AOT_TYPE_REFERENCE)
        put_levels(w, type, &arguments);
    else
        put_csharp(w, type);
}

/* The writer is large: two lists of variables. */
static struct writer *writer_new(const struct native_section *metadata, struct text *text)
{
    struct writer *w = metadata->bytes ? calloc(1, sizeof *w) : NULL;
    if (w)
        *w = (struct writer){.metadata = metadata, .text = text, .fuel = FUEL};
    return w;
}

/* Ends a name that began at `begin`. */
static bool finish(struct writer *w, size_t begin)
{
    bool good = !w->failed && !w->text->broken;
    if (!good)
        text_cut(w->text, begin);
    free(w);
    return good;
}

bool aot_put_method(const struct native_section *metadata, const struct aot_method_name *method,
                    enum aot_name_style style, struct text *ret)
{
    size_t begin = ret->length;
    struct writer *w = writer_new(metadata, ret);
    if (!w)
        return false;
    const struct method_parts parts = read_parts(w, method);
    put_owner(w, method->owner, style);
    text_putc(ret, '.');
    put_string(w, parts.name);
    if (style == AOT_CSHARP)
        put_method_arguments(w, "<", ", ", ">");
    else
        put_method_arguments(w, "[", ",", "]");
    put_parameters(w, &parts, style);
    return finish(w, begin);
}

bool aot_put_type(const struct native_section *metadata, aot_handle type, struct text *ret)
{
    size_t begin = ret->length;
    struct writer *w = writer_new(metadata, ret);
    if (!w)
        return false;
    put_named(w, type, WITH_NAMESPACE | WITH_PLUS);
    return finish(w, begin);
}

bool aot_put_owner(const struct native_section *metadata, const struct aot_method_name *method, struct text *ret_type,
                   struct text *ret_name)
{
    size_t begin = ret_name->length;
    struct writer *w = writer_new(metadata, ret_name);
    if (!w)
        return false;
    put_string(w, read_parts(w, method).name);
    return finish(w, begin) && aot_put_type(metadata, method->owner, ret_type);
}

/* ---- Assemblies ---- */

/* What a type, a namespace or a scope belongs to; 0: nothing. */
static aot_handle container_of(struct writer *w, aot_handle handle)
{
    struct type_definition definition;
    switch (aot_handle_type(handle)) {
    case AOT_TYPE_DEFINITION:
        definition = read_definition(w, handle);
        return definition.enclosing ? aot_handle_of(AOT_TYPE_DEFINITION, definition.enclosing)
                                    : aot_handle_of(AOT_NAMESPACE_DEFINITION, definition.space);
    case AOT_TYPE_REFERENCE:
    case AOT_TYPE_SPECIFICATION:
    case AOT_TYPE_INSTANCE:
    case AOT_NAMESPACE_DEFINITION:
    case AOT_NAMESPACE_REFERENCE:
        return first_handle(w, handle);
    default:
        return 0;
    }
}

bool aot_put_assembly(const struct native_section *metadata, aot_handle type, struct text *ret)
{
    size_t begin = ret->length;
    struct writer *w = writer_new(metadata, ret);
    if (!w)
        return false;
    while (!w->failed && type && aot_handle_type(type) != AOT_SCOPE_DEFINITION &&
           aot_handle_type(type) != AOT_SCOPE_REFERENCE)
        type = container_of(w, type);
    uint32_t offset = aot_handle_offset(type);
    if (!type)
        fail(w);
    skip(w, &offset, 1); /* flags */
    put_string(w, next(w, &offset));
    return finish(w, begin);
}

/* ---- Attributes ---- */

/* The type of an attribute: that of its constructor. */
static aot_handle attribute_type(struct writer *w, uint32_t attribute)
{
    enum { MEMBER_REFERENCE = 39, QUALIFIED_METHOD = 54 };
    aot_handle constructor = next_handle(w, &attribute);
    uint32_t offset = aot_handle_offset(constructor);
    if (aot_handle_type(constructor) == MEMBER_REFERENCE)
        return next_handle(w, &offset);
    if (aot_handle_type(constructor) != QUALIFIED_METHOD)
        return 0;
    skip(w, &offset, 1);
    return aot_handle_of(AOT_TYPE_DEFINITION, next(w, &offset));
}

/* Whether the list of attributes at `offset` has that of methods which stack traces leave out. */
static bool has_hidden(struct writer *w, uint32_t offset)
{
    static const char hidden[] = "System.Diagnostics.StackTraceHiddenAttribute";
    bool found = false;
    uint32_t count = next(w, &offset);
    for (uint32_t i = 0; i < count && !w->failed && !found; i++) {
        struct text name = {0}, *text = w->text;
        aot_handle type = attribute_type(w, next(w, &offset));
        w->text = &name;
        put_named(w, type, WITH_NAMESPACE);
        found = !w->failed && is_written(w, 0, hidden);
        w->text = text;
        text_deinit(&name);
    }
    return found;
}

bool aot_is_hidden(const struct native_section *metadata, const struct aot_method_name *method)
{
    struct text unused = {0};
    struct writer *w = method->method ? writer_new(metadata, &unused) : NULL;
    if (!w)
        return false;
    bool hidden = has_hidden(w, attributes_of_type(w, method->owner));
    if (!hidden) {
        uint32_t offset = read_method(w, method->method).parameters;
        skip_list(w, &offset);
        skip_list(w, &offset); /* generic parameters */
        hidden = has_hidden(w, offset);
    }
    hidden &= !w->failed;
    free(w);
    text_deinit(&unused);
    return hidden;
}
