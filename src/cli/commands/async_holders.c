#include "src/cli/commands/async_holders.h"

#include <stdlib.h>
#include <string.h>

#include "src/cli/base/memory.h"
#include "src/cli/commands/heap_paths.h"
#include "util/base.h"
#include "util/text.h"

enum {
    HOLDERS_MAX = 4096, /* objects that are searched for; others have no text */
    BEGIN_SHOWN = 6,    /* references of a path */
    END_SHOWN = 4,
};

void async_holders_add(struct async_holders *holders, uint64_t object)
{
    if (object && holders->table.count < HOLDERS_MAX &&
        !async_holder_table_insert(&holders->table, (struct async_holder){.object = object}, NULL))
        out_of_memory();
}

const char *async_holders_text(const struct async_holders *holders, uint64_t object)
{
    const struct async_holder *holder = object ? async_holder_table_find(&holders->table, object) : NULL;
    return holder ? holder->text : NULL;
}

/* Appends how one object refers to the next. */
static void put_hop(struct text *text, const char *by, bool is_first)
{
    if (strcmp(by, "dependent handle") == 0)
        text_puts(text, " (dependent handle)");
    else
        text_printf(text, "%s%s", is_first || by[0] == '[' ? "" : ".", by);
}

/* Appends the path from a root to an object, as an expression of fields and indices. */
static void put_path(const struct heap_graph *graph, const struct heap_paths *paths, uint32_t object, struct text *text)
{
    char root[GRAPH_ROOT_TEXT_SIZE];
    size_t count = 0;
    uint32_t top = object;
    for (; !(paths->from[top] & PATH_ROOT); top = paths->from[top])
        count++;
    heap_graph_root_text(graph, &graph->roots.items[paths->from[top] & ~PATH_ROOT], root);
    text_puts(text, root);
    CLEANUP_FREE uint32_t *path = allocate((count + 1) * sizeof *path); /* from the root */
    for (size_t i = count + 1; i-- > 0; object = paths->from[object])
        path[i] = object;
    for (size_t i = 0; i < count; i++) {
        if (i == 0)
            text_puts(text, ": ");
        if (i == BEGIN_SHOWN && count > BEGIN_SHOWN + END_SHOWN) {
            text_puts(text, " ... ");
            i = count - END_SHOWN;
        }
        put_hop(text, heap_paths_name_hop(graph, path[i], heap_paths_find_hop(graph, path[i], path[i + 1])), i == 0);
    }
}

static void find_texts(struct async_holders *holders, struct heap_graph *graph, const struct heap_paths *paths)
{
    for (struct async_holder *holder = NULL; (holder = async_holder_table_next(&holders->table, holder));) {
        struct text text = {0};
        uint32_t object = heap_graph_find(graph, holder->object);
        if (object == GRAPH_NONE)
            text_puts(&text, "? (no object of the heap is there)");
        else if (paths->from[object] == GRAPH_NONE)
            text_puts(&text, holders->is_partial ? "? (no root was found, but not all were searched)"
                                                 : "nothing: no root keeps it");
        else
            put_path(graph, paths, object, &text);
        holder->text = copy_text(text.data);
        text_deinit(&text);
    }
}

bool async_holders_find(struct async_holders *holders, struct cdacq_session *session, int results)
{
    struct heap_graph graph;
    struct heap_paths paths = {0};
    bool is_read = !holders->table.count || heap_graph_read(&graph, session, results);
    if (!holders->table.count || !is_read)
        return is_read;
    if (!heap_paths_find(&graph, GRAPH_NONE, false, &paths))
        out_of_memory();
    holders->is_partial = !heap_graph_is_whole(&graph);
    find_texts(holders, &graph, &paths);
    heap_paths_deinit(&paths);
    heap_graph_deinit(&graph);
    return true;
}

void async_holders_deinit(struct async_holders *holders)
{
    for (struct async_holder *holder = NULL; (holder = async_holder_table_next(&holders->table, holder));)
        free(holder->text);
    async_holder_table_deinit(&holders->table);
}
