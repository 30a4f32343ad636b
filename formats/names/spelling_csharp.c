/*
 * spelling_csharp.c: names of definitions, as C# writes them:
 *
 *     Ns.Outer.Inner<T>.M<U>(int, ref U, Ns.Dictionary<string, T>.Enumerator[])
 *
 * Names are those of the metadata (`<>c.<Main>b__0_0`). A level of a type lists the generic parameters that it adds to
 * those of the enclosing types, in place of its `N suffix. Types are named in full, primitive ones by keyword, generic
 * parameters by their formal names, or `!0` and `!!0` if those are not known. Return types and custom modifiers are
 * omitted.
 */
#include "formats/names/spelling.h"
#include "formats/names/type_walk.h"

/* The length of `name` without its suffix `N; *ret_arity is N, or 0 without a suffix. */
static size_t stem_length(const char *name, size_t length, uint32_t *ret_arity)
{
    uint32_t value = 0, unit = 1;
    size_t at = length;
    *ret_arity = 0;
    for (; at > 0 && length - at < 5 && name[at - 1] >= '0' && name[at - 1] <= '9'; at--, unit *= 10)
        value += (uint32_t)(name[at - 1] - '0') * unit;
    if (at == 0 || at == length || name[at - 1] != '`' || name[at] == '0')
        return length;
    *ret_arity = value;
    return at - 1;
}

/* The name of generic parameter `number`: formal, or `!0`, `!!0` if it is not known. */
static void put_formal(struct namer *n, const struct formals *formals, bool of_method, uint32_t number)
{
    struct metadata_generic_param param;
    uint32_t rid = 0;
    if (formals->metadata) {
        if (!formals->generics.first && !namer_spend_search(n, formals->metadata, METADATA_GENERIC_PARAM))
            return;
        if (!namer_check(n, metadata_generics_at(formals->metadata, &formals->generics, number, &rid)))
            return;
    }
    if (!rid)
        type_variable_number(n, of_method, number);
    else if (namer_check(n, metadata_generic_param(formals->metadata, rid, &param)))
        namer_put_string(n, formals->metadata, param.name);
}

static void csharp_variable(struct namer *n, bool of_method, uint32_t number)
{
    put_formal(n, &n->formals[of_method], of_method, number);
}

/* ---- A type and the types that enclose it ---- */

/* Reads the parameters of every level of a path of TypeDefs. */
static bool path_read_arities(struct namer *n, struct type_path *path)
{
    for (unsigned i = 0; i < path->count; i++) {
        struct type_level *level = &path->levels[i];
        if (!namer_formals(n, path->metadata, metadata_token(METADATA_TYPE_DEF, level->rid), &level->formals))
            return false;
        if (i == 0 && level->formals.generics.count == 0)
            break; /* a nested type repeats the parameters of the enclosing types: these have none either */
    }
    path->arities_known = true;
    return true;
}

/* How many parameters a level adds to those of the enclosing types. */
static uint32_t path_arity(const struct type_path *path, unsigned i)
{
    uint32_t own = path->levels[i].formals.generics.count;
    uint32_t outer = i + 1 < path->count ? path->levels[i + 1].formals.generics.count : 0;
    return own > outer ? own - outer : 0;
}

/* The name of a level, without its `N if that many arguments follow. Returns their number. */
static __attribute__((noinline)) uint32_t put_level_name(struct namer *n, const struct type_path *path, unsigned i,
                                                         uint32_t left)
{
    char buffer[METADATA_STRING_CAP];
    const char *name;
    size_t length;
    uint32_t suffix;
    namer_put_namespace(n, path->metadata, path->levels[i].namespace_name, namer_put_string);
    if (!namer_check(n, metadata_string(path->metadata, path->levels[i].name, buffer, &name, &length)) ||
        !namer_spend_bulk(n, length))
        return 0;
    size_t stem = stem_length(name, length, &suffix);
    uint32_t taken = path->arities_known ? path_arity(path, i) : suffix;
    if (taken > left || i == 0) /* the innermost takes all that are left, whatever its name is */
        taken = left;
    text_escape(n->text, name, taken && taken == suffix ? stem : length);
    return taken;
}

static void put_path(struct namer *n, const struct type_path *path, struct type_arguments *arguments)
{
    for (unsigned i = path->count; i-- > 0 && n->status == CDACQ_OK;) {
        uint32_t count = put_level_name(n, path, i, arguments->left);
        arguments->level = &path->levels[i];
        for (uint32_t k = 0; k < count && n->status == CDACQ_OK; k++) {
            text_puts(n->text, k == 0 ? "<" : ", ");
            type_argument(n, arguments);
        }
        if (count)
            text_putc(n->text, '>');
        if (i)
            text_putc(n->text, '.');
    }
}

/* Not inlined because of its large path; so is the next. */
static __attribute__((noinline)) void csharp_named(struct namer *n, const struct named_type *type,
                                                   struct type_arguments *arguments)
{
    struct type_arguments none = {0};
    struct type_path path;
    if (!namer_path(n, type->metadata, type->token, &path))
        return;
    if (!arguments)
        arguments = &none;
    if (arguments->left && path.count > 1 && metadata_token_table(type->token) == METADATA_TYPE_DEF &&
        !path_read_arities(n, &path))
        return;
    put_path(n, &path, arguments);
}

static void put_formal_argument(struct namer *n, const struct type_arguments *arguments)
{
    put_formal(n, &arguments->level->formals, false, arguments->number);
}

static __attribute__((noinline)) struct formals csharp_definition(struct namer *n, const struct metadata *m,
                                                                  uint32_t token)
{
    struct type_path path;
    if (!namer_path(n, m, token, &path) || !path_read_arities(n, &path))
        return (struct formals){0};
    struct type_arguments arguments = {.left = path.levels[0].formals.generics.count, .put = put_formal_argument};
    put_path(n, &path, &arguments);
    return path.levels[0].formals;
}

/* `delegate*<int, void>` */
static const struct function_style csharp_function = {
    .open = "delegate*<",
    .close = ">",
    .parameters = {.list = {"", ", ", ""}},
    .result_last = true,
};

static const struct type_spelling csharp_types = {
    .primitives = PRIMITIVE_CSHARP,
    .handles = true,
    .module = "<Module>",
    .first_zapsig = ELEMENT_VAR_ZAPSIG,
    .pointer = "*",
    .byref = {"ref ", ""},
    .one_dimension = "*",
    .outer_brackets_first = true,
    .type_specs = true,
    .named_takes_arguments = true,
    .arguments = {"<", ", ", ">"},
    .function = &csharp_function,
    .unknown_variable = {"!", "!!"},
    .unknown_function = "delegate*",
    .named = csharp_named,
    .definition = csharp_definition,
    .variable = csharp_variable,
};

/* ---- Methods ---- */

static void put_method_formal(struct namer *n, const struct type_arguments *arguments)
{
    csharp_variable(n, true, arguments->number);
}

/* The formal parameters of a generic method. */
static struct type_arguments read_method_formals(struct namer *n, const struct named_method *method)
{
    struct type_arguments formals = {.put = put_method_formal};
    if (metadata_token_table(method->token) == METADATA_MEMBER_REF)
        formals.left = method->header.generic_count;
    else if (method->token && method->header.generic &&
             namer_formals(n, method->metadata, method->token, &n->formals[1]))
        formals.left = n->formals[1].generics.count;
    return formals;
}

static void csharp_method(struct namer *n, const struct named_method *method)
{
    /* Arguments after the sentinel are not part of the name. */
    static const struct parameter_style style = {.list = {"(", ", ", ")"}, .rest = "__arglist", .stops = true};
    struct signature s = method->signature;
    method_put_owner(n, method);
    text_putc(n->text, '.');
    method_put_name(n, method);
    struct type_arguments arguments =
        method->has_parameters ? read_method_formals(n, method) : method_arguments(method);
    type_argument_list(n, &arguments);
    if (!method->has_parameters)
        return;
    signature_skip_type(&s);
    type_parameters(n, &s, method->metadata, &method->header, &style);
}

const struct name_spelling name_spelling_csharp = {
    .owner = &csharp_types,
    .put_method = csharp_method,
    .formal = true,
    .dynamic_class = "dynamicClass",
};
