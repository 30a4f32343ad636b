/*
 * generation.h: the generations of the heap (cdacq_generation_text), and which of them the GC has lists of.
 */
#ifndef CDACQ_CONTRACTS_GC_GENERATION_H
#define CDACQ_CONTRACTS_GC_GENERATION_H

#include "cdacq/heap.h"

enum {
    GC_GENERATION_MAX = 5,  /* that the GC has lists of: 0, 1, 2, LOH, POH */
    GC_EPHEMERAL_COUNT = 2, /* generations 0 and 1 */
};

/* Whether objects of it are aligned to 8 bytes, whatever the size of a pointer. */
static inline bool gc_generation_is_large(enum cdacq_generation generation)
{
    return generation == CDACQ_GENERATION_LOH || generation == CDACQ_GENERATION_POH;
}

#endif
