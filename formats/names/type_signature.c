/*
 * type_signature.c: the feeder of signatures. Most prefixes of a type in a signature are written after the type, the
 * inner one first.
 */
#include "formats/names/spelling.h"
#include "formats/names/type_walk.h"

/* Fails the name if the cursor has failed. */
static bool good(struct namer *n, const struct signature *s)
{
    return s->failed ? namer_fail(n, CDACQ_ERR_FORMAT) : n->status == CDACQ_OK;
}

void type_spec(struct namer *n, const struct metadata *m, uint32_t token)
{
    CLEANUP_METADATA_BLOB struct metadata_blob blob;
    struct metadata_type_spec spec;
    blob.allocated = NULL;
    if (!namer_check(n, metadata_type_spec(m, metadata_rid(token), &spec)) || !namer_blob(n, m, spec.signature, &blob))
        return;
    struct signature s = signature_at(blob.data, blob.length, 0, false);
    type_signature_alone(n, &s, m);
}

static void put_token(struct namer *n, const struct metadata *m, uint32_t token)
{
    if (!m)
        namer_fail(n, CDACQ_ERR_MODULE);
    else if (metadata_token_table(token) == METADATA_TYPE_SPEC && n->types->type_specs)
        type_spec(n, m, token);
    else
        n->types->named(n, &(struct named_type){.metadata = m, .token = token}, NULL);
}

static void put_class(struct namer *n, struct signature *s, const struct metadata *m, uint8_t element)
{
    const char *word = element == ELEMENT_CLASS ? n->types->class_word : n->types->valuetype_word;
    uint32_t token = signature_token(s);
    if (!good(n, s))
        return;
    if (word)
        text_puts(n->text, word);
    put_token(n, m, token);
}

/* The definition of the type handle at the cursor. */
static bool read_definition(struct namer *n, struct signature *s, struct named_type *ret)
{
    ret->handle = signature_handle(s);
    if (!n->source->type_definition)
        return namer_fail(n, CDACQ_ERR_FORMAT);
    return good(n, s) &&
           namer_check(n, n->source->type_definition(n->source->context, ret->handle, &ret->metadata, &ret->token));
}

static void put_handle(struct namer *n, struct signature *s)
{
    struct named_type type;
    if (!n->types->handles) {
        if (read_definition(n, s, &type))
            n->types->named(n, &type, NULL);
        return;
    }
    uint64_t handle = signature_handle(s);
    if (!n->source->type_handle)
        namer_fail(n, CDACQ_ERR_FORMAT);
    else if (good(n, s))
        n->source->type_handle(n->source->context, handle, n);
}

/* The named type after GENERICINST. */
static bool read_generic_type(struct namer *n, struct signature *s, const struct metadata *m, struct named_type *ret)
{
    uint8_t element = signature_byte(s);
    if (element == ELEMENT_MODULE_ZAPSIG) {
        m = namer_module(n, signature_uint(s));
        element = signature_byte(s);
    }
    if (element == ELEMENT_INTERNAL)
        return read_definition(n, s, ret);
    if (element != ELEMENT_CLASS && element != ELEMENT_VALUETYPE)
        return namer_fail(n, CDACQ_ERR_FORMAT);
    *ret = (struct named_type){.metadata = m, .token = signature_token(s)};
    return good(n, s);
}

static void put_next_argument(struct namer *n, const struct type_arguments *arguments)
{
    struct signature *s = arguments->context;
    type_signature(n, s, n->outer);
}

static bool read_arguments(struct namer *n, struct signature *s, struct type_arguments *ret)
{
    *ret = (struct type_arguments){.left = signature_uint(s), .put = put_next_argument, .context = s};
    if (!ret->left || ret->left > (size_t)(s->end - s->at)) /* each takes a byte at least */
        signature_fail(s);
    return good(n, s);
}

static void put_instance(struct namer *n, struct signature *s, const struct metadata *m)
{
    struct type_arguments arguments;
    struct named_type type;
    if (n->types->named_takes_arguments) {
        if (read_generic_type(n, s, m, &type) && read_arguments(n, s, &arguments))
            type_instance(n, &type, &arguments);
        return;
    }
    type_signature(n, s, m);
    if (n->status == CDACQ_OK && read_arguments(n, s, &arguments))
        type_argument_list(n, &arguments);
}

void type_parameters(struct namer *n, struct signature *s, const struct metadata *m,
                     const struct signature_header *header, const struct parameter_style *style)
{
    const char *mark = "";
    text_puts(n->text, style->list.open);
    for (uint32_t left = header->parameter_count; left && good(n, s) && namer_spend(n, 1);) {
        bool sentinel = signature_peek(s) == ELEMENT_SENTINEL;
        if (sentinel && style->stops)
            break;
        text_puts(n->text, mark);
        mark = style->list.separator;
        s->at += sentinel;
        if (sentinel && style->sentinel) {
            text_puts(n->text, style->sentinel);
            continue;
        }
        if (style->before)
            style->before(n, *s, m, header->parameter_count - left + 1, header->parameter_count);
        type_signature(n, s, m);
        n->reference = NULL;
        left--;
    }
    if (header->kind == SIGNATURE_VARARG && style->rest) {
        text_puts(n->text, mark);
        text_puts(n->text, style->rest);
    }
    text_puts(n->text, style->list.close);
    good(n, s);
}

static void put_function(struct namer *n, struct signature *s, const struct metadata *m)
{
    const struct function_style *style = n->types->function;
    struct signature_header header = signature_method(s);
    struct signature result = *s;
    if (!style)
        namer_fail(n, CDACQ_ERR_FORMAT);
    if (!good(n, s))
        return;
    text_puts(n->text, style->open);
    if (style->convention)
        style->convention(n, &header, result, m);
    if (style->result_last)
        signature_skip_type(s);
    else
        type_signature(n, s, m);
    if (!good(n, s) || !namer_spend_bulk(n, (size_t)(s->at - result.at)))
        return;
    type_parameters(n, s, m, &header, &style->parameters);
    if (style->result_last) {
        text_puts(n->text, header.parameter_count ? style->parameters.list.separator : "");
        if (style->before_result)
            style->before_result(n, result, m);
        type_signature(n, &result, m);
        n->reference = NULL;
    }
    text_puts(n->text, style->close);
}

static void skip_function(struct namer *n, struct signature *s, const struct metadata *m)
{
    const uint8_t *before = s->at--; /* at its element */
    (void)m;
    signature_skip_type(s);
    if (good(n, s))
        namer_spend_bulk(n, (size_t)(s->at - before));
}

/* Not inlined because of its large shape. */
static __attribute__((noinline)) void put_array_shape(struct namer *n, struct signature *s)
{
    struct array_shape shape;
    shape.rank = signature_uint(s);
    shape.size_count = signature_uint(s);
    if (!shape.rank || shape.rank > SIGNATURE_RANK_CAP || shape.size_count > shape.rank)
        signature_fail(s);
    for (uint32_t i = 0; i < shape.size_count && !s->failed; i++)
        shape.sizes[i] = signature_uint(s);
    shape.bound_count = signature_uint(s);
    if (shape.bound_count > shape.rank)
        signature_fail(s);
    for (uint32_t i = 0; i < shape.bound_count && !s->failed; i++)
        shape.bounds[i] = signature_int(s);
    if (good(n, s))
        type_array(n, &shape);
}

/* The cursor is after the modifier element, at its type. */
static void put_modified(struct namer *n, struct signature *s, const struct metadata *m, const char *word)
{
    uint32_t modifier = signature_token(s);
    type_signature(n, s, m);
    if (n->status != CDACQ_OK)
        return;
    text_puts(n->text, word);
    put_token(n, m, modifier);
    text_putc(n->text, ')');
}

/* A type parameter by its row of GenericParam. */
static void put_generic_param(struct namer *n, struct signature *s, const struct metadata *m)
{
    struct metadata_generic_param param;
    uint32_t rid = signature_uint(s);
    if (!m)
        namer_fail(n, CDACQ_ERR_MODULE);
    else if (!n->types->variable)
        namer_fail(n, CDACQ_ERR_FORMAT);
    else if (good(n, s) && namer_check(n, metadata_generic_param(m, rid, &param)))
        namer_put_string(n, m, param.name);
}

static void put_composed(struct namer *n, struct signature *s, const struct metadata *m, uint8_t element)
{
    switch (element) {
    case ELEMENT_PTR:
    case ELEMENT_BYREF:
        type_before(n, element);
        type_signature(n, s, m);
        type_after(n, element);
        return;
    case ELEMENT_SZARRAY:
        type_signature(n, s, m);
        type_array(n, NULL);
        return;
    case ELEMENT_ARRAY:
        type_signature(n, s, m);
        put_array_shape(n, s);
        return;
    case ELEMENT_PINNED:
        type_signature(n, s, m);
        text_puts(n->text, n->types->pinned);
        return;
    case ELEMENT_CMOD_REQD:
    case ELEMENT_CMOD_OPT:
        put_modified(n, s, m, element == ELEMENT_CMOD_REQD ? n->types->modreq : n->types->modopt);
        return;
    case ELEMENT_NATIVE_VALUETYPE_ZAPSIG:
        type_signature(n, s, m);
        return;
    case ELEMENT_MODULE_ZAPSIG:
        m = namer_module(n, signature_uint(s));
        if (m)
            type_signature(n, s, m);
        return;
    default:
        namer_fail(n, CDACQ_ERR_FORMAT);
    }
}

static void put_type(struct namer *n, struct signature *s, const struct metadata *m, uint8_t element)
{
    uint32_t number;
    switch (element) {
    case ELEMENT_CLASS:
    case ELEMENT_VALUETYPE:
        put_class(n, s, m, element);
        return;
    case ELEMENT_VAR:
    case ELEMENT_MVAR:
        number = signature_uint(s);
        if (good(n, s))
            type_variable(n, element == ELEMENT_MVAR, number);
        return;
    case ELEMENT_GENERICINST:
        put_instance(n, s, m);
        return;
    case ELEMENT_FNPTR:
        (n->types->empty_functions ? skip_function : put_function)(n, s, m);
        return;
    case ELEMENT_INTERNAL:
        put_handle(n, s);
        return;
    case ELEMENT_VAR_ZAPSIG:
        put_generic_param(n, s, m);
        return;
    default:
        put_composed(n, s, m, element);
    }
}

void type_signature(struct namer *n, struct signature *s, const struct metadata *m)
{
    const uint8_t *before = s->at;
    if (!type_enter(n))
        return;
    if (!n->types->modreq) { /* there may be any number of modifiers */
        signature_skip_modifiers(s);
        namer_spend_bulk(n, (size_t)(s->at - before));
    }
    uint8_t element = signature_byte(s);
    if (element >= ELEMENT_VAR_ZAPSIG && element <= ELEMENT_MODULE_ZAPSIG &&
        (!n->types->first_zapsig || element < n->types->first_zapsig))
        signature_fail(s);
    if (good(n, s) && !type_primitive(n, element))
        put_type(n, s, m, element);
    good(n, s);
    type_leave(n);
}

void type_signature_alone(struct namer *n, struct signature *s, const struct metadata *m)
{
    const struct metadata *outer = n->outer;
    n->outer = m;
    type_signature(n, s, m);
    n->outer = outer;
}

/*
 * Takes what precedes the result in the type of a Task or ValueTask. False: it has no result, or the name has failed.
 */
static bool read_task(struct namer *n, struct signature *s)
{
    uint8_t element = signature_byte(s);
    bool has_result = element == ELEMENT_GENERICINST;
    if (has_result)
        element = signature_byte(s);
    signature_token(s);
    if ((element != ELEMENT_CLASS && element != ELEMENT_VALUETYPE) || (has_result && signature_uint(s) != 1))
        signature_fail(s);
    return good(n, s) && has_result;
}

void type_result(struct namer *n, struct signature *s, const struct metadata *m, enum name_result result)
{
    if (result == NAME_RESULT_VOID)
        signature_skip_type(s);
    if (result == NAME_RESULT_DECLARED || (result == NAME_RESULT_OF_TASK && read_task(n, s)))
        type_signature(n, s, m);
    else if (good(n, s))
        type_primitive(n, ELEMENT_VOID);
}
