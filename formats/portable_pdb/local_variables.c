#include "formats/portable_pdb/local_variables.h"

#include "formats/metadata_schema.h"

enum {
    SCOPES_MAX = 64 * 1024,    /* of a method */
    VARIABLES_MAX = 64 * 1024, /* of a method's scopes */
    ATTRIBUTE_HIDDEN = 1,
};

/* Calls `found` for the locals of a scope. *left counts down. */
static enum cdacq_status each_of_scope(const struct metadata *metadata, uint32_t scope,
                                       const struct metadata_local_scope *row, uint32_t *left,
                                       bool (*found)(const struct local_variable *variable, void *context),
                                       void *context, bool *ret_stopped)
{
    struct metadata_local_scope next;
    struct metadata_local_variable variable;
    uint32_t limit = metadata_row_count(metadata, METADATA_LOCAL_VARIABLE) + 1, end = limit;
    enum cdacq_status status = CDACQ_OK;
    if (scope < metadata_row_count(metadata, METADATA_LOCAL_SCOPE)) {
        status = metadata_local_scope(metadata, scope + 1, &next);
        end = next.variables;
    }
    if (status != CDACQ_OK)
        return status;
    if (!row->variables || row->variables > end || end > limit)
        return CDACQ_ERR_FORMAT;
    for (uint32_t rid = row->variables; rid < end && !*ret_stopped; rid++) {
        if (!(*left)--)
            return CDACQ_ERR_FUEL;
        status = metadata_local_variable(metadata, rid, &variable);
        if (status != CDACQ_OK)
            return status;
        const struct local_variable local = {
            .slot = variable.index, .name = variable.name, .is_hidden = variable.attributes & ATTRIBUTE_HIDDEN};
        *ret_stopped = !found(&local, context);
    }
    return CDACQ_OK;
}

enum cdacq_status local_variables_each(const struct portable_pdb *pdb, uint32_t method_rid, uint32_t il_offset,
                                       bool (*found)(const struct local_variable *variable, void *context),
                                       void *context)
{
    const struct metadata *metadata = &pdb->metadata;
    struct metadata_local_scope scope;
    uint32_t rid = 0, left = VARIABLES_MAX;
    bool stopped = false;
    for (uint32_t i = 0; !stopped; i++) {
        enum cdacq_status status =
            metadata_next_row(metadata, METADATA_LOCAL_SCOPE, LOCAL_SCOPE_METHOD, method_rid, &rid);
        if (status == CDACQ_OK && rid && i == SCOPES_MAX)
            status = CDACQ_ERR_FUEL;
        if (status == CDACQ_OK && rid)
            status = metadata_local_scope(metadata, rid, &scope);
        if (status != CDACQ_OK || !rid)
            return status;
        if (il_offset - scope.start >= scope.length)
            continue;
        status = each_of_scope(metadata, rid, &scope, &left, found, context, &stopped);
        if (status != CDACQ_OK)
            return status;
    }
    return CDACQ_OK;
}

bool local_variables_exist(const struct portable_pdb *pdb, uint32_t method_rid)
{
    uint32_t rid = 0;
    return metadata_next_row(&pdb->metadata, METADATA_LOCAL_SCOPE, LOCAL_SCOPE_METHOD, method_rid, &rid) == CDACQ_OK &&
           rid;
}
