/*
 * heap_paths.h: the shortest paths from roots to objects.
 */
#ifndef CDACQ_CLI_COMMANDS_HEAP_PATHS_H
#define CDACQ_CLI_COMMANDS_HEAP_PATHS_H

#include "src/cli/commands/heap_graph.h"

/* What each object was reached from: another object, or PATH_ROOT and the number of a root. */
struct heap_paths {
    uint32_t *from;  /* of each object; GRAPH_NONE: nothing keeps it */
    uint32_t *top;   /* of each object, the number of the root; NULL unless asked */
    uint32_t *order; /* the objects that were reached, each after what it was reached from */
    size_t reached;
};

#define PATH_ROOT UINT32_C(0x80000000) /* a number of a root is below GRAPH_ROOTS_MAX */

/*
 * Searches from all roots that keep objects, until `target` is reached; GRAPH_NONE: all objects. False when out of
 * memory. The caller frees *ret.
 */
bool heap_paths_find(const struct heap_graph *graph, uint32_t target, bool with_top, struct heap_paths *ret);
void heap_paths_deinit(struct heap_paths *paths);

/* Appends objects from which all that no root keeps is reached. False when out of memory. */
bool heap_paths_list_unkept(const struct heap_graph *graph, struct graph_numbers *ret);

/* Where an object refers to another one, in bytes from it. GRAPH_NO_OFFSET: not in the object. */
#define GRAPH_NO_OFFSET UINT64_MAX
uint64_t heap_paths_find_hop(const struct heap_graph *graph, uint32_t from, uint32_t to);
/* How it does: "_items", "[3].Key", "dependent handle", "?". The session owns it. */
const char *heap_paths_name_hop(const struct heap_graph *graph, uint32_t from, uint64_t offset);

#endif
