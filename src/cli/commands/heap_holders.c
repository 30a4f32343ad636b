#include "src/cli/commands/heap_holders.h"

#include <stdlib.h>
#include <string.h>

#include "src/cli/base/memory.h"
#include "src/cli/commands/heap_paths.h"
#include "util/base.h"

enum {
    FOUND_MAX = 16, /* parts that each have an eighth of the whole, and the largest roots */
    NOT_BELOW = UINT8_MAX,
};

#define PART_LEAST   0.125 /* of the whole: a part that is looked into */
#define PARENT_LEAST 0.75  /* of the parent: what such parts have together; else the parent is the holder */

/* A part of the heap. */
struct part {
    double sum;
    uint32_t root, chain[HOLDER_HOPS_MAX]; /* objects, from the root on */
    size_t length;
};

struct search {
    struct heap_graph *graph;
    struct heap_paths paths;
    const double *shares;
    int generation;
    double *sums; /* of each object: with what hangs below it */
    double whole;
    struct part found[FOUND_MAX];
    size_t count;
};

static double weight_of(const struct search *search, uint32_t object)
{
    const struct heap_graph *graph = search->graph;
    double share = search->shares ? search->shares[graph->type_of.items[object]] : 1;
    if (share <= 0 || (search->generation >= 0 && (int)heap_graph_generation(graph, object) != search->generation))
        return 0;
    return share * (double)heap_graph_size(graph, object);
}

static void sum_up(struct search *search)
{
    const struct heap_paths *paths = &search->paths;
    size_t count = search->graph->places.count;
    search->sums = allocate_large(((uint64_t)count + 1) * sizeof *search->sums);
    for (uint32_t i = 0; i < count; i++) {
        search->sums[i] = weight_of(search, i);
        search->whole += search->sums[i];
    }
    for (size_t i = paths->reached; i-- > 0;) {
        uint32_t object = paths->order[i], from = paths->from[object];
        if (!(from & PATH_ROOT))
            search->sums[from] += search->sums[object];
    }
}

/* ---- Search ----------------------------------------------------------------------------------------------------- */

/* Keeps the largest parts, the largest first. */
static void add_found(struct search *search, const struct part *part)
{
    size_t at = search->count;
    while (at && search->found[at - 1].sum < part->sum)
        at--;
    if (at == FOUND_MAX)
        return;
    search->count = MIN(search->count + 1, (size_t)FOUND_MAX);
    memmove(search->found + at + 1, search->found + at, (search->count - 1 - at) * sizeof *search->found);
    search->found[at] = *part;
}

static bool has_type(const struct search *search, const struct part *part, uint32_t object)
{
    const uint32_t *types = search->graph->type_of.items;
    for (size_t i = 0; i < part->length; i++)
        if (types[part->chain[i]] == types[object])
            return true;
    return false;
}

/* The large children of the last object of a part. Returns their number; 0 if the rest has too much. */
static size_t large_children(const struct search *search, const struct part *part, uint32_t ret[FOUND_MAX])
{
    const struct heap_graph *graph = search->graph;
    uint32_t parent = part->chain[part->length - 1];
    double together = 0;
    size_t count = 0;
    for (uint32_t i = graph->first_edge.items[parent]; i < graph->first_edge.items[parent + 1]; i++) {
        uint32_t child = graph->edges.items[i];
        bool is_again = false; /* an object may refer to another one twice */
        for (size_t n = 0; n < count && !is_again; n++)
            is_again = ret[n] == child;
        if (search->paths.from[child] != parent || search->sums[child] < search->whole * PART_LEAST || is_again ||
            count == FOUND_MAX || has_type(search, part, child))
            continue;
        ret[count++] = child;
        together += search->sums[child];
    }
    return together >= part->sum * PARENT_LEAST ? count : 0;
}

static void look_into(struct search *search, const struct part *root)
{
    struct part open[FOUND_MAX] = {*root};
    for (size_t count = 1; count;) {
        struct part part = open[--count];
        uint32_t children[FOUND_MAX];
        size_t large = part.length < HOLDER_HOPS_MAX ? large_children(search, &part, children) : 0;
        if (!large || count + large > FOUND_MAX) {
            add_found(search, &part);
            continue;
        }
        for (size_t i = 0; i < large; i++) {
            open[count] = part;
            open[count].chain[part.length] = children[i];
            open[count].length++;
            open[count++].sum = search->sums[children[i]];
        }
    }
}

/* The roots of the largest parts are looked into. */
static void find_parts(struct search *search)
{
    const struct heap_graph *graph = search->graph;
    for (uint32_t i = 0; i < graph->roots.count; i++) {
        uint32_t object = graph->roots.items[i].object;
        if (graph->roots.items[i].keeps && search->paths.from[object] == (PATH_ROOT | i) && search->sums[object] > 0)
            add_found(search, &(struct part){.sum = search->sums[object], .root = i, .chain = {object}, .length = 1});
    }
    struct part roots[FOUND_MAX];
    size_t count = search->count;
    memcpy(roots, search->found, count * sizeof *roots);
    search->count = 0;
    for (size_t i = 0; i < count; i++)
        look_into(search, &roots[i]);
}

/* ---- Result ----------------------------------------------------------------------------------------------------- */

static void describe(const struct search *search, const struct part *part, struct heap_holder *ret)
{
    struct heap_graph *graph = search->graph;
    const struct graph_root *root = &graph->roots.items[part->root];
    char text[GRAPH_ROOT_TEXT_SIZE];
    heap_graph_root_text(graph, root, text);
    ret->kind = (enum cdacq_root_kind)root->kind;
    ret->root = copy_text(text);
    ret->percent = (unsigned)(part->sum * 100 / search->whole + 0.5);
    ret->hop_count = part->length;
    for (size_t i = 0; i < part->length; i++) {
        uint32_t object = part->chain[i];
        struct heap_holder_hop *hop = &ret->hops[i];
        hop->address = heap_graph_address(graph, object);
        hop->type = copy_text(heap_graph_type_name(graph, graph->type_of.items[object]));
        if (i)
            hop->by = copy_text(
                heap_paths_name_hop(graph, part->chain[i - 1], heap_paths_find_hop(graph, part->chain[i - 1], object)));
    }
}

/* Counts the objects below each holder, and finds the type that has most of their bytes. */
static void count_objects(const struct search *search, struct heap_holders *ret)
{
    const struct heap_graph *graph = search->graph;
    size_t types = graph->types.count;
    uint8_t *below = allocate_large(graph->places.count + 1); /* the number of a holder */
    double *tally = allocate((types + 1) * HOLDERS_MAX * sizeof *tally);
    for (size_t i = 0; i < search->paths.reached; i++) {
        uint32_t object = search->paths.order[i], from = search->paths.from[object];
        uint8_t number = from & PATH_ROOT ? NOT_BELOW : below[from];
        for (uint8_t n = 0; n < ret->count; n++)
            if (search->found[n].chain[search->found[n].length - 1] == object)
                number = n;
        below[object] = number;
        double weight = number == NOT_BELOW ? 0 : weight_of(search, object);
        if (weight <= 0)
            continue;
        ret->items[number].count++;
        ret->items[number].bytes += heap_graph_size(graph, object);
        tally[number * types + graph->type_of.items[object]] += weight;
    }
    for (unsigned n = 0; n < ret->count; n++) {
        uint32_t most = 0;
        for (uint32_t type = 1; type < types; type++)
            if (tally[n * types + type] > tally[n * types + most])
                most = type;
        ret->items[n].most = copy_text(heap_graph_type_name(search->graph, most));
    }
    free(tally);
    spill_free(below);
}

void heap_holders_find(struct heap_graph *graph, const double *shares, int generation, struct heap_holders *ret)
{
    struct search *search = allocate(sizeof *search);
    *search = (struct search){.graph = graph, .shares = shares, .generation = generation};
    *ret = (struct heap_holders){0};
    if (!heap_paths_find(graph, GRAPH_NONE, false, &search->paths))
        out_of_memory();
    sum_up(search);
    find_parts(search);
    for (; ret->count < MIN(search->count, (size_t)HOLDERS_MAX); ret->count++)
        describe(search, &search->found[ret->count], &ret->items[ret->count]);
    count_objects(search, ret);
    heap_paths_deinit(&search->paths);
    spill_free(search->sums);
    free(search);
}
