/*
 * spelling_source.c: the method that a person wrote, for what the compiler made of it; in C#'s syntax
 * (spelling_csharp.c):
 *
 *     Ns.Program.Fetch(int)                           <Fetch>d__3.MoveNext
 *     lambda in Ns.Program.Fetch(int)                 <>c.<Fetch>b__0_0, also of an async lambda
 *     local function Add in Ns.Program.Sum(int[])     <Sum>g__Add|0_0
 *     Program.Main(string[])                          <Main>$
 *
 * The method behind a state machine is the one whose attribute names it, and otherwise the one whose name the compiler
 * has put into the state machine's. The method around a lambda or a local function is known by name alone: if several
 * overloads have that name, it is written without parameters. Other members that the compiler generates keep its names.
 */
#include "formats/names/member.h"
#include "formats/names/spelling.h"
#include "formats/names/state_machine.h"
#include "formats/names/type_walk.h"

enum { STEPS = 8 }; /* a lambda in a state machine in a lambda: three */

enum written_kind {
    WRITTEN_METHOD,
    WRITTEN_LAMBDA,
    WRITTEN_LOCAL,
};

/* A method, known by its type and its name, and by its rid if only one method has that name. */
struct written {
    const struct metadata *metadata;
    uint32_t type, method;
    size_t length;
    char name[METADATA_STRING_CAP];
    enum written_kind kind;
    size_t local_length;
    char local[METADATA_STRING_CAP];
};

static bool read_string(struct namer *n, const struct metadata *m, uint32_t index, char buffer[METADATA_STRING_CAP],
                        size_t *ret_length)
{
    const char *name;
    if (!namer_check(n, metadata_string(m, index, buffer, &name, ret_length)) || !namer_spend_bulk(n, *ret_length))
        return false;
    if (name != buffer)
        memcpy(buffer, name, *ret_length);
    return true;
}

static bool read_type_name(struct namer *n, const struct metadata *m, uint32_t type, char buffer[METADATA_STRING_CAP],
                           size_t *ret_length)
{
    struct metadata_type_def row;
    return namer_check(n, metadata_type_def(m, type, &row)) && read_string(n, m, row.name, buffer, ret_length);
}

static bool read_method_name(struct namer *n, struct written *w, uint32_t method)
{
    struct metadata_method_def row;
    w->method = method;
    return namer_check(n, metadata_method_def(w->metadata, method, &row)) &&
           read_string(n, w->metadata, row.name, w->name, &w->length);
}

static uint32_t enclosing(struct namer *n, const struct metadata *m, uint32_t type)
{
    uint32_t outer = 0;
    if (namer_spend_search(n, m, METADATA_NESTED_CLASS))
        namer_check(n, metadata_enclosing(m, type, &outer));
    return outer;
}

/* ---- From a state machine to its method ---- */

/* If the method is one of a state machine, goes on to the method that was written. */
static bool leave_state_machine(struct namer *n, struct written *w)
{
    static const char vb[] = "VB$StateMachine_";
    char type[METADATA_STRING_CAP];
    size_t length, inner = 0, rest;
    bool body = name_equals(w->name, w->length, "MoveNext") || name_begins(w->name, w->length, "<>m__Finally");
    if (!w->method || !body || !read_type_name(n, w->metadata, w->type, type, &length))
        return false;
    bool csharp = compiler_name_parse(type, length, &inner, &rest) == 'd';
    if (!csharp && !name_begins(type, length, vb))
        return false;
    uint32_t outer = enclosing(n, w->metadata, w->type), method = 0;
    bool iterator;
    if (!outer)
        return false;
    if (state_machine_kickoff(w->metadata, outer, w->type, &method, &iterator) != CDACQ_OK)
        method = 0; /* its name is in that of the state machine */
    if (n->status != CDACQ_OK || (!csharp && !method))
        return false;
    w->type = outer;
    if (method)
        return read_method_name(n, w, method);
    w->method = 0;
    w->length = inner;
    memcpy(w->name, type + 1, inner);
    return true;
}

/* ---- From a lambda or a local function to the method around it ---- */

/* The method of a type by its name; 0 if none has it, or several have. */
static uint32_t find_only(struct namer *n, const struct metadata *m, uint32_t type, const char *name, size_t length)
{
    struct metadata_method_def row;
    uint32_t begin, end, found = 0;
    bool equal;
    if (!namer_check(n, metadata_methods(m, type, &begin, &end)) || metadata_row_count(m, METADATA_METHOD_PTR))
        return 0;
    for (uint32_t method = begin; method < end && namer_spend(n, 1); method++) {
        if (!namer_check(n, metadata_method_def(m, method, &row)) ||
            !namer_check(n, metadata_string_equals(m, row.name, name, length, &equal)) || (equal && found))
            return 0;
        if (equal)
            found = method;
    }
    return n->status == CDACQ_OK ? found : 0;
}

static bool leave_nested_function(struct namer *n, struct written *w)
{
    char type[METADATA_STRING_CAP];
    size_t length, inner, rest;
    char kind = compiler_name_parse(w->name, w->length, &inner, &rest);
    if (kind != 'b' && kind != 'g')
        return false;
    if (w->kind == WRITTEN_METHOD) {
        const char *local = w->name + rest, *bar = memchr(local, '|', w->length - rest);
        w->kind = kind == 'b' ? WRITTEN_LAMBDA : WRITTEN_LOCAL;
        w->local_length = kind == 'b' ? 0 : bar ? (size_t)(bar - local) : w->length - rest;
        memcpy(w->local, local, w->local_length);
    }
    w->length = inner;
    memmove(w->name, w->name + 1, inner);
    /* Closures are classes within the class. */
    while (read_type_name(n, w->metadata, w->type, type, &length) && name_begins(type, length, "<>c")) {
        uint32_t outer = enclosing(n, w->metadata, w->type);
        if (!outer)
            break;
        w->type = outer;
    }
    w->method = find_only(n, w->metadata, w->type, w->name, w->length);
    return n->status == CDACQ_OK;
}

/* ---- Writing ---- */

/* The arguments of the method that was written: those of the compiler's type and method, one after the other. */
struct written_arguments {
    const struct name_instance *instance;
    uint32_t type_arity; /* of the type that was written */
};

static void put_written_argument(void *context, bool of_method, uint32_t index, struct namer *n)
{
    const struct written_arguments *arguments = context;
    const struct name_instance *instance = arguments->instance;
    uint32_t at = index + (of_method ? arguments->type_arity : 0);
    bool is_own = at >= instance->type_count;
    instance->argument(instance->context, is_own, is_own ? at - instance->type_count : at, n);
}

static uint32_t arity(struct namer *n, const struct metadata *m, uint32_t token)
{
    struct formals formals = {0};
    return namer_formals(n, m, token, &formals) ? formals.generics.count : 0;
}

/* The name without parameters, which are those of one of several methods. */
static void put_name_alone(struct namer *n, const struct written *w, const struct name_instance *instance)
{
    uint32_t token = metadata_token(METADATA_TYPE_DEF, w->type);
    struct named_method method = {.metadata = w->metadata, .token = token, .parent = token, .instance = instance};
    method_put_owner(n, &method);
    text_putc(n->text, '.');
    text_escape(n->text, w->name, w->length);
}

static void put_whole(struct namer *n, const struct written *w, const struct name_instance *instance)
{
    CLEANUP_METADATA_BLOB struct metadata_blob blob;
    struct metadata_method_def row;
    uint32_t token = metadata_token(METADATA_METHOD_DEF, w->method);
    struct named_method method = {.metadata = w->metadata, .token = token, .parent = token, .instance = instance};
    blob.allocated = NULL;
    if (!namer_check(n, metadata_method_def(w->metadata, w->method, &row)) ||
        !namer_blob(n, w->metadata, row.signature, &blob))
        return;
    method.name = row.name;
    method.flags = row.flags;
    method.signature = signature_at(blob.data, blob.length, 0, false);
    method.header = signature_method(&method.signature);
    method.has_parameters = true;
    /* The entry point of top-level statements, and the one that waits for an async Main. */
    if (name_equals(w->name, w->length, "<Main>$") || name_equals(w->name, w->length, "<Main>"))
        method.plain_name = "Main";
    if (method.signature.failed)
        namer_fail(n, CDACQ_ERR_FORMAT);
    else
        csharp_put_method(n, &method);
}

static void put_written(struct namer *n, const struct written *w, const struct name_instance *instance)
{
    struct written_arguments arguments = {.instance = instance};
    struct name_instance written = {.argument = put_written_argument, .context = &arguments};
    uint32_t total = instance ? instance->type_count + instance->method_count : 0;
    uint32_t of_type = arity(n, w->metadata, metadata_token(METADATA_TYPE_DEF, w->type));
    uint32_t of_method = w->method ? arity(n, w->metadata, metadata_token(METADATA_METHOD_DEF, w->method)) : 0;
    arguments.type_arity = written.type_count = of_type;
    written.method_count = of_method;
    if (w->kind == WRITTEN_LAMBDA) {
        text_puts(n->text, "lambda in ");
    } else if (w->kind == WRITTEN_LOCAL) {
        text_puts(n->text, "local function ");
        text_escape(n->text, w->local, w->local_length);
        text_puts(n->text, " in ");
    }
    instance = total && total >= of_type + of_method ? &written : NULL;
    if (w->method)
        put_whole(n, w, instance);
    else
        put_name_alone(n, w, instance);
}

/* Not inlined because of its large names. */
static __attribute__((noinline)) void source_method(struct namer *n, const struct named_method *method)
{
    struct written w = {.metadata = method->metadata};
    if (metadata_token_table(method->token) != METADATA_METHOD_DEF || !method->token) {
        csharp_put_method(n, method);
        return;
    }
    if (!namer_spend_search(n, w.metadata, METADATA_METHOD_PTR) ||
        !namer_check(n, metadata_method_owner(w.metadata, metadata_rid(method->token), &w.type)) ||
        !read_method_name(n, &w, metadata_rid(method->token)))
        return;
    n->written = true;
    for (unsigned i = 0; i < STEPS && (leave_state_machine(n, &w) || leave_nested_function(n, &w)); i++)
        ;
    bool other = w.method != metadata_rid(method->token) || name_begins(w.name, w.length, "<Main>");
    if (n->status == CDACQ_OK && other)
        put_written(n, &w, method->instance);
    else if (n->status == CDACQ_OK)
        csharp_put_method(n, method);
}

const struct name_spelling name_spelling_source = {
    .owner = &csharp_types,
    .put_method = source_method,
    .formal = true,
    .arguments = true,
    .dynamic_class = "dynamicClass",
};
