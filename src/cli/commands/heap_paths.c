#include "src/cli/commands/heap_paths.h"

#include <string.h>

bool heap_paths_find(const struct heap_graph *graph, uint32_t target, bool with_top, struct heap_paths *ret)
{
    size_t count = graph->places.count, head = 0, tail = 0;
    uint32_t *queue = spill_resize(NULL, 0, (count + 1) * sizeof *queue);
    *ret = (struct heap_paths){.from = spill_resize(NULL, 0, (count + 1) * sizeof *ret->from),
                               .top = with_top ? spill_resize(NULL, 0, (count + 1) * sizeof *ret->top) : NULL};
    if (!queue || !ret->from || (with_top && !ret->top)) {
        spill_free(queue);
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
    spill_free(queue);
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
    *paths = (struct heap_paths){0};
}
