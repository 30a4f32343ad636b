#include "src/stacks/stack_async.h"

#include "src/waits/wait_graph.h"
#include "util/text.h"

DEFINE_VECTOR(task_list, uint64_t);

struct stack_async {
    struct cdacq_wait_graph *graph; /* of the threads that were visited; nobody else sees it */
    struct async_frame_list found;
};

struct stack_async *stack_async_create(struct cdacq_session *session)
{
    struct stack_async *async = calloc(1, sizeof *async);
    if (async && cdacq_wait_graph_create(session, &async->graph, NULL) < 0) {
        free(async);
        async = NULL;
    }
    return async;
}

void stack_async_destroy(struct stack_async *async)
{
    if (!async)
        return;
    cdacq_wait_graph_destroy(async->graph);
    async_frame_list_deinit(&async->found);
    free(async);
}

void stack_async_begin(struct stack_async *async, const struct cdacq_thread *thread)
{
    async->graph->current.active = false; /* nobody asks for what the thread before waits for */
    cdacq_wait_graph_add_thread(async->graph, thread);
}

/* The methods of the tasks that a task depends on, from the innermost, and its own. */
static void add_awaited(struct stack_async *async, uint64_t task)
{
    struct cdacq_wait_graph *graph = async->graph;
    struct task_list tasks = {0};
    struct object_indices seen = {0};
    bool is_new = true;
    while (task && tasks.count < TASK_CHAIN_MAX &&
           object_indices_insert(&seen, (struct object_index){task, 0}, &is_new) && is_new &&
           task_list_append(&tasks, task))
        task = graph_next_task(graph, task);
    for (size_t i = tasks.count; i-- && async_frames_of(&graph->async, tasks.items[i], &async->found);)
        ;
    task_list_deinit(&tasks);
    object_indices_deinit(&seen);
}

const struct async_frame *stack_async_before(struct stack_async *async, const struct cdacq_frame *frame,
                                             size_t *ret_count)
{
    struct cdacq_wait_graph *graph = async->graph;
    size_t runs = graph->runs.count;
    bool waited = !graph->current.past_wait;
    struct graph_wait wait;
    async->found.count = 0;
    if (graph->current.active) {
        graph_read_frame(graph, frame);
        if (waited && graph->current.past_wait && graph_current_wait(graph, &wait) &&
            wait.wait.kind == CDACQ_WAIT_TASK && wait.wait.object)
            add_awaited(async, wait.wait.object);
        for (size_t i = runs; i < graph->runs.count; i++) {
            uint64_t task = graph->runs.items[i].waiter;
            if (async_frames_of(&graph->async, task, &async->found))
                (void)async_frames_awaiting(&graph->async, task, &async->found);
        }
    }
    *ret_count = async->found.count;
    return async->found.items;
}

bool stack_async_answer(struct stack_async *async, const struct async_frame *frame, struct cdacq_method *ret)
{
    return async_frame_answer(&async->graph->async, frame, ret);
}
