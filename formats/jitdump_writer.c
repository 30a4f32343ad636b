#include "formats/jitdump_writer.h"

enum {
    MAGIC = 0x4A695444, /* "JiTD" */
    JIT_CODE_LOAD = 0,
    JIT_CODE_DEBUG_INFO = 2,
    JIT_CODE_CLOSE = 3,
    JIT_CODE_UNWINDING_INFO = 4,
    SAMPLY_JIT_CODE_DEBUG_INFO2 = 827346260, /* in samply's source */
};

struct encoder {
    uint8_t *next;
    bool big_endian;
};

static void put_u32(struct encoder *encoder, uint32_t value)
{
    store_u32(encoder->next, value, encoder->big_endian);
    encoder->next += sizeof value;
}

static void put_u64(struct encoder *encoder, uint64_t value)
{
    store_u64(encoder->next, value, encoder->big_endian);
    encoder->next += sizeof value;
}

static void put_header(struct encoder *encoder, const struct cdacq_jitdump_record *record)
{
    const struct cdacq_jitdump_header *header = &record->as.header;
    const uint32_t fields[] = {MAGIC,        header->version, JITDUMP_HEADER_SIZE, header->elf_mach,
                               header->pad1, header->pid};
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        put_u32(encoder, fields[i]);
    put_u64(encoder, record->timestamp);
    put_u64(encoder, header->flags);
}

static void put_prefix(struct encoder *encoder, uint32_t id, uint32_t size, uint64_t timestamp)
{
    put_u32(encoder, id);
    put_u32(encoder, size);
    put_u64(encoder, timestamp);
}

static void put_load(struct encoder *encoder, const struct cdacq_jitdump_record *record)
{
    const struct cdacq_jitdump_load *load = &record->as.load;
    uint64_t size = add_saturated(add_saturated(load->name_length, JITDUMP_LOAD_FIXED + 1), load->code_size);
    if (size > UINT32_MAX)
        return;
    put_prefix(encoder, JIT_CODE_LOAD, (uint32_t)size, record->timestamp);
    put_u32(encoder, load->pid);
    put_u32(encoder, load->tid);
    const uint64_t fields[] = {load->vma, load->code_addr, load->code_size, load->code_index};
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        put_u64(encoder, fields[i]);
}

static void put_debug_info(struct encoder *encoder, const struct cdacq_jitdump_record *record)
{
    if (record->total_size > UINT32_MAX)
        return;
    put_prefix(encoder, JIT_CODE_DEBUG_INFO, (uint32_t)record->total_size, record->timestamp);
    put_u64(encoder, record->as.debug_info.code_addr);
    put_u64(encoder, record->as.debug_info.nr_entry);
}

static void put_positions(struct encoder *encoder, const struct cdacq_jitdump_record *record)
{
    const struct cdacq_jitdump_samply_positions *info = &record->as.samply_positions;
    const uint64_t fields[] = {info->code_addr, info->code_offset_count, info->source_position_count,
                               info->string_count};
    if (record->total_size > UINT32_MAX)
        return;
    put_prefix(encoder, SAMPLY_JIT_CODE_DEBUG_INFO2, (uint32_t)record->total_size, record->timestamp);
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        put_u64(encoder, fields[i]);
}

static void put_unwinding_info(struct encoder *encoder, const struct cdacq_jitdump_record *record)
{
    const struct cdacq_jitdump_unwinding_info *info = &record->as.unwinding_info;
    uint64_t size = add_saturated(info->unwind_data_size, JITDUMP_UNWINDING_INFO_FIXED);
    if (size > UINT32_MAX)
        return;
    put_prefix(encoder, JIT_CODE_UNWINDING_INFO, (uint32_t)size, record->timestamp);
    put_u64(encoder, info->unwind_data_size);
    put_u64(encoder, info->eh_frame_hdr_size);
    put_u64(encoder, info->mapped_size);
}

size_t jitdump_encode(const struct cdacq_jitdump_record *record, bool big_endian, uint8_t *ret)
{
    struct encoder encoder = {ret, big_endian};
    if (record->kind == CDACQ_JITDUMP_HEADER)
        put_header(&encoder, record);
    else if (record->kind == CDACQ_JITDUMP_LOAD)
        put_load(&encoder, record);
    else if (record->kind == CDACQ_JITDUMP_DEBUG_INFO)
        put_debug_info(&encoder, record);
    else if (record->kind == CDACQ_JITDUMP_UNWINDING_INFO)
        put_unwinding_info(&encoder, record);
    else if (record->kind == CDACQ_JITDUMP_SAMPLY_POSITIONS)
        put_positions(&encoder, record);
    else if (record->kind == CDACQ_JITDUMP_CLOSE)
        put_prefix(&encoder, JIT_CODE_CLOSE, JITDUMP_PREFIX_SIZE, record->timestamp);
    return (size_t)(encoder.next - ret);
}
