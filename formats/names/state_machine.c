#include "formats/names/state_machine.h"

#include "formats/metadata_members.h"
#include "formats/names/attributes.h"
#include "formats/names/signature.h"

enum { ATTRIBUTE_PROLOG = 0x0001 };

static const char compiler_services[] = "System.Runtime.CompilerServices";

static enum cdacq_status has_attribute(struct namer *n, const struct metadata *m, uint32_t token, const char *space,
                                       const char *name, bool *ret)
{
    const char *const names[] = {name, NULL};
    struct attribute_search search = {.metadata = m, .parent = token, .namespace_name = space, .names = names};
    enum cdacq_status status = attribute_next(n, &search);
    *ret = status == CDACQ_OK && search.rid;
    return status;
}

enum cdacq_status method_is_runtime_async(const struct metadata *metadata, uint32_t token, bool *ret)
{
    struct metadata_method_def method;
    enum cdacq_status status = metadata_method_def(metadata, metadata_rid(token), &method);
    *ret = status == CDACQ_OK && (method.impl_flags & METHOD_IMPL_ASYNC);
    return status;
}

enum cdacq_status method_is_hidden(const struct metadata *metadata, uint32_t token, bool *ret)
{
    static const char space[] = "System.Diagnostics", name[] = "StackTraceHiddenAttribute";
    const struct name_source source = {.metadata = metadata};
    struct text none = {0};
    struct namer n = namer_begin(&source, NULL, &none);
    struct metadata_method_def method;
    uint32_t owner;
    enum cdacq_status status = metadata_method_def(metadata, metadata_rid(token), &method);
    *ret = status == CDACQ_OK && (method.impl_flags & METHOD_IMPL_AGGRESSIVE_INLINING);
    if (status == CDACQ_OK && !*ret)
        status = has_attribute(&n, metadata, token, space, name, ret);
    if (status == CDACQ_OK && !*ret)
        status = metadata_method_owner(metadata, metadata_rid(token), &owner);
    if (status == CDACQ_OK && !*ret)
        status = has_attribute(&n, metadata, metadata_token(METADATA_TYPE_DEF, owner), space, name, ret);
    return status;
}

/*
 * Whether an attribute's only argument is the type called `name` in the attribute's own type: the text after the last
 * `+` of `Ns.Outer+<M>d__0, Assembly`. A backslash precedes reserved characters.
 */
static bool names_type(const struct metadata_blob *blob, const char *name, size_t length)
{
    struct signature s = signature_at(blob->data, blob->length, 0, false);
    uint32_t prolog = signature_byte(&s);
    prolog |= (uint32_t)signature_byte(&s) << 8;
    uint32_t size = signature_uint(&s);
    size_t matched = 0;
    bool equal = false;
    if (s.failed || prolog != ATTRIBUTE_PROLOG || size > (size_t)(s.end - s.at))
        return false;
    for (const uint8_t *end = s.at + size; s.at < end && *s.at != ','; s.at++) {
        if (*s.at == '+') {
            matched = 0;
            equal = true;
            continue;
        }
        if (*s.at == '\\' && s.at + 1 < end)
            s.at++;
        equal = equal && matched < length && (char)*s.at == name[matched];
        matched++;
    }
    return equal && matched == length;
}

/* Whether one of the attributes that are searched for is there for the state machine called `name`. */
static enum cdacq_status is_made_from(struct namer *n, struct attribute_search search, const char *name, size_t length,
                                      bool *ret)
{
    *ret = false;
    for (;;) {
        CLEANUP_METADATA_BLOB struct metadata_blob blob;
        blob.allocated = NULL;
        enum cdacq_status status = attribute_next(n, &search);
        if (status != CDACQ_OK || !search.rid)
            return status;
        if ((status = metadata_blob_read(search.metadata, search.value, &blob)) != CDACQ_OK)
            return status;
        if (!namer_spend_bulk(n, blob.length))
            return n->status;
        if ((*ret = names_type(&blob, name, length)))
            return CDACQ_OK;
    }
}

enum cdacq_status state_machine_kickoff(const struct metadata *m, uint32_t outer, uint32_t type, uint32_t *ret_method,
                                        bool *ret_iterator)
{
    static const char *const async[] = {"AsyncStateMachineAttribute", NULL};
    static const char *const iterators[] = {"IteratorStateMachineAttribute", "AsyncIteratorStateMachineAttribute",
                                            NULL};
    const struct name_source source = {.metadata = m};
    struct text none = {0};
    struct namer n = namer_begin(&source, NULL, &none);
    char buffer[METADATA_STRING_CAP], copy[METADATA_STRING_CAP];
    struct metadata_type_def definition;
    const char *name;
    size_t length;
    uint32_t begin, end;
    bool found = false, iterator = false;
    enum cdacq_status status = metadata_type_def(m, type, &definition);
    if (status == CDACQ_OK)
        status = metadata_string(m, definition.name, buffer, &name, &length);
    if (status != CDACQ_OK)
        return status;
    memcpy(copy, name, length); /* `name` is valid until the next call */
    status = metadata_methods(m, outer, &begin, &end);
    if (status != CDACQ_OK)
        return status;
    *ret_method = 0;
    for (uint32_t method = begin; method < end && !found && !metadata_row_count(m, METADATA_METHOD_PTR); method++) {
        struct attribute_search search = {.metadata = m,
                                          .parent = metadata_token(METADATA_METHOD_DEF, method),
                                          .namespace_name = compiler_services,
                                          .names = async};
        status = is_made_from(&n, search, copy, length, &found);
        if (status == CDACQ_OK && !found) {
            search.names = iterators;
            status = is_made_from(&n, search, copy, length, &found);
            iterator = found;
        }
        if (status != CDACQ_OK)
            return status;
        if (found)
            *ret_method = method;
    }
    *ret_iterator = iterator;
    return CDACQ_OK;
}

char compiler_name_parse(const char *name, size_t length, size_t *ret_inner, size_t *ret_rest)
{
    size_t depth = 0, i = 0;
    for (; i < length; i++) {
        if (name[i] == '<')
            depth++;
        else if (name[i] == '>' && --depth == 0)
            break;
        if (!depth)
            return 0;
    }
    if (i < 2 || i + 1 >= length)
        return 0;
    *ret_inner = i - 1;
    *ret_rest = MIN(i + 4, length);
    return name[i + 1];
}

enum cdacq_status state_machine_method(const struct metadata *m, uint32_t type, uint32_t *ret_method)
{
    char buffer[METADATA_STRING_CAP], copy[METADATA_STRING_CAP];
    struct metadata_type_def definition;
    const char *name;
    size_t length, inner, rest;
    uint32_t outer = 0, method = 0;
    bool iterator;
    enum cdacq_status status = metadata_enclosing(m, type, &outer);
    if (status == CDACQ_OK && outer)
        status = state_machine_kickoff(m, outer, type, &method, &iterator);
    if (status == CDACQ_OK && outer && !method)
        status = metadata_type_def(m, type, &definition);
    if (status == CDACQ_OK && outer && !method)
        status = metadata_string(m, definition.name, buffer, &name, &length);
    if (status == CDACQ_OK && outer && !method && compiler_name_parse(name, length, &inner, &rest) == 'd') {
        memcpy(copy, name + 1, inner); /* `name` is valid until the next call */
        status = metadata_method_named(m, outer, copy, inner, &method);
    }
    if (status == CDACQ_OK)
        *ret_method = method;
    return status;
}

enum cdacq_status state_machine_resolve(const struct metadata *metadata, uint32_t token, struct state_machine *ret)
{
    const struct name_source source = {.metadata = metadata};
    struct text none = {0};
    struct namer n = namer_begin(&source, NULL, &none);
    uint32_t type, outer = 0, method = 0;
    bool generated = false, enumerator = false;
    struct state_machine machine = {.method = token};
    enum cdacq_status status = metadata_method_owner(metadata, metadata_rid(token), &type);
    if (status == CDACQ_OK)
        status = has_attribute(&n, metadata, metadata_token(METADATA_TYPE_DEF, type), compiler_services,
                               "CompilerGeneratedAttribute", &generated);
    if (status == CDACQ_OK && generated)
        status = metadata_implements(metadata, type, compiler_services, "IAsyncStateMachine", &machine.async);
    if (status == CDACQ_OK && generated && !machine.async)
        status = metadata_implements(metadata, type, "System.Collections", "IEnumerator", &enumerator);
    if (status == CDACQ_OK && (machine.async || enumerator))
        status = metadata_enclosing(metadata, type, &outer);
    if (status == CDACQ_OK && outer)
        status = state_machine_kickoff(metadata, outer, type, &method, &machine.iterator);
    if (status == CDACQ_OK && method)
        machine.method = metadata_token(METADATA_METHOD_DEF, method);
    if (status == CDACQ_OK)
        *ret = machine;
    return status;
}
