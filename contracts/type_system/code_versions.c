#include "contracts/type_system/code_versions.h"

#include "contracts/code_lookup/platform_metadata.h"

static const char *read_tier(struct field_reader *reader, uint64_t address, enum layout_field field)
{
    static const char *const texts[] = {
        "Tier0", "Tier1", "Tier1OSR", "Optimized", "Tier0Instrumented", "Tier1Instrumented"}; /* OptimizationTier */
    uint64_t tier = has_field(reader, field) ? read_field(reader, address, field) : UINT64_MAX;
    return tier < ARRAY_SIZE(texts) && !reader_failed(&reader->raw) ? texts[tier] : NULL;
}

/* The node of the version whose code starts at `start`, or 0. *ret_code_data becomes the method's. */
static uint64_t find_node(struct field_reader *reader, uint64_t method_desc, uint64_t start, uint64_t *ret_code_data)
{
    uint64_t code_data = *ret_code_data = read_field(reader, method_desc, F_MethodDesc_CodeData);
    uint64_t state = code_data ? read_field(reader, code_data, F_MethodDescCodeData_VersioningState) : 0;
    if (!state || reader_failed(&reader->raw))
        return 0;
    uint64_t node = read_field(reader, state, F_MethodDescVersioningState_NativeCodeVersionNode);
    while (node && reader_step(&reader->raw, "versions of a method's code")) {
        uint64_t code = read_field(reader, node, F_NativeCodeVersionNode_NativeCode);
        if (address_of_code_pointer(reader->layout->code_pointer_flags, code) == start)
            return node;
        node = read_field(reader, node, F_NativeCodeVersionNode_Next);
    }
    return 0;
}

const char *code_versions_tier(struct field_reader *reader, uint64_t method_desc, uint64_t start)
{
    if (!has_field(reader, F_NativeCodeVersionNode_OptimizationTier))
        return NULL;
    uint64_t code_data, node = find_node(reader, method_desc, start, &code_data);
    if (!code_data || reader_failed(&reader->raw))
        return NULL;
    return node ? read_tier(reader, node, F_NativeCodeVersionNode_OptimizationTier)
                : read_tier(reader, code_data, F_MethodDescCodeData_OptimizationTier);
}

uint64_t code_versions_il_version(struct field_reader *reader, uint64_t method_desc, uint64_t start)
{
    uint64_t code_data;
    if (!has_field(reader, F_NativeCodeVersionNode_ILVersionId))
        return 0;
    return read_optional(reader, find_node(reader, method_desc, start, &code_data),
                         F_NativeCodeVersionNode_ILVersionId);
}
