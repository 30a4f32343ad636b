/*
 * spelling_il.c: what the runtime writes into its perf map and jitdump:
 *
 *     instance !0 [System.Linq] Ns.Outer`1+Inner[System.Int32]::M(class [System.Runtime]Ns.List`1<!!0>&)
 *
 * Types of the signature are written as ILAsm has them, with their modifiers, and are not instantiated.
 */
#include <inttypes.h>

#include "formats/names/spelling.h"
#include "formats/names/type_walk.h"

/* `[System.Runtime]`, `[.module Other.netmodule]`, or nothing for a type of the module itself. */
static void il_scope(struct namer *n, const struct metadata *m, uint32_t scope)
{
    struct metadata_assembly_ref assembly;
    struct metadata_module_ref module;
    uint32_t rid = metadata_rid(scope), table = metadata_token_table(scope);
    if (scope == 0) { /* a TypeRef to a type anywhere in this assembly */
        text_puts(n->text, "[*]");
    } else if (rid && table == METADATA_ASSEMBLY_REF && namer_check(n, metadata_assembly_ref(m, rid, &assembly))) {
        text_putc(n->text, '[');
        namer_put_string(n, m, assembly.name);
        text_putc(n->text, ']');
    } else if (rid && table == METADATA_MODULE_REF && namer_check(n, metadata_module_ref(m, rid, &module))) {
        text_puts(n->text, "[.module ");
        namer_put_string(n, m, module.name);
        text_putc(n->text, ']');
    }
}

/* `[System.Runtime]Ns.Outer`1/Inner`, and the value of a type handle. Not inlined because of its large path. */
static __attribute__((noinline)) void il_named(struct namer *n, const struct named_type *type,
                                               struct type_arguments *arguments)
{
    struct type_path path;
    (void)arguments;
    if (!namer_path(n, type->metadata, type->token, &path))
        return;
    if (metadata_token_table(type->token) == METADATA_TYPE_REF)
        il_scope(n, path.metadata, path.scope);
    for (unsigned i = path.count; i-- > 0 && n->status == CDACQ_OK;) {
        namer_put_namespace(n, path.metadata, path.levels[i].namespace_name, namer_put_string);
        namer_put_string(n, path.metadata, path.levels[i].name);
        if (i)
            text_putc(n->text, '/');
    }
    if (type->handle)
        text_printf(n->text, " /* MT: 0x%" PRIx64 " */", type->handle);
}

/* `[0...,0...]`: a dimension shows its size, or its lower bound, or both ends of its range. */
static void il_dimension(struct namer *n, const struct array_shape *shape, uint32_t i)
{
    int64_t bound = i < shape->bound_count ? shape->bounds[i] : 0;
    if (bound == 0 && i < shape->size_count)
        text_printf(n->text, "%" PRId64, shape->sizes[i]);
    else if (i < shape->bound_count)
        text_printf(n->text, "%" PRId64 "...", bound);
    if (bound && i < shape->size_count)
        text_printf(n->text, "%" PRId64, bound + shape->sizes[i] - 1);
}

/* `instance vararg ` */
static void put_convention(struct namer *n, const struct signature_header *header)
{
    static const char *const conventions[] = {
        "",
        "unmanaged cdecl ",
        "unmanaged stdcall ",
        "unmanaged thiscall ",
        "unmanaged fastcall ",
        "vararg ",
        [SIGNATURE_UNMANAGED] = "unmanaged ",
    };
    if (header->flags & SIGNATURE_EXPLICIT_THIS)
        text_puts(n->text, "explicit ");
    if (header->flags & SIGNATURE_HAS_THIS)
        text_puts(n->text, "instance ");
    text_puts(n->text, conventions[header->kind]);
}

static void il_convention(struct namer *n, const struct signature_header *header, struct signature result,
                          const struct metadata *m)
{
    (void)result;
    (void)m;
    put_convention(n, header);
}

/* `method vararg int32 *(string,...,bool)` */
static const struct function_style il_function = {
    .open = "method ",
    .close = "",
    .convention = il_convention,
    .parameters = {.list = {" *(", ",", ")"}, .sentinel = "..."},
};

static const struct type_spelling il_types = {
    .primitives = PRIMITIVE_IL,
    .class_word = "class ",
    .valuetype_word = "valuetype ",
    .pointer = "*",
    .byref = {"", "&"},
    .pinned = " pinned",
    .modopt = " modopt(",
    .modreq = " modreq(",
    .one_dimension = "...",
    .type_specs = true,
    .arguments = {"<", ",", ">"},
    .function = &il_function,
    .dimension = il_dimension,
    .named = il_named,
    .variable = type_variable_number,
};

static void il_method(struct namer *n, const struct named_method *method)
{
    static const struct parameter_style style = {.list = {"(", ",", ")"}, .sentinel = "..."};
    const struct type_spelling *owner = n->types;
    struct signature s = method->signature;
    if (!method->metadata) /* the name includes the assembly */
        namer_fail(n, CDACQ_ERR_MODULE);
    put_convention(n, &method->header);
    n->types = &il_types;
    type_result(n, &s, method->metadata, method->instance ? method->instance->result : NAME_RESULT_DECLARED);
    text_putc(n->text, ' ');
    size_t begin = n->text->length;
    n->types = owner;
    method_put_owner(n, method);
    size_t end = n->text->length; /* the assembly precedes the owner but is known after it */
    text_putc(n->text, '[');
    namer_put_origin(n, n->origin);
    text_puts(n->text, "] ");
    namer_rotate(n, begin, end);
    text_puts(n->text, "::");
    method_put_name(n, method);
    n->types = &il_types;
    type_parameters(n, &s, method->metadata, &method->header, &style);
}

const struct name_spelling name_spelling_il = {
    .owner = &type_spelling_reflection,
    .put_method = il_method,
    .result = true,
    .dynamic_class = "dynamicClass",
};
