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

/* "0", "1", "2", "loh", "poh", "frozen", or "unknown" for any other number; a static string. */
CDACQ_API const char *cdacq_generation_text(enum cdacq_generation generation);

/* A part of the heap with objects of one generation: 0 <= begin <= end <= committed. The library sets `size`. */
struct cdacq_heap_segment {
    size_t size;
    uint64_t address;                 /* of the runtime's record of the segment or region */
    uint64_t begin, end;              /* of its objects */
    uint64_t committed;               /* end of the memory that the GC has committed for it */
    uint64_t reserved;                /* end of its address range */
    enum cdacq_generation generation; /* of its objects */
    uint32_t heap;                    /* number of the heap of server GC; 0 for workstation GC */
};

/* An object, or free memory. Its size never changes. */
struct cdacq_heap_object {
    uint64_t address;
    uint64_t method_table; /* without the bits that the GC uses; see cdacq_session_get_type_name() */
    uint64_t byte_size;    /* with its header and elements; at least three words */
    enum cdacq_generation generation;
    bool is_free; /* no object, but free memory between objects */
};

/* Why the GC could not allocate, as it numbers it. */
enum cdacq_oom_reason {
    CDACQ_OOM_NONE,
    CDACQ_OOM_BUDGET,
    CDACQ_OOM_CANT_COMMIT,
    CDACQ_OOM_CANT_RESERVE,
    CDACQ_OOM_LOH,
    CDACQ_OOM_LOW_MEM,
    CDACQ_OOM_UNPRODUCTIVE_FULL_GC,
    CDACQ_OOM_COUNT,
};

/* In words; "none", or "unknown" for any other number; a static string. */
CDACQ_API const char *cdacq_oom_reason_text(enum cdacq_oom_reason reason);

/* What the heap is. The caller sets `size`. */
struct cdacq_heap_info {
    size_t size;
    bool is_server;         /* server GC */
    bool has_regions;       /* it has regions rather than segments */
    bool is_under_way;      /* a garbage collection moved objects at that moment: parts of the heap are inconsistent */
    uint32_t heap_count;    /* 1 for workstation GC */
    uint64_t problem_count; /* what was left out: cdacq_heap_visitor.problem got the first 1,000 */
    /* The last allocation that the GC could not make, if it ever was; NONE: there was none, or it is not known. */
    enum cdacq_oom_reason oom_reason;
    uint64_t oom_bytes;     /* that were asked for */
    uint64_t missing_bytes; /* of the segments, from where the target has no memory on: their objects were left out */
};

/*
 * What is called for the parts of a heap. A callback that returns non-zero ends the visit. None may use the session.
 * Any may be NULL; without `object` and `reference`, no object is read. The caller sets `size`.
 */
struct cdacq_heap_visitor {
    size_t size;
    int (*segment)(const struct cdacq_heap_segment *segment, void *context); /* each, before all objects */
    int (*object)(const struct cdacq_heap_object *object, void *context); /* in the order of addresses in a segment */
    /*
     * For each reference of an object that is not null, after the call for the object. `offset` is from `object`; 0 for
     * what keeps the assembly load context of a collectible type, which no field has.
     */
    int (*reference)(uint64_t object, uint64_t offset, uint64_t target, void *context);
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
 * All objects of a heap as arrays, for what handles millions of them at once. The library owns the struct and the
 * arrays until cdacq_heap_arrays_destroy(), also when the session is destroyed. They take 21 bytes an object; with
 * references, 8 more, and 8 a reference.
 */
struct cdacq_heap_arrays {
    size_t size;                /* set by the library */
    size_t object_count;        /* with free memory, as cdacq_heap_object.is_free */
    const uint64_t *addresses;  /* of each object, in the order of cdacq_heap_visitor.object */
    const uint64_t *byte_sizes; /* of each object */
    const uint32_t *types;      /* of each object: its place in `method_tables` */
    const uint8_t *generations; /* of each object: enum cdacq_generation */
    size_t type_count;
    const uint64_t *method_tables; /* of each type; see cdacq_session_get_type_name() */
    uint32_t free_type;            /* of free memory; UINT32_MAX: there is none */
    size_t reference_count;
    const uint64_t *first_references; /* of each object: its first one in `targets`; and one more, the end */
    const uint64_t *targets;          /* of each reference that is not null: an address */
};

/* What else cdacq_session_read_heap() reads. */
enum cdacq_heap_read_flags {
    CDACQ_HEAP_REFERENCES = 1 << 0, /* `first_references` and `targets`, which are NULL otherwise */
};

/*
 * Visits the heap as cdacq_session_visit_heap does, and fails in the same ways, but returns objects and references as
 * arrays. `visitor`, which may be NULL, is called for segments and problems alone. `flags`: enum cdacq_heap_read_flags.
 * CDACQ_STOPPED: a callback returned non-zero; *ret has what was read before. Free *ret with
 * cdacq_heap_arrays_destroy().
 */
CDACQ_API enum cdacq_status cdacq_session_read_heap(struct cdacq_session *session, unsigned flags,
                                                    const struct cdacq_heap_visitor *visitor,
                                                    struct cdacq_heap_arrays **ret, struct cdacq_heap_info *ret_info,
                                                    struct cdacq_error *err);

/* Frees the arrays. NULL is allowed. Any thread may call it. */
CDACQ_API void cdacq_heap_arrays_destroy(struct cdacq_heap_arrays *arrays);

/* A string in the heap. Its size never changes. */
struct cdacq_heap_string {
    uint64_t address;
    uint64_t byte_size; /* of the object */
    uint32_t length;    /* UTF-16 units */
    uint64_t hash[2];   /* of the units: those of equal strings are equal in this process, those of others are not */
};

/*
 * Visits every string of the heap, by a walk as that of cdacq_session_visit_heap, which fails in the same ways; `ret`
 * is as there. *ret_unread, which may be NULL, is the number of strings whose units cannot be read: they are left out.
 * `visit` must not use the session.
 */
CDACQ_API enum cdacq_status
cdacq_session_visit_strings(struct cdacq_session *session,
                            int (*visit)(const struct cdacq_heap_string *string, void *context), void *context,
                            struct cdacq_heap_info *ret, uint64_t *ret_unread, struct cdacq_error *err);

/*
 * The memory of the process by what it is for, in bytes. `is_resident`: what is in RAM now; otherwise what the core
 * has, whether or not it was in RAM. The caller sets `size`.
 */
struct cdacq_memory_use {
    size_t size;
    bool is_resident;
    uint64_t gc;      /* objects and the memory that the GC keeps for them, without its own tables */
    uint64_t code;    /* code of the JIT compiler */
    uint64_t loader;  /* loader heaps, stubs and other memory of the runtime's allocator of executable memory */
    uint64_t stacks;  /* of the threads that are known */
    uint64_t other;   /* malloc, the tables of the GC, and all other memory that is no file's */
    uint64_t files;   /* mapped files */
    uint64_t swapped; /* a running process: bytes in swap space, in none of the others */
};

/*
 * Sums up the memory of the process. Where the runtime runs with DOTNET_EnableWriteXorExecute=0, its loader heaps
 * cannot be distinguished from `other`. Of a damaged heap, what is not known to be the GC's is in `other`. Fails with
 * ARGUMENT; with IO if a running process does not tell (/proc/PID/smaps), or has ended; with NOMEM; and where the
 * target is neither a core nor a process.
 */
CDACQ_API enum cdacq_status cdacq_session_get_memory_use(struct cdacq_session *session, struct cdacq_memory_use *ret,
                                                         struct cdacq_error *err);

/*
 * The name of a MethodTable's type, as Type.ToString() gives it; printable UTF-8. The session owns the string: see
 * struct cdacq_method. "Free" for the type of free memory in the heap. Fails with ARGUMENT, or with CORRUPT, MEMORY,
 * FIELD or MODULE if the name cannot be read. *ret is then left untouched.
 */
CDACQ_API enum cdacq_status cdacq_session_get_type_name(struct cdacq_session *session, uint64_t method_table,
                                                        const char **ret, struct cdacq_error *err);

/* ---- What keeps objects ------------------------------------------------------------------------------------------ */

/*
 * Calls `visit_reference` for each reference of an object that is not null, as cdacq_heap_visitor.reference. It must
 * not use the session. CDACQ_STOPPED: it returned non-zero. Fails with ARGUMENT, or with CORRUPT, MEMORY or FIELD if
 * the object cannot be read.
 */
CDACQ_API enum cdacq_status cdacq_session_visit_references(struct cdacq_session *session, uint64_t object,
                                                           int (*visit_reference)(uint64_t offset, uint64_t target,
                                                                                  void *context),
                                                           void *context, struct cdacq_error *err);

/*
 * How the object has the reference at that offset: "_items", "[3]", "[3].value", "Entry.Key". *ret is printable UTF-8;
 * the session owns it. CDACQ_NOT_MANAGED: no field or element is known there. Fails as visit_references does.
 */
CDACQ_API enum cdacq_status cdacq_session_get_reference_name(struct cdacq_session *session, uint64_t object,
                                                             uint64_t offset, const char **ret,
                                                             struct cdacq_error *err);

/* What keeps an object from outside of the heap. The numbers do not change. */
enum cdacq_root_kind {
    CDACQ_ROOT_STATIC,        /* a static field */
    CDACQ_ROOT_THREAD_STATIC, /* a static field that each thread has */
    CDACQ_ROOT_LOCAL,         /* a variable of a method, or another reference of a thread's stack */
    CDACQ_ROOT_HANDLE,        /* a handle, such as a GCHandle */
    CDACQ_ROOT_FINALIZER,     /* the finalizer has not run yet, though nothing else kept the object */
    CDACQ_ROOT_DEPENDENT,     /* a dependent handle: it keeps `dependent` as long as `object` is kept */
    CDACQ_ROOT_FINALIZABLE,   /* a finalizer will run when nothing keeps the object: keeps nothing */
    CDACQ_ROOT_COUNT,
};

/* "static", "thread-static", "local", "handle", "finalizer", "dependent", "finalizable" or "unknown"; static. */
CDACQ_API const char *cdacq_root_kind_text(enum cdacq_root_kind kind);

/* Kinds of handles, as the runtime numbers them. */
enum cdacq_handle_kind {
    CDACQ_HANDLE_WEAK_SHORT,
    CDACQ_HANDLE_WEAK_LONG,
    CDACQ_HANDLE_STRONG,
    CDACQ_HANDLE_PINNED,
    CDACQ_HANDLE_VARIABLE,
    CDACQ_HANDLE_REFCOUNTED,
    CDACQ_HANDLE_DEPENDENT,
    CDACQ_HANDLE_ASYNC_PINNED,
    CDACQ_HANDLE_SIZED_REF,
    CDACQ_HANDLE_WEAK_NATIVE_COM,
    CDACQ_HANDLE_WEAK_INTERIOR_POINTER,
    CDACQ_HANDLE_CROSS_REFERENCE,
    CDACQ_HANDLE_COUNT,
};

/* "strong", "weak short", "async pinned" and so on, or "unknown" for any other number; a static string. */
CDACQ_API const char *cdacq_handle_kind_text(enum cdacq_handle_kind kind);

/* A root. The library sets `size`. What pointers point to is valid until the callback returns. */
struct cdacq_heap_root {
    size_t size;
    enum cdacq_root_kind kind;
    /* The object stays because of it. False for weak handles, finalizable objects, statics of collectible types. */
    bool keeps;
    bool is_interior; /* `object` may be an address within an object, or none of the heap */
    uint64_t address; /* where the reference is; 0: in a register */
    uint64_t object;
    uint64_t dependent;            /* of a dependent handle; 0: none */
    enum cdacq_handle_kind handle; /* of CDACQ_ROOT_HANDLE and CDACQ_ROOT_DEPENDENT */
    uint64_t method_table;         /* of a static: of the type that declares it; 0: not known */
    uint32_t token;                /* of a static: the FieldDef */
    int tid;                       /* of a thread static or local: the kernel's id of the thread; 0: none */
    unsigned frame;                /* of a local: the number of its frame, as in cdacq_frame.index */
    const char *method;            /* of a local: the method of the frame; NULL: not a frame, or not known */
};

/*
 * What is called for roots. A callback that returns non-zero ends the visit. None may use the session. Any may be NULL.
 * The caller sets `size`.
 */
struct cdacq_roots_visitor {
    size_t size;
    int (*root)(const struct cdacq_heap_root *root, void *context);
    int (*problem)(const char *text, void *context); /* what was not searched, or not exactly: one printable line */
    void *context;
};

/*
 * Visits all roots: static fields, thread statics, the references of all frames by the GC info of their methods,
 * finalizer queues, handles. Stacks need the registers of the threads: of a process, it has to be stopped
 * (CDACQ_OPEN_STOP). CDACQ_STOPPED: a callback returned non-zero. What cannot be searched is a problem. Fails as
 * cdacq_session_visit_heap does.
 */
CDACQ_API enum cdacq_status cdacq_session_visit_roots(struct cdacq_session *session,
                                                      const struct cdacq_roots_visitor *visitor,
                                                      struct cdacq_error *err);

/*
 * The name of a static field with its type, "Ns.Type.Field"; printable UTF-8, owned by the session. `method_table` and
 * `token` are those of a struct cdacq_heap_root. Fails with ARGUMENT, or with CORRUPT, MEMORY or MODULE if it is not
 * known.
 */
CDACQ_API enum cdacq_status cdacq_session_get_static_name(struct cdacq_session *session, uint64_t method_table,
                                                          uint32_t token, const char **ret, struct cdacq_error *err);

/*
 * The event of a type, "Ns.Type.Event", that keeps its delegates in a field of that name, static or not, as field-like
 * events of C# do; printable UTF-8, owned by the session. CDACQ_NOT_MANAGED: neither the type nor a base type has an
 * event of that name. Fails with ARGUMENT, or with CORRUPT, MEMORY, FIELD or MODULE if the type cannot be read.
 */
CDACQ_API enum cdacq_status cdacq_session_get_event_name(struct cdacq_session *session, uint64_t method_table,
                                                         const char *field, const char **ret, struct cdacq_error *err);

/* An assembly load context. The library sets `size`. */
struct cdacq_load_context {
    size_t size;
    uint64_t address; /* of the AssemblyLoadContext object; 0: nothing has asked for that of the default one */
    /* If it can be unloaded, the LoaderAllocator object: whatever keeps this object keeps the context. Else 0. */
    uint64_t allocator;
    const char *name;  /* printable UTF-8, owned by the session: see struct cdacq_method; NULL: none, or not known */
    bool is_unloading; /* AssemblyLoadContext.Unload was called, or nothing keeps the object */
    uint32_t assembly_count;
};

/*
 * Calls `visit` for each context that has assemblies. `visit` must not use the session. CDACQ_STOPPED: `visit` returned
 * non-zero. Fails with ARGUMENT, NOMEM or FUEL; with FIELD if the runtime does not describe its assemblies; with
 * CORRUPT or MEMORY if their list cannot be read.
 */
CDACQ_API enum cdacq_status cdacq_session_visit_load_contexts(struct cdacq_session *session,
                                                              int (*visit)(const struct cdacq_load_context *found,
                                                                           void *context),
                                                              void *context, struct cdacq_error *err);

CDACQ_END_DECLS

#endif
