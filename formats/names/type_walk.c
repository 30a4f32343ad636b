#include "formats/names/type_walk.h"

#include "formats/names/spelling.h"

static const char *const primitives[][PRIMITIVE_COLUMNS] = {
    [ELEMENT_VOID] = {"void", "Void", "void"},
    [ELEMENT_BOOLEAN] = {"bool", "Boolean", "bool"},
    [ELEMENT_CHAR] = {"char", "Char", "char"},
    [ELEMENT_I1] = {"sbyte", "SByte", "int8"},
    [ELEMENT_U1] = {"byte", "Byte", "uint8"},
    [ELEMENT_I2] = {"short", "Int16", "int16"},
    [ELEMENT_U2] = {"ushort", "UInt16", "uint16"},
    [ELEMENT_I4] = {"int", "Int32", "int32"},
    [ELEMENT_U4] = {"uint", "UInt32", "uint32"},
    [ELEMENT_I8] = {"long", "Int64", "int64"},
    [ELEMENT_U8] = {"ulong", "UInt64", "uint64"},
    [ELEMENT_R4] = {"float", "Single", "float32"},
    [ELEMENT_R8] = {"double", "Double", "float64"},
    [ELEMENT_STRING] = {"string", "System.String", "string"},
    [ELEMENT_TYPEDBYREF] = {"System.TypedReference", "TypedReference", "typedref"},
    [ELEMENT_I] = {"nint", "IntPtr", "native int"},
    [ELEMENT_U] = {"nuint", "UIntPtr", "native uint"},
    [ELEMENT_OBJECT] = {"object", "System.Object", "object"},
    [ELEMENT_CANON_ZAPSIG] = {"System.__Canon", "System.__Canon", NULL},
};

/* The name of a primitive type in the namespace System; NULL for other elements. */
static const char *core_name(size_t element)
{
    static const char prefix[] = "System.";
    const char *word = primitives[element][PRIMITIVE_SOS];
    return word && word[0] == prefix[0] && strncmp(word, prefix, sizeof prefix - 1) == 0 ? word + sizeof prefix - 1
                                                                                         : word;
}

bool type_primitive(struct namer *n, uint8_t element)
{
    const char *word = element < ARRAY_SIZE(primitives) ? primitives[element][n->types->primitives] : NULL;
    if (!word)
        return false;
    if (element == ELEMENT_CANON_ZAPSIG && n->types->formal && n->types->formal(n))
        return true;
    if (n->types->qualified)
        text_puts(n->text, "System.");
    text_puts(n->text, n->types->qualified || n->types->simple ? core_name(element) : word);
    n->origin = (struct origin){0};
    return true;
}

/* The element type of a primitive type by its name in the namespace System; 0: it is none. */
static uint8_t element_named(const char *name, size_t length)
{
    for (size_t i = 0; length && i < ARRAY_SIZE(primitives); i++) {
        const char *known = core_name(i);
        if (known && known[0] == name[0] && strlen(known) == length && memcmp(known, name, length) == 0)
            return (uint8_t)i;
    }
    return 0;
}

const char *type_primitive_word(const char *name, size_t length, enum primitive_column column)
{
    uint8_t element = element_named(name, length);
    return element ? primitives[element][column] : NULL;
}

uint8_t type_primitive_named(struct namer *n, const struct metadata *m, uint32_t token)
{
    struct metadata_type_def type;
    char buffer[METADATA_STRING_CAP];
    const char *found;
    size_t length;
    bool equal;
    if (!namer_check(n, metadata_type_def(m, metadata_rid(token), &type)) ||
        !namer_check(n, metadata_string_equals(m, type.namespace_name, "System", 6, &equal)) || !equal ||
        !namer_check(n, metadata_string(m, type.name, buffer, &found, &length)))
        return 0;
    return element_named(found, length);
}

/* ---- Named types and their arguments ---- */

struct formals type_definition(struct namer *n, const struct metadata *m, uint32_t token)
{
    if (n->types->definition)
        return n->types->definition(n, m, token);
    n->types->named(n, &(struct named_type){.metadata = m, .token = token}, NULL);
    return (struct formals){0};
}

void type_argument(struct namer *n, struct type_arguments *arguments)
{
    if (namer_spend(n, 1))
        arguments->put(n, arguments);
    arguments->number++;
    arguments->left--;
}

void type_argument_list(struct namer *n, struct type_arguments *arguments)
{
    const struct type_spelling *types = n->types;
    const struct origin origin = n->origin;
    const char *mark = types->arguments.open;
    if (!arguments->left)
        return;
    for (; arguments->left && n->status == CDACQ_OK; mark = types->arguments.separator) {
        text_puts(n->text, mark);
        if (types->assemblies)
            text_putc(n->text, '[');
        type_argument(n, arguments);
        if (types->assemblies) {
            text_puts(n->text, ", ");
            if (types->identities)
                namer_put_identity(n, n->origin);
            else
                namer_put_origin(n, n->origin);
            text_putc(n->text, ']');
        }
    }
    text_puts(n->text, types->arguments.close);
    n->origin = origin;
}

void type_instance(struct namer *n, const struct named_type *type, struct type_arguments *arguments)
{
    n->types->named(n, type, arguments);
    if (!n->types->named_takes_arguments)
        type_argument_list(n, arguments);
}

/* ---- Composed types ---- */

void type_before(struct namer *n, uint8_t element)
{
    if (element == ELEMENT_BYREF)
        text_puts(n->text, n->reference ? n->reference : n->types->byref[0]);
    n->reference = NULL;
}

void type_after(struct namer *n, uint8_t element)
{
    if (element == ELEMENT_BYREF)
        text_puts(n->text, n->types->byref[1]);
    else if (element == ELEMENT_PTR)
        text_puts(n->text, n->types->pointer);
}

void type_array(struct namer *n, const struct array_shape *shape)
{
    const struct type_spelling *types = n->types;
    size_t end = n->text->length, begin = end;
    if (types->outer_brackets_first && n->brackets_end == end) /* the element is an array itself */
        begin = n->brackets;
    text_putc(n->text, '[');
    if (shape && shape->rank == 1 && (!types->dimension || (!shape->size_count && !shape->bound_count)))
        text_puts(n->text, types->one_dimension);
    for (uint32_t i = 0; shape && i < shape->rank; i++) {
        if (i)
            text_putc(n->text, ',');
        if (types->dimension)
            types->dimension(n, shape, i);
    }
    text_putc(n->text, ']');
    namer_rotate(n, begin, end);
    n->brackets = begin;
    n->brackets_end = n->text->length;
}

/* ---- Type parameters ---- */

void type_variable_argument(struct namer *n, const struct name_instance *instance, bool of_method, uint32_t number)
{
    const struct name_instance *outer = n->instance;
    const struct type_parameter parameter = n->parameter;
    n->instance = NULL; /* no argument refers to the arguments */
    n->parameter = (struct type_parameter){n->formals[of_method].metadata, n->formals_owner[of_method], number};
    instance->argument(instance->context, of_method, number, n);
    n->parameter = parameter;
    n->instance = outer;
}

bool type_formal_instead(struct namer *n, size_t begin)
{
    enum cdacq_status status = n->status;
    if (status == CDACQ_OK || !n->types->formal || n->text->broken)
        return false;
    namer_retry(n, begin);
    if (n->source->argument_lost) /* first: the same loss could also keep the formal parameter from being read */
        n->source->argument_lost(n->source->context, status);
    return n->types->formal(n) || namer_fail(n, status);
}

void type_variable(struct namer *n, bool of_method, uint32_t number)
{
    const struct name_instance *instance = n->instance;
    if (!n->types->variable)
        namer_fail(n, CDACQ_ERR_FORMAT);
    else if (instance && number < (of_method ? instance->method_count : instance->type_count))
        type_variable_argument(n, instance, of_method, number);
    else
        n->types->variable(n, of_method, number);
}

void type_variable_number(struct namer *n, bool of_method, uint32_t number)
{
    text_printf(n->text, of_method ? "!!%u" : "!%u", number);
}

void type_unknown(struct namer *n, uint8_t element)
{
    const struct type_spelling *types = n->types;
    const char *word =
        element == ELEMENT_FNPTR ? types->unknown_function : types->unknown_variable[element == ELEMENT_MVAR];
    if (word)
        text_puts(n->text, word);
    else
        namer_fail(n, CDACQ_ERR_CONTRACT);
}
