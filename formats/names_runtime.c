#include "formats/names_runtime.h"

#include "formats/runtime_forms.h"

/* ---- Methods ---- */

/* What stands between the return type and the parameters. */
struct designation {
    struct origin origin;                                             /* of `il`: the assembly */
    void (*put_owner)(struct runtime_namer *w, const void *argument); /* the type */
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

static void put_designation(struct runtime_namer *w, const struct designation *designation)
{
    struct namer *n = &w->n;
    bool il = w->style == CDACQ_NAMES_IL;
    if (il) {
        text_putc(n->text, '[');
        runtime_put_origin(n, designation->origin);
        text_puts(n->text, "] ");
    }
    designation->put_owner(w, designation->argument);
    text_puts(n->text, il ? "::" : ".");
    put_own_name(n, designation);
}

/* `[[System.Int32, System.Private.CoreLib]]`, of a generic method of `sos`. */
static void put_method_arguments(struct runtime_namer *w)
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
static void sos_signature(struct runtime_namer *w, struct signature *s, const struct metadata *m,
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

static void put_method(struct runtime_namer *w, struct signature *s, const struct metadata *m,
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

static void put_method_of_blob(struct runtime_namer *w, const struct metadata *m, uint32_t signature,
                               const struct designation *designation)
{
    CLEANUP_METADATA_BLOB struct metadata_blob blob;
    blob.allocated = NULL;
    struct signature s = runtime_read_blob(&w->n, m, signature, &blob);
    if (w->n.status == CDACQ_OK)
        put_method(w, &s, m, designation);
}

/* The owner as the caller knows it, or the TypeDef of which `argument` is the rid. */
static void put_method_def_owner(struct runtime_namer *w, const void *argument)
{
    const uint32_t *rid = argument;
    struct namer *n = &w->n;
    if (w->instance && w->instance->owner)
        namer_check(n, w->instance->owner(w->instance->context, n->text));
    else
        runtime_put_named_type(n, n->source->metadata, metadata_token(METADATA_TYPE_DEF, *rid));
}

enum cdacq_status name_method_runtime(const struct name_source *source, enum cdacq_name_style style, uint32_t token,
                                      const struct name_instance *instance, struct text *ret)
{
    struct runtime_namer w = runtime_begin(source, style, instance, ret);
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
        struct designation designation = {.origin = runtime_origin_of(&w.n, m, 0),
                                          .put_owner = put_method_def_owner,
                                          .argument = &owner,
                                          .metadata = m,
                                          .name = method.name};
        put_method_of_blob(&w, m, method.signature, &designation);
    }
    return namer_end(&w.n);
}

static void put_plain_owner(struct runtime_namer *w, const void *argument)
{
    const char *const *owner = argument;
    text_puts(w->n.text, *owner);
}

enum cdacq_status name_dynamic_runtime(const struct name_source *source, enum cdacq_name_style style, const char *owner,
                                       const char *name, const void *signature, size_t length,
                                       const struct name_instance *instance, struct text *ret)
{
    struct runtime_namer w = runtime_begin(source, style, instance, ret);
    struct signature s = signature_at(signature, length, source->pointer_size, source->big_endian);
    struct designation designation = {.put_owner = put_plain_owner, .argument = &owner, .plain = name};
    if (style == CDACQ_NAMES_IL && !source->metadata)
        namer_fail(&w.n, CDACQ_ERR_MODULE);
    else if (style == CDACQ_NAMES_IL)
        designation.origin = runtime_origin_of(&w.n, source->metadata, 0);
    if (w.n.status == CDACQ_OK)
        put_method(&w, &s, source->metadata, &designation);
    return namer_end(&w.n);
}

/* ---- ReadyToRun ---- */

/*
 * An entry point in the making: its arguments are read from the signature again for each that is asked for, on one tank
 * of fuel.
 */
struct entry_namer {
    const struct name_source *source;
    enum cdacq_name_style style;
    const struct name_entry_point *entry;
    const struct metadata *context, *method; /* what the owner's tokens belong to, and the method's */
    uint32_t fuel;
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
    struct entry_namer *entry = context;
    struct runtime_namer w = runtime_begin(entry->source, entry->style, NULL, ret);
    uint32_t count;
    w.n.outer = entry->context;
    w.n.fuel = entry->fuel;
    struct signature s = of_method ? signature_at(entry->entry->arguments, entry->entry->arguments_length, 0, false)
                                   : owner_arguments(entry->entry, &count);
    const uint8_t *first = s.at;
    signature_skip_types_(&s, index, 0);
    namer_spend_bulk(&w.n, (size_t)(s.at - first));
    if (form == NAME_TYPE_SIGNATURE) {
        sos_type(&w, &s, w.n.outer);
    } else {
        text_putc(ret, '[');
        struct origin origin = runtime_put_type_alone(&w, &s, w.n.outer);
        text_puts(ret, ", ");
        runtime_put_origin(&w.n, origin);
        text_putc(ret, ']');
    }
    namer_good(&w.n, &s);
    entry->fuel = w.n.fuel;
    return namer_end(&w.n);
}

/* The type that a MemberRef is of. */
static struct origin put_parent(struct runtime_namer *w, const struct metadata *m, uint32_t parent)
{
    CLEANUP_METADATA_BLOB struct metadata_blob blob;
    struct origin origin = {0};
    uint32_t index;
    blob.allocated = NULL;
    if (metadata_token_table(parent) != METADATA_TYPE_SPEC)
        return runtime_put_named_type(&w->n, m, parent);
    if (!namer_check(&w->n, metadata_type_spec(m, metadata_rid(parent), &index)))
        return origin;
    struct signature s = runtime_read_blob(&w->n, m, index, &blob);
    const struct metadata *outer = w->n.outer;
    w->n.outer = m;
    if (w->n.status == CDACQ_OK)
        origin = runtime_put_type_alone(w, &s, m);
    w->n.outer = outer;
    namer_good(&w->n, &s);
    return origin;
}

/* The type that declares the method, into a text of its own: where it is from comes before it. */
static struct origin put_entry_owner(struct runtime_namer *w, const struct entry_namer *entry, uint32_t parent)
{
    struct origin origin = {0};
    uint32_t owner;
    if (entry->entry->owner) {
        struct signature s = signature_at(entry->entry->owner, entry->entry->owner_length, 0, false);
        origin = runtime_put_type_alone(w, &s, entry->context);
        namer_good(&w->n, &s);
    } else if (metadata_token_table(entry->entry->token) == METADATA_MEMBER_REF) {
        origin = put_parent(w, entry->method, parent);
    } else if (namer_spend_search(&w->n, entry->method, METADATA_METHOD_PTR) &&
               namer_check(&w->n, metadata_method_owner(entry->method, metadata_rid(entry->entry->token), &owner))) {
        origin = runtime_put_named_type(&w->n, entry->method, metadata_token(METADATA_TYPE_DEF, owner));
    }
    return origin;
}

static void put_entry(struct runtime_namer *w, const struct entry_namer *entry, const char *const *owner,
                      struct origin origin, uint32_t name, uint32_t signature)
{
    struct designation designation = {
        .origin = origin, .put_owner = put_plain_owner, .argument = owner, .metadata = entry->method, .name = name};
    put_method_of_blob(w, entry->method, signature, &designation);
}

enum cdacq_status name_entry_point_runtime(const struct name_source *source, enum cdacq_name_style style,
                                           const struct name_entry_point *entry, struct text *ret)
{
    struct entry_namer context = {.source = source, .style = style, .entry = entry, .fuel = NAME_FUEL};
    struct name_instance instance = {
        .argument = put_entry_argument, .method_count = entry->argument_count, .context = &context};
    struct runtime_namer w = runtime_begin(source, style, &instance, ret);
    struct text owner = {0};
    struct runtime_namer of_owner = runtime_begin(source, style, NULL, &owner);
    struct metadata_method_def method = {0};
    struct metadata_member_ref member = {0};
    uint32_t rid = metadata_rid(entry->token);
    bool is_reference = metadata_token_table(entry->token) == METADATA_MEMBER_REF;
    /* That of a composite image has no metadata, but mostly nothing refers to it. */
    context.context = entry->context ? namer_module(&w.n, entry->context) : source->metadata;
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
    runtime_put_named_type(&n, source->metadata, token);
    return namer_end(&n);
}

enum cdacq_status name_type_row(const struct name_source *source, uint32_t token, bool with_namespace, struct text *ret)
{
    struct namer n = namer_begin(source, ret);
    runtime_put_row(&n, source->metadata, token, with_namespace);
    return namer_end(&n);
}

enum cdacq_status name_assembly(const struct name_source *source, struct text *ret)
{
    struct namer n = namer_begin(source, ret);
    if (source->metadata)
        runtime_put_origin(&n, runtime_origin_of(&n, source->metadata, 0));
    else
        namer_fail(&n, CDACQ_ERR_MODULE);
    return namer_end(&n);
}
