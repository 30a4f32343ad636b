/*
 * runtime_sos.c: the parameters as the debugger services show them.
 */
#include "formats/runtime_forms.h"

/* An argument where it is known, else `!0`, `!!0`. */
static void sos_variable(struct runtime_namer *w, bool of_method, uint32_t number)
{
    const struct name_instance *instance = w->instance;
    struct namer *n = &w->n;
    if (instance && number < (of_method ? instance->method_count : instance->type_count))
        namer_check(n, instance->argument(instance->context, of_method, number, NAME_TYPE_SIGNATURE, n->text));
    else
        text_printf(n->text, of_method ? "!!%u" : "!%u", number);
}

static void sos_function_pointer(struct runtime_namer *w, struct signature *s, const struct metadata *m)
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

static void sos_instance(struct runtime_namer *w, struct signature *s, const struct metadata *m)
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

static void sos_compound(struct runtime_namer *w, struct signature *s, const struct metadata *m, uint8_t element)
{
    struct namer *n = &w->n;
    uint32_t token;
    uint64_t handle;
    switch (element) {
    case ELEMENT_CLASS:
    case ELEMENT_VALUETYPE:
        token = signature_token(s);
        if (namer_good(n, s) && metadata_token_table(token) != METADATA_TYPE_SPEC) /* of which there is no name */
            runtime_put_row(n, m, token, true);
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
        if (runtime_read_handle(n, s, &m, &token, &handle))
            runtime_put_row(n, m, token, true);
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

void sos_type(struct runtime_namer *w, struct signature *s, const struct metadata *m)
{
    struct namer *n = &w->n;
    if (!runtime_enter(n))
        return;
    runtime_skip_modifiers(n, s);
    uint8_t element = signature_byte(s);
    const char *word = runtime_core_type(element);
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

void sos_parameters(struct runtime_namer *w, struct signature *s, const struct metadata *m,
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
