/*
 * task_leads.c: from a continuation to its task. The continuations of each task are read once and remembered.
 */
#include "src/waits/wait_graph.h"
#include "util/text.h"

struct leading {
    struct cdacq_wait_graph *graph;
    uint64_t from;
};

static bool add_lead(void *context, uint64_t object, enum threading_type type)
{
    struct leading *leading = context;
    const struct task_link link = {.waiter = object, .other = leading->from};
    (void)type;
    if (leading->graph->leads.count >= RUNNING_TASKS_MAX) {
        graph_note_too_many(leading->graph);
        return false;
    }
    if (!task_table_insert(&leading->graph->leads, link, NULL)) {
        graph_note_memory(leading->graph);
        return false;
    }
    return true;
}

bool graph_task_leads_to(struct cdacq_wait_graph *graph, uint64_t task, uint64_t object)
{
    struct leading leading = {graph, task};
    graph_count_look_up(graph);
    bool known = object_indices_find(&graph->followed, task) != NULL;
    if (!known && graph->followed.count >= RUNNING_TASKS_MAX) {
        graph_note_too_many(graph);
        return false;
    }
    if (!known && !object_indices_insert(&graph->followed, (struct object_index){task, 0}, NULL))
        graph_note_memory(graph);
    if (!known && !task_each_continuation(&graph->types, task, add_lead, &leading))
        graph_note_too_many(graph);
    const struct task_link *link = task_table_find(&graph->leads, object);
    return link && link->other == task;
}
