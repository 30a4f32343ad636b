#include "formats/names/entry_point.h"

#include "formats/metadata.h"
#include "formats/names/signature.h"

/* Finds the type at the head of an owner's signature and the module of its token. */
static void read_owner(struct signature s, struct name_entry_point *entry)
{
    for (;;) {
        signature_skip_modifiers(&s);
        uint8_t element = signature_byte(&s);
        switch (element) {
        case ELEMENT_MODULE_ZAPSIG:
            entry->owner_module = signature_uint(&s);
            continue;
        case ELEMENT_GENERICINST:
        case ELEMENT_NATIVE_VALUETYPE_ZAPSIG:
            continue;
        case ELEMENT_CLASS:
        case ELEMENT_VALUETYPE:
            entry->owner_token = signature_token(&s);
            break;
        default:
            break;
        }
        entry->owner_element = element;
        return;
    }
}

static void read_method_token(struct signature *s, struct name_entry_point *entry)
{
    uint32_t rid = signature_uint(s);
    if (entry->flags & NAME_ENTRY_SLOT_INSTEAD_OF_TOKEN) {
        entry->slot = rid;
        return;
    }
    if (rid == 0 || rid > 0xffffff)
        signature_fail(s);
    bool member_ref = entry->flags & NAME_ENTRY_MEMBER_REF_TOKEN;
    /* A MemberRef is one of the context module, a MethodDef one of the module of its type. */
    entry->module = member_ref ? entry->context : entry->owner_module;
    entry->token = metadata_token(member_ref ? METADATA_MEMBER_REF : METADATA_METHOD_DEF, rid);
}

enum cdacq_status name_entry_point_decode(const void *blob, size_t length, struct name_entry_point *ret)
{
    enum { KNOWN_FLAGS = 2 * NAME_ENTRY_ASYNC_VARIANT - 1 };
    struct signature s = signature_at(blob, length, 0, false);
    struct name_entry_point entry = {.flags = signature_uint(&s)};
    if (entry.flags & ~(unsigned)KNOWN_FLAGS)
        return CDACQ_ERR_FORMAT;
    if (entry.flags & NAME_ENTRY_UPDATE_CONTEXT)
        entry.context = signature_uint(&s);
    entry.owner_module = entry.context;
    if (entry.flags & NAME_ENTRY_OWNER_TYPE) {
        entry.owner = s.at;
        read_owner(s, &entry);
        signature_skip_type(&s);
        entry.owner_length = (size_t)(s.at - entry.owner);
    }
    read_method_token(&s, &entry);
    if (entry.flags & NAME_ENTRY_METHOD_INSTANTIATION) {
        entry.argument_count = signature_uint(&s);
        entry.arguments = s.at;
        for (uint32_t i = 0; i < entry.argument_count && !s.failed; i++)
            signature_skip_type(&s);
        entry.arguments_length = (size_t)(s.at - entry.arguments);
    }
    if (entry.flags & NAME_ENTRY_CONSTRAINED)
        signature_skip_type(&s);
    if (s.failed)
        return CDACQ_ERR_FORMAT;
    entry.length = (size_t)(s.at - (const uint8_t *)blob);
    *ret = entry;
    return CDACQ_OK;
}

enum cdacq_status name_entry_point_skip(const void *blob, size_t length, size_t *ret_length)
{
    struct signature s = signature_at(blob, length, 0, false);
    uint32_t flags = signature_uint(&s);
    if (flags & NAME_ENTRY_UPDATE_CONTEXT)
        signature_skip_uint(&s);
    if (flags & NAME_ENTRY_OWNER_TYPE)
        signature_skip_type(&s);
    signature_skip_uint(&s);
    if (flags & NAME_ENTRY_METHOD_INSTANTIATION)
        signature_skip_types(&s, signature_uint(&s), 0);
    if (flags & NAME_ENTRY_CONSTRAINED)
        signature_skip_type(&s);
    if (s.failed)
        return CDACQ_ERR_FORMAT;
    *ret_length = (size_t)(s.at - (const uint8_t *)blob);
    return CDACQ_OK;
}
