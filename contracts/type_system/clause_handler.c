#include "contracts/type_system/clause_handler.h"

#include "descriptors/layout.h"
#include "formats/metadata_members.h"
#include "target/reader.h"

static bool is_object_method_table(struct reader *reader, uint64_t type_handle, bool *ret)
{
    const struct layout *layout = reader->layout;
    if (!layout->global_present[G_ObjectMethodTable])
        return false;
    uint64_t object = read_pointer(reader, layout->globals[G_ObjectMethodTable]);
    *ret = type_handle == object;
    return !reader_recover(reader, FAILURE_ANY) && object;
}

/* System.Object is the only type without a base type. Another assembly may have a type of the same name. */
static bool is_object(const struct metadata *metadata, uint32_t token, bool *ret)
{
    struct metadata_type_def definition;
    struct metadata_type_ref reference;
    bool named, root = false;
    if (metadata_type_is(metadata, token, "System", "Object", &named) < 0)
        return false;
    if (named && metadata_token_table(token) == METADATA_TYPE_DEF) {
        if (metadata_type_def(metadata, metadata_rid(token), &definition) < 0)
            return false;
        root = !metadata_rid(definition.extends);
    } else if (named && metadata_token_table(token) == METADATA_TYPE_REF) {
        if (metadata_type_ref(metadata, metadata_rid(token), &reference) < 0)
            return false;
        root = metadata_token_table(reference.scope) == METADATA_ASSEMBLY_REF;
    }
    *ret = named && root;
    return true;
}

bool clause_is_catch_all(struct reader *reader, const struct module *module,
                         const struct cdacq_exception_clause *clause, bool *ret)
{
    if (clause->type_handle)
        return is_object_method_table(reader, clause->type_handle, ret);
    return clause->class_token && module && module->status >= 0 &&
           is_object(&module->metadata, clause->class_token, ret);
}
