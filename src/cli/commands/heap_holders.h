/*
 * heap_holders.h: finds what the largest parts of a heap hang below. Each object counts once, for the root with the
 * shortest path to it. From a root the search goes down to the children that each have an eighth of the whole or more,
 * as long as these have three quarters of their parent; into a list of objects of one type it does not go.
 */
#ifndef CDACQ_CLI_COMMANDS_HEAP_HOLDERS_H
#define CDACQ_CLI_COMMANDS_HEAP_HOLDERS_H

#include "src/cli/base/heap_holder.h"
#include "src/cli/commands/heap_graph.h"

/*
 * `shares`: for each type of the graph, how much of the bytes of its objects counts, 0 to 1; NULL: all of every type.
 * `generation`: only objects there; negative: all. The caller frees *ret. Exits when out of memory.
 */
void heap_holders_find(struct heap_graph *graph, const double *shares, int generation, struct heap_holders *ret);

#endif
