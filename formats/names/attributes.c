/*
 * attributes.c: Source: ECMA-335 II.22.10 (CustomAttribute), II.23.3 (values).
 */
#include "formats/names/attributes.h"

#include "formats/names/signature.h"

bool type_is_named(const struct metadata *m, uint32_t token, const char *namespace_name, const char *name)
{
    struct metadata_type_def definition;
    struct metadata_type_ref reference;
    uint32_t rid = metadata_rid(token);
    bool equal;
    if (metadata_token_table(token) == METADATA_TYPE_DEF) {
        if (metadata_type_def(m, rid, &definition) != CDACQ_OK)
            return false;
        reference.name = definition.name;
        reference.namespace_name = definition.namespace_name;
    } else if (metadata_token_table(token) != METADATA_TYPE_REF || metadata_type_ref(m, rid, &reference) != CDACQ_OK) {
        return false;
    }
    return metadata_string_equals(m, reference.name, name, strlen(name), &equal) == CDACQ_OK && equal &&
           metadata_string_equals(m, reference.namespace_name, namespace_name, strlen(namespace_name), &equal) ==
               CDACQ_OK &&
           equal;
}

/* The type that a constructor, a MethodDef or MemberRef, belongs to; 0 if it cannot be read. */
static uint32_t type_of_constructor(const struct metadata *m, uint32_t constructor)
{
    struct metadata_member_ref reference;
    uint32_t rid = metadata_rid(constructor), type;
    if (metadata_token_table(constructor) == METADATA_MEMBER_REF)
        return metadata_member_ref(m, rid, &reference) == CDACQ_OK ? reference.parent : 0;
    return metadata_method_owner(m, rid, &type) == CDACQ_OK ? metadata_token(METADATA_TYPE_DEF, type) : 0;
}

bool namer_next_attribute(struct namer *n, const struct metadata *m, uint32_t parent, const char *namespace_name,
                          const char *const *names, uint32_t *rid, uint32_t *ret_value)
{
    struct metadata_custom_attribute attribute;
    while (namer_spend_search(n, m, METADATA_CUSTOM_ATTRIBUTE) && metadata_next_attribute(m, parent, rid) == CDACQ_OK &&
           *rid && metadata_custom_attribute(m, *rid, &attribute) == CDACQ_OK) {
        uint32_t type = type_of_constructor(m, attribute.constructor);
        for (const char *const *name = names; type && *name; name++)
            if (type_is_named(m, type, namespace_name, *name)) {
                *ret_value = attribute.value;
                return true;
            }
    }
    return false;
}

bool namer_has_attribute(struct namer *n, const struct metadata *m, uint32_t parent, const char *namespace_name,
                         const char *name)
{
    const char *const names[] = {name, NULL};
    uint32_t rid = 0, value;
    return namer_next_attribute(n, m, parent, namespace_name, names, &rid, &value);
}

bool namer_attribute_string(struct namer *n, const struct metadata *m, uint32_t value, char ret[METADATA_STRING_CAP],
                            size_t *ret_length)
{
    CLEANUP_METADATA_BLOB struct metadata_blob blob;
    blob.allocated = NULL;
    if (metadata_blob_read(m, value, &blob) != CDACQ_OK || !namer_spend_bulk(n, blob.length) || blob.length < 3 ||
        blob.data[0] != 1 || blob.data[1] != 0 || blob.data[2] == 0xff)
        return false;
    struct signature s = signature_at(blob.data + 2, blob.length - 2, 0, false);
    uint32_t length = signature_uint(&s);
    if (s.failed || length > (size_t)(s.end - s.at) || length > METADATA_STRING_CAP)
        return false;
    memcpy(ret, s.at, length);
    *ret_length = length;
    return true;
}
