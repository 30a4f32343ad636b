/*
 * references.h: the references that an object has to others. The GC's description of a type (GCDesc) lies in front of
 * its MethodTable: runs of references or, for an array of structs, what repeats with each element. An object of a
 * collectible type also keeps the managed LoaderAllocator of the type, to which no field leads.
 * Source: src/coreclr/gc/{gcdesc.h,gc.cpp}, go_through_object_cl; src/coreclr/vm/methodtable.h.
 */
#ifndef CDACQ_CONTRACTS_GC_REFERENCES_H
#define CDACQ_CONTRACTS_GC_REFERENCES_H

#include "contracts/gc/heap_memory.h"
#include "contracts/gc/walk.h"
#include "util/hash_table.h"

/* References one after the other; of an array of structs, the references of a part of each element. */
struct gc_run {
    uint64_t offset; /* from the object; of an array of structs, how many references there are */
    int64_t extra;   /* the bytes of the run, less those of the object; of an array of structs, what to skip then */
};

/* What is known of a type. */
struct gc_type_references {
    uint64_t method_table;
    uint64_t loader;    /* the LoaderAllocator object of a collectible type; 0: none */
    uint64_t first;     /* of an array of structs: the offset of the first element's first reference */
    uint32_t run, runs; /* of the list of runs */
    bool is_repeated;   /* an array of structs */
};

DEFINE_U64_TABLE(gc_reference_types, struct gc_type_references, method_table);
DEFINE_VECTOR(gc_runs, struct gc_run);

struct gc_references {
    struct reader *reader;
    struct gc_reference_types types;
    struct gc_runs runs;
    struct gc_type_references recent; /* the type of the last object */
    struct heap_block block;
    uint64_t damaged; /* types whose description cannot be right, and which therefore have no references */
};

/* False, and the reader fails, when out of memory. */
bool gc_references_init(struct gc_references *references, struct reader *reader);
void gc_references_deinit(struct gc_references *references);

enum { GC_REFERENCE_LOADER = 0 }; /* the offset of the reference to the LoaderAllocator, which no field has */

/*
 * Calls `visit` for each reference of an object that is not null, in the order of GC's description; `offset` is from
 * the object. References that cannot be read are left out. False if `visit` returns false, or if the reader fails, as
 * without fuel or memory.
 */
bool gc_references_visit(struct gc_references *references, const struct cdacq_heap_object *object,
                         bool (*visit)(void *context, uint64_t offset, uint64_t target), void *context);

#endif
