/*
 * interpreter_jit_manager.c: the interpreter's JIT manager: code heaps of byte code; an address in it is where the
 * interpreter is in a method. A method's block has an InterpreterRealCodeHeader, no unwind info and no funclets; its GC
 * info says how long it is.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, "InterpreterJitManager"; GCInfo.md: the
 * interpreter's encoding begins as that of x64 does on every architecture.
 */
#include "contracts/code_info/gc_info.h"
#include "contracts/execution_manager/code_heap.h"

/* 0 where it is not known: the reader does not fail. */
static uint32_t code_length(struct field_reader *reader, uint64_t header)
{
    if (!has_field(reader, F_InterpreterRealCodeHeader_GCInfo))
        return 0;
    uint64_t gc_info = read_field(reader, header, F_InterpreterRealCodeHeader_GCInfo);
    if (!gc_info || reader_failed(&reader->raw))
        return 0;
    return gc_info_code_length_interpreter(reader, gc_info, gc_info_version_of_jit(reader->layout));
}

/* hot_size is 0 where it is not known. */
static bool block_at(struct jit_managers *managers, struct field_reader *reader, const struct range_section *section,
                     uint64_t start, uint32_t number, struct code_block *ret)
{
    (void)number;
    uint64_t header = code_heap_header(managers->stub_kinds, reader, start, ret);
    if (!header)
        return !reader_failed(&reader->raw);
    struct code_block block = {
        .manager = &interpreter_jit_manager,
        .ip = start,
        .start = start,
        .unwind_base = section->begin,
        .kind = CDACQ_CODE_INTERPRETER,
        .method_desc = read_field(reader, header, F_InterpreterRealCodeHeader_MethodDesc),
        .hot_size = code_length(reader, header),
    };
    if (reader_failed(&reader->raw))
        return false;
    *ret = block;
    return true;
}

/* A method whose length GC info does not give answers at its start alone; further on the reader fails. */
static bool find(struct jit_managers *managers, struct field_reader *reader, const struct range_section *section,
                 uint64_t ip, struct code_block *ret)
{
    struct code_block block;
    uint64_t start = code_heap_start(managers->nibble_map, reader, section, ip);
    if (!start || !block_at(managers, reader, section, start, PART_NO_NUMBER, &block))
        return false;
    block.ip = ip;
    block.offset = ip - start;
    if (code_block_is_method(&block) && block.offset) {
        if (!block.hot_size)
            return reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, start, "InterpreterRealCodeHeader.GCInfo");
        if (block.offset >= block.hot_size)
            return false;
    }
    *ret = block;
    return true;
}

static void each(struct jit_managers *managers, struct field_reader *reader, const struct range_section *section,
                 block_part_visitor *visit, void *context)
{
    code_heap_each(&interpreter_jit_manager, managers, reader, section, visit, context);
}

static bool gc_info(struct field_reader *reader, const struct code_block *block, uint64_t *ret, uint32_t *ret_version)
{
    *ret = code_heap_header_field(reader, block, F_InterpreterRealCodeHeader_GCInfo);
    *ret_version = gc_info_version_of_jit(reader->layout);
    return !reader_failed(&reader->raw);
}

static bool debug_info(struct field_reader *reader, const struct code_block *block, uint64_t *ret,
                       bool *ret_has_flag_byte)
{
    *ret = code_heap_header_field(reader, block, F_InterpreterRealCodeHeader_DebugInfo);
    *ret_has_flag_byte = false;
    return !reader_failed(&reader->raw);
}

static bool clauses(struct field_reader *reader, const struct code_block *block, struct exception_clauses *ret)
{
    return exception_clauses_at(reader, code_heap_header_field(reader, block, F_InterpreterRealCodeHeader_JitEHInfo),
                                ret);
}

const struct jit_manager_ops interpreter_jit_manager = {
    .range_kind = "interpreter",
    .method_kind = CDACQ_CODE_INTERPRETER,
    .jit_type = CDACQ_JIT_TYPE_INTERPRETER,
    .heaps_variable = G_InterpreterJitManagerAddress,
    .find = find,
    .each = each,
    .block_at = block_at,
    .gc_info = gc_info,
    .debug_info = debug_info,
    .clauses = clauses,
};
