/*
 * spelling_stack_trace.c: methods as System.Diagnostics.StackTrace writes them:
 *
 *     Ns.Outer`1.Inner`1.M[V](Box`1 box, U[] items, V& value)
 *
 * The method is the definition. A type in the list of parameters has neither namespace nor arguments, a pointer to a
 * function not even a name. A dynamic method has no type, and its parameters have no names.
 * Source: dotnet/runtime src/libraries/System.Private.CoreLib/src/System/Diagnostics/StackTrace.cs.
 */
#include "formats/metadata_members.h"
#include "formats/names/spelling.h"
#include "formats/names/type_walk.h"

enum { MODULE_TYPE = 1 }; /* rid of <Module>, which has the methods of no type */

/* Arguments are consumed: a signature has them even if the name has not. */
static void drop_arguments(struct namer *n, struct type_arguments *arguments)
{
    size_t length = n->text->length;
    while (arguments && arguments->left && n->status == CDACQ_OK)
        type_argument(n, arguments);
    if (n->status == CDACQ_OK && !n->text->broken)
        text_cut(n->text, length);
}

static void stack_named(struct namer *n, const struct named_type *type, struct type_arguments *arguments)
{
    const struct metadata *m = type->metadata;
    struct metadata_type_def definition;
    struct metadata_type_ref reference;
    uint32_t rid = metadata_rid(type->token);
    if (metadata_token_table(type->token) == METADATA_TYPE_DEF) {
        if (namer_check(n, metadata_type_def(m, rid, &definition)))
            namer_put_reserved(n, m, definition.name);
    } else if (metadata_token_table(type->token) == METADATA_TYPE_REF) {
        if (namer_check(n, metadata_type_ref(m, rid, &reference)))
            namer_put_reserved(n, m, reference.name);
    } else {
        namer_fail(n, CDACQ_ERR_FORMAT);
    }
    drop_arguments(n, arguments);
}

static void stack_variable(struct namer *n, bool of_method, uint32_t number)
{
    const struct formals *formals = &n->formals[of_method];
    struct metadata_generic_param param;
    uint32_t rid = 0;
    if (formals->metadata &&
        (!namer_spend_search(n, formals->metadata, METADATA_GENERIC_PARAM) ||
         !namer_check(n, metadata_generics_at(formals->metadata, &formals->generics, number, &rid))))
        return;
    if (!rid)
        type_variable_number(n, of_method, number);
    else if (namer_check(n, metadata_generic_param(formals->metadata, rid, &param)))
        namer_put_string(n, formals->metadata, param.name);
}

static const struct type_spelling stack_types = {
    .primitives = PRIMITIVE_SOS,
    .simple = true,
    .first_zapsig = ELEMENT_CANON_ZAPSIG,
    .pointer = "*",
    .byref = {"", "&"},
    .one_dimension = "*",
    .empty_functions = true,
    .handles = true,
    .named_takes_arguments = true,
    .named = stack_named,
    .variable = stack_variable,
};

/* The type's full name: '.' instead of each '+'. */
static void put_owner(struct namer *n, const struct named_method *method)
{
    uint32_t owner;
    size_t begin = n->text->length;
    if (!method->token || !namer_spend_search(n, method->metadata, METADATA_METHOD_PTR) ||
        !namer_check(n, metadata_method_owner(method->metadata, metadata_rid(method->token), &owner)) ||
        !namer_formals(n, method->metadata, metadata_token(METADATA_TYPE_DEF, owner), &n->formals[0]) ||
        owner == MODULE_TYPE)
        return;
    type_definition(n, method->metadata, metadata_token(METADATA_TYPE_DEF, owner));
    for (size_t i = begin; n->text->data && i < n->text->length; i++)
        if (n->text->data[i] == '+')
            n->text->data[i] = '.';
    text_putc(n->text, '.');
}

static void put_formals(struct namer *n, const struct named_method *method)
{
    if (!method->token || !method->header.generic || !namer_formals(n, method->metadata, method->token, &n->formals[1]))
        return;
    uint32_t count = n->formals[1].generics.count;
    for (uint32_t i = 0; i < count && namer_spend(n, 1); i++) {
        text_putc(n->text, i ? ',' : '[');
        stack_variable(n, true, i);
    }
    if (count)
        text_putc(n->text, ']');
}

static void put_parameter_name(struct namer *n, const struct named_method *method, uint32_t number)
{
    struct metadata_param param;
    uint32_t rid;
    if (!method->token || n->status != CDACQ_OK ||
        !namer_check(n, metadata_parameter(method->metadata, metadata_rid(method->token), number, &rid)) || !rid ||
        !namer_check(n, metadata_param(method->metadata, rid, &param)))
        return;
    text_putc(n->text, ' ');
    namer_put_string(n, method->metadata, param.name);
}

static void put_parameters(struct namer *n, const struct named_method *method)
{
    struct signature s = method->signature;
    signature_skip_type(&s);
    text_putc(n->text, '(');
    for (uint32_t i = 1; i <= method->header.parameter_count && namer_spend(n, 1); i++) {
        if (signature_peek(&s) == ELEMENT_SENTINEL)
            break;
        if (i > 1)
            text_puts(n->text, ", ");
        type_signature(n, &s, method->metadata);
        put_parameter_name(n, method, i);
        if (s.failed)
            namer_fail(n, CDACQ_ERR_FORMAT);
    }
    text_putc(n->text, ')');
}

static void stack_method(struct namer *n, const struct named_method *method)
{
    put_owner(n, method);
    method_put_name(n, method);
    put_formals(n, method);
    n->types = &stack_types;
    if (method->has_parameters)
        put_parameters(n, method);
}

const struct name_spelling name_spelling_stack_trace = {
    .owner = &type_spelling_reflection,
    .put_method = stack_method,
    .formal = true,
    .dynamic_class = "",
};
