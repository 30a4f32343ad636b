/*
 * ee_jit_manager.c: the EE JIT manager: code that was compiled at run time, in code heaps. Methods have a
 * RealCodeHeader.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, "EE JitManager".
 */
#include "contracts/code_info/unwind_info.h"
#include "contracts/code_lookup/range_section_map.h"
#include "contracts/execution_manager/code_heap.h"
#include "util/binary_search.h"

enum { UNWIND_INFO_MAX = 1024 * 1024 }; /* funclets of one method; a method with 300 handlers has some 300 */

/* The functions from the cold part's start on are those of the cold part. */
static void split_functions(struct reader *reader, const struct unwind_table *table, uint64_t cold_start,
                            struct code_block *block)
{
    uint32_t last = table->count - 1;
    uint32_t hot = lower_bound(i, table->count, table->base + unwind_table_begin(reader, table, i) < cold_start);
    uint64_t end = table->base + unwind_table_begin(reader, table, last) + unwind_table_length(reader, table, last);
    if (reader_failed(reader))
        return;
    if (!hot || hot == table->count || table->base + unwind_table_begin(reader, table, hot) != cold_start ||
        end <= cold_start) {
        reader_fail(reader, CDACQ_ERR_CORRUPT, table->address, "RealCodeHeader.ColdCodeHeader");
        return;
    }
    block->cold_start = cold_start;
    block->cold_size = end - cold_start;
    block->cold_functions = table->address + (uint64_t)hot * table->entry_size;
    block->cold_function_count = table->count - hot;
}

/* The body and then the funclets follow each other; each has a RUNTIME_FUNCTION in the header. */
static bool read_size_by_functions(struct reader *reader, uint64_t header, struct code_block *block)
{
    uint64_t count = read_field(reader, header, F_RealCodeHeader_NumUnwindInfos);
    uint64_t infos = field_address(reader, header, F_RealCodeHeader_UnwindInfos);
    if (!count || count > UNWIND_INFO_MAX)
        reader_fail(reader, CDACQ_ERR_CORRUPT, header, "RealCodeHeader.NumUnwindInfos");
    if (reader_failed(reader))
        return false;
    /* The last one gives the end; the first one must be the method's start, or this is no header. */
    struct unwind_table table = unwind_table_at(reader, infos, (uint32_t)count, block->unwind_base);
    uint64_t cold = read_optional(reader, header, F_RealCodeHeader_ColdCodeHeader);
    if (cold && count > 1)
        split_functions(reader, &table, cold + reader->pointer_size, block);
    if (reader_failed(reader))
        return false;
    uint32_t hot = (uint32_t)count - block->cold_function_count, last = hot - 1;
    uint64_t begin = table.base + unwind_table_begin(reader, &table, 0);
    uint64_t end = table.base + unwind_table_begin(reader, &table, last) + unwind_table_length(reader, &table, last);
    if (!reader_failed(reader) && (begin != block->start || end <= block->start))
        reader_fail(reader, CDACQ_ERR_CORRUPT, infos, "RealCodeHeader.UnwindInfos");
    block->hot_size = end - block->start;
    block->runtime_functions = infos;
    block->runtime_function_count = hot;
    return !reader_failed(reader);
}

/* Without funclets, headers have no RUNTIME_FUNCTIONs; the GC info has the length. */
static bool read_size_by_gc_info(struct reader *reader, uint64_t header, struct code_block *block)
{
    uint64_t gc_info = read_field(reader, header, F_RealCodeHeader_GCInfo);
    if (reader_failed(reader))
        return false;
    block->hot_size = gc_info ? gc_info_code_length(reader, gc_info, gc_info_version_of_jit(reader->layout)) : 0;
    if (!block->hot_size)
        reader_fail(reader, CDACQ_ERR_CORRUPT, header, "RealCodeHeader.GCInfo");
    return !reader_failed(reader);
}

static bool block_at(const struct section_reader *section, uint64_t start, uint32_t number, struct code_block *ret)
{
    (void)number;
    struct reader *reader = section->reader;
    uint64_t method, header = code_heap_header(section, start, &method, ret);
    if (!header)
        return !reader_failed(reader);
    struct code_block block = {.manager = &ee_jit_manager,
                               .ip = start,
                               .start = method,
                               .unwind_base = section->section->begin,
                               .kind = CDACQ_CODE_JITTED,
                               .cold = method != start};
    block.method_desc = read_field(reader, header, F_RealCodeHeader_MethodDesc);
    bool known = has_funclets(reader) ? read_size_by_functions(reader, header, &block)
                                      : read_size_by_gc_info(reader, header, &block);
    if (known && block.cold && start != block.cold_start)
        known = reader_fail(reader, CDACQ_ERR_CORRUPT, start, "pointer to the method of cold code");
    if (!known)
        return false;
    block.offset = block.cold ? block.hot_size : 0;
    *ret = block;
    return true;
}

/* A byte of flags comes first if the JIT may flag a patchpoint of OSR or rich debug info. */
static bool has_flag_byte(struct reader *reader)
{
    const struct layout *layout = reader->layout;
    if (layout->globals[G_FeatureOnStackReplacement])
        return true;
    if (!layout->global_present[G_EEJitManagerAddress] || !has_field(reader, F_EEJitManager_StoreRichDebugInfo))
        return false;
    uint64_t jit_manager = read_pointer(reader, layout->globals[G_EEJitManagerAddress]);
    return read_optional(reader, jit_manager, F_EEJitManager_StoreRichDebugInfo);
}

static bool debug_info(struct reader *reader, const struct code_block *block, uint64_t *ret, bool *ret_has_flag_byte)
{
    *ret = code_heap_header_field(reader, block, F_RealCodeHeader_DebugInfo);
    *ret_has_flag_byte = *ret && has_flag_byte(reader);
    return !reader_failed(reader);
}

const struct jit_manager_ops ee_jit_manager = {
    .range_kind = "jit",
    .method_kind = CDACQ_CODE_JITTED,
    .jit_type = CDACQ_JIT_TYPE_JIT,
    .heaps_variable = G_EEJitManagerAddress,
    .compiles = true,
    .gc_info_field = F_RealCodeHeader_GCInfo,
    .clauses_field = F_RealCodeHeader_EHInfo,
    .find = code_heap_find,
    .each = code_heap_each,
    .block_at = block_at,
    .gc_info = code_heap_gc_info,
    .debug_info = debug_info,
    .clauses = code_heap_clauses,
};
