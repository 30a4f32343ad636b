#include "src/stacks/frame_roots.h"

#include "contracts/execution_manager/execution_manager.h"

enum { FUEL_SLOTS = 100 * 1000 }; /* for one frame's GC info */

/* Where the GC info of a frame's method is, and the offset of the instruction in its code. */
static bool find_gc_info(struct cdacq_session *session, const struct cdacq_frame *frame, uint64_t *ret_gc_info,
                         uint32_t *ret_version, uint32_t *ret_offset)
{
    struct resolver *resolver = &session->resolver;
    struct reader *reader = &resolver->reader;
    struct code_block block;
    reader_begin(reader, FUEL_LOOKUP);
    if (!execution_manager_find(&resolver->target->manager, reader,
                                resolver_address(resolver, frame->pc - frame->is_call), &block) ||
        !code_block_is_method(&block) || !block.manager->gc_info ||
        !block.manager->gc_info(reader, &block, ret_gc_info, ret_version) || block.offset + frame->is_call > UINT32_MAX)
        return false;
    *ret_offset = (uint32_t)(block.offset + frame->is_call);
    return !reader_failed(reader);
}

/* False: its base is not known. *ret_address is 0 for a register, and then *ret_value is set. */
static bool locate(const struct cdacq_frame *frame, const struct gc_slot *slot, uint64_t *ret_address,
                   uint64_t *ret_value)
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
    *ret_value = base;
    *ret_address = slot->base == GC_SLOT_REGISTER ? 0 : base + (uint64_t)(int64_t)slot->offset;
    return base != 0;
}

bool frame_roots_visit(struct cdacq_session *session, const struct cdacq_frame *frame, struct gc_slots *slots,
                       int (*visit)(void *context, uint64_t address, uint64_t object, bool is_interior), void *context,
                       bool *ret_stopped)
{
    struct reader *reader = &session->resolver.reader;
    uint64_t gc_info;
    uint32_t version, offset;
    bool whole = true;
    slots->count = 0;
    if (!find_gc_info(session, frame, &gc_info, &version, &offset))
        return false;
    reader_begin(reader, FUEL_SLOTS);
    if (!gc_slots_read_all(reader, gc_info, version, offset, frame->is_call, slots))
        return false;
    for (size_t i = 0; i < slots->count && !*ret_stopped; i++) {
        uint64_t address, value;
        if (!locate(frame, &slots->items[i], &address, &value)) {
            whole &= frame->kind == CDACQ_FRAME_FUNCLET;
            continue;
        }
        if (address)
            value = read_pointer(reader, address);
        if (reader_recover(reader, FAILURE_BUT_FUEL))
            whole = false;
        else if (value && !reader_failed(reader))
            *ret_stopped = visit(context, address, value, slots->items[i].is_interior) != 0;
    }
    return whole && !reader_failed(reader);
}
