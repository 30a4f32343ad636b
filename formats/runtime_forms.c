#include "formats/runtime_forms.h"

static const char core_library[] = "System.Private.CoreLib";

struct runtime_namer runtime_begin(const struct name_source *source, enum cdacq_name_style style,
                                   const struct name_instance *instance, struct text *text)
{
    return (struct runtime_namer){.n = namer_begin(source, text), .style = style, .instance = instance};
}

/* The cursor over a blob of metadata, of which `blob` keeps a copy. */
struct signature runtime_read_blob(struct namer *n, const struct metadata *m, uint32_t index,
                                   struct metadata_blob *blob)
{
    if (!namer_check(n, metadata_blob_read(m, index, blob)) || !namer_spend_bulk(n, blob->length))
        return signature_at(NULL, 0, 0, false);
    return signature_at(blob->data, blob->length, 0, false);
}

/* Modifiers that a form leaves out: there may be any number. */
void runtime_skip_modifiers(struct namer *n, struct signature *s)
{
    const uint8_t *before = s->at;
    signature_skip_modifiers(s);
    namer_spend_bulk(n, (size_t)(s->at - before));
}

/* ---- Types that stand by themselves ---- */

/*
 * A name with a backslash before each character that means something in such a type. text_escape doubles backslashes.
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

void runtime_put_namespace(struct namer *n, const struct metadata *m, uint32_t index,
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
        runtime_put_namespace(n, path->metadata, path->levels[i].namespace_name, put_reserved);
        put_reserved(n, path->metadata, path->levels[i].name);
        if (i)
            text_putc(n->text, '+');
    }
}

void runtime_put_origin(struct namer *n, struct origin origin)
{
    if (origin.metadata)
        namer_put_string(n, origin.metadata, origin.name);
    else
        text_puts(n->text, core_library);
}

struct origin runtime_origin_of(struct namer *n, const struct metadata *m, uint32_t scope)
{
    struct metadata_assembly_ref reference;
    struct origin origin = {.metadata = m};
    if (metadata_token_table(scope) != METADATA_ASSEMBLY_REF)
        namer_check(n, metadata_assembly_name(m, &origin.name));
    else if (namer_check(n, metadata_assembly_ref(m, metadata_rid(scope), &reference)))
        origin.name = reference.name;
    return origin;
}

struct origin runtime_put_named_type(struct namer *n, const struct metadata *m, uint32_t token)
{
    struct type_path path;
    if (!namer_path(n, m, token, &path))
        return (struct origin){0};
    put_path(n, &path);
    return runtime_origin_of(n, m, path.scope);
}

/* The name that a primitive type has in the core library, without its namespace. */
const char *runtime_core_type(uint8_t element)
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

/*
 * The type at the cursor as one that stands by itself, with the arguments of a generic one. Returns where it is from.
 */
static struct origin put_instance_alone(struct runtime_namer *w, struct signature *s, const struct metadata *m)
{
    bool full = w->style == CDACQ_NAMES_SOS;
    struct namer *n = &w->n;
    struct origin origin = runtime_put_type_alone(w, s, m);
    uint32_t count = signature_uint(s);
    for (uint32_t i = 0; i < count && namer_good(n, s); i++) {
        text_puts(n->text, i == 0 ? "[" : ",");
        if (full)
            text_putc(n->text, '[');
        struct origin argument = runtime_put_type_alone(w, s, n->outer);
        if (full) {
            text_puts(n->text, ", ");
            runtime_put_origin(n, argument);
            text_putc(n->text, ']');
        }
    }
    text_putc(n->text, ']');
    return origin;
}

struct origin runtime_put_type_alone(struct runtime_namer *w, struct signature *s, const struct metadata *m)
{
    struct namer *n = &w->n;
    struct origin origin = {0};
    if (!runtime_enter(n))
        return origin;
    runtime_skip_modifiers(n, s);
    uint8_t element = signature_byte(s);
    const char *word = runtime_core_type(element);
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
                origin = runtime_put_named_type(n, m, token);
            break;
        case ELEMENT_GENERICINST:
            origin = put_instance_alone(w, s, m);
            break;
        case ELEMENT_MODULE_ZAPSIG:
            m = namer_module(n, signature_uint(s));
            if (m)
                origin = runtime_put_type_alone(w, s, m);
            break;
        case ELEMENT_SZARRAY:
            origin = runtime_put_type_alone(w, s, m);
            text_puts(n->text, "[]");
            break;
        case ELEMENT_ARRAY:
            origin = runtime_put_type_alone(w, s, m);
            rank = signature_array_shape(s);
            text_puts(n->text, rank == 1 ? "[*" : "[");
            for (uint32_t i = 1; i < rank; i++)
                text_putc(n->text, ',');
            text_putc(n->text, ']');
            break;
        case ELEMENT_PTR:
        case ELEMENT_BYREF:
            origin = runtime_put_type_alone(w, s, m);
            text_putc(n->text, element == ELEMENT_PTR ? '*' : '&');
            break;
        default:
            namer_fail(n, CDACQ_ERR_FORMAT);
        }
    }
    n->depth--;
    return origin;
}

void runtime_put_row(struct namer *n, const struct metadata *m, uint32_t token, bool with_namespace)
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
        runtime_put_namespace(n, m, namespace_name, namer_put_string);
    namer_put_string(n, m, name);
}

/* What a type handle in a signature means: such signatures the runtime has made itself. */
bool runtime_read_handle(struct namer *n, struct signature *s, const struct metadata **ret_metadata,
                         uint32_t *ret_token, uint64_t *ret_handle)
{
    *ret_handle = signature_handle(s);
    if (!n->source->type_definition)
        return namer_fail(n, CDACQ_ERR_FORMAT);
    return namer_good(n, s) &&
           namer_check(n, n->source->type_definition(n->source->context, *ret_handle, ret_metadata, ret_token));
}
