/*
 * frame_roots.h: the references that a frame of managed code holds, by the GC info of its method, as the collector
 * reads them.
 */
#ifndef CDACQ_STACKS_FRAME_ROOTS_H
#define CDACQ_STACKS_FRAME_ROOTS_H

#include "cdacq/stack.h"
#include "contracts/code_info/gc_slots.h"
#include "src/lookup/opened_session.h"

/*
 * Calls `visit` for each slot that is not null; `address` is 0 for a register. `slots` is room, which the caller frees.
 * False if it is not known what the frame holds. *ret_stopped: `visit` returned non-zero. Begins tasks of the reader.
 */
bool frame_roots_visit(struct cdacq_session *session, const struct cdacq_frame *frame, struct gc_slots *slots,
                       int (*visit)(void *context, uint64_t address, uint64_t object, bool is_interior), void *context,
                       bool *ret_stopped);

#endif
