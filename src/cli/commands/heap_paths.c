#include "src/cli/commands/heap_paths.h"

#include <string.h>

bool heap_paths_find(const struct heap_graph *graph, uint32_t target, bool with_top, struct heap_paths *ret)
{
    size_t count = graph->places.count, head = 0, tail = 0;
    *ret = (struct heap_paths){.from = spill_resize(NULL, 0, (count + 1) * sizeof *ret->from),
                               .top = with_top ? spill_resize(NULL, 0, (count + 1) * sizeof *ret->top) : NULL,
                               .order = spill_resize(NULL, 0, (count + 1) * sizeof *ret->order)};
    uint32_t *queue = ret->order;
    if (!queue || !ret->from || (with_top && !ret->top)) {
        heap_paths_deinit(ret);
        return false;
    }
    memset(ret->from, 0xff, count * sizeof *ret->from);
    for (uint32_t i = 0; i < graph->roots.count; i++) {
        uint32_t object = graph->roots.items[i].object;
        if (!graph->roots.items[i].keeps || ret->from[object] != GRAPH_NONE)
            continue;
        ret->from[object] = PATH_ROOT | i;
        if (with_top)
            ret->top[object] = i;
        queue[tail++] = object;
    }
    while (head < tail && (target == GRAPH_NONE || ret->from[target] == GRAPH_NONE)) {
        uint32_t object = queue[head++];
        for (uint32_t i = graph->first_edge.items[object]; i < graph->first_edge.items[object + 1]; i++) {
            uint32_t other = graph->edges.items[i];
            if (ret->from[other] != GRAPH_NONE)
                continue;
            ret->from[other] = object;
            if (with_top)
                ret->top[other] = ret->top[object];
            queue[tail++] = other;
        }
    }
    ret->reached = tail;
    return true;
}

/* Adds what an object leads to, and was not reached yet. */
static bool follow_unkept(const struct heap_graph *graph, uint32_t *from, struct graph_numbers *stack)
{
    while (stack->count) {
        uint32_t object = stack->items[--stack->count];
        for (uint32_t i = graph->first_edge.items[object]; i < graph->first_edge.items[object + 1]; i++) {
            uint32_t other = graph->edges.items[i];
            if (from[other] != GRAPH_NONE)
                continue;
            from[other] = object;
            if (!graph_numbers_append(stack, other))
                return false;
        }
    }
    return true;
}

bool heap_paths_list_unkept(const struct heap_graph *graph, struct graph_numbers *ret)
{
    struct heap_paths paths;
    struct graph_numbers stack = {0};
    bool good = heap_paths_find(graph, GRAPH_NONE, false, &paths);
    for (uint32_t object = 0; good && object < graph->places.count; object++) {
        if (paths.from[object] != GRAPH_NONE)
            continue;
        paths.from[object] = PATH_ROOT;
        good = graph_numbers_append(ret, object) && graph_numbers_append(&stack, object) &&
               follow_unkept(graph, paths.from, &stack);
    }
    graph_numbers_deinit(&stack);
    heap_paths_deinit(&paths);
    return good;
}

void heap_paths_deinit(struct heap_paths *paths)
{
    spill_free(paths->from);
    spill_free(paths->top);
    spill_free(paths->order);
    *paths = (struct heap_paths){0};
}

/* ---- Names ------------------------------------------------------------------------------------------------------ */

struct reference_search {
    const struct heap_graph *graph;
    uint32_t target;
    uint64_t offset;
};

static int match_reference(uint64_t offset, uint64_t target, void *context)
{
    struct reference_search *search = context;
    if (heap_graph_find(search->graph, target) != search->target)
        return 0;
    search->offset = offset;
    return 1;
}

uint64_t heap_paths_find_hop(const struct heap_graph *graph, uint32_t from, uint32_t to)
{
    struct reference_search search = {.graph = graph, .target = to, .offset = GRAPH_NO_OFFSET};
    (void)cdacq_session_visit_references(graph->session, heap_graph_address(graph, from), match_reference, &search,
                                         NULL);
    return search.offset;
}

const char *heap_paths_name_hop(const struct heap_graph *graph, uint32_t from, uint64_t offset)
{
    const char *name;
    if (offset == GRAPH_NO_OFFSET)
        return "dependent handle";
    return cdacq_session_get_reference_name(graph->session, heap_graph_address(graph, from), offset, &name, NULL) ==
                   CDACQ_OK
               ? name
               : "?";
}
