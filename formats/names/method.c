/*
 * method.c: the functions of names.h, which prepare a method for a spelling.
 */
#include "formats/names/names.h"

#include "formats/names/spelling.h"
#include "formats/names/type_walk.h"

/* ---- For spellings ---- */

static void put_parent(struct namer *n, const struct metadata *m, uint32_t parent)
{
    uint32_t owner;
    switch (metadata_token_table(parent)) {
    case METADATA_METHOD_DEF: /* the method itself, or the method that a call site with variable arguments calls */
        if (!namer_spend_search(n, m, METADATA_METHOD_PTR) ||
            !namer_check(n, metadata_method_owner(m, metadata_rid(parent), &owner)))
            return;
        n->formals_owner[0] = metadata_token(METADATA_TYPE_DEF, owner);
        n->formals[0] = type_definition(n, m, n->formals_owner[0]);
        return;
    case METADATA_TYPE_DEF:
        n->formals_owner[0] = parent;
        n->formals[0] = type_definition(n, m, parent);
        return;
    case METADATA_TYPE_SPEC:
        type_spec(n, m, parent);
        return;
    case METADATA_MODULE_REF:
        if (n->types->module)
            text_puts(n->text, n->types->module);
        else
            namer_fail(n, CDACQ_ERR_FORMAT);
        return;
    default:
        n->types->named(n, &(struct named_type){.metadata = m, .token = parent}, NULL);
    }
}

void method_put_owner(struct namer *n, const struct named_method *method)
{
    const struct name_instance *instance = method->instance;
    struct signature s = method->owner;
    if (n->status != CDACQ_OK) {
        return;
    } else if (s.at) {
        n->unabbreviated = true;
        type_signature_alone(n, &s, method->owner_metadata);
    } else if (method->token && !(instance && instance->owner)) {
        n->unabbreviated = true;
        n->bound = instance;
        put_parent(n, method->metadata, method->parent);
        n->bound = NULL;
    } else {
        if (method->token)
            instance->owner(instance->context, n);
        else
            text_puts(n->text, method->plain_owner);
        n->origin = (struct origin){.metadata = method->metadata};
    }
    n->unabbreviated = false;
}

void method_put_name(struct namer *n, const struct named_method *method)
{
    if (method->token)
        namer_put_string(n, method->metadata, method->name);
    else
        text_escape(n->text, method->plain_name, strlen(method->plain_name));
}

static void put_bound_argument(struct namer *n, const struct type_arguments *arguments)
{
    type_variable_argument(n, arguments->context, true, arguments->number);
}

struct type_arguments method_arguments(const struct named_method *method)
{
    return (struct type_arguments){.left = method->instance ? method->instance->method_count : 0,
                                   .put = put_bound_argument,
                                   .context = (void *)method->instance};
}

/* ---- For callers ---- */

/* The row of a MethodDef or MemberRef. */
static void read_row(struct namer *n, struct named_method *method, uint32_t *ret_signature)
{
    struct metadata_method_def definition;
    struct metadata_member_ref reference = {.parent = method->token};
    uint32_t rid = metadata_rid(method->token);
    if (metadata_token_table(method->token) == METADATA_MEMBER_REF) {
        namer_check(n, metadata_member_ref(method->metadata, rid, &reference));
    } else if (metadata_token_table(method->token) != METADATA_METHOD_DEF) {
        namer_fail(n, CDACQ_ERR_FORMAT);
    } else if (namer_check(n, metadata_method_def(method->metadata, rid, &definition))) {
        reference.name = definition.name;
        reference.signature = definition.signature;
        method->flags = definition.flags;
    }
    method->parent = reference.parent;
    method->name = reference.name;
    *ret_signature = reference.signature;
}

static void put_method(struct namer *n, const struct name_spelling *spelling, struct named_method *method,
                       const void *signature, size_t length)
{
    /* Only stored signatures contain type handles. */
    method->signature =
        signature_at(signature, length, method->token ? 0 : n->source->pointer_size, n->source->big_endian);
    method->header = signature_method(&method->signature); /* fails on fields */
    method->has_parameters = true;
    n->outer = method->metadata;
    if (method->signature.failed)
        namer_fail(n, CDACQ_ERR_FORMAT);
    else
        spelling->put_method(n, method);
}

static void put_method_of_blob(struct namer *n, const struct name_spelling *spelling, struct named_method *method,
                               uint32_t signature)
{
    CLEANUP_METADATA_BLOB struct metadata_blob blob;
    blob.allocated = NULL;
    if (namer_blob(n, method->metadata, signature, &blob))
        put_method(n, spelling, method, blob.data, blob.length);
}

enum cdacq_status name_method(const struct name_source *source, const struct name_spelling *spelling, uint32_t token,
                              const struct name_instance *instance, struct text *ret)
{
    struct namer n = namer_begin(source, spelling->owner, ret);
    struct named_method method = {.metadata = source->metadata, .token = token, .instance = instance};
    uint32_t signature;
    if (!method.metadata)
        namer_fail(&n, CDACQ_ERR_MODULE);
    else
        read_row(&n, &method, &signature);
    if (n.status == CDACQ_OK)
        put_method_of_blob(&n, spelling, &method, signature);
    return namer_end(&n);
}

enum cdacq_status name_dynamic(const struct name_source *source, const struct name_spelling *spelling,
                               const struct dynamic_method *method, struct text *ret)
{
    struct namer n = namer_begin(source, spelling->owner, ret);
    struct named_method named = {.metadata = source->metadata,
                                 .plain_owner = method->owner,
                                 .plain_name = method->name,
                                 .instance = method->instance};
    put_method(&n, spelling, &named, method->signature, method->length);
    return namer_end(&n);
}

/* ---- ReadyToRun ---- */

struct entry_context {
    const struct name_entry_point *entry;
    const struct metadata *metadata; /* of the tokens in its arguments */
};

/* A cursor at the first type argument of the owner; *ret_count is 0 if there is none. */
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

static void put_entry_argument(void *context, bool of_method, uint32_t index, struct namer *n)
{
    const struct entry_context *entry = context;
    uint32_t count;
    struct signature s = of_method ? signature_at(entry->entry->arguments, entry->entry->arguments_length, 0, false)
                                   : owner_arguments(entry->entry, &count);
    const uint8_t *first = s.at;
    signature_skip_types(&s, index, 0);
    size_t begin = n->text->length;
    if (namer_spend_bulk(n, (size_t)(s.at - first)))
        type_signature_alone(n, &s, entry->metadata);
    type_formal_instead(n, begin);
}

enum cdacq_status name_entry_point(const struct name_source *source, const struct name_spelling *spelling,
                                   const struct name_entry_point *entry, struct text *ret)
{
    struct namer n = namer_begin(source, spelling->owner, ret);
    /* The module of a composite image has no metadata, but mostly nothing refers to it. */
    struct entry_context context = {.entry = entry,
                                    .metadata = entry->context ? namer_module(&n, entry->context) : source->metadata};
    struct name_instance instance = {.argument = put_entry_argument,
                                     .method_count = entry->argument_count,
                                     .context = &context,
                                     .result = entry->flags & NAME_ENTRY_ASYNC_VARIANT ? NAME_RESULT_OF_TASK
                                                                                       : NAME_RESULT_DECLARED};
    struct named_method method = {.metadata = namer_module(&n, entry->module),
                                  .token = entry->token,
                                  .owner_metadata = context.metadata,
                                  .instance = &instance};
    uint32_t signature;
    owner_arguments(entry, &instance.type_count);
    /* A formal spelling writes the owner of a MethodDef as a definition over the arguments. */
    if (entry->owner && !(spelling->formal && metadata_token_table(entry->token) == METADATA_METHOD_DEF &&
                          metadata_token_table(entry->owner_token) == METADATA_TYPE_DEF))
        method.owner = signature_at(entry->owner, entry->owner_length, 0, false);
    if (!entry->token)
        namer_fail(&n, CDACQ_ERR_FORMAT);
    if (n.status == CDACQ_OK)
        read_row(&n, &method, &signature);
    if (n.status == CDACQ_OK)
        put_method_of_blob(&n, spelling, &method, signature);
    return namer_end(&n);
}
