/*
 * cdacq/heap.h: the GC heap of a target: its segments, every object with its type and size, and what could not be read.
 * The library does not trust the heap: a damaged object ends its segment with a problem in words, and the walk goes on
 * with the next segment. One thread at a time uses a session. Source: dotnet/runtime docs/design/datacontracts/GC.md;
 * src/coreclr/gc/gcinterface.dac.h for .NET 8 to 10.
 */
#ifndef CDACQ_HEAP_H
#define CDACQ_HEAP_H

#include <cdacq/session.h>

CDACQ_BEGIN_DECLS

/* Where an object is. The numbers do not change. */
enum cdacq_generation {
    CDACQ_GENERATION_0,
    CDACQ_GENERATION_1,
    CDACQ_GENERATION_2,
    CDACQ_GENERATION_LOH,    /* the large object heap */
    CDACQ_GENERATION_POH,    /* the pinned object heap */
    CDACQ_GENERATION_FROZEN, /* objects that are never collected, such as string literals */
    CDACQ_GENERATION_COUNT,
};

/* "0", "1", "2", "loh", "poh", "frozen"; NULL for any other number. */
CDACQ_API const char *cdacq_generation_name(enum cdacq_generation generation);

/* A part of the heap with objects of one generation. Addresses are of the target; 0 <= begin <= end <= committed. */
struct cdacq_heap_segment {
    size_t size;                      /* set by the library */
    uint64_t address;                 /* of the runtime's record of the segment or region */
    uint64_t begin, end;              /* of its objects */
    uint64_t committed;               /* end of the memory that the GC has committed for it */
    uint64_t reserved;                /* end of its address range */
    enum cdacq_generation generation; /* of its objects */
    uint32_t heap;                    /* number of the heap of server GC; 0 for workstation GC */
};

struct cdacq_heap_object {
    uint64_t address;
    uint64_t method_table; /* without the bits that the GC uses; see cdacq_session_get_type_name() */
    uint64_t byte_size;    /* with its header and elements; at least three words */
    enum cdacq_generation generation;
    bool is_free; /* no object, but free memory between objects */
};

/* What the heap is. The caller sets `size`. */
struct cdacq_heap_info {
    size_t size;
    bool is_server;         /* server GC */
    bool has_regions;       /* it has regions rather than segments */
    bool is_under_way;      /* a garbage collection moved objects at that moment: parts of the heap are inconsistent */
    uint32_t heap_count;    /* 1 for workstation GC */
    uint64_t problem_count; /* what was left out: each was told to cdacq_heap_visitor.problem, up to 1,000 */
};

/*
 * What is called for the parts of a heap. A callback that returns non-zero ends the visit. None may use the session.
 * Any may be NULL; without `object`, no object is read. The caller sets `size`.
 */
struct cdacq_heap_visitor {
    size_t size;
    int (*segment)(const struct cdacq_heap_segment *segment, void *context); /* each, before all objects */
    int (*object)(const struct cdacq_heap_object *object, void *context); /* in the order of addresses in a segment */
    int (*problem)(const char *text, void *context); /* one printable line; valid until the callback returns */
    void *context;
};

/*
 * Visits the segments, the objects of each and the problems. CDACQ_STOPPED: a callback returned non-zero. `ret` may be
 * NULL. Fails with ARGUMENT; with FIELD or CONTRACT if this build does not read the GC of the runtime; with CORRUPT or
 * MEMORY if the records of the heap cannot be read, as in a core without the heap; with NOMEM or FUEL. *ret is set
 * unless it fails. A process that runs changes meanwhile: stop it (CDACQ_OPEN_STOP), or the result is inexact.
 */
CDACQ_API enum cdacq_status cdacq_session_visit_heap(struct cdacq_session *session,
                                                     const struct cdacq_heap_visitor *visitor,
                                                     struct cdacq_heap_info *ret, struct cdacq_error *err);

/*
 * The name of a MethodTable's type, as Type.ToString() gives it; printable UTF-8. The session owns the string: see
 * struct cdacq_method. "Free" for the type of free memory in the heap. Fails with ARGUMENT, or with CORRUPT, MEMORY,
 * FIELD or MODULE if the name cannot be read. *ret is then left untouched.
 */
CDACQ_API enum cdacq_status cdacq_session_get_type_name(struct cdacq_session *session, uint64_t method_table,
                                                        const char **ret, struct cdacq_error *err);

CDACQ_END_DECLS

#endif
