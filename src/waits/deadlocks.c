/*
 * deadlocks.c: finds cycles in the graph of threads and tasks. A thread waits for another thread (that holds its lock,
 * that it joins, or that runs a static constructor) or for a task. A task waits for the thread that runs it, or for
 * another task. Each strongly connected part of the graph is one deadlock, shown by a shortest cycle in it. A wait that
 * is known to end by itself is no edge. All steps are linear in the number of edges.
 */
#include "src/waits/wait_graph.h"
#include "util/text.h"

struct edge {
    uint32_t from, to;
};

DEFINE_VECTOR(edges, struct edge);

enum { EDGES_MAX = 2 * RUNNING_TASKS_MAX }; /* the tasks of all lists of Task.WaitAll count, however many wait */

/* Nodes are the threads, then the tasks. */
struct node {
    uint32_t first, end;  /* of its edges */
    uint32_t number, low; /* of Tarjan's algorithm; 0: not visited */
    uint32_t next;        /* the edge to follow next */
    uint32_t part;        /* the strongly connected part; 0: not known */
    uint32_t from;        /* the node from which the search for a cycle came, plus 1 */
    bool on_stack;
};

struct cycles {
    struct cdacq_wait_graph *graph;
    struct edges edges;
    struct object_indices tasks;
    struct node *nodes;
    uint32_t *stack, *path; /* of nodes */
    uint32_t count, stacked, visited, parts;
};

/* ---- The graph ---- */

enum { NO_NODE = UINT32_MAX }; /* out of memory */

static uint32_t task_node(struct cycles *c, uint64_t task)
{
    bool added = false;
    const struct object_index item = {task, c->count};
    const struct object_index *found = object_indices_insert(&c->tasks, item, &added);
    if (!found) {
        graph_note_memory(c->graph);
        return NO_NODE;
    }
    c->count += added;
    return (uint32_t)found->index;
}

static bool is_full(const struct cycles *c)
{
    return c->edges.count >= EDGES_MAX;
}

static void add_edge(struct cycles *c, uint32_t from, uint32_t to)
{
    if (is_full(c))
        graph_note_too_many(c->graph);
    else if (from != NO_NODE && to != NO_NODE && !edges_append(&c->edges, (struct edge){from, to}))
        graph_note_memory(c->graph);
}

struct list_edges {
    struct cycles *cycles;
    uint32_t thread;
};

static bool add_listed(void *context, uint64_t task)
{
    struct list_edges *list = context;
    struct threading_types *types = &list->cycles->graph->types;
    enum task_status status;
    if (threading_is_task(threading_type_of(types, task, true)) && task_read_status(types, task, &status) &&
        !task_is_completed(status))
        add_edge(list->cycles, list->thread, task_node(list->cycles, task));
    return !is_full(list->cycles);
}

static void add_edges(struct cycles *c)
{
    struct cdacq_wait_graph *graph = c->graph;
    c->count = (uint32_t)graph->threads.count;
    for (size_t i = 0; i < graph->waits.count; i++) {
        const struct graph_wait *wait = &graph->waits.items[i];
        struct list_edges list = {c, (uint32_t)wait->thread};
        if (wait->wait.endless == CDACQ_ENDLESS_NO)
            continue;
        if (wait->wait.kind == CDACQ_WAIT_TASK && wait->wait.object)
            add_edge(c, list.thread, task_node(c, wait->wait.object));
        else if (wait->wait.kind == CDACQ_WAIT_TASKS && wait->wait.object)
            (void)list_each(&graph->types, wait->wait.object, TASK_ARRAY_MAX, add_listed, &list);
        else if (wait->blocker != NO_THREAD)
            add_edge(c, list.thread, (uint32_t)wait->blocker);
    }
    for (const struct task_link *run = NULL; (run = task_table_next(&graph->runners, run));)
        add_edge(c, task_node(c, run->waiter), (uint32_t)run->other);
    for (size_t i = 0; i < graph->links.count; i++)
        add_edge(c, task_node(c, graph->links.items[i].waiter), task_node(c, graph->links.items[i].other));
}

/* Sorts the edges by their origin. */
static bool sort_edges(struct cycles *c)
{
    size_t count = c->edges.count;
    struct edge *sorted = calloc(count + 1, sizeof *sorted);
    c->nodes = calloc((size_t)c->count + 1, sizeof *c->nodes);
    c->stack = calloc((size_t)c->count + 1, sizeof *c->stack);
    c->path = calloc((size_t)c->count + 1, sizeof *c->path);
    if (!sorted || !c->nodes || !c->stack || !c->path) {
        free(sorted);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        c->nodes[c->edges.items[i].from].end++;
    uint32_t total = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t size = c->nodes[i].end;
        c->nodes[i].first = c->nodes[i].end = c->nodes[i].next = total;
        total += size;
    }
    for (size_t i = 0; i < count; i++)
        sorted[c->nodes[c->edges.items[i].from].end++] = c->edges.items[i];
    if (count) /* memcpy must not be given NULL */
        memcpy(c->edges.items, sorted, count * sizeof *sorted);
    free(sorted);
    return true;
}

/* ---- Cycles ---- */

static void enter(struct cycles *c, uint32_t node, uint32_t *depth)
{
    c->nodes[node].number = c->nodes[node].low = ++c->visited;
    c->nodes[node].on_stack = true;
    c->stack[c->stacked++] = node;
    c->path[(*depth)++] = node;
}

static void leave(struct cycles *c, uint32_t node)
{
    if (c->nodes[node].low != c->nodes[node].number)
        return;
    c->parts++;
    for (uint32_t other = UINT32_MAX; other != node;) {
        other = c->stack[--c->stacked];
        c->nodes[other].on_stack = false;
        c->nodes[other].part = c->parts;
    }
}

/* Tarjan's algorithm from one node, without recursion. */
static void find_parts(struct cycles *c, uint32_t root)
{
    uint32_t depth = 0;
    enter(c, root, &depth);
    while (depth) {
        struct node *node = &c->nodes[c->path[depth - 1]];
        if (node->next < node->end) {
            uint32_t to = c->edges.items[node->next++].to;
            if (!c->nodes[to].number)
                enter(c, to, &depth);
            else if (c->nodes[to].on_stack)
                node->low = MIN(node->low, c->nodes[to].number);
            continue;
        }
        uint32_t done = c->path[--depth];
        leave(c, done);
        if (depth)
            c->nodes[c->path[depth - 1]].low = MIN(c->nodes[c->path[depth - 1]].low, c->nodes[done].low);
    }
}

/* The nodes of a shortest cycle through `start`, in c->path; 0: there is none. */
static uint32_t find_cycle(struct cycles *c, uint32_t start)
{
    uint32_t count = 0, at = 0;
    c->stack[count++] = start;
    while (at < count) {
        uint32_t node = c->stack[at++];
        for (uint32_t i = c->nodes[node].first; i < c->nodes[node].end; i++) {
            uint32_t to = c->edges.items[i].to, length = 0;
            if (to == start) {
                for (uint32_t back = node; back != start; back = c->nodes[back].from - 1)
                    c->path[++length] = back;
                c->path[0] = start;
                for (uint32_t k = 1; k <= length / 2; k++) { /* the path was followed back, so it is reversed */
                    uint32_t swap = c->path[k];
                    c->path[k] = c->path[length + 1 - k];
                    c->path[length + 1 - k] = swap;
                }
                return length + 1;
            }
            if (c->nodes[to].part == c->nodes[start].part && !c->nodes[to].from) {
                c->nodes[to].from = node + 1;
                c->stack[count++] = to;
            }
        }
    }
    return 0;
}

static void add_deadlock(struct cycles *c, const struct graph_wait *const *waits, uint32_t length)
{
    struct cdacq_wait_graph *graph = c->graph;
    const struct cdacq_wait **shown = arena_allocate(&graph->arena, (length + 1) * sizeof *shown);
    struct cdacq_deadlock *deadlock = shown ? graph_deadlocks_append_items(&graph->deadlocks, 1) : NULL;
    size_t count = 0;
    if (!deadlock) {
        graph_note_memory(graph);
        return;
    }
    for (uint32_t i = 0; i < length; i++)
        if (c->path[i] < graph->threads.count && waits[c->path[i]])
            shown[count++] = &waits[c->path[i]]->wait;
    *deadlock = (struct cdacq_deadlock){.size = sizeof *deadlock, .waits = shown, .count = count};
}

static void add_deadlocks(struct cycles *c)
{
    struct cdacq_wait_graph *graph = c->graph;
    size_t threads = graph->threads.count;
    const struct graph_wait **waits = calloc(threads + 1, sizeof *waits);
    bool *shown = calloc((size_t)c->parts + 1, sizeof *shown);
    for (size_t i = 0; waits && i < graph->waits.count; i++)
        waits[graph->waits.items[i].thread] = &graph->waits.items[i];
    /* A cycle of tasks that await each other has no thread. It blocks nobody, so it is not a deadlock. */
    for (uint32_t i = 0; waits && shown && i < threads; i++) {
        uint32_t part = c->nodes[i].part, length = !part || shown[part] ? 0 : find_cycle(c, i);
        if (length) {
            shown[part] = true;
            add_deadlock(c, waits, length);
        }
    }
    if (!waits || !shown)
        graph_note_memory(graph);
    free(waits);
    free(shown);
}

void graph_find_deadlocks(struct cdacq_wait_graph *graph)
{
    struct cycles c = {.graph = graph};
    add_edges(&c);
    if (sort_edges(&c)) {
        for (uint32_t i = 0; i < graph->threads.count; i++)
            if (!c.nodes[i].number)
                find_parts(&c, i);
        add_deadlocks(&c);
    } else {
        graph_note_memory(graph);
    }
    edges_deinit(&c.edges);
    object_indices_deinit(&c.tasks);
    free(c.nodes);
    free(c.stack);
    free(c.path);
}
