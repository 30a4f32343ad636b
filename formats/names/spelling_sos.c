/*
 * spelling_sos.c: the names that the debugger services' GetMethodDescName returns:
 *
 *     Ns.Outer`1+Inner[[System.Int32, System.Private.CoreLib]].M[[System.__Canon, System.Private.CoreLib]](Int32)
 *
 * The method is instantiated, and so are its parameters. A nested type among these is written without the types that
 * enclose it.
 */
#include "formats/names/spelling.h"
#include "formats/names/type_walk.h"

/* The namespace and name of the row: a nested type has only a name. */
static void sos_named(struct namer *n, const struct named_type *type, struct type_arguments *arguments)
{
    const struct metadata *m = type->metadata;
    struct metadata_type_def definition;
    struct metadata_type_ref reference = {0};
    uint32_t rid = metadata_rid(type->token);
    (void)arguments;
    switch (metadata_token_table(type->token)) {
    case METADATA_TYPE_SPEC: /* has no name */
        return;
    case METADATA_TYPE_DEF:
        if (!namer_check(n, metadata_type_def(m, rid, &definition)))
            return;
        reference.namespace_name = definition.namespace_name;
        reference.name = definition.name;
        break;
    case METADATA_TYPE_REF:
        if (!namer_check(n, metadata_type_ref(m, rid, &reference)))
            return;
        break;
    default:
        namer_fail(n, CDACQ_ERR_FORMAT);
        return;
    }
    namer_put_namespace(n, m, reference.namespace_name, namer_put_string);
    namer_put_string(n, m, reference.name);
}

/* `Void (Int32, ...)` */
static const struct function_style sos_function = {
    .open = "",
    .close = "",
    .parameters = {.list = {" (", ", ", ")"}, .rest = "..."},
};

static const struct type_spelling sos_types = {
    .primitives = PRIMITIVE_SOS,
    .first_zapsig = ELEMENT_CANON_ZAPSIG,
    .pointer = "*",
    .byref = {"", " ByRef"},
    .one_dimension = "",
    .arguments = {"<", ",", ">"},
    .function = &sos_function,
    .named = sos_named,
    .variable = type_variable_number,
};

/*
 * The debugger services take the parameters from the first parenthesis of `Ret Name(parameters)`. If the name itself
 * contains one, as in explicit implementations over tuples, they repeat the rest of the name; so does this function.
 */
static void put_parameters(struct namer *n, const struct named_method *method)
{
    static const struct parameter_style style = {.list = {"(", ", ", ")"}, .rest = "...", .stops = true};
    struct signature s = method->signature;
    struct text *text = n->text;
    size_t begin = text->length;
    n->types = &sos_types;
    n->instance = method->instance;
    type_signature(n, &s, method->metadata);
    text_putc(text, ' ');
    method_put_name(n, method);
    type_parameters(n, &s, method->metadata, &method->header, &style);
    if (n->status != CDACQ_OK || text->broken)
        return;
    size_t dropped = strcspn(text->data + begin, "(");
    text->length -= dropped;
    memmove(text->data + begin, text->data + begin + dropped, text->length - begin + 1);
}

static void sos_method(struct namer *n, const struct named_method *method)
{
    struct type_arguments arguments = method_arguments(method);
    method_put_owner(n, method);
    text_putc(n->text, '.');
    method_put_name(n, method);
    type_argument_list(n, &arguments);
    put_parameters(n, method);
}

const struct name_spelling name_spelling_sos = {
    .owner = &type_spelling_reflection_full,
    .put_method = sos_method,
    .arguments = true,
    .dynamic_class = "DynamicClass",
    .stub_class = "ILStubClass",
};

const struct name_spelling name_spelling_fatal = {
    .owner = &type_spelling_reflection_identities,
    .put_method = sos_method,
    .arguments = true,
    .dynamic_class = "DynamicClass",
    .stub_class = "ILStubClass",
};
