/*
 * heap_graph.h: the objects of a heap with their references, and the roots, as arrays of small numbers: 16 bytes an
 * object and 4 a reference; with the places of references, 17 and 8. Objects are numbered in the order of their
 * addresses. A graph that is too large for RAM is in files (src/cli/base/spill.h).
 */
#ifndef CDACQ_CLI_COMMANDS_HEAP_GRAPH_H
#define CDACQ_CLI_COMMANDS_HEAP_GRAPH_H

#include "cdacq.h"
#include "src/cli/base/console.h"
#include "src/cli/base/heap_presence.h"
#include "src/cli/base/spill.h"
#include "util/hash_table.h"
#include "util/vector.h"

#define GRAPH_NONE UINT32_MAX

enum {
    GRAPH_OBJECTS_MAX = 0x7ffffff0,
    GRAPH_ROOTS_MAX = 1 << 24,
};

struct graph_type {
    uint64_t method_table;
    const char *name; /* NULL: not asked, or not known */
    bool is_asked;
    uint32_t index;
    uint32_t allocator; /* of a type that can be unloaded: the LoaderAllocator object; else GRAPH_NONE */
};

DEFINE_U64_TABLE(graph_type_index, struct graph_type, method_table);
DEFINE_VECTOR(graph_types, struct graph_type);
DEFINE_VECTOR(graph_numbers, uint32_t);
DEFINE_SPILLING_VECTOR(graph_array, uint32_t);
DEFINE_SPILLING_VECTOR(graph_bytes, uint8_t);

/* A part of the heap; its objects are [first, first of the next). */
struct graph_segment {
    uint64_t begin, end;
    enum cdacq_generation generation;
    uint32_t first;       /* object */
    uint32_t first_block; /* of the list of blocks */
    uint8_t block_shift;  /* a block has 1 << so many bytes: 512, or more where there are few objects */
};

DEFINE_VECTOR(graph_segments, struct graph_segment);

/* An assembly load context that can be unloaded. */
struct graph_context {
    uint32_t object;    /* GRAPH_NONE: there is none, as for dynamic assemblies of their own */
    uint32_t allocator; /* the LoaderAllocator object: what keeps it keeps the context */
    const char *name;   /* "?": it has none, or it is not known; the session owns it */
    bool is_unloading;
};

DEFINE_VECTOR(graph_contexts, struct graph_context);

struct graph_root {
    uint8_t kind, handle; /* enum cdacq_root_kind, enum cdacq_handle_kind */
    bool keeps;
    int tid;
    uint32_t frame, token;
    uint32_t object, dependent; /* GRAPH_NONE: none */
    uint64_t type;              /* of a static; else the address of the reference */
    const char *method;         /* the graph owns it */
};

DEFINE_VECTOR(graph_roots, struct graph_root);
DEFINE_VECTOR(graph_texts, char *);
DEFINE_VECTOR(graph_addresses, uint64_t);

struct heap_graph {
    struct cdacq_session *session;
    struct progress progress;
    struct graph_types types;
    struct graph_segments segments;
    /* Of each object: */
    struct graph_array places;     /* from the begin of its segment, in units of 4 bytes */
    struct graph_array sizes;      /* in units of 8 bytes */
    struct graph_array type_of;    /* index of `types` */
    struct graph_array first_edge; /* with one more at the end */
    struct graph_array edges;      /* objects */
    struct graph_array blocks;     /* the first object at or after each block of a segment */
    /* Only with the places of references: */
    bool has_offsets;
    struct graph_bytes paddings;    /* of each object: what `sizes` has too much, in bytes */
    struct graph_array offsets;     /* of each edge, in units of 4 bytes; GRAPH_NONE: of a dependent handle */
    struct graph_roots roots;       /* in the order of what they are: static fields first */
    struct graph_contexts contexts; /* of heap_graph_read_contexts, sorted by their allocators */
    struct graph_texts problems;    /* what of the heap or the roots was left out */
    uint64_t problem_count;
    bool is_under_way; /* a garbage collection was */
    struct heap_presence presence;
    /* While it is read: */
    uint64_t bytes, walked; /* of all segments; of them, those before the object */
    struct graph_type_index type_index;
    struct graph_type *recent;
    struct graph_addresses slots;    /* of static fields, sorted */
    struct graph_numbers dependents; /* indices of roots, sorted by their object */
    size_t next_dependent, segment;  /* of the object whose references are read */
    uint32_t object;
    struct graph_texts methods;
    const char *failure; /* why it ended: static; NULL: it did not */
};

/* Reads the graph. False, with a message: the heap cannot be read, or its graph would be too large. */
bool heap_graph_read(struct heap_graph *graph, struct cdacq_session *session, int results);
/* The same, with the places of references. */
bool heap_graph_read_offsets(struct heap_graph *graph, struct cdacq_session *session, int results);
void heap_graph_deinit(struct heap_graph *graph);

/* The object that an address is in; GRAPH_NONE: none. */
uint32_t heap_graph_find(const struct heap_graph *graph, uint64_t address);
uint64_t heap_graph_address(const struct heap_graph *graph, uint32_t object);
enum cdacq_generation heap_graph_generation(const struct heap_graph *graph, uint32_t object);
static inline uint64_t heap_graph_size(const struct heap_graph *graph, uint32_t object)
{
    return (uint64_t)graph->sizes.items[object] * 8;
}

/* The same without padding, as the runtime has it. Needs `has_offsets`. */
static inline uint64_t heap_graph_exact_size(const struct heap_graph *graph, uint32_t object)
{
    return heap_graph_size(graph, object) - graph->paddings.items[object];
}

/* Where the object of an edge has it, in bytes from the object. Needs `has_offsets`, and no dependent handle. */
static inline uint64_t heap_graph_offset(const struct heap_graph *graph, uint32_t edge)
{
    return (uint64_t)graph->offsets.items[edge] * 4;
}

/* Lists the assembly load contexts that can be unloaded: none if the runtime does not describe them. */
void heap_graph_read_contexts(struct heap_graph *graph);
/* The number of the one with a LoaderAllocator; GRAPH_NONE: the object is none. */
uint32_t heap_graph_find_context(const struct heap_graph *graph, uint32_t allocator);

/* The name of a type; NULL: not known. */
const char *heap_graph_type_name(struct heap_graph *graph, uint32_t type);

/* The name of a type, or what is shown in its place, which is then written to `room`. */
enum { GRAPH_TYPE_TEXT_SIZE = 64 };
const char *heap_graph_type_text(struct heap_graph *graph, uint32_t type, char room[static GRAPH_TYPE_TEXT_SIZE]);

/* Writes what a root is: "static field Ns.Type.Field", "local of Ns.Type.Method() in frame 3 of thread 17". */
enum { GRAPH_ROOT_TEXT_SIZE = 1024 };
void heap_graph_root_text(const struct heap_graph *graph, const struct graph_root *root,
                          char ret[static GRAPH_ROOT_TEXT_SIZE]);

/* Shows what was left out, as messages: the first of it, and where the rest is. */
void heap_graph_tell_problems(const struct heap_graph *graph, bool json_has_them);
/* How many types and references have no name. */
void heap_graph_tell_unnamed(uint64_t types, uint64_t edges);

/* Whether nothing was left out. */
static inline bool heap_graph_is_whole(const struct heap_graph *graph)
{
    return !graph->problem_count && !graph->is_under_way;
}

#endif
