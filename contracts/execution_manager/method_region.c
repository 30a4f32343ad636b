#include "contracts/execution_manager/method_region.h"

#include "contracts/code_info/gc_info.h"
#include "contracts/execution_manager/jit_manager.h"

bool method_region_hot_size(struct field_reader *reader, const struct code_block *block, uint64_t *ret)
{
    uint64_t gc_info;
    uint32_t version, length = 0;
    *ret = block->hot_size;
    if (!block->runtime_function_count) /* the size came from the GC info already */
        return true;
    if (block->manager->gc_info(reader, block, &gc_info, &version) && gc_info)
        length = gc_info_code_length(reader, gc_info, version);
    /* The unwind information has given the size already. */
    reader_recover(&reader->raw, FAILURE(CDACQ_ERR_FIELD) | FAILURE(CDACQ_ERR_MEMORY));
    if (length && length != block->hot_size + block->cold_size)
        reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, gc_info, "code length in the GC info");
    return !reader_failed(&reader->raw);
}
