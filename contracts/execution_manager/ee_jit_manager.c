#include "contracts/execution_manager/ee_jit_manager.h"

#include "contracts/execution_manager/execution_manager.h"
#include "contracts/code_info/gc_info.h"
#include "contracts/code_info/unwind_info.h"

enum { UNWIND_INFO_MAX = 1024 * 1024 }; /* funclets of one method; a method with 300 handlers has some 300 */

/*
 * Where the method's code ends: its functions, the body and then its funclets, lie one behind the other, and each has a
 * RUNTIME_FUNCTION in the header.
 */
static bool read_extent_of_functions(struct field_reader *reader, uint64_t header, struct code_block *block)
{
    uint64_t count = read_field(reader, header, F_RealCodeHeader_NumUnwindInfos);
    uint64_t infos = field_address(reader, header, F_RealCodeHeader_UnwindInfos);
    if (!count || count > UNWIND_INFO_MAX)
        reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, header, "RealCodeHeader.NumUnwindInfos");
    if (reader_failed(&reader->raw))
        return false;
    /* The last one is enough for the end; the first one must be the method's start, or the header is none. */
    struct unwind_table table = unwind_table_at(reader, infos, (uint32_t)count, block->unwind_base);
    uint32_t last = (uint32_t)count - 1;
    uint64_t begin = table.base + unwind_table_begin(reader, &table, 0);
    uint64_t end = table.base + unwind_table_begin(reader, &table, last) + unwind_table_length(reader, &table, last);
    if (!reader_failed(&reader->raw) && (begin != block->start || end <= block->start))
        reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, infos, "RealCodeHeader.UnwindInfos");
    block->hot_size = end - block->start;
    block->runtime_functions = infos;
    block->runtime_function_count = (uint32_t)count;
    return !reader_failed(&reader->raw);
}

/* Without funclets headers have no RUNTIME_FUNCTIONs; the GC info tells the length. */
static bool read_extent_by_gc_info(struct field_reader *reader, uint64_t header, struct code_block *block)
{
    uint64_t gc_info = read_field(reader, header, F_RealCodeHeader_GCInfo);
    if (reader_failed(&reader->raw))
        return false;
    block->hot_size = gc_info ? gc_info_code_length(reader, gc_info, gc_info_version_of_jit(reader->layout)) : 0;
    if (!block->hot_size)
        reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, header, "RealCodeHeader.GCInfo");
    return !reader_failed(&reader->raw);
}

bool ee_jit_manager_block_at(const struct execution_manager *manager, struct field_reader *reader,
                             const struct range_section *section, uint64_t start, struct code_block *ret)
{
    struct code_block block = {.ip = start, .start = start, .unwind_base = section->begin, .kind = CDACQ_CODE_JITTED};
    uint64_t header = code_heap_header(manager, reader, start, ret);
    if (!header)
        return !reader_failed(&reader->raw);
    block.method_desc = read_field(reader, header, F_RealCodeHeader_MethodDesc);
    bool known = has_funclets(reader) ? read_extent_of_functions(reader, header, &block)
                                      : read_extent_by_gc_info(reader, header, &block);
    if (!known)
        return false;
    *ret = block;
    return true;
}

bool ee_jit_manager_find(const struct execution_manager *manager, struct field_reader *reader,
                         const struct range_section *section, uint64_t ip, struct code_block *ret)
{
    struct code_block block;
    uint64_t start = code_heap_start(manager, reader, section, ip);
    if (!start || !ee_jit_manager_block_at(manager, reader, section, start, &block))
        return false;
    block.ip = ip;
    block.offset = ip - start;
    if (code_block_is_method(&block) && block.offset >= block.hot_size)
        return false;
    *ret = block;
    return true;
}
