/*
 * allocation_context.h: the parts of the heap in which threads, and the GC itself, are about to allocate. There are no
 * objects from the pointer of an allocation context to its limit, nor in the room for a smallest object after it.
 * Source: src/coreclr/gc/gcinterface.h, gc_alloc_context; src/coreclr/vm/threads.h.
 */
#ifndef CDACQ_CONTRACTS_GC_ALLOCATION_CONTEXT_H
#define CDACQ_CONTRACTS_GC_ALLOCATION_CONTEXT_H

#include "contracts/gc/heap.h"
#include "contracts/gc/problems.h"

struct gc_hole {
    uint64_t begin, end;
};

DEFINE_VECTOR(gc_holes, struct gc_hole);

/*
 * Lists the holes of all threads, of the process and of each generation, by address. What cannot be read is a problem.
 * False, and the reader fails, if it ran out of fuel or memory. The caller frees *ret in either case.
 */
bool gc_holes_read(struct reader *reader, const struct gc *gc, struct gc_problems *problems, struct gc_holes *ret);

#endif
