/*
 * frame_slots.h: the references that a frame of managed code holds, by the GC info of its method, as the collector
 * reads them.
 */
#ifndef CDACQ_LOOKUP_FRAME_SLOTS_H
#define CDACQ_LOOKUP_FRAME_SLOTS_H

#include "cdacq/stack.h"
#include "contracts/code_info/gc_slots.h"
#include "src/lookup/resolver.h"

/* Appends the slots of a frame. False: they are not known. Begins tasks of the reader. */
bool frame_slots_read(struct resolver *resolver, const struct cdacq_frame *frame, struct gc_slots *ret);

/*
 * What a slot holds, and its address, which is 0 for a register. False: it is not known where the slot is, or the
 * reader fails.
 */
bool frame_slot_value(struct reader *reader, const struct cdacq_frame *frame, const struct gc_slot *slot,
                      uint64_t *ret_address, uint64_t *ret_value);

#endif
