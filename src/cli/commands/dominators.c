#include "src/cli/commands/dominators.h"

#include <string.h>

#include "src/cli/base/spill.h"
#include "util/base.h"
#include "util/vector.h"

enum { PATH_FIRST = 1024 };

DEFINE_VECTOR(places, uint32_t);

struct finder {
    const struct dominators_graph *graph;
    uint32_t count;           /* of the nodes that are reached */
    uint32_t *place;          /* of each node in the order; DOMINATORS_NONE: it is not reached */
    uint32_t *order;          /* node of each place */
    uint32_t *parent;         /* place of each place: the tree of the search, and then shortcuts in it */
    uint32_t *first, *before; /* the predecessors of each place, by place */
    uint32_t *semi, *label, *of;
    struct places path; /* room */
};

static uint32_t *numbers(uint64_t count)
{
    return spill_resize(NULL, 0, (count + 1) * sizeof(uint32_t));
}

/* Numbers the nodes as a depth-first search meets them, and counts the edges between them. */
static bool search(struct finder *f, uint64_t *ret_edges)
{
    const struct dominators_graph *graph = f->graph;
    uint32_t *cursor = numbers(graph->count);
    uint32_t at = 0;
    uint64_t edges = 0;
    f->place = numbers(graph->count);
    f->order = numbers(graph->count);
    f->parent = numbers(graph->count);
    f->first = numbers(graph->count);
    if (!cursor || !f->place || !f->order || !f->parent || !f->first) {
        spill_free(cursor);
        return false;
    }
    memset(f->place, 0xff, graph->count * sizeof *f->place);
    f->place[graph->root] = 0;
    f->order[0] = graph->root;
    f->parent[0] = 0;
    f->count = 1;
    while (true) {
        uint32_t next = graph->next(graph->context, f->order[at], &cursor[f->order[at]]);
        if (next == DOMINATORS_NONE) {
            if (!at)
                break;
            at = f->parent[at];
            continue;
        }
        if (f->place[next] == DOMINATORS_NONE) {
            f->place[next] = f->count;
            f->order[f->count] = next;
            f->parent[f->count] = at;
            at = f->count++;
        }
        f->first[f->place[next]]++;
        edges++;
    }
    spill_free(cursor);
    *ret_edges = edges;
    return edges < UINT32_MAX;
}

/* Lists the predecessors of each node. */
static bool list_predecessors(struct finder *f, uint64_t edges)
{
    const struct dominators_graph *graph = f->graph;
    f->before = numbers(edges);
    if (!f->before)
        return false;
    for (uint32_t i = 1; i < f->count; i++) /* the end of each list, which moves to its begin as it is filled */
        f->first[i] += f->first[i - 1];
    for (uint32_t i = 0; i < f->count; i++) {
        uint32_t cursor = 0, next;
        while ((next = graph->next(graph->context, f->order[i], &cursor)) != DOMINATORS_NONE)
            f->before[--f->first[f->place[next]]] = i;
    }
    f->first[f->count] = (uint32_t)edges;
    spill_free(f->place);
    f->place = NULL;
    return true;
}

/* The least semidominator on the path from `place` up to, but without, places before `last`. Shortens the path. */
static uint32_t least(struct finder *f, uint32_t place, uint32_t last)
{
    size_t length = 0;
    if (place < last)
        return place;
    while (f->parent[place] >= last) {
        if (length == f->path.count && !places_resize(&f->path, 2 * length + PATH_FIRST))
            return DOMINATORS_NONE;
        f->path.items[length++] = place;
        place = f->parent[place];
    }
    uint32_t top = place;
    while (length--) {
        uint32_t above = place;
        place = f->path.items[length];
        f->label[place] = MIN(f->label[place], f->label[above]);
        f->parent[place] = f->parent[top];
    }
    return f->label[place];
}

static bool find_all(struct finder *f)
{
    f->semi = numbers(f->count);
    f->label = numbers(f->count);
    f->of = numbers(f->count);
    if (!f->semi || !f->label || !f->of)
        return false;
    memcpy(f->of, f->parent, f->count * sizeof *f->of);
    f->semi[0] = 0;
    for (uint32_t i = f->count; i-- > 1;) {
        uint32_t semi = f->of[i]; /* the parent */
        for (uint32_t k = f->first[i]; k < f->first[i + 1]; k++) {
            uint32_t found = least(f, f->before[k], i + 1);
            if (found == DOMINATORS_NONE)
                return false;
            semi = MIN(semi, found);
        }
        f->semi[i] = f->label[i] = semi;
    }
    for (uint32_t i = 1; i < f->count; i++)
        while (f->of[i] > f->semi[i])
            f->of[i] = f->of[f->of[i]];
    f->of[0] = 0;
    return true;
}

bool dominators_find(const struct dominators_graph *graph, struct dominators *ret)
{
    struct finder f = {.graph = graph};
    uint64_t edges;
    bool good = search(&f, &edges) && list_predecessors(&f, edges);
    if (graph->release)
        graph->release(graph->context);
    good = good && find_all(&f);
    spill_free(f.place);
    spill_free(f.parent);
    spill_free(f.first);
    spill_free(f.before);
    spill_free(f.semi);
    spill_free(f.label);
    places_deinit(&f.path);
    if (!good) {
        spill_free(f.order);
        spill_free(f.of);
        return false;
    }
    *ret = (struct dominators){.count = f.count, .order = f.order, .of = f.of};
    return true;
}

void dominators_deinit(struct dominators *dominators)
{
    spill_free(dominators->order);
    spill_free(dominators->of);
    *dominators = (struct dominators){0};
}
