#include "contracts/type_system/field_type.h"

#include "contracts/type_system/signature_type.h"
#include "contracts/type_system/type_handle.h"
#include "descriptors/fields.h"
#include "descriptors/layout.h"
#include "formats/metadata_members.h"

enum { SIGNATURE_FIELD = 0x06 }; /* II.23.2.4 */

/*
 * Opens the signature of a field, which the caller frees in either case. False: it cannot be read.
 */
static bool open_field(struct module_cache *cache, uint64_t owner, uint32_t token, struct signature_scope *ret,
                       struct metadata_blob *ret_blob, struct signature *ret_type)
{
    struct reader *reader = cache->reader;
    struct metadata_field field;
    uint32_t type;
    *ret = (struct signature_scope){.cache = cache};
    ret_blob->allocated = NULL;
    if (type_handle_definition(cache, owner, &ret->metadata, &type) != CDACQ_OK ||
        metadata_field(ret->metadata, metadata_rid(token), &field) != CDACQ_OK ||
        metadata_blob_read(ret->metadata, field.signature, ret_blob) != CDACQ_OK ||
        type_handle_arguments(cache, owner, &ret->type_arguments, &ret->type_count) != CDACQ_OK)
        return false;
    ret->module = read_field(reader, owner, F_MethodTable_Module);
    *ret_type = signature_at(ret_blob->data, ret_blob->length, 0, false);
    bool is_field = signature_byte(ret_type) == SIGNATURE_FIELD;
    signature_skip_modifiers(ret_type);
    return is_field && !ret_type->failed && !reader_failed(reader);
}

uint64_t field_type_find(struct module_cache *cache, uint64_t owner, uint32_t token)
{
    CLEANUP_METADATA_BLOB struct metadata_blob blob;
    struct signature_scope scope;
    struct signature type;
    return open_field(cache, owner, token, &scope, &blob, &type) ? signature_type_find(&scope, type) : 0;
}

bool field_type_name(struct module_cache *cache, uint64_t owner, uint32_t token, struct text *ret)
{
    CLEANUP_METADATA_BLOB struct metadata_blob blob;
    struct signature_scope scope;
    struct signature type;
    return open_field(cache, owner, token, &scope, &blob, &type) && signature_type_name(&scope, &type, ret);
}
