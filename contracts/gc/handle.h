/*
 * handle.h: the handles of the GC: references from outside of the heap, of several kinds. A map leads to buckets of
 * tables, one table for each heap of server GC, and a table to segments of 64 KiB. A segment has blocks of 64 handles
 * of one kind. A block of dependent handles has a second block, with the objects that depend on the first. Source:
 * src/coreclr/gc/{handletablepriv.h,handletableconstants.h,gcinterface.dac.h}; docs/design/datacontracts/GC.md.
 */
#ifndef CDACQ_CONTRACTS_GC_HANDLE_H
#define CDACQ_CONTRACTS_GC_HANDLE_H

#include "contracts/gc/heap.h"
#include "contracts/gc/problems.h"

enum {
    GC_HANDLE_SEGMENT_MAX = 1 << 20,
    GC_HANDLE_BUCKETS = 10, /* of a map */
    GC_HANDLE_MAP_MAX = 1 << 16,
};

struct gc_handle {
    uint64_t address, object;
    uint64_t dependent; /* of CDACQ_HANDLE_DEPENDENT: the object that `object` keeps; 0: none */
    enum cdacq_handle_kind kind;
};

/*
 * Calls `visit` for each handle that is not null. Leaves out, with a problem, what cannot be right or cannot be read.
 * False, and the reader fails, if it ran out of fuel or memory; false without failing if `visit` returned false.
 */
bool gc_handles_visit(struct reader *reader, const struct gc *gc, struct gc_problems *problems,
                      bool (*visit)(void *context, const struct gc_handle *handle), void *context);

#endif
