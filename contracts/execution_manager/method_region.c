#include "contracts/execution_manager/method_region.h"

#include "contracts/execution_manager/code_heap.h"
#include "contracts/code_info/gc_info.h"
#include "contracts/execution_manager/r2r_jit_manager.h"

bool gc_info_of(const struct execution_manager *manager, struct field_reader *reader, const struct code_block *block,
                uint64_t *ret, uint32_t *ret_version)
{
    *ret = 0;
    *ret_version = 0;
    if (block->kind == CDACQ_CODE_READY_TO_RUN)
        return r2r_jit_manager_gc_info(r2r_jit_manager_image_of(manager, block), reader, block, ret, ret_version);
    *ret = code_block_field(reader, block, F_RealCodeHeader_GCInfo, F_InterpreterRealCodeHeader_GCInfo);
    *ret_version = gc_info_version_of_jit(reader->layout);
    return !reader_failed(&reader->raw);
}

bool method_region_hot_size(const struct execution_manager *manager, struct field_reader *reader,
                            const struct code_block *block, uint64_t *ret)
{
    uint64_t gc_info;
    uint32_t version, length = 0;
    *ret = block->hot_size;
    if (block->kind == CDACQ_CODE_INTERPRETER) /* all that is known of it came from there */
        return true;
    if (gc_info_of(manager, reader, block, &gc_info, &version) && gc_info)
        length = gc_info_code_length(reader, gc_info, version);
    /* The unwind information has given the size already. */
    reader_recover(&reader->raw, FAILURE(CDACQ_ERR_FIELD) | FAILURE(CDACQ_ERR_MEMORY));
    if (length && length != block->hot_size + block->cold_size)
        reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, gc_info, "code length in the GC info");
    return !reader_failed(&reader->raw);
}
