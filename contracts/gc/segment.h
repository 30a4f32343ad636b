/*
 * segment.h: lists the parts of the heap that have objects. A GC with regions has a list of regions for each
 * generation. A GC with segments has one list for the generations 0 to 2, in whose ephemeral segment the youngest
 * objects come last, and one each for large and pinned objects. Read-only segments have frozen objects.
 * Source: src/coreclr/gc/gcpriv.h; docs/design/datacontracts/GC.md, GetHeapSegmentData.
 */
#ifndef CDACQ_CONTRACTS_GC_SEGMENT_H
#define CDACQ_CONTRACTS_GC_SEGMENT_H

#include "contracts/gc/heap.h"
#include "contracts/gc/problems.h"

enum { GC_SEGMENT_MAX = 1 << 20 }; /* of all heaps; a region has at least 4 MiB, unless it is configured */

struct gc_segment {
    uint64_t address; /* of the record */
    uint64_t begin, end, committed, reserved;
    enum cdacq_generation generation;
    uint32_t heap;
};

DEFINE_VECTOR(gc_segments, struct gc_segment);

/*
 * Lists the segments by address; a segment with several generations once for each. Leaves out, with a problem, what
 * cannot be right: bounds in the wrong order, a cycle, an overlap. False, and the reader fails, if it ran
 * out of fuel or memory. The caller frees *ret in either case.
 */
bool gc_segments_read(struct reader *reader, const struct gc *gc, struct gc_problems *problems,
                      struct gc_segments *ret);

/* Whether the address is in one of the segments. */
bool gc_segments_have(const struct gc_segments *segments, uint64_t address);

#endif
