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

/* Of the handle tables, on every architecture. */
enum { HANDLE_SEGMENT_SIZE = 64 * 1024, HANDLE_HEADER_SIZE = 4096, HANDLES_PER_BLOCK = 64 };

#define GC_NO_FIELD UINT32_MAX

/* Offsets of fields; GC_NO_FIELD: there is none. */
struct gc_segment_fields {
    uint32_t allocated, committed, reserved, mem, flags, next;
};

struct gc_generation_fields {
    uint32_t size; /* of the structure */
    uint32_t allocation_context, start_segment, allocation_start;
};

struct gc_handle_fields {
    uint32_t buckets, next_map; /* of HandleTableMap */
    uint32_t table;             /* of HandleTableBucket */
    uint32_t segment_list;      /* of HandleTable; GC_NO_FIELD: it follows from the number of kinds */
    uint32_t allocation;        /* of TableSegment, as the rest */
    uint32_t user_data, tail;
    uint32_t next_segment; /* GC_NO_FIELD: likewise */
    uint32_t values;
};

struct gc_oom_fields {
    uint32_t reason, alloc_size, gc_index;
};

/* A heap: addresses in the target. */
struct gc_heap {
    uint64_t generation_table;
    uint64_t ephemeral_segment; /* in which objects are allocated */
    uint64_t alloc_allocated;   /* the end of its objects */
    uint64_t finalize_queue;    /* a CFinalize; 0: not described */
    uint64_t oom_history;       /* an OomHistory; 0: not described */
};

DEFINE_VECTOR(gc_heaps, struct gc_heap);

struct gc {
    struct gc_heaps heaps;
    struct gc_segment_fields segment;
    struct gc_generation_fields generation;
    struct gc_handle_fields handle;
    uint64_t handle_table_map; /* the first; 0: not described */
    uint32_t fill_pointers;    /* offset in a CFinalize */
    bool is_server;
    bool has_regions;
    struct gc_oom_fields oom;
    bool is_under_way; /* its structures are inconsistent at this moment */
};

/* False, and the reader fails, if the heaps cannot be found or what is found cannot be right. */
bool gc_read(struct reader *reader, struct gc *ret);
void gc_deinit(struct gc *gc);

/*
 * Whether the structures of the GC are inconsistent at this moment, and whether it is the server collector, without the
 * heaps. False, and the reader fails, as above.
 */
bool gc_read_state(struct reader *reader, bool *ret_under_way, bool *ret_is_server);

/* The newest of the allocations that the heaps could not make. */
struct gc_oom {
    uint32_t reason; /* oom_reason of the GC; 0: none, or not known */
    uint64_t size;   /* bytes that were asked for */
};

/* False, and the reader fails, if it cannot be read. */
bool gc_oom_read(struct reader *reader, const struct gc *gc, struct gc_oom *ret);

/* The address of a Generation; `number` is below GC_GENERATION_MAX. */
static inline uint64_t gc_generation(const struct gc *gc, const struct gc_heap *heap, unsigned number)
{
    return heap->generation_table + (uint64_t)number * gc->generation.size;
}

#endif
