/*
 * fuzz_dominators.c: any graph. The first byte is the number of nodes, the root is 0; each two bytes are an edge. What
 * dominates a node is what it is not reached without.
 */
#include <stdlib.h>
#include <string.h>

#include "src/cli/commands/dominators.h"
#include "util/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NODES_MAX = 64, EDGES_MAX = 512 };

struct graph {
    uint32_t count, edges;
    const uint8_t *data;
};

static uint32_t next_of(void *context, uint32_t node, uint32_t *cursor)
{
    const struct graph *graph = context;
    while (*cursor < graph->edges) {
        const uint8_t *edge = graph->data + 2 * (*cursor)++;
        if (edge[0] % graph->count == node)
            return edge[1] % graph->count;
    }
    return DOMINATORS_NONE;
}

/* The nodes that are reached without one of them. */
static void reach(const struct graph *graph, uint32_t without, bool ret[NODES_MAX])
{
    memset(ret, 0, NODES_MAX);
    ret[0] = without != 0;
    for (uint32_t round = 0; round < graph->count; round++)
        for (uint32_t i = 0; i < graph->edges; i++) {
            uint32_t from = graph->data[2 * i] % graph->count, to = graph->data[2 * i + 1] % graph->count;
            ret[to] |= ret[from] && to != without;
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct graph graph = {.count = size ? data[0] % NODES_MAX + 1u : 1, .data = size ? data + 1 : data};
    graph.edges = size ? (uint32_t)MIN((size - 1) / 2, (size_t)EDGES_MAX) : 0;
    const struct dominators_graph described = {.count = graph.count, .next = next_of, .context = &graph};
    struct dominators found;
    bool all[NODES_MAX], some[NODES_MAX];
    uint32_t place[NODES_MAX];
    if (!dominators_find(&described, &found))
        return 0;
    reach(&graph, DOMINATORS_NONE, all);
    memset(place, 0xff, sizeof place);
    for (uint32_t i = 0; i < found.count; i++) {
        if (place[found.order[i]] != UINT32_MAX || !all[found.order[i]] || (i && found.of[i] >= i))
            abort();
        place[found.order[i]] = i;
    }
    for (uint32_t node = 0; node < graph.count; node++) {
        if (all[node] != (place[node] != UINT32_MAX))
            abort();
        if (!all[node])
            continue;
        reach(&graph, node, some);
        for (uint32_t i = 0; i < found.count; i++) {
            bool dominates = false;
            for (uint32_t at = i;; at = found.of[at]) {
                dominates |= at == place[node];
                if (!at)
                    break;
            }
            if (dominates != !some[found.order[i]])
                abort();
        }
    }
    dominators_deinit(&found);
    return 0;
}
