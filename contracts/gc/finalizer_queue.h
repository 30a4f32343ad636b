/*
 * finalizer_queue.h: objects with finalizers. Each heap has an array of them, in order: those of generations POH, LOH,
 * 2, 1, 0, whose finalizers will run when nothing else keeps the objects, then those that are ready: the queue keeps
 * them until the finalizer thread has run their finalizers.
 * Source: src/coreclr/gc/{gcpriv.h,gc.cpp}, CFinalize; docs/design/datacontracts/GC.md.
 */
#ifndef CDACQ_CONTRACTS_GC_FINALIZER_QUEUE_H
#define CDACQ_CONTRACTS_GC_FINALIZER_QUEUE_H

#include "contracts/gc/heap.h"
#include "contracts/gc/problems.h"

/*
 * Calls `visit` for each object of the arrays; `slot` is where it is. The rest is as for gc_handles_visit().
 */
bool gc_finalizable_visit(struct reader *reader, const struct gc *gc, struct gc_problems *problems,
                          bool (*visit)(void *context, uint64_t slot, uint64_t object, bool is_ready), void *context);

#endif
