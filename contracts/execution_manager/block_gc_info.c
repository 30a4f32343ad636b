#include "contracts/execution_manager/block_gc_info.h"

#include "contracts/code_info/gc_header.h"
#include "contracts/execution_manager/block_function.h"
#include "contracts/execution_manager/jit_manager.h"
#include "contracts/unwind/gc_info_x86.h"

static bool find_gc_info(struct reader *reader, const struct code_block *block, uint64_t *ret, uint32_t *ret_version)
{
    if (!block->manager->gc_info(reader, block, ret, ret_version))
        return false;
    return *ret || reader_fail(reader, CDACQ_ERR_CORRUPT, block->start, "GC info: the method has none");
}

/* NULL for x86's own encoding. */
static const struct gc_encoding *encoding_of(const struct reader *reader, const struct code_block *block)
{
    return block->manager == &interpreter_jit_manager ? &gc_encoding_interpreter
                                                      : gc_encoding_of(reader->layout->architecture);
}

bool block_is_gc_safe(struct reader *reader, const struct code_block *block, bool *ret)
{
    uint64_t gc_info;
    uint32_t version, offset = (uint32_t)block->offset;
    struct gc_info_x86 info;
    struct gc_header header;
    struct gc_place place;
    if (!find_gc_info(reader, block, &gc_info, &version))
        return false;
    const struct gc_encoding *encoding = encoding_of(reader, block);
    if (!encoding) {
        if (reader->layout->architecture != ARCHITECTURE_X86)
            return reader_fail(reader, CDACQ_ERR_CONTRACT, gc_info, "GC info of this architecture");
        *ret = gc_info_x86_read(reader, gc_info, version, &info) && gc_info_x86_is_safe(reader, &info, offset);
        return !reader_failed(reader);
    }
    struct gc_bits bits = {.reader = reader, .base = gc_info};
    if (!gc_header_read(&bits, encoding, version, &header) ||
        !gc_header_locate(&bits, encoding, &header, offset, offset, &place))
        return false;
    *ret = place.in_range || place.point < header.point_count;
    return true;
}

bool block_stack_parameter_size(struct reader *reader, const struct code_block *block, uint32_t *ret)
{
    uint64_t gc_info;
    uint32_t version;
    struct gc_info_x86 info;
    bool is_funclet;
    *ret = 0;
    if (reader->layout->architecture != ARCHITECTURE_X86 || block->manager == &interpreter_jit_manager)
        return true;
    if (!block_is_funclet(reader, block, &is_funclet) || is_funclet)
        return !reader_failed(reader);
    if (!find_gc_info(reader, block, &gc_info, &version) || !gc_info_x86_read(reader, gc_info, version, &info))
        return false;
    *ret = info.caller_pops ? 0 : info.arguments;
    return true;
}

bool block_generic_context(struct reader *reader, const struct code_block *block, enum gc_generic_context *ret,
                           int64_t *ret_slot, bool *ret_from_frame_pointer)
{
    enum { FROM_FRAME_POINTER_SINCE = 4, FRAME_POINTER = 0 };
    uint64_t gc_info;
    uint32_t version;
    struct gc_header header;
    const struct gc_encoding *encoding = encoding_of(reader, block);
    if (!encoding)
        return reader_fail(reader, CDACQ_ERR_CONTRACT, block->start, "GC info of this architecture");
    if (!find_gc_info(reader, block, &gc_info, &version))
        return false;
    struct gc_bits bits = {.reader = reader, .base = gc_info};
    if (!gc_header_read(&bits, encoding, version, &header))
        return false;
    *ret_from_frame_pointer = version >= FROM_FRAME_POINTER_SINCE;
    if (header.generic_context && *ret_from_frame_pointer && header.frame_register != FRAME_POINTER)
        return reader_fail(reader, CDACQ_ERR_CONTRACT, gc_info, "GC info: generic context without frame pointer");
    *ret = header.generic_context;
    *ret_slot = header.generic_context_slot;
    return true;
}
