#include "src/formats/names_runtime.h"

#include <inttypes.h>

#include "src/formats/namer.h"

static const char core_library[] = "System.Private.CoreLib";

/* The name in the making, and what only these forms need. */
struct writer {
    struct namer n;
    enum cdacq_name_style style;
    const struct name_instance *instance; /* NULL: none */
};

static struct writer writer_begin(const struct name_source *source, enum cdacq_name_style style,
                                  const struct name_instance *instance, struct text *text)
{
    return (struct writer){.n = namer_begin(source, text), .style = style, .instance = instance};
}

static bool enter(struct namer *n)
{
    if (n->depth == NAME_DEPTH_CAP || !namer_spend(n, 1))
        return namer_fail(n, CDACQ_ERR_FUEL);
    n->depth++;
    return true;
}

/* The cursor over a blob of metadata, of which `blob` keeps a copy. */
static struct signature read_blob(struct namer *n, const struct metadata *m, uint32_t index, struct metadata_blob *blob)
{
    if (!namer_check(n, metadata_blob_read(m, index, blob)) || !namer_spend_bulk(n, blob->length))
        return signature_at(NULL, 0, 0, false);
    return signature_at(blob->data, blob->length, 0, false);
}

/* ---- Types that stand by themselves ---- */

/* A name with a backslash before each character that means something in such a type. text_escape doubles backslashes.
 */
static void put_reserved(struct namer *n, const struct metadata *m, uint32_t index)
{
    char buffer[METADATA_STRING_CAP];
    const char *string;
    size_t length;
    if (!namer_check(n, metadata_string(m, index, buffer, &string, &length)) || !namer_spend_bulk(n, length))
        return;
    for (const char *end = string + length; string < end;) {
        const char *plain = string;
        while (string < end && (!*string || !strchr(",[]&*+", *string)))
            string++;
        text_escape(n->text, plain, (size_t)(string - plain));
        if (string < end) {
            text_putc(n->text, '\\');
            text_putc(n->text, *string++);
        }
    }
}

static void put_namespace(struct namer *n, const struct metadata *m, uint32_t index,
                          void (*put)(struct namer *n, const struct metadata *m, uint32_t index))
{
    size_t before = n->text->length;
    put(n, m, index);
    if (n->text->length != before)
        text_putc(n->text, '.');
}

static void put_path(struct namer *n, const struct type_path *path)
{
    for (unsigned i = path->count; i-- > 0 && n->status == CDACQ_OK;) {
        put_namespace(n, path->metadata, path->levels[i].namespace_name, put_reserved);
        put_reserved(n, path->metadata, path->levels[i].name);
        if (i)
            text_putc(n->text, '+');
    }
}

/* Where a type is from: the name of an assembly. No metadata: the core library. */
struct origin {
    const struct metadata *metadata;
    uint32_t name;
};

static void put_origin(struct namer *n, struct origin origin)
{
    if (origin.metadata)
        namer_put_string(n, origin.metadata, origin.name);
    else
        text_puts(n->text, core_library);
}

static struct origin origin_of(struct namer *n, const struct metadata *m, uint32_t scope)
{
    struct metadata_assembly_ref reference;
    struct origin origin = {.metadata = m};
    if (metadata_token_table(scope) != METADATA_ASSEMBLY_REF)
        namer_check(n, metadata_assembly_name(m, &origin.name));
    else if (namer_check(n, metadata_assembly_ref(m, metadata_rid(scope), &reference)))
        origin.name = reference.name;
    return origin;
}

/* Not inlined, for its path. */
static __attribute__((noinline)) struct origin put_named_type(struct namer *n, const struct metadata *m, uint32_t token)
{
    struct type_path path;
    if (!namer_path(n, m, token, &path))
        return (struct origin){0};
    put_path(n, &path);
    return origin_of(n, m, path.scope);
}

/* The name that a primitive type has in the core library, without its namespace. */
static const char *core_type(uint8_t element)
{
    static const char *const names[] = {
        [ELEMENT_VOID] = "Void",
        [ELEMENT_BOOLEAN] = "Boolean",
        [ELEMENT_CHAR] = "Char",
        [ELEMENT_I1] = "SByte",
        [ELEMENT_U1] = "Byte",
        [ELEMENT_I2] = "Int16",
        [ELEMENT_U2] = "UInt16",
        [ELEMENT_I4] = "Int32",
        [ELEMENT_U4] = "UInt32",
        [ELEMENT_I8] = "Int64",
        [ELEMENT_U8] = "UInt64",
        [ELEMENT_R4] = "Single",
        [ELEMENT_R8] = "Double",
        [ELEMENT_STRING] = "String",
        [ELEMENT_TYPEDBYREF] = "TypedReference",
        [ELEMENT_I] = "IntPtr",
        [ELEMENT_U] = "UIntPtr",
        [ELEMENT_OBJECT] = "Object",
        [ELEMENT_CANON_ZAPSIG] = "__Canon",
    };
    return element < ARRAY_SIZE(names) ? names[element] : NULL;
}

static struct origin put_type_alone(struct writer *w, struct signature *s, const struct metadata *m);

/* The type at the cursor as one that stands by itself, with the arguments of a generic one. Returns where it is from.
 */
static struct origin put_instance_alone(struct writer *w, struct signature *s, const struct metadata *m)
{
    bool full = w->style == CDACQ_NAMES_SOS;
    struct namer *n = &w->n;
    struct origin origin = put_type_alone(w, s, m);
    uint32_t count = signature_uint(s);
    for (uint32_t i = 0; i < count && namer_good(n, s); i++) {
        text_puts(n->text, i == 0 ? "[" : ",");
        if (full)
            text_putc(n->text, '[');
        struct origin argument = put_type_alone(w, s, n->outer);
        if (full) {
            text_puts(n->text, ", ");
            put_origin(n, argument);
            text_putc(n->text, ']');
        }
    }
    text_putc(n->text, ']');
    return origin;
}

static struct origin put_type_alone(struct writer *w, struct signature *s, const struct metadata *m)
{
    struct namer *n = &w->n;
    struct origin origin = {0};
    if (!enter(n))
        return origin;
    signature_skip_modifiers(s);
    uint8_t element = signature_byte(s);
    const char *word = core_type(element);
    uint32_t token, rank;
    if (!namer_good(n, s)) {
        /* nothing to write */
    } else if (word) {
        text_puts(n->text, "System.");
        text_puts(n->text, word);
    } else {
        switch (element) {
        case ELEMENT_CLASS:
        case ELEMENT_VALUETYPE:
            token = signature_token(s);
            if (namer_good(n, s))
                origin = put_named_type(n, m, token);
            break;
        case ELEMENT_GENERICINST:
            origin = put_instance_alone(w, s, m);
            break;
        case ELEMENT_MODULE_ZAPSIG:
            m = namer_module(n, signature_uint(s));
            if (m)
                origin = put_type_alone(w, s, m);
            break;
        case ELEMENT_SZARRAY:
            origin = put_type_alone(w, s, m);
            text_puts(n->text, "[]");
            break;
        case ELEMENT_ARRAY:
            origin = put_type_alone(w, s, m);
            rank = signature_array_shape(s);
            text_puts(n->text, rank == 1 ? "[*" : "[");
            for (uint32_t i = 1; i < rank; i++)
                text_putc(n->text, ',');
            text_putc(n->text, ']');
            break;
        case ELEMENT_PTR:
        case ELEMENT_BYREF:
            origin = put_type_alone(w, s, m);
            text_putc(n->text, element == ELEMENT_PTR ? '*' : '&');
            break;
        default:
            namer_fail(n, CDACQ_ERR_FORMAT);
        }
    }
    n->depth--;
    return origin;
}

/* ---- Signatures of `il` ---- */

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
        put_namespace(n, m, path.levels[i].namespace_name, namer_put_string);
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
    struct signature s = read_blob(n, m, index, &blob);
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

/* What a type handle in a signature means: such signatures the runtime has made itself. */
static bool read_handle(struct namer *n, struct signature *s, const struct metadata **ret_metadata, uint32_t *ret_token,
                        uint64_t *ret_handle)
{
    *ret_handle = signature_handle(s);
    if (!n->source->type_definition)
        return namer_fail(n, CDACQ_ERR_FORMAT);
    return namer_good(n, s) &&
           namer_check(n, n->source->type_definition(n->source->context, *ret_handle, ret_metadata, ret_token));
}

/* The definition, and where the handle points. */
static void il_handle(struct namer *n, struct signature *s)
{
    const struct metadata *m;
    uint32_t token;
    uint64_t handle;
    if (!read_handle(n, s, &m, &token, &handle))
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
static void il_signature_head(struct namer *n, struct signature *s, const struct metadata *m,
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

static void il_parameters(struct namer *n, struct signature *s, const struct metadata *m, uint32_t count)
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
    if (!enter(n))
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

/* ---- Signatures of `sos` ---- */

static void sos_type(struct writer *w, struct signature *s, const struct metadata *m);

static void put_row(struct namer *n, const struct metadata *m, uint32_t token, bool with_namespace)
{
    struct metadata_type_def definition;
    struct metadata_type_ref reference;
    uint32_t rid = metadata_rid(token), name = 0, namespace_name = 0;
    if (!m) {
        namer_fail(n, CDACQ_ERR_MODULE);
    } else if (metadata_token_table(token) == METADATA_TYPE_DEF) {
        if (namer_check(n, metadata_type_def(m, rid, &definition)))
            name = definition.name, namespace_name = definition.namespace_name;
    } else if (metadata_token_table(token) == METADATA_TYPE_REF) {
        if (namer_check(n, metadata_type_ref(m, rid, &reference)))
            name = reference.name, namespace_name = reference.namespace_name;
    } else {
        namer_fail(n, CDACQ_ERR_FORMAT);
    }
    if (n->status != CDACQ_OK)
        return;
    if (with_namespace)
        put_namespace(n, m, namespace_name, namer_put_string);
    namer_put_string(n, m, name);
}

/* An argument where it is known, else `!0`, `!!0`. */
static void sos_variable(struct writer *w, bool of_method, uint32_t number)
{
    const struct name_instance *instance = w->instance;
    struct namer *n = &w->n;
    if (instance && number < (of_method ? instance->method_count : instance->type_count))
        namer_check(n, instance->argument(instance->context, of_method, number, NAME_TYPE_SIGNATURE, n->text));
    else
        text_printf(n->text, of_method ? "!!%u" : "!%u", number);
}

static void sos_function_pointer(struct writer *w, struct signature *s, const struct metadata *m)
{
    struct signature_header header = signature_method(s);
    struct namer *n = &w->n;
    if (!namer_good(n, s))
        return;
    sos_type(w, s, m);
    text_puts(n->text, " (");
    for (uint32_t i = 0; i < header.parameter_count && namer_good(n, s); i++) {
        if (i)
            text_puts(n->text, ", ");
        if (signature_peek(s) == ELEMENT_SENTINEL)
            s->at++;
        sos_type(w, s, m);
    }
    if (header.kind == SIGNATURE_VARARG)
        text_puts(n->text, header.parameter_count ? ", ..." : "...");
    text_putc(n->text, ')');
}

static void sos_instance(struct writer *w, struct signature *s, const struct metadata *m)
{
    struct namer *n = &w->n;
    sos_type(w, s, m);
    uint32_t count = signature_uint(s);
    text_putc(n->text, '<');
    for (uint32_t i = 0; i < count && namer_good(n, s); i++) {
        if (i)
            text_putc(n->text, ',');
        sos_type(w, s, m);
    }
    text_putc(n->text, '>');
}

static void sos_array_shape(struct namer *n, struct signature *s)
{
    uint32_t rank = signature_array_shape(s);
    text_putc(n->text, '[');
    for (uint32_t i = 1; i < rank; i++)
        text_putc(n->text, ',');
    text_putc(n->text, ']');
}

static void sos_compound(struct writer *w, struct signature *s, const struct metadata *m, uint8_t element)
{
    struct namer *n = &w->n;
    uint32_t token;
    uint64_t handle;
    switch (element) {
    case ELEMENT_CLASS:
    case ELEMENT_VALUETYPE:
        token = signature_token(s);
        if (namer_good(n, s) && metadata_token_table(token) != METADATA_TYPE_SPEC) /* of which there is no name */
            put_row(n, m, token, true);
        return;
    case ELEMENT_SZARRAY:
        sos_type(w, s, m);
        text_puts(n->text, "[]");
        return;
    case ELEMENT_ARRAY:
        sos_type(w, s, m);
        sos_array_shape(n, s);
        return;
    case ELEMENT_PTR:
    case ELEMENT_BYREF:
        sos_type(w, s, m);
        text_puts(n->text, element == ELEMENT_PTR ? "*" : " ByRef");
        return;
    case ELEMENT_VAR:
    case ELEMENT_MVAR:
        token = signature_uint(s);
        if (namer_good(n, s))
            sos_variable(w, element == ELEMENT_MVAR, token);
        return;
    case ELEMENT_GENERICINST:
        sos_instance(w, s, m);
        return;
    case ELEMENT_FNPTR:
        sos_function_pointer(w, s, m);
        return;
    case ELEMENT_INTERNAL:
        if (read_handle(n, s, &m, &token, &handle))
            put_row(n, m, token, true);
        return;
    case ELEMENT_MODULE_ZAPSIG:
        m = namer_module(n, signature_uint(s));
        if (m)
            sos_type(w, s, m);
        return;
    default:
        namer_fail(n, CDACQ_ERR_FORMAT);
    }
}

static void sos_type(struct writer *w, struct signature *s, const struct metadata *m)
{
    struct namer *n = &w->n;
    if (!enter(n))
        return;
    signature_skip_modifiers(s);
    uint8_t element = signature_byte(s);
    const char *word = core_type(element);
    bool has_namespace = element == ELEMENT_STRING || element == ELEMENT_OBJECT || element == ELEMENT_CANON_ZAPSIG;
    if (!namer_good(n, s)) {
        /* nothing to write */
    } else if (word) {
        text_puts(n->text, has_namespace ? "System." : "");
        text_puts(n->text, word);
    } else {
        sos_compound(w, s, m, element);
    }
    n->depth--;
}

static void sos_parameters(struct writer *w, struct signature *s, const struct metadata *m,
                           const struct signature_header *header)
{
    struct namer *n = &w->n;
    uint32_t i = 0;
    text_putc(n->text, '(');
    for (; i < header->parameter_count && signature_peek(s) != ELEMENT_SENTINEL && namer_good(n, s); i++) {
        if (i)
            text_puts(n->text, ", ");
        sos_type(w, s, m);
    }
    if (header->kind == SIGNATURE_VARARG)
        text_puts(n->text, i ? ", ..." : "...");
    text_putc(n->text, ')');
    namer_good(n, s);
}

/* ---- Methods ---- */

/* What stands between the return type and the parameters. */
struct designation {
    struct origin origin;                                      /* of `il`: the assembly */
    void (*put_owner)(struct writer *w, const void *argument); /* the type */
    const void *argument;
    const struct metadata *metadata; /* of the name, where that is not `plain` */
    uint32_t name;
    const char *plain;
};

static void put_own_name(struct namer *n, const struct designation *designation)
{
    if (designation->plain)
        text_escape(n->text, designation->plain, strlen(designation->plain));
    else
        namer_put_string(n, designation->metadata, designation->name);
}

static void put_designation(struct writer *w, const struct designation *designation)
{
    struct namer *n = &w->n;
    bool il = w->style == CDACQ_NAMES_IL;
    if (il) {
        text_putc(n->text, '[');
        put_origin(n, designation->origin);
        text_puts(n->text, "] ");
    }
    designation->put_owner(w, designation->argument);
    text_puts(n->text, il ? "::" : ".");
    put_own_name(n, designation);
}

/* `[[System.Int32, System.Private.CoreLib]]`, of a generic method of `sos`. */
static void put_method_arguments(struct writer *w)
{
    const struct name_instance *instance = w->instance;
    struct namer *n = &w->n;
    uint32_t count = instance ? instance->method_count : 0;
    for (uint32_t i = 0; i < count && namer_spend(n, 1); i++) {
        text_putc(n->text, i == 0 ? '[' : ',');
        namer_check(n, instance->argument(instance->context, true, i, NAME_TYPE_FULL, n->text));
    }
    if (count)
        text_putc(n->text, ']');
}

/*
 * The parameters are what the debugger services find behind the first parenthesis of `Ret Name(parameters)`. Of a name
 * that holds one, as those of explicit implementations over tuples do, they repeat the rest; so does this, to be equal.
 */
static void sos_signature(struct writer *w, struct signature *s, const struct metadata *m,
                          const struct signature_header *header, const struct designation *designation)
{
    struct text *text = w->n.text;
    size_t begin = text->length;
    sos_type(w, s, m);
    text_putc(text, ' ');
    put_own_name(&w->n, designation);
    sos_parameters(w, s, m, header);
    if (w->n.status != CDACQ_OK || text->broken)
        return;
    size_t dropped = strcspn(text->data + begin, "(");
    text->length -= dropped;
    memmove(text->data + begin, text->data + begin + dropped, text->length - begin + 1);
}

static void put_method(struct writer *w, struct signature *s, const struct metadata *m,
                       const struct designation *designation)
{
    struct namer *n = &w->n;
    struct signature_header header = signature_method(s); /* refuses fields */
    if (!namer_good(n, s))
        return;
    if (w->style == CDACQ_NAMES_IL) {
        il_signature_head(n, s, m, &header);
        put_designation(w, designation);
        il_parameters(n, s, m, header.parameter_count);
    } else {
        put_designation(w, designation);
        put_method_arguments(w);
        sos_signature(w, s, m, &header, designation);
    }
}

static void put_method_of_blob(struct writer *w, const struct metadata *m, uint32_t signature,
                               const struct designation *designation)
{
    CLEANUP_METADATA_BLOB struct metadata_blob blob;
    blob.allocated = NULL;
    struct signature s = read_blob(&w->n, m, signature, &blob);
    if (w->n.status == CDACQ_OK)
        put_method(w, &s, m, designation);
}

/* The owner as the caller knows it, or the TypeDef of which `argument` is the rid. */
static void put_method_def_owner(struct writer *w, const void *argument)
{
    const uint32_t *rid = argument;
    struct namer *n = &w->n;
    if (w->instance && w->instance->owner)
        namer_check(n, w->instance->owner(w->instance->context, n->text));
    else
        put_named_type(n, n->source->metadata, metadata_token(METADATA_TYPE_DEF, *rid));
}

enum cdacq_status name_method_runtime(const struct name_source *source, enum cdacq_name_style style, uint32_t token,
                                      const struct name_instance *instance, struct text *ret)
{
    struct writer w = writer_begin(source, style, instance, ret);
    const struct metadata *m = source->metadata;
    struct metadata_method_def method;
    uint32_t owner, rid = metadata_rid(token);
    if (!m)
        namer_fail(&w.n, CDACQ_ERR_MODULE);
    else if (metadata_token_table(token) != METADATA_METHOD_DEF)
        namer_fail(&w.n, CDACQ_ERR_FORMAT);
    else if (namer_check(&w.n, metadata_method_def(m, rid, &method)) &&
             namer_spend_search(&w.n, m, METADATA_METHOD_PTR) &&
             namer_check(&w.n, metadata_method_owner(m, rid, &owner))) {
        struct designation designation = {.origin = origin_of(&w.n, m, 0),
                                          .put_owner = put_method_def_owner,
                                          .argument = &owner,
                                          .metadata = m,
                                          .name = method.name};
        put_method_of_blob(&w, m, method.signature, &designation);
    }
    return namer_end(&w.n);
}

static void put_plain_owner(struct writer *w, const void *argument)
{
    const char *const *owner = argument;
    text_puts(w->n.text, *owner);
}

enum cdacq_status name_dynamic_runtime(const struct name_source *source, enum cdacq_name_style style, const char *owner,
                                       const char *name, const void *signature, size_t length,
                                       const struct name_instance *instance, struct text *ret)
{
    struct writer w = writer_begin(source, style, instance, ret);
    struct signature s = signature_at(signature, length, source->pointer_size, source->big_endian);
    struct designation designation = {.put_owner = put_plain_owner, .argument = &owner, .plain = name};
    if (style == CDACQ_NAMES_IL && !source->metadata)
        namer_fail(&w.n, CDACQ_ERR_MODULE);
    else if (style == CDACQ_NAMES_IL)
        designation.origin = origin_of(&w.n, source->metadata, 0);
    if (w.n.status == CDACQ_OK)
        put_method(&w, &s, source->metadata, &designation);
    return namer_end(&w.n);
}

/* ---- ReadyToRun ---- */

/* An entry point in the making: its arguments are read from the signature again for each that is asked for. */
struct entry_writer {
    const struct name_source *source;
    enum cdacq_name_style style;
    const struct name_entry_point *entry;
    const struct metadata *context, *method; /* what the owner's tokens belong to, and the method's */
};

/* A cursor at the first type argument of the owner; *ret_count is 0 where it has none. */
static struct signature owner_arguments(const struct name_entry_point *entry, uint32_t *ret_count)
{
    struct signature s = signature_at(entry->owner, entry->owner_length, 0, false);
    *ret_count = 0;
    signature_skip_modifiers(&s);
    while (signature_peek(&s) == ELEMENT_MODULE_ZAPSIG) {
        s.at++;
        signature_skip_uint(&s);
    }
    if (signature_byte(&s) == ELEMENT_GENERICINST) {
        signature_skip_type(&s);
        *ret_count = signature_uint(&s);
    }
    return s;
}

static enum cdacq_status put_entry_argument(void *context, bool of_method, uint32_t index, enum name_type_form form,
                                            struct text *ret)
{
    const struct entry_writer *entry = context;
    struct writer w = writer_begin(entry->source, entry->style, NULL, ret);
    uint32_t count;
    struct signature s = of_method ? signature_at(entry->entry->arguments, entry->entry->arguments_length, 0, false)
                                   : owner_arguments(entry->entry, &count);
    signature_skip_types_(&s, index, 0);
    if (form == NAME_TYPE_SIGNATURE) {
        sos_type(&w, &s, w.n.outer);
    } else {
        text_putc(ret, '[');
        struct origin origin = put_type_alone(&w, &s, w.n.outer);
        text_puts(ret, ", ");
        put_origin(&w.n, origin);
        text_putc(ret, ']');
    }
    namer_good(&w.n, &s);
    return namer_end(&w.n);
}

/* The type that a MemberRef is of. */
static struct origin put_parent(struct writer *w, const struct metadata *m, uint32_t parent)
{
    CLEANUP_METADATA_BLOB struct metadata_blob blob;
    struct origin origin = {0};
    uint32_t index;
    blob.allocated = NULL;
    if (metadata_token_table(parent) != METADATA_TYPE_SPEC)
        return put_named_type(&w->n, m, parent);
    if (!namer_check(&w->n, metadata_type_spec(m, metadata_rid(parent), &index)))
        return origin;
    struct signature s = read_blob(&w->n, m, index, &blob);
    const struct metadata *outer = w->n.outer;
    w->n.outer = m;
    if (w->n.status == CDACQ_OK)
        origin = put_type_alone(w, &s, m);
    w->n.outer = outer;
    namer_good(&w->n, &s);
    return origin;
}

/* The type that declares the method, into a text of its own: where it is from comes before it. */
static struct origin put_entry_owner(struct writer *w, const struct entry_writer *entry, uint32_t parent)
{
    struct origin origin = {0};
    uint32_t owner;
    if (entry->entry->owner) {
        struct signature s = signature_at(entry->entry->owner, entry->entry->owner_length, 0, false);
        origin = put_type_alone(w, &s, entry->context);
        namer_good(&w->n, &s);
    } else if (metadata_token_table(entry->entry->token) == METADATA_MEMBER_REF) {
        origin = put_parent(w, entry->method, parent);
    } else if (namer_spend_search(&w->n, entry->method, METADATA_METHOD_PTR) &&
               namer_check(&w->n, metadata_method_owner(entry->method, metadata_rid(entry->entry->token), &owner))) {
        origin = put_named_type(&w->n, entry->method, metadata_token(METADATA_TYPE_DEF, owner));
    }
    return origin;
}

static void put_entry(struct writer *w, const struct entry_writer *entry, const char *const *owner,
                      struct origin origin, uint32_t name, uint32_t signature)
{
    struct designation designation = {
        .origin = origin, .put_owner = put_plain_owner, .argument = owner, .metadata = entry->method, .name = name};
    put_method_of_blob(w, entry->method, signature, &designation);
}

enum cdacq_status name_entry_point_runtime(const struct name_source *source, enum cdacq_name_style style,
                                           const struct name_entry_point *entry, struct text *ret)
{
    struct entry_writer context = {.source = source, .style = style, .entry = entry};
    struct name_instance instance = {
        .argument = put_entry_argument, .method_count = entry->argument_count, .context = &context};
    struct writer w = writer_begin(source, style, &instance, ret);
    struct text owner = {0};
    struct writer of_owner = writer_begin(source, style, NULL, &owner);
    struct metadata_method_def method = {0};
    struct metadata_member_ref member = {0};
    uint32_t rid = metadata_rid(entry->token);
    bool is_reference = metadata_token_table(entry->token) == METADATA_MEMBER_REF;
    context.context = namer_module(&w.n, entry->context);
    context.method = namer_module(&w.n, entry->module);
    owner_arguments(entry, &instance.type_count);
    w.n.outer = of_owner.n.outer = context.context;
    if (!entry->token)
        namer_fail(&w.n, CDACQ_ERR_FORMAT);
    if (w.n.status == CDACQ_OK)
        namer_check(&w.n, is_reference ? metadata_member_ref(context.method, rid, &member)
                                       : metadata_method_def(context.method, rid, &method));
    if (w.n.status == CDACQ_OK) {
        struct origin origin = put_entry_owner(&of_owner, &context, member.parent);
        const char *name = owner.data ? owner.data : "";
        namer_check(&w.n, of_owner.n.status);
        if (owner.broken)
            namer_fail(&w.n, CDACQ_ERR_FUEL);
        put_entry(&w, &context, &name, origin, is_reference ? member.name : method.name,
                  is_reference ? member.signature : method.signature);
    }
    text_deinit(&owner);
    return namer_end(&w.n);
}

/* ---- Types ---- */

enum cdacq_status name_type_alone(const struct name_source *source, uint32_t token, struct text *ret)
{
    struct namer n = namer_begin(source, ret);
    put_named_type(&n, source->metadata, token);
    return namer_end(&n);
}

enum cdacq_status name_type_row(const struct name_source *source, uint32_t token, bool with_namespace, struct text *ret)
{
    struct namer n = namer_begin(source, ret);
    put_row(&n, source->metadata, token, with_namespace);
    return namer_end(&n);
}

enum cdacq_status name_assembly(const struct name_source *source, struct text *ret)
{
    struct namer n = namer_begin(source, ret);
    if (source->metadata)
        put_origin(&n, origin_of(&n, source->metadata, 0));
    else
        namer_fail(&n, CDACQ_ERR_MODULE);
    return namer_end(&n);
}
