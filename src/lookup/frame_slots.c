#include "src/lookup/frame_slots.h"

#include "contracts/execution_manager/execution_manager.h"
#include "src/lookup/opened_target.h"

enum { FUEL_SLOTS = 100 * 1000 }; /* for one frame's GC info */

bool frame_slots_read(struct resolver *resolver, const struct cdacq_frame *frame, struct gc_slots *ret)
{
    struct reader *reader = &resolver->reader;
    struct code_block block;
    uint64_t gc_info;
    uint32_t version;
    reader_begin(reader, FUEL_LOOKUP);
    if (!execution_manager_find(&resolver->target->manager, reader,
                                resolver_address(resolver, frame->pc - frame->is_call), &block) ||
        !code_block_is_method(&block) || !block.manager->gc_info ||
        !block.manager->gc_info(reader, &block, &gc_info, &version) || block.offset + frame->is_call > UINT32_MAX)
        return false;
    reader_begin(reader, FUEL_SLOTS);
    return gc_slots_read(reader, gc_info, version, (uint32_t)(block.offset + frame->is_call), frame->is_call, ret);
}

bool frame_slot_value(struct reader *reader, const struct cdacq_frame *frame, const struct gc_slot *slot,
                      uint64_t *ret_address, uint64_t *ret_value)
{
    const struct cdacq_registers *registers = frame->registers;
    bool needs_register = slot->base == GC_SLOT_REGISTER || slot->base == GC_SLOT_FRAME;
    if (needs_register && !(registers && registers->known >> slot->number & 1))
        return false;
    /* A funclet has another stack pointer than its method: only slots by the frame register are where the info says. */
    if (frame->kind == CDACQ_FRAME_FUNCLET && slot->base != GC_SLOT_FRAME)
        return false;
    uint64_t base = needs_register                    ? registers->values[slot->number]
                    : slot->base == GC_SLOT_CALLER_SP ? frame->cfa
                                                      : frame->sp;
    bool in_register = slot->base == GC_SLOT_REGISTER;
    uint64_t address = in_register ? 0 : base + (uint64_t)(int64_t)slot->offset;
    if (!in_register && !base)
        return false;
    uint64_t value = in_register ? base : read_pointer(reader, address);
    if (reader_failed(reader))
        return false;
    *ret_address = address;
    *ret_value = value;
    return true;
}
