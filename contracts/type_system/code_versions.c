#include "contracts/type_system/code_versions.h"

#include "contracts/lookup_map.h"
#include "contracts/read_write_metadata.h"
#include "contracts/code_lookup/platform_metadata.h"
#include "contracts/type_system/method_desc.h"

enum {
    TIER_OPTIMIZED = 3,             /* OptimizationTier: of code that no tier can replace */
    ALLOWS_OPTIMIZATION = 1u << 11, /* Module.Flags: DACF_ALLOW_JIT_OPTS, of the bits for debuggers */
    SOURCE_EDIT = 2,                /* ILCodeVersionNode.Source; 1: ReJIT */
};

/* False also if it cannot be read. A dynamic method has no module whose flags count. */
static bool allows_optimization(struct reader *reader, uint64_t method_desc)
{
    struct method_desc method;
    if (!has_field(reader, F_Module_Flags))
        return true;
    return method_desc_read(reader, method_desc, &method) &&
           (!method.module || read_field(reader, method.module, F_Module_Flags) & ALLOWS_OPTIMIZATION);
}

static const char *read_tier(struct reader *reader, uint64_t method_desc, uint64_t address, enum layout_field field)
{
    static const char *const texts[] = {
        "Tier0", "Tier1", "Tier1OSR", "Optimized", "Tier0Instrumented", "Tier1Instrumented"}; /* OptimizationTier */
    uint64_t tier = has_field(reader, field) ? read_field(reader, address, field) : UINT64_MAX;
    if (tier >= ARRAY_SIZE(texts) || reader_failed(reader) ||
        (tier == TIER_OPTIMIZED && !allows_optimization(reader, method_desc)))
        return NULL;
    return texts[tier];
}

/* The node of the version whose code starts at `start`, or 0. *ret_code_data becomes the method's. */
static uint64_t find_node(struct reader *reader, uint64_t method_desc, uint64_t start, uint64_t *ret_code_data)
{
    uint64_t code_data = *ret_code_data = read_field(reader, method_desc, F_MethodDesc_CodeData);
    uint64_t state = code_data ? read_field(reader, code_data, F_MethodDescCodeData_VersioningState) : 0;
    if (!state || reader_failed(reader))
        return 0;
    uint64_t node = read_field(reader, state, F_MethodDescVersioningState_NativeCodeVersionNode);
    while (node && reader_step(reader, "versions of a method's code")) {
        uint64_t code = read_field(reader, node, F_NativeCodeVersionNode_NativeCode);
        if (address_of_code_pointer(reader, code) == start)
            return node;
        node = read_field(reader, node, F_NativeCodeVersionNode_Next);
    }
    return 0;
}

const char *code_versions_tier(struct reader *reader, uint64_t method_desc, uint64_t start)
{
    if (!has_field(reader, F_NativeCodeVersionNode_OptimizationTier))
        return NULL;
    uint64_t code_data, node = find_node(reader, method_desc, start, &code_data);
    if (!code_data || reader_failed(reader))
        return NULL;
    return node ? read_tier(reader, method_desc, node, F_NativeCodeVersionNode_OptimizationTier)
                : read_tier(reader, method_desc, code_data, F_MethodDescCodeData_OptimizationTier);
}

uint64_t code_versions_il_version(struct reader *reader, uint64_t method_desc, uint64_t start)
{
    uint64_t code_data;
    if (!has_field(reader, F_NativeCodeVersionNode_ILVersionId))
        return 0;
    return read_optional(reader, find_node(reader, method_desc, start, &code_data),
                         F_NativeCodeVersionNode_ILVersionId);
}

bool code_versions_is_edited(struct reader *reader, uint64_t module, uint32_t token)
{
    if (!module || !has_field(reader, F_ILCodeVersionNode_Source))
        return false;
    /* An edit makes the runtime keep the metadata of the module, and that is in smaller cores than the versions are. */
    if (has_field(reader, F_PEAssembly_MDImportIsRW) && !read_write_metadata_exists(reader, module))
        return reader_failed(reader);
    uint64_t state =
        lookup_map_element(reader, module, F_Module_MethodDefToILCodeVersioningStateMap, metadata_rid(token));
    uint64_t node = read_optional(reader, state, F_ILCodeVersioningState_FirstVersionNode);
    while (node && reader_step(reader, "versions of a method's IL")) {
        if (read_field(reader, node, F_ILCodeVersionNode_Source) == SOURCE_EDIT)
            return true;
        node = read_field(reader, node, F_ILCodeVersionNode_Next);
    }
    return reader_failed(reader);
}
