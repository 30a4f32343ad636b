/*
 * attributes.c: Source: ECMA-335 II.22.10 (CustomAttribute), II.23.3 (values).
 */
#include "formats/names/attributes.h"

#include "formats/metadata_members.h"
#include "formats/names/signature.h"

/* The type that a constructor belongs to; 0 if the token is neither MethodDef nor MemberRef. */
static enum cdacq_status type_of_constructor(const struct metadata *m, uint32_t constructor, uint32_t *ret)
{
    struct metadata_member_ref reference = {.parent = 0};
    uint32_t rid = metadata_rid(constructor), type = 0;
    enum cdacq_status status = CDACQ_OK;
    if (metadata_token_table(constructor) == METADATA_MEMBER_REF) {
        status = metadata_member_ref(m, rid, &reference);
    } else if (metadata_token_table(constructor) == METADATA_METHOD_DEF) {
        status = metadata_method_owner(m, rid, &type);
        reference.parent = metadata_token(METADATA_TYPE_DEF, type);
    }
    *ret = reference.parent;
    return status;
}

enum cdacq_status attribute_next(struct namer *n, struct attribute_search *search)
{
    const struct metadata *m = search->metadata;
    while (namer_spend_search(n, m, METADATA_CUSTOM_ATTRIBUTE)) {
        struct metadata_custom_attribute attribute;
        uint32_t type = 0;
        bool equal = false;
        enum cdacq_status status = metadata_next_attribute(m, search->parent, &search->rid);
        if (status != CDACQ_OK || !search->rid)
            return status;
        status = metadata_custom_attribute(m, search->rid, &attribute);
        if (status == CDACQ_OK)
            status = type_of_constructor(m, attribute.constructor, &type);
        for (const char *const *name = search->names; *name && !equal && status == CDACQ_OK; name++)
            status = metadata_type_is(m, type, search->namespace_name, *name, &equal);
        if (status != CDACQ_OK)
            return status;
        if (equal) {
            search->value = attribute.value;
            return CDACQ_OK;
        }
    }
    return n->status;
}

bool namer_next_attribute(struct namer *n, struct attribute_search *search)
{
    enum cdacq_status status = attribute_next(n, search);
    namer_lose(n, status);
    return status == CDACQ_OK && search->rid;
}

bool namer_has_attribute(struct namer *n, const struct metadata *m, uint32_t parent, const char *namespace_name,
                         const char *name)
{
    const char *const names[] = {name, NULL};
    struct attribute_search search = {
        .metadata = m, .parent = parent, .namespace_name = namespace_name, .names = names};
    return namer_next_attribute(n, &search);
}

bool namer_attribute_string(struct namer *n, const struct metadata *m, uint32_t value, char ret[METADATA_STRING_CAP],
                            size_t *ret_length)
{
    CLEANUP_METADATA_BLOB struct metadata_blob blob;
    blob.allocated = NULL;
    enum cdacq_status status = metadata_blob_read(m, value, &blob);
    namer_lose(n, status);
    if (status != CDACQ_OK || !namer_spend_bulk(n, blob.length) || blob.length < 3 || blob.data[0] != 1 ||
        blob.data[1] != 0 || blob.data[2] == 0xff)
        return false;
    struct signature s = signature_at(blob.data + 2, blob.length - 2, 0, false);
    uint32_t length = signature_uint(&s);
    if (s.failed || length > (size_t)(s.end - s.at) || length > METADATA_STRING_CAP)
        return false;
    memcpy(ret, s.at, length);
    *ret_length = length;
    return true;
}
