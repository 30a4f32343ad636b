/*
 * dominators.h: the dominator tree of a graph: what is reached only through a node. Semi-NCA, with path compression:
 * near linear in the number of edges, whatever the graph is. A node takes 24 bytes and an edge 4 while it runs, besides
 * the graph itself.
 * Source: Georgiadis, Linear-Time Algorithms for Dominators and Related Problems, 2005.
 */
#ifndef CDACQ_CLI_COMMANDS_DOMINATORS_H
#define CDACQ_CLI_COMMANDS_DOMINATORS_H

#include <stdbool.h>
#include <stdint.h>

#define DOMINATORS_NONE UINT32_MAX

/* A graph; nodes are numbers below `count`. */
struct dominators_graph {
    uint32_t count, root;
    /* The next successor of a node; *cursor is 0 at first. DOMINATORS_NONE: there are no more. */
    uint32_t (*next)(void *context, uint32_t node, uint32_t *cursor);
    void (*release)(void *context); /* called once successors are not needed any more; may be NULL */
    void *context;
};

struct dominators {
    uint32_t count;  /* of the nodes that are reached */
    uint32_t *order; /* their numbers, each after what dominates it; the root first */
    uint32_t *of; /* for each place in `order`, the place of the node that immediately dominates it; 0 for the root */
};

/* False when out of memory, or if there are 2^32 - 1 edges or more. */
bool dominators_find(const struct dominators_graph *graph, struct dominators *ret);
void dominators_deinit(struct dominators *dominators);

#endif
