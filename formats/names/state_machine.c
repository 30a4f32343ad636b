#include "formats/names/state_machine.h"

#include "formats/metadata_members.h"
#include "formats/names/signature.h"

enum {
    METHODS_MAX = 64 * 1024, /* of a type */
    ATTRIBUTE_PROLOG = 0x0001,
};

static const char compiler_services[] = "System.Runtime.CompilerServices";

static enum cdacq_status has_attribute(const struct metadata *metadata, uint32_t token, const char *space,
                                       const char *name, bool *ret)
{
    uint32_t rid, value;
    enum cdacq_status status = metadata_attribute_find(metadata, token, space, name, 0, &rid, &value);
    *ret = status == CDACQ_OK && rid;
    return status;
}

enum cdacq_status method_is_hidden(const struct metadata *metadata, uint32_t token, bool *ret)
{
    static const char space[] = "System.Diagnostics", name[] = "StackTraceHiddenAttribute";
    struct metadata_method_def method;
    uint32_t owner;
    enum cdacq_status status = metadata_method_def(metadata, metadata_rid(token), &method);
    *ret = status == CDACQ_OK && (method.impl_flags & METHOD_IMPL_AGGRESSIVE_INLINING);
    if (status == CDACQ_OK && !*ret)
        status = has_attribute(metadata, token, space, name, ret);
    if (status == CDACQ_OK && !*ret)
        status = metadata_method_owner(metadata, metadata_rid(token), &owner);
    if (status == CDACQ_OK && !*ret)
        status = has_attribute(metadata, metadata_token(METADATA_TYPE_DEF, owner), space, name, ret);
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

/* Whether `method` has an attribute of that name for the state machine `type_name`. */
static enum cdacq_status is_made_from(const struct metadata *metadata, uint32_t method, const char *attribute,
                                      const char *type_name, size_t length, bool *ret)
{
    uint32_t rid = 0, value;
    uint32_t token = metadata_token(METADATA_METHOD_DEF, method);
    *ret = false;
    for (;;) {
        CLEANUP_METADATA_BLOB struct metadata_blob blob;
        blob.allocated = NULL;
        enum cdacq_status status =
            metadata_attribute_find(metadata, token, compiler_services, attribute, rid, &rid, &value);
        if (status != CDACQ_OK || !rid)
            return status;
        if ((status = metadata_blob_read(metadata, value, &blob)) != CDACQ_OK)
            return status;
        if ((*ret = names_type(&blob, type_name, length)))
            return CDACQ_OK;
    }
}

/* Searches the methods of `outer` for the one that the state machine `type` was made from. */
static enum cdacq_status find_method(const struct metadata *metadata, uint32_t outer, uint32_t type,
                                     struct state_machine *ret)
{
    static const char *const attributes[] = {"AsyncStateMachineAttribute", "IteratorStateMachineAttribute",
                                             "AsyncIteratorStateMachineAttribute"};
    char buffer[METADATA_STRING_CAP], copy[METADATA_STRING_CAP];
    struct metadata_type_def definition;
    const char *name;
    size_t length;
    uint32_t begin, end;
    enum cdacq_status status = metadata_type_def(metadata, type, &definition);
    if (status == CDACQ_OK)
        status = metadata_string(metadata, definition.name, buffer, &name, &length);
    if (status == CDACQ_OK)
        status = metadata_methods(metadata, outer, &begin, &end);
    if (status != CDACQ_OK)
        return status;
    memcpy(copy, name, length); /* `name` is valid until the next call */
    if (end - begin > METHODS_MAX || metadata_row_count(metadata, METADATA_METHOD_PTR))
        return CDACQ_OK;
    for (uint32_t method = begin; method < end; method++)
        for (size_t i = 0; i < ARRAY_SIZE(attributes); i++) {
            bool found;
            if ((status = is_made_from(metadata, method, attributes[i], copy, length, &found)) != CDACQ_OK)
                return status;
            if (found) {
                ret->method = metadata_token(METADATA_METHOD_DEF, method);
                ret->iterator = i > 0;
                return CDACQ_OK;
            }
        }
    return CDACQ_OK;
}

enum cdacq_status state_machine_resolve(const struct metadata *metadata, uint32_t token, struct state_machine *ret)
{
    uint32_t type, outer = 0;
    bool generated = false, enumerator = false;
    struct state_machine machine = {.method = token};
    enum cdacq_status status = metadata_method_owner(metadata, metadata_rid(token), &type);
    if (status == CDACQ_OK)
        status = has_attribute(metadata, metadata_token(METADATA_TYPE_DEF, type), compiler_services,
                               "CompilerGeneratedAttribute", &generated);
    if (status == CDACQ_OK && generated)
        status = metadata_implements(metadata, type, compiler_services, "IAsyncStateMachine", &machine.async);
    if (status == CDACQ_OK && generated && !machine.async)
        status = metadata_implements(metadata, type, "System.Collections", "IEnumerator", &enumerator);
    if (status == CDACQ_OK && (machine.async || enumerator))
        status = metadata_enclosing(metadata, type, &outer);
    if (status == CDACQ_OK && outer)
        status = find_method(metadata, outer, type, &machine);
    if (status == CDACQ_OK)
        *ret = machine;
    return status;
}
