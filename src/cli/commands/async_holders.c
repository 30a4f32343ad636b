#include "src/cli/commands/async_holders.h"

#include <stdlib.h>
#include <string.h>

#include "src/cli/base/memory.h"
#include "src/cli/commands/heap_paths.h"
#include "util/base.h"
#include "util/text.h"

enum {
    HOLDERS_MAX = 4096, /* objects that are searched for; others have no text */
    HOPS_MAX = 1000,    /* references of a path */
    BEGIN_SHOWN = 6,    /* of them */
    END_SHOWN = 4,
};

void async_holders_add(struct async_holders *holders, uint64_t object, uint64_t operation)
{
    const struct async_holder holder = {.object = object, .operation = operation};
    if (object && holders->table.count < HOLDERS_MAX && !async_holder_table_insert(&holders->table, holder, NULL))
        out_of_memory();
}

const char *async_holders_text(const struct async_holders *holders, uint64_t object)
{
    const struct async_holder *holder = object ? async_holder_table_find(&holders->table, object) : NULL;
    return holder ? holder->text : NULL;
}

/* The last hops of a path, from the end; the rest of it is not walked, which could be millions of objects. */
struct path_end {
    uint32_t objects[HOPS_MAX + 1];
    size_t count;
    bool is_whole;
};

static struct path_end find_end(const struct heap_paths *paths, uint32_t object)
{
    struct path_end end = {.count = 0};
    end.objects[end.count++] = object;
    while (!(paths->from[object] & PATH_ROOT) && end.count <= HOPS_MAX) {
        object = paths->from[object];
        end.objects[end.count++] = object;
    }
    end.is_whole = paths->from[object] & PATH_ROOT;
    return end;
}

/* Appends how one object refers to the next: hop `number` of the path, counted from its begin. */
static void put_hop(const struct heap_graph *graph, const struct path_end *path, size_t number, struct text *text)
{
    uint32_t from = path->objects[path->count - 1 - number], to = path->objects[path->count - 2 - number];
    uint64_t offset = heap_paths_find_hop(graph, from, to);
    const char *by = heap_paths_name_hop(graph, from, offset);
    if (offset == GRAPH_NO_OFFSET)
        text_printf(text, " (%s)", by);
    else
        text_printf(text, "%s%s", number == 0 || by[0] == '[' ? "" : ".", by);
}

/* Appends the path from a root to an object, as an expression of fields and indices. */
static void put_path(const struct heap_graph *graph, const struct graph_root *root, const struct path_end *path,
                     struct text *text)
{
    char root_text[GRAPH_ROOT_TEXT_SIZE];
    size_t hops = path->count - 1, begin = path->is_whole ? hops : 0;
    if (hops > BEGIN_SHOWN + END_SHOWN)
        begin = MIN(begin, (size_t)BEGIN_SHOWN);
    heap_graph_root_text(graph, root, root_text);
    text_puts(text, root_text);
    text_puts(text, hops ? ": " : "");
    for (size_t i = 0; i < begin; i++)
        put_hop(graph, path, i, text);
    if (begin == hops)
        return;
    text_puts(text, begin ? " ... " : "... ");
    for (size_t i = hops - END_SHOWN; i < hops; i++)
        put_hop(graph, path, i, text);
}

/* Whether the path leads through what waits: that does not complete what it waits for. */
static bool leads_through(const struct path_end *path, uint32_t waiting)
{
    for (size_t i = 1; i < path->count; i++)
        if (path->objects[i] == waiting)
            return true;
    return false;
}

/* Forms the text of an object that a root keeps. */
static void put_holder(const struct heap_graph *graph, const struct heap_paths *paths, uint32_t object,
                       uint64_t operation, struct text *text)
{
    const struct path_end path = find_end(paths, object);
    put_path(graph, &graph->roots.items[paths->top[object]], &path, text);
    if (operation && leads_through(&path, heap_graph_find(graph, operation)))
        text_puts(text, " (through the method that waits)");
}

/* False: of some, it is not known. */
static bool find_texts(struct async_holders *holders, const struct heap_graph *graph, const struct heap_paths *paths)
{
    bool any_unknown = false;
    for (struct async_holder *holder = NULL; (holder = async_holder_table_next(&holders->table, holder));) {
        struct text text = {0};
        uint32_t object = heap_graph_find(graph, holder->object);
        if (object == GRAPH_NONE)
            text_puts(&text, "? (no object of the heap is there)");
        else if (paths->from[object] != GRAPH_NONE)
            put_holder(graph, paths, object, holder->operation, &text);
        else
            text_puts(&text, heap_graph_is_whole(graph) ? "nothing: no root keeps it"
                                                        : "? (no root was found, but not all were searched)");
        any_unknown |= text.data[0] == '?';
        holder->text = copy_text(text.data);
        text_deinit(&text);
    }
    return !any_unknown;
}

bool async_holders_find(struct async_holders *holders, struct cdacq_session *session, int results)
{
    struct heap_graph graph;
    struct heap_paths paths = {0};
    if (!holders->table.count)
        return true;
    bool is_read = heap_graph_read(&graph, session, results);
    if (is_read && !heap_paths_find(&graph, GRAPH_NONE, true, &paths))
        out_of_memory();
    bool is_known = is_read && find_texts(holders, &graph, &paths);
    if (!is_known)
        heap_graph_tell_problems(&graph, false);
    heap_paths_deinit(&paths);
    heap_graph_deinit(&graph);
    return is_known;
}

void async_holders_deinit(struct async_holders *holders)
{
    for (struct async_holder *holder = NULL; (holder = async_holder_table_next(&holders->table, holder));)
        free(holder->text);
    async_holder_table_deinit(&holders->table);
}
