/*
 * interpreter_jit_manager.c: the interpreter's JIT manager: code heaps of byte code. An address in one is a position of
 * the interpreter in a method. A method's block has an InterpreterRealCodeHeader, no unwind info and no funclets; its
 * GC info has its length.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, "InterpreterJitManager"; GCInfo.md.
 */
#include "contracts/code_lookup/range_section_map.h"
#include "contracts/execution_manager/code_heap.h"

/* 0, without failing, if it is not known. */
static uint32_t code_length(struct reader *reader, uint64_t header)
{
    uint64_t gc_info = read_optional(reader, header, F_InterpreterRealCodeHeader_GCInfo);
    if (!gc_info || reader_failed(reader))
        return 0;
    return gc_info_code_length_interpreter(reader, gc_info, gc_info_version_of_jit(reader->layout));
}

static bool block_at(const struct section_reader *section, uint64_t start, uint32_t number, struct code_block *ret)
{
    (void)number;
    struct reader *reader = section->reader;
    uint64_t method, header = code_heap_header(section, start, &method, ret);
    if (!header || method != start)
        return !reader_failed(reader) && !header;
    struct code_block block = {
        .manager = &interpreter_jit_manager,
        .ip = start,
        .start = start,
        .unwind_base = section->section->begin,
        .kind = CDACQ_CODE_INTERPRETER,
        .method_desc = read_field(reader, header, F_InterpreterRealCodeHeader_MethodDesc),
        .hot_size = code_length(reader, header),
    };
    if (reader_failed(reader))
        return false;
    *ret = block;
    return true;
}

static bool debug_info(struct reader *reader, const struct code_block *block, uint64_t *ret, bool *ret_has_flag_byte)
{
    *ret = code_heap_header_field(reader, block, F_InterpreterRealCodeHeader_DebugInfo);
    *ret_has_flag_byte = false;
    return !reader_failed(reader);
}

const struct jit_manager_ops interpreter_jit_manager = {
    .range_kind = "interpreter",
    .method_kind = CDACQ_CODE_INTERPRETER,
    .jit_type = CDACQ_JIT_TYPE_INTERPRETER,
    .heaps_variable = G_InterpreterJitManagerAddress,
    .gc_info_field = F_InterpreterRealCodeHeader_GCInfo,
    .clauses_field = F_InterpreterRealCodeHeader_JitEHInfo,
    .find = code_heap_find,
    .each = code_heap_each,
    .block_at = block_at,
    .gc_info = code_heap_gc_info,
    .debug_info = debug_info,
    .clauses = code_heap_clauses,
};
