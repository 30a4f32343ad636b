#include "contracts/execution_manager/interpreter_jit_manager.h"

#include "contracts/execution_manager/execution_manager.h"
#include "contracts/code_info/gc_info.h"

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

bool interpreter_jit_manager_block_at(const struct execution_manager *manager, struct field_reader *reader,
                                      const struct range_section *section, uint64_t start, struct code_block *ret)
{
    uint64_t header = code_heap_header(manager, reader, start, ret);
    if (!header)
        return !reader_failed(&reader->raw);
    struct code_block block = {
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

bool interpreter_jit_manager_find(const struct execution_manager *manager, struct field_reader *reader,
                                  const struct range_section *section, uint64_t ip, struct code_block *ret)
{
    struct code_block block;
    uint64_t start = code_heap_start(manager, reader, section, ip);
    if (!start || !interpreter_jit_manager_block_at(manager, reader, section, start, &block))
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
