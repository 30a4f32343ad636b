/*
 * heap.h: finds the heaps of the GC, one for workstation GC and several for server GC, and where their structures have
 * their fields. .NET 11 publishes all of it (contract GC c1). Before, the GC fills in a table of pointers for the
 * runtime's debugger services, GcDacVars, whose major version fixes its layout; this project calls that contract
 * "8.0". All that a table says is checked before it is used.
 * Source: dotnet/runtime docs/design/datacontracts/GC.md; src/coreclr/gc/{gcinterface.dac.h,gcinterface.dacvars.def,
 * dac_generation_fields.h,dac_gcheap_fields.h}.
 */
#ifndef CDACQ_CONTRACTS_GC_HEAP_H
#define CDACQ_CONTRACTS_GC_HEAP_H

#include "contracts/gc/generation.h"
#include "descriptors/fields.h"
#include "util/vector.h"

enum { GC_HEAP_MAX = 1024 }; /* of server GC: no more processors are supported */

#define GC_NO_FIELD UINT32_MAX

/* Offsets of fields; GC_NO_FIELD: there is none. */
struct gc_segment_fields {
    uint32_t allocated, committed, reserved, mem, flags, next;
};

struct gc_generation_fields {
    uint32_t size; /* of the structure */
    uint32_t allocation_context, start_segment, allocation_start;
};

/* A heap: addresses in the target. */
struct gc_heap {
    uint64_t generation_table;
    uint64_t ephemeral_segment; /* in which objects are allocated */
    uint64_t alloc_allocated;   /* the end of its objects */
};

DEFINE_VECTOR(gc_heaps, struct gc_heap);

struct gc {
    struct gc_heaps heaps;
    struct gc_segment_fields segment;
    struct gc_generation_fields generation;
    bool is_server;
    bool has_regions;
    bool is_under_way; /* its structures are inconsistent at this moment */
};

/* False, and the reader fails, if the heaps cannot be found or what is found cannot be right. */
bool gc_read(struct reader *reader, struct gc *ret);
void gc_deinit(struct gc *gc);

/* The address of a Generation; `number` is below GC_GENERATION_MAX. */
static inline uint64_t gc_generation(const struct gc *gc, const struct gc_heap *heap, unsigned number)
{
    return heap->generation_table + (uint64_t)number * gc->generation.size;
}

#endif
