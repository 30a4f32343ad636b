/*
 * spelling_csharp.c: names as C# writes them:
 *
 *     Ns.Outer.Inner<int>.M<U>(int, ref U, Ns.Dictionary<string, int>.Enumerator[], (int, string)?, params U[])
 *
 * Types and methods show what they are instantiated over, and so do the parameters. The formal parameter (T) stands for
 * an argument that is not known (the source hears of it), and for System.__Canon: code that is shared has no
 * argument. Names are those of the metadata (`<>c.<Main>b__0_0`), except that operators and accessors are written as C#
 * writes them (member.h). A level of a type lists the generic parameters that it adds to those of the enclosing types,
 * in place of its `N suffix. Types are named in full, primitive ones by keyword; formal parameters that are not known
 * are `!0` and `!!0`. Return types and custom modifiers are omitted.
 */
#include "formats/names/attributes.h"
#include "formats/names/member.h"
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

/* The parameter of the argument that is written, if that is known; its number if only its name is missing. */
static bool csharp_formal(struct namer *n)
{
    const struct type_parameter parameter = n->parameter;
    struct metadata_generic_param row;
    struct metadata_generics generics;
    uint32_t rid = 0;
    if (!parameter.metadata || !parameter.owner || !namer_spend_search(n, parameter.metadata, METADATA_GENERIC_PARAM))
        return false;
    size_t begin = n->text->length;
    enum cdacq_status status = metadata_generics(parameter.metadata, parameter.owner, &generics);
    if (status == CDACQ_OK)
        status = metadata_generics_at(parameter.metadata, &generics, parameter.number, &rid);
    if (status == CDACQ_OK && rid)
        status = metadata_generic_param(parameter.metadata, rid, &row);
    if (status == CDACQ_OK && rid)
        namer_put_string(n, parameter.metadata, row.name);
    if (status == CDACQ_OK && n->status == CDACQ_OK)
        return rid != 0;
    if (status != CDACQ_ERR_MEMORY && n->status != CDACQ_ERR_MEMORY)
        return namer_fail(n, status);
    namer_lose(n, CDACQ_ERR_MEMORY);
    namer_retry(n, begin);
    type_variable_number(n, metadata_token_table(parameter.owner) == METADATA_METHOD_DEF, parameter.number);
    return true;
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

/* The sum of the suffixes `N of all levels. */
static uint32_t path_suffixes(struct namer *n, const struct type_path *path)
{
    char buffer[METADATA_STRING_CAP];
    const char *name;
    uint32_t total = 0, suffix;
    size_t length;
    for (unsigned i = 0; i < path->count; i++) {
        if (!namer_check(n, metadata_string(path->metadata, path->levels[i].name, buffer, &name, &length)))
            return 0;
        stem_length(name, length, &suffix);
        total += suffix;
    }
    return total;
}

/* The same if the parameters' rows are missing: names without suffixes are those of types without parameters. */
static bool path_guess_arities(struct namer *n, const struct type_path *path)
{
    if (n->status != CDACQ_ERR_MEMORY)
        return false;
    namer_retry(n, n->text->length);
    return path_suffixes(n, path) == 0 ? n->status == CDACQ_OK : namer_fail(n, CDACQ_ERR_MEMORY);
}

/* How many parameters a level adds to those of the enclosing types. */
static uint32_t path_arity(const struct type_path *path, unsigned i)
{
    uint32_t own = path->levels[i].formals.generics.count;
    uint32_t outer = i + 1 < path->count ? path->levels[i + 1].formals.generics.count : 0;
    return own > outer ? own - outer : 0;
}

/*
 * The part of a type's name that a person wrote: a type that is local to a file is called `<File>F<hash>__Name`. Moves
 * the start of the name and shortens both lengths.
 */
static void written_level(const char **name, size_t *stem, size_t *length)
{
    static const char mark[] = "__";
    enum { HASH = 64 };
    const char *close = *length && **name == '<' ? memchr(*name, '>', *stem) : NULL;
    size_t skipped = close ? (size_t)(close - *name) + 2 + HASH + sizeof mark - 1 : 0;
    if (!close || skipped >= *stem || close[1] != 'F' || memcmp(*name + skipped - 2, mark, 2) != 0)
        return;
    *name += skipped;
    *stem -= skipped;
    *length -= skipped;
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
    if (n->written)
        written_level(&name, &stem, &length);
    uint32_t taken = path->arities_known ? path_arity(path, i) : suffix;
    if (taken > left || i == 0) /* the innermost takes all that are left, whatever its name is */
        taken = left;
    text_escape(n->text, name, taken && taken == suffix ? stem : length);
    return taken;
}

/* The next argument, which is one for a parameter of the innermost level. */
static void put_argument(struct namer *n, const struct type_path *path, struct type_arguments *arguments)
{
    const struct type_parameter outer = n->parameter;
    bool definition = metadata_token_table(path->token) == METADATA_TYPE_DEF;
    n->parameter = (struct type_parameter){definition ? path->metadata : NULL, path->token, arguments->number};
    type_argument(n, arguments);
    n->parameter = outer;
}

static void put_path(struct namer *n, const struct type_path *path, struct type_arguments *arguments)
{
    for (unsigned i = path->count; i-- > 0 && n->status == CDACQ_OK;) {
        uint32_t count = put_level_name(n, path, i, arguments->left);
        arguments->level = &path->levels[i];
        for (uint32_t k = 0; k < count && n->status == CDACQ_OK; k++) {
            text_puts(n->text, k == 0 ? "<" : ", ");
            put_argument(n, path, arguments);
        }
        if (count)
            text_putc(n->text, '>');
        if (i)
            text_putc(n->text, '.');
    }
}

/* ---- Types with a syntax of their own ---- */

/* Whether the path is System.NAME`ARITY, where the arity has one digit. */
static bool is_system(struct namer *n, const struct type_path *path, const char *name, uint32_t arity)
{
    char expected[32] = "";
    bool equal;
    char *end = stpcpy(expected, name);
    *end++ = '`';
    *end++ = (char)('0' + arity);
    return path->count == 1 &&
           namer_check(n, metadata_string_equals(path->metadata, path->levels[0].name, expected,
                                                 (size_t)(end - expected), &equal)) &&
           equal &&
           namer_check(n,
                       metadata_string_equals(path->metadata, path->levels[0].namespace_name, "System", 6, &equal)) &&
           equal;
}

static void insert(struct namer *n, size_t at, const char *word)
{
    size_t end = n->text->length;
    text_puts(n->text, word);
    namer_rotate(n, at, end);
}

/*
 * `(int, string)`. The eighth element of a tuple is a tuple of the rest, whose elements follow the first seven; any
 * other type is no tuple of C#'s.
 */
static void put_tuple(struct namer *n, const struct type_path *path, struct type_arguments *arguments)
{
    static const char word[] = "System.ValueTuple<";
    enum { REST = 8 };
    uint32_t count = arguments->left;
    size_t begin = n->text->length, last = begin;
    bool plain = count == 1;
    text_puts(n->text, plain ? word : "(");
    for (uint32_t i = 0; i < count && n->status == CDACQ_OK; i++) {
        text_puts(n->text, i ? ", " : "");
        last = n->text->length;
        put_argument(n, path, arguments);
    }
    if (n->text->broken || n->status != CDACQ_OK)
        return;
    if (count == REST && n->tuple.begin == last && n->tuple.end == n->text->length) {
        char *rest = n->text->data + last;
        n->text->length -= n->tuple.open + 1;
        memmove(rest, rest + n->tuple.open, n->text->length - last);
        n->text->data[n->text->length] = '\0';
    } else if (count == REST) {
        plain = true;
        n->text->length--; /* moves the bracket */
        memmove(n->text->data + begin, n->text->data + begin + 1, n->text->length - begin);
        n->text->data[n->text->length] = '\0';
        insert(n, begin, word);
    }
    text_putc(n->text, plain ? '>' : ')');
    n->tuple = (struct written_tuple){begin, n->text->length, plain ? sizeof word - 1 : 1};
}

/* Nullable types and tuples. False, and nothing is written, for others. */
static bool put_abbreviated(struct namer *n, const struct type_path *path, struct type_arguments *arguments)
{
    enum { TUPLE_MAX = 8 };
    uint32_t count = arguments->left;
    if (count == 1 && is_system(n, path, "Nullable", 1)) {
        put_argument(n, path, arguments);
        text_putc(n->text, '?');
        return true;
    }
    if (count && count <= TUPLE_MAX && is_system(n, path, "ValueTuple", count)) {
        put_tuple(n, path, arguments);
        return true;
    }
    return false;
}

/* Not inlined because of its large path; so is the next. */
static __attribute__((noinline)) void csharp_named(struct namer *n, const struct named_type *type,
                                                   struct type_arguments *arguments)
{
    struct type_arguments none = {0};
    struct type_path path;
    bool abbreviated = !n->unabbreviated;
    n->unabbreviated = false;
    if (!namer_path(n, type->metadata, type->token, &path))
        return;
    if (!arguments)
        arguments = &none;
    if (abbreviated && put_abbreviated(n, &path, arguments))
        return;
    if (arguments->left && path.count > 1 && metadata_token_table(type->token) == METADATA_TYPE_DEF &&
        !path_read_arities(n, &path)) {
        if (n->status != CDACQ_ERR_MEMORY)
            return;
        namer_lose(n, CDACQ_ERR_MEMORY);
        namer_retry(n, n->text->length); /* the suffixes decide, as those of a TypeRef do */
    }
    put_path(n, &path, arguments);
}

static void put_formal_argument(struct namer *n, const struct type_arguments *arguments)
{
    put_formal(n, &arguments->level->formals, false, arguments->number);
}

static void put_bound_argument(struct namer *n, const struct type_arguments *arguments)
{
    type_variable_argument(n, arguments->context, false, arguments->number);
}

static __attribute__((noinline)) struct formals csharp_definition(struct namer *n, const struct metadata *m,
                                                                  uint32_t token)
{
    const struct name_instance *bound = n->bound;
    struct type_path path;
    n->bound = NULL;
    n->unabbreviated = false;
    if (!namer_path(n, m, token, &path) || (!path_read_arities(n, &path) && !path_guess_arities(n, &path)))
        return (struct formals){0};
    const struct formals formals = path.levels[0].formals;
    struct type_arguments arguments = {.left = formals.generics.count, .put = put_formal_argument};
    if (bound && arguments.left && bound->type_count == arguments.left) {
        arguments.put = put_bound_argument;
        arguments.context = (void *)bound;
        n->formals[0] = formals;
    }
    put_path(n, &path, &arguments);
    return formals;
}

/* The next modifier of a type: its name, if it is in that namespace. False: there is no further one. */
static bool next_modifier(struct namer *n, struct signature *s, const struct metadata *m, const char *space,
                          char buffer[METADATA_STRING_CAP], const char **ret_name, size_t *ret_length)
{
    uint8_t element = signature_peek(s);
    struct type_path path;
    bool equal = false;
    *ret_length = 0;
    if (!m || n->status != CDACQ_OK || (element != ELEMENT_CMOD_REQD && element != ELEMENT_CMOD_OPT))
        return false;
    s->at++;
    uint32_t token = signature_token(s);
    if (s->failed || metadata_token_table(token) == METADATA_TYPE_SPEC)
        return !s->failed;
    if (!namer_path(n, m, token, &path) || path.count != 1 ||
        !namer_check(
            n, metadata_string_equals(path.metadata, path.levels[0].namespace_name, space, strlen(space), &equal)))
        return false;
    return !equal || namer_check(n, metadata_string(path.metadata, path.levels[0].name, buffer, ret_name, ret_length));
}

/* ` unmanaged[Cdecl, SuppressGCTransition]`, and what opens the list of types */
static __attribute__((noinline)) void csharp_convention(struct namer *n, const struct signature_header *header,
                                                        struct signature result, const struct metadata *m)
{
    static const char *const conventions[] = {
        "",
        " unmanaged[Cdecl]",
        " unmanaged[Stdcall]",
        " unmanaged[Thiscall]",
        " unmanaged[Fastcall]",
        "",
        [SIGNATURE_UNMANAGED] = " unmanaged",
    };
    static const char prefix[] = "CallConv";
    const size_t cut = sizeof prefix - 1;
    char buffer[METADATA_STRING_CAP];
    const char *name, *mark = "[";
    size_t length;
    text_puts(n->text, conventions[header->kind]);
    while (header->kind == SIGNATURE_UNMANAGED &&
           next_modifier(n, &result, m, "System.Runtime.CompilerServices", buffer, &name, &length)) {
        if (length <= cut || memcmp(name, prefix, cut) != 0)
            continue;
        text_puts(n->text, mark);
        text_escape(n->text, name + cut, length - cut);
        mark = ", ";
    }
    text_puts(n->text, *mark == ',' ? "]<" : "<");
}

/* Whether a reference has a modifier of that name. */
static bool has_modifier(struct namer *n, struct signature s, const struct metadata *m, const char *space,
                         const char *modifier)
{
    char buffer[METADATA_STRING_CAP];
    const char *name;
    size_t length;
    bool found = false;
    while (next_modifier(n, &s, m, space, buffer, &name, &length))
        found |= length == strlen(modifier) && memcmp(name, modifier, length) == 0;
    return found && signature_peek(&s) == ELEMENT_BYREF;
}

/* `in`, `out` and `ref readonly` of a parameter of a function pointer, which has no row: modifiers say what it is. */
static __attribute__((noinline)) void csharp_function_parameter(struct namer *n, struct signature s,
                                                                const struct metadata *m, uint32_t number,
                                                                uint32_t count)
{
    static const char interop[] = "System.Runtime.InteropServices";
    (void)number;
    (void)count;
    if (has_modifier(n, s, m, interop, "OutAttribute"))
        n->reference = "out ";
    else if (has_modifier(n, s, m, "System.Runtime.CompilerServices", "RequiresLocationAttribute"))
        n->reference = "ref readonly ";
    else if (has_modifier(n, s, m, interop, "InAttribute"))
        n->reference = "in ";
}

static void csharp_function_result(struct namer *n, struct signature s, const struct metadata *m)
{
    if (has_modifier(n, s, m, "System.Runtime.InteropServices", "InAttribute"))
        n->reference = "ref readonly ";
}

/* `delegate*<int, void>`, `delegate* unmanaged[Cdecl]<in int, void>` */
static const struct function_style csharp_function = {
    .open = "delegate*",
    .close = ">",
    .convention = csharp_convention,
    .before_result = csharp_function_result,
    .parameters = {.list = {"", ", ", ""}, .before = csharp_function_parameter},
    .result_last = true,
};

const struct type_spelling csharp_types = {
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
    .formal = csharp_formal,
    .variable = csharp_variable,
};

/* ---- Methods ---- */

static void put_method_formal(struct namer *n, const struct type_arguments *arguments)
{
    csharp_variable(n, true, arguments->number);
}

/* The arguments of a generic method, or its formal parameters. */
static struct type_arguments read_method_arguments(struct namer *n, const struct named_method *method)
{
    struct type_arguments arguments = {.put = put_method_formal};
    if (metadata_token_table(method->token) == METADATA_MEMBER_REF) {
        arguments.left = method->header.generic_count;
    } else if (method->token && method->header.generic &&
               namer_formals(n, method->metadata, method->token, &n->formals[1])) {
        arguments.left = n->formals[1].generics.count;
        n->formals_owner[1] = method->token;
    }
    bool bound = method->instance && method->instance->method_count &&
                 (!arguments.left || method->instance->method_count == arguments.left);
    return bound ? method_arguments(method) : arguments;
}

/*
 * `in` has a flag and an attribute, `out` a flag: [In] and [Out] set the same flags but mean something only for
 * marshalling. C# 12's `ref readonly` has an attribute of its own.
 */
static const char *reference_word(struct namer *n, const struct metadata *m, uint32_t rid)
{
    enum { PARAM_IN = 1, PARAM_OUT = 2 };
    static const char space[] = "System.Runtime.CompilerServices";
    struct metadata_param param;
    uint32_t token = metadata_token(METADATA_PARAM, rid);
    enum cdacq_status status = metadata_param(m, rid, &param);
    namer_lose(n, status);
    if (status != CDACQ_OK)
        return NULL;
    if ((param.flags & (PARAM_IN | PARAM_OUT)) == PARAM_OUT)
        return "out ";
    if (!(param.flags & PARAM_IN))
        return NULL;
    return namer_has_attribute(n, m, token, space, "IsReadOnlyAttribute")         ? "in "
           : namer_has_attribute(n, m, token, space, "RequiresLocationAttribute") ? "ref readonly "
                                                                                  : NULL;
}

static bool is_params(struct namer *n, const struct metadata *m, uint32_t rid, uint8_t element)
{
    uint32_t token = metadata_token(METADATA_PARAM, rid);
    return element == ELEMENT_SZARRAY
               ? namer_has_attribute(n, m, token, "System", "ParamArrayAttribute")
               : namer_has_attribute(n, m, token, "System.Runtime.CompilerServices", "ParamCollectionAttribute");
}

/* `out`, `in`, `params` of a parameter, as far as its row can be read. */
static void csharp_parameter(struct namer *n, struct signature s, const struct metadata *of, uint32_t number,
                             uint32_t count)
{
    const struct metadata *m = n->formals[1].metadata;
    uint32_t method = n->formals_owner[1], rid;
    (void)of;
    signature_skip_modifiers(&s);
    uint8_t element = signature_peek(&s);
    bool last = number == count && (element == ELEMENT_SZARRAY || element == ELEMENT_GENERICINST);
    if (!m || !method || !(element == ELEMENT_BYREF || last))
        return;
    enum cdacq_status status = metadata_parameter(m, metadata_rid(method), number, &rid);
    namer_lose(n, status);
    if (status != CDACQ_OK || !rid)
        return;
    if (element == ELEMENT_BYREF)
        n->reference = reference_word(n, m, rid);
    else if (is_params(n, m, rid, element))
        text_puts(n->text, "params ");
}

/* Not inlined because of its large member. */
__attribute__((noinline)) void csharp_put_method(struct namer *n, const struct named_method *method)
{
    /* Arguments after the sentinel are not part of the name. */
    static const struct parameter_style style = {
        .list = {"(", ", ", ")"}, .rest = "__arglist", .stops = true, .before = csharp_parameter};
    static const struct parameter_style indexes = {.list = {"[", ", ", "]"}, .before = csharp_parameter};
    struct signature s = method->signature;
    struct member member;
    if (!member_read(n, method, &member))
        return;
    method_put_owner(n, method);
    text_putc(n->text, '.');
    if (metadata_token_table(method->token) == METADATA_METHOD_DEF && method->token) {
        n->formals[1].metadata = method->metadata;
        n->formals_owner[1] = method->token;
    }
    n->instance = method->instance;
    member_put(n, method, &member, &indexes);
    struct type_arguments arguments = read_method_arguments(n, method);
    type_argument_list(n, &arguments);
    signature_skip_type(&s);
    type_parameters(n, &s, method->metadata, &method->header, &style);
}

const struct name_spelling name_spelling_csharp = {
    .owner = &csharp_types,
    .put_method = csharp_put_method,
    .formal = true,
    .arguments = true,
    .dynamic_class = "dynamicClass",
};
