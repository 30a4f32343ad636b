/*
 * runtime_il.c: signatures as ILAsm has them and the perf map shows them.
 */
#include <inttypes.h>

#include "formats/runtime_forms.h"

static void il_type(struct namer *n, struct signature *s, const struct metadata *m);

static const char *il_keyword(uint8_t element)
{
    static const char *const keywords[] = {
        [ELEMENT_VOID] = "void",    [ELEMENT_BOOLEAN] = "bool",  [ELEMENT_CHAR] = "char",
        [ELEMENT_I1] = "int8",      [ELEMENT_U1] = "uint8",      [ELEMENT_I2] = "int16",
        [ELEMENT_U2] = "uint16",    [ELEMENT_I4] = "int32",      [ELEMENT_U4] = "uint32",
        [ELEMENT_I8] = "int64",     [ELEMENT_U8] = "uint64",     [ELEMENT_R4] = "float32",
        [ELEMENT_R8] = "float64",   [ELEMENT_STRING] = "string", [ELEMENT_TYPEDBYREF] = "typedref",
        [ELEMENT_I] = "native int", [ELEMENT_U] = "native uint", [ELEMENT_OBJECT] = "object",
    };
    return element < ARRAY_SIZE(keywords) ? keywords[element] : NULL;
}

/* `[System.Runtime]`, `[.module Other.netmodule]`, or nothing for what is in the module itself. */
static void il_scope(struct namer *n, const struct metadata *m, uint32_t scope)
{
    struct metadata_assembly_ref reference;
    uint32_t rid = metadata_rid(scope), name;
    if (scope == 0) { /* a TypeRef that says no more than that the type is somewhere here */
        text_puts(n->text, "[*]");
    } else if (rid && metadata_token_table(scope) == METADATA_ASSEMBLY_REF) {
        if (!namer_check(n, metadata_assembly_ref(m, rid, &reference)))
            return;
        text_putc(n->text, '[');
        namer_put_string(n, m, reference.name);
        text_putc(n->text, ']');
    } else if (rid && metadata_token_table(scope) == METADATA_MODULE_REF) {
        if (!namer_check(n, metadata_module_ref_name(m, rid, &name)))
            return;
        text_puts(n->text, "[.module ");
        namer_put_string(n, m, name);
        text_putc(n->text, ']');
    }
}

/* `[System.Runtime]Ns.Outer`1/Inner`. Not inlined, for its path. */
static __attribute__((noinline)) void il_named_class(struct namer *n, const struct metadata *m, uint32_t token)
{
    struct type_path path;
    if (!namer_path(n, m, token, &path))
        return;
    if (metadata_token_table(token) == METADATA_TYPE_REF)
        il_scope(n, m, path.scope);
    for (unsigned i = path.count; i-- > 0 && n->status == CDACQ_OK;) {
        runtime_put_namespace(n, m, path.levels[i].namespace_name, namer_put_string);
        namer_put_string(n, m, path.levels[i].name);
        if (i)
            text_putc(n->text, '/');
    }
}

static void il_type_spec(struct namer *n, const struct metadata *m, uint32_t rid)
{
    CLEANUP_METADATA_BLOB struct metadata_blob blob;
    uint32_t index;
    blob.allocated = NULL;
    if (!namer_check(n, metadata_type_spec(m, rid, &index)))
        return;
    struct signature s = runtime_read_blob(n, m, index, &blob);
    if (n->status == CDACQ_OK)
        il_type(n, &s, m);
}

static void il_class(struct namer *n, struct signature *s, const struct metadata *m)
{
    uint32_t token = signature_token(s);
    if (!namer_good(n, s))
        return;
    if (!m)
        namer_fail(n, CDACQ_ERR_MODULE);
    else if (metadata_token_table(token) == METADATA_TYPE_SPEC)
        il_type_spec(n, m, metadata_rid(token));
    else
        il_named_class(n, m, token);
}

/* The definition, and where the handle points. */
static void il_handle(struct namer *n, struct signature *s)
{
    const struct metadata *m;
    uint32_t token;
    uint64_t handle;
    if (!runtime_read_handle(n, s, &m, &token, &handle))
        return;
    il_named_class(n, m, token);
    text_printf(n->text, " /* MT: 0x%" PRIx64 " */", handle);
}

/* `[0...,0...]`: a dimension shows its size, or its lower bound, or both ends of its range. */
static void il_array_shape(struct namer *n, struct signature *s)
{
    int64_t sizes[SIGNATURE_RANK_CAP], bounds[SIGNATURE_RANK_CAP];
    uint32_t rank = signature_uint(s), size_count = signature_uint(s);
    if (!rank || rank > SIGNATURE_RANK_CAP || size_count > rank)
        signature_fail(s);
    for (uint32_t i = 0; i < size_count && !s->failed; i++)
        sizes[i] = signature_uint(s);
    uint32_t bound_count = signature_uint(s);
    if (bound_count > rank)
        signature_fail(s);
    for (uint32_t i = 0; i < bound_count && !s->failed; i++)
        bounds[i] = signature_int(s);
    if (!namer_good(n, s))
        return;
    text_puts(n->text, rank == 1 && !size_count && !bound_count ? "[..." : "[");
    for (uint32_t i = 0; i < rank; i++) {
        int64_t bound = i < bound_count ? bounds[i] : 0;
        if (bound == 0 && i < size_count)
            text_printf(n->text, "%" PRId64, sizes[i]);
        else if (i < bound_count)
            text_printf(n->text, "%" PRId64 "...", bound);
        if (bound && i < size_count)
            text_printf(n->text, "%" PRId64, bound + sizes[i] - 1);
        if (i + 1 < rank)
            text_putc(n->text, ',');
    }
    text_putc(n->text, ']');
}

/* `instance vararg void`: up to where the name comes. */
void il_signature_head(struct namer *n, struct signature *s, const struct metadata *m,
                       const struct signature_header *header)
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
    if (!namer_good(n, s)) /* an unknown convention among other things */
        return;
    text_puts(n->text, conventions[header->kind]);
    il_type(n, s, m);
    text_putc(n->text, ' ');
}

void il_parameters(struct namer *n, struct signature *s, const struct metadata *m, uint32_t count)
{
    text_putc(n->text, '(');
    bool comma = false;
    while (count && namer_good(n, s) && namer_spend(n, 1)) {
        if (comma)
            text_putc(n->text, ',');
        comma = true;
        if (signature_peek(s) == ELEMENT_SENTINEL) {
            s->at++;
            text_puts(n->text, "...");
            continue;
        }
        il_type(n, s, m);
        count--;
    }
    text_putc(n->text, ')');
    namer_good(n, s);
}

static void il_modified(struct namer *n, struct signature *s, const struct metadata *m, bool required)
{
    struct signature modifier = *s;
    signature_token(s);
    il_type(n, s, m);
    if (n->status != CDACQ_OK)
        return;
    text_puts(n->text, required ? " modreq(" : " modopt(");
    il_class(n, &modifier, m);
    text_putc(n->text, ')');
}

static void il_instance(struct namer *n, struct signature *s, const struct metadata *m)
{
    il_type(n, s, m);
    uint32_t count = signature_uint(s);
    text_putc(n->text, '<');
    for (uint32_t i = 0; i < count && namer_good(n, s); i++) {
        if (i)
            text_putc(n->text, ',');
        il_type(n, s, m);
    }
    text_putc(n->text, '>');
}

static void il_function_pointer(struct namer *n, struct signature *s, const struct metadata *m)
{
    struct signature_header header = signature_method(s);
    text_puts(n->text, "method ");
    il_signature_head(n, s, m, &header);
    text_putc(n->text, '*');
    il_parameters(n, s, m, header.parameter_count);
}

/* What stands before a type in the signature stands behind it in the text, the inner first. */
static void il_type(struct namer *n, struct signature *s, const struct metadata *m)
{
    if (!runtime_enter(n))
        return;
    uint8_t element = signature_byte(s);
    const char *word = il_keyword(element);
    if (!namer_good(n, s)) {
        /* nothing to write */
    } else if (word) {
        text_puts(n->text, word);
    } else {
        switch (element) {
        case ELEMENT_CLASS:
        case ELEMENT_VALUETYPE:
            text_puts(n->text, element == ELEMENT_CLASS ? "class " : "valuetype ");
            il_class(n, s, m);
            break;
        case ELEMENT_SZARRAY:
            il_type(n, s, m);
            text_puts(n->text, "[]");
            break;
        case ELEMENT_ARRAY:
            il_type(n, s, m);
            il_array_shape(n, s);
            break;
        case ELEMENT_PTR:
        case ELEMENT_BYREF:
            il_type(n, s, m);
            text_putc(n->text, element == ELEMENT_PTR ? '*' : '&');
            break;
        case ELEMENT_PINNED:
            il_type(n, s, m);
            text_puts(n->text, " pinned");
            break;
        case ELEMENT_CMOD_REQD:
        case ELEMENT_CMOD_OPT:
            il_modified(n, s, m, element == ELEMENT_CMOD_REQD);
            break;
        case ELEMENT_VAR:
        case ELEMENT_MVAR:
            text_printf(n->text, element == ELEMENT_VAR ? "!%u" : "!!%u", signature_uint(s));
            break;
        case ELEMENT_GENERICINST:
            il_instance(n, s, m);
            break;
        case ELEMENT_FNPTR:
            il_function_pointer(n, s, m);
            break;
        case ELEMENT_INTERNAL:
            il_handle(n, s);
            break;
        default:
            namer_fail(n, CDACQ_ERR_FORMAT);
        }
    }
    n->depth--;
}
