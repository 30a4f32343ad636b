#include "contracts/code_info/debug_info.h"

#include "contracts/execution_manager/code_heap.h"
#include "contracts/ready_to_run/native_format.h"
#include "contracts/execution_manager/r2r_jit_manager.h"

/* Flags come first where the JIT may have something to flag: a patchpoint of OSR, or rich debug info. */
static bool jit_has_flag_byte(struct field_reader *reader)
{
    const struct layout *layout = reader->layout;
    if (layout->globals[G_FeatureOnStackReplacement])
        return true;
    if (!layout->global_present[G_EEJitManagerAddress] || !has_field(reader, F_EEJitManager_StoreRichDebugInfo))
        return false;
    uint64_t jit_manager = read_pointer(&reader->raw, layout->globals[G_EEJitManagerAddress]);
    return jit_manager && read_field(reader, jit_manager, F_EEJitManager_StoreRichDebugInfo);
}

/* Only the few bytes that lead to the element are read: the section of a large image has megabytes. */
static bool r2r_debug_info(const struct execution_manager *manager, struct field_reader *reader,
                           const struct code_block *block, uint64_t *ret)
{
    struct r2r_section_place place;
    struct native_array array;
    uint32_t element, back, behind;
    const struct r2r_image *image = r2r_jit_manager_image_of(manager, block);
    *ret = 0;
    if (!image || !r2r_image_section(image, reader, R2R_DEBUG_INFO, &place))
        return !reader_failed(&reader->raw);
    struct native_section section = {.size = place.size, .reader = &reader->raw, .address = image->base + place.rva};
    uint32_t function = (uint32_t)r2r_jit_manager_function_of(image, block);
    if (!native_array_open(section, &array)) {
        reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, section.address, "ReadyToRun section 105");
        return false;
    }
    if (!native_array_at(&array, function, &element))
        return !reader_failed(&reader->raw); /* a method without any */
    behind = element;
    if (!native_unsigned(&section, &behind, &back) || back > element)
        reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, section.address + element, "ReadyToRun section 105");
    *ret = section.address + (back ? element - back : behind);
    return !reader_failed(&reader->raw);
}

bool debug_info_of(const struct execution_manager *manager, struct field_reader *reader, const struct code_block *block,
                   uint64_t *ret, bool *ret_has_flag_byte)
{
    *ret_has_flag_byte = false;
    if (block->kind == CDACQ_CODE_READY_TO_RUN)
        return r2r_debug_info(manager, reader, block, ret);
    *ret = code_block_field(reader, block, F_RealCodeHeader_DebugInfo, F_InterpreterRealCodeHeader_DebugInfo);
    *ret_has_flag_byte = *ret && block->kind == CDACQ_CODE_JITTED && jit_has_flag_byte(reader);
    return !reader_failed(&reader->raw);
}
