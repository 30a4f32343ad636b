/*
 * walk.h: every object of the heap, in the order of addresses. The size of an object leads to the next one. It is that
 * of its MethodTable, which is looked up once, and of its elements; memory is read in large blocks. A size that leaves
 * the segment, and a MethodTable that cannot be one, end the walk of that segment with a problem.
 * Source: dotnet/runtime docs/design/datacontracts/Object.md; src/coreclr/gc/gc.cpp, Align and min_obj_size.
 */
#ifndef CDACQ_CONTRACTS_GC_WALK_H
#define CDACQ_CONTRACTS_GC_WALK_H

#include "cdacq/heap.h"
#include "contracts/gc/allocation_context.h"
#include "contracts/gc/segment.h"

struct gc_visitor {
    /* Called for each object; returns false to end the walk. The size lacks the alignment of the next object. */
    bool (*object)(void *context, const struct gc_segment *segment, const struct cdacq_heap_object *object);
    void *context;
    uint64_t free_method_table; /* as below; 0: free memory counts as objects */
};

/* The MethodTable of free memory between objects; 0: not known. */
uint64_t gc_free_method_table(struct reader *reader);

/*
 * Visits all objects of all segments. False, and the reader fails, if it ran out of fuel or memory; false without
 * failing if the visitor ended it.
 */
bool gc_walk(struct reader *reader, const struct gc_segments *segments, const struct gc_holes *holes,
             struct gc_problems *problems, const struct gc_visitor *visitor);

#endif
