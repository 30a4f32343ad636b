#include "src/cli/report/wait_lines.h"

#include <string.h>

#include "src/cli/base/memory.h"

DEFINE_VECTOR_FUNCTIONS(shown_waits, const struct cdacq_wait *);

const char *wait_lines_task(const struct cdacq_task *task)
{
    return task->method ? task->method : task->type ? task->type : "?";
}

/* A graph has each name once, so equal names, which can be long, are mostly one text in memory. */
static int compare_texts(const char *a, const char *b)
{
    return a == b ? 0 : strcmp(a ? a : "", b ? b : "");
}

bool wait_lines_tasks_alike(const struct cdacq_task *a, const struct cdacq_task *b)
{
    return a->tid == b->tid && compare_texts(wait_lines_task(a), wait_lines_task(b)) == 0 &&
           compare_texts(a->status, b->status) == 0 && compare_texts(a->file, b->file) == 0 && a->line == b->line;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* The order of tasks that differ in what the lines about them say. */
static int compare_tasks(const struct cdacq_wait *a, const struct cdacq_wait *b)
{
    int order = compare_texts(a->type, b->type);
    order = order ? order : compare_numbers(a->task_count, b->task_count);
    order = order ? order : compare_numbers(a->has_pending_continuation, b->has_pending_continuation);
    for (size_t i = 0; i < a->task_count && !order; i++) {
        order = compare_texts(wait_lines_task(&a->tasks[i]), wait_lines_task(&b->tasks[i]));
        order = order ? order : compare_texts(a->tasks[i].status, b->tasks[i].status);
        order = order ? order : compare_numbers((uint64_t)a->tasks[i].tid, (uint64_t)b->tasks[i].tid);
        order = order ? order : compare_texts(a->tasks[i].file, b->tasks[i].file);
        order = order ? order : compare_numbers(a->tasks[i].line, b->tasks[i].line);
    }
    return order;
}

/* The order of waits that differ in what their lines say. For several tasks that read alike, no address is shown. */
static int compare_lines(const struct cdacq_wait *a, const struct cdacq_wait *b)
{
    int order = compare_numbers(a->kind, b->kind);
    if (!order)
        order = a->kind == CDACQ_WAIT_TASK && a->object && b->object ? compare_tasks(a, b)
                                                                     : compare_numbers(a->object, b->object);
    order = order ? order : compare_numbers(a->by, b->by);
    /* Of one lock, a reader may be blocked by another thread than a writer. */
    order = order ? order : compare_numbers((uint64_t)a->blocker_tid, (uint64_t)b->blocker_tid);
    order = order ? order : compare_numbers(a->has_timeout, b->has_timeout);
    return order || !a->has_timeout ? order : compare_numbers((uint64_t)a->timeout_ms, (uint64_t)b->timeout_ms);
}

static int compare_waits(const void *left, const void *right)
{
    const struct cdacq_wait *a = *(const struct cdacq_wait *const *)left, *b = *(const struct cdacq_wait *const *)right;
    int order = compare_lines(a, b);
    order = order ? order : compare_numbers(a->object, b->object);
    return order ? order : compare_numbers((uint64_t)a->tid, (uint64_t)b->tid);
}

size_t wait_lines_count(const struct shown_waits *waits, size_t first)
{
    const struct cdacq_wait *wait = waits->items[first];
    size_t end = first + 1;
    bool is_known = wait->object || wait->kind == CDACQ_WAIT_FOREGROUND; /* the latter has no object */
    while (is_known && end < waits->count && compare_lines(wait, waits->items[end]) == 0)
        end++;
    return end - first;
}

const struct cdacq_wait *wait_lines_of(const struct shown_waits *waits, int tid)
{
    for (size_t i = 0; i < waits->count; i++)
        if (waits->items[i]->tid == tid)
            return waits->items[i];
    return NULL;
}

static int add_wait(const struct cdacq_wait *wait, void *context)
{
    if (!shown_waits_append(context, wait))
        out_of_memory();
    return 0;
}

void wait_lines_collect(struct cdacq_wait_graph *graph, struct shown_waits *ret)
{
    struct shown_waits waits = {0};
    (void)cdacq_wait_graph_visit_waits(graph, add_wait, &waits, NULL);
    if (waits.count)
        qsort(waits.items, waits.count, sizeof *waits.items, compare_waits);
    *ret = waits;
}

void wait_lines_release(struct shown_waits *waits)
{
    shown_waits_deinit(waits);
}
