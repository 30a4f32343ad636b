/*
 * report_hang.c: what makes a process hang that has not ended: a deadlock, or a thread pool that starves. Whose stacks
 * show it, and the part of the signature that says it.
 */
#include <stdlib.h>
#include <string.h>

#include "src/cli/base/memory.h"
#include "src/cli/report/report.h"
#include "src/cli/report/signature_names.h"
#include "util/binary_search.h"

enum { DEADLOCK_METHODS = 5 }; /* in a signature */

bool report_is_of_program(const struct cdacq_method *method)
{
    bool is_named = method->name && method->name_length;
    return method->answer == CDACQ_ANSWER_MANAGED &&
           !(is_named && signature_is_of_framework(method->name, method->name_length));
}

bool report_runs_program(const struct stack *stack)
{
    for (size_t i = 0; stack && i < stack->frames.count; i++)
        if (report_is_of_program(&stack->frames.items[i].shared->method))
            return true;
    return false;
}

const struct cdacq_method *report_program_method(const struct stack *stack)
{
    for (size_t i = 0; stack && i < stack->frames.count; i++) {
        const struct stack_frame *frame = stack->frames.items[i].shared;
        if (frame->frame.kind != CDACQ_FRAME_ASYNC && frame->method.name_length && report_is_of_program(&frame->method))
            return &frame->method;
    }
    return NULL;
}

static int compare_tids(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return x < y ? -1 : x > y;
}

void report_list_stacks(struct report *report)
{
    struct thread_stacks *list = &report->by_tid;
    for (struct stacks_cursor at = {0}; stacks_next_thread(&report->stacks, &at);)
        if (!thread_stacks_append(list, (struct thread_stack){at.thread->tid, at.stack}))
            out_of_memory();
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, compare_tids); /* which is the first member */
    report->all_by_tid = list;
    for (size_t i = 0; i < report->other_count; i++)
        report->others[i].all_by_tid = list;
}

const struct stack *report_stack_of(const struct report *report, int tid)
{
    const struct thread_stacks *list = report->all_by_tid;
    size_t first = lower_bound(i, list->count, list->items[i].tid < tid);
    return first < list->count && list->items[first].tid == tid ? list->items[first].stack : NULL;
}

void report_list_deadlocked(struct report *report)
{
    struct report_tids *tids = &report->deadlocked;
    for (size_t i = 0; i < report->deadlocks.count; i++)
        for (size_t k = 0; k < report->deadlocks.items[i]->count; k++)
            if (!report_tids_append(tids, report->deadlocks.items[i]->waits[k]->tid))
                out_of_memory();
    if (tids->count)
        qsort(tids->items, tids->count, sizeof *tids->items, compare_tids);
}

bool report_is_deadlocked(const struct report *report, int tid)
{
    const struct report_tids *tids = &report->deadlocked;
    size_t first = lower_bound(i, tids->count, tids->items[i] < tid);
    return first < tids->count && tids->items[first] == tid;
}

/*
 * How many workers of a thread pool that starves have the stack and run a work item. An idle worker runs no method of
 * the program.
 */
static size_t count_starved(const struct report *report, const struct stack *stack)
{
    size_t count = 0;
    for (size_t i = 0; report->pool.starves && i < stack->threads.count; i++)
        count += stack->threads.items[i].is_of_pool;
    return count && report_runs_program(stack) ? count : 0;
}

bool report_hangs(const struct report *report, const struct stack *stack)
{
    for (size_t i = 0; i < report->other_count; i++)
        if (report_hangs(&report->others[i], stack))
            return true;
    for (size_t i = 0; i < stack->threads.count; i++)
        if (report_is_deadlocked(report, stack->threads.items[i].tid))
            return true;
    return count_starved(report, stack) > 0;
}

/* ---- The signature ---- */

/* The methods of the program that the threads of a deadlock wait in, sorted: which thread came first is chance. */
struct deadlocked {
    const struct cdacq_method *methods[DEADLOCK_METHODS];
    unsigned count;
};

static struct deadlocked describe(const struct report *report, const struct cdacq_deadlock *deadlock)
{
    struct deadlocked ret = {.count = 0};
    for (size_t i = 0; i < deadlock->count && ret.count < DEADLOCK_METHODS; i++) {
        const struct cdacq_method *method = report_program_method(report_stack_of(report, deadlock->waits[i]->tid));
        unsigned at = ret.count;
        if (!method)
            continue;
        for (; at && strcmp(method->name, ret.methods[at - 1]->name) < 0; at--)
            ret.methods[at] = ret.methods[at - 1];
        ret.methods[at] = method;
        ret.count++;
    }
    return ret;
}

static bool precedes(const struct deadlocked *a, const struct deadlocked *b)
{
    for (unsigned i = 0; i < a->count && i < b->count; i++) {
        int order = strcmp(a->methods[i]->name, b->methods[i]->name);
        if (order)
            return order < 0;
    }
    return a->count > b->count;
}

/* Of several deadlocks, the first by name. */
static void write_deadlock(const struct report *report)
{
    struct output *out = report->answers.out;
    struct deadlocked first = describe(report, report->deadlocks.items[0]);
    for (size_t i = 1; i < report->deadlocks.count; i++) {
        struct deadlocked other = describe(report, report->deadlocks.items[i]);
        if (precedes(&other, &first))
            first = other;
    }
    output_literal(out, "deadlock");
    for (unsigned i = 0; i < first.count; i++) {
        output_literal(out, i ? " <> " : ": ");
        signature_write_name(out, first.methods[i]->name, first.methods[i]->name_length);
    }
}

/* A method by whose name workers wait, and how many of them have a stack with it. */
struct waiting_workers {
    const char *name;
    size_t count;
};

DEFINE_VECTOR(waiting_workers_list, struct waiting_workers);

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct waiting_workers *)a)->name, ((const struct waiting_workers *)b)->name);
}

static void add_workers(struct waiting_workers_list *list, const char *name, size_t count)
{
    if (count && !waiting_workers_list_append(list, (struct waiting_workers){name, count}))
        out_of_memory();
}

/* The method of the program whose task a thread waits for. */
struct awaited {
    int tid;
    const char *method;
};

DEFINE_VECTOR(awaited_list, struct awaited);

static int compare_awaited(const void *a, const void *b)
{
    return compare_tids(&((const struct awaited *)a)->tid, &((const struct awaited *)b)->tid);
}

static int add_awaited(const struct cdacq_wait *wait, void *context)
{
    for (size_t i = 0; i < wait->task_count; i++) {
        const char *method = wait->tasks[i].method;
        if (!method || signature_is_of_framework(method, strlen(method)))
            continue;
        if (!awaited_list_append(context, (struct awaited){wait->tid, method}))
            out_of_memory();
        break;
    }
    return 0;
}

static void collect_awaited(const struct report *report, struct awaited_list *ret)
{
    (void)cdacq_wait_graph_visit_waits(report->graph, add_awaited, ret, NULL);
    if (ret->count)
        qsort(ret->items, ret->count, sizeof *ret->items, compare_awaited);
}

static const char *awaited_by(const struct awaited_list *list, int tid)
{
    size_t i = lower_bound(k, list->count, list->items[k].tid < tid);
    return i < list->count && list->items[i].tid == tid ? list->items[i].method : NULL;
}

/*
 * ASP.NET Core compiles an expression tree for each handler of a minimal API. If the handler itself is inlined, the
 * compiled method is the only one that is not of the framework, and it has the same name for all handlers: the task
 * that the worker waits for says more.
 */
static bool is_of_expression_tree(const struct cdacq_method *method)
{
    static const char prefix[] = "dynamicClass.lambda_method";
    return strncmp(method->name, prefix, sizeof prefix - 1) == 0;
}

static void collect_workers(const struct report *report, struct waiting_workers_list *ret)
{
    struct awaited_list awaited = {0};
    collect_awaited(report, &awaited);
    for (size_t i = 0; i < report->stacks.list.count; i++) {
        const struct stack *stack = report->stacks.list.items[i];
        const struct cdacq_method *method = report_program_method(stack);
        size_t count = method ? count_starved(report, stack) : 0;
        if (count && is_of_expression_tree(method)) {
            for (size_t k = 0; k < stack->threads.count; k++) {
                const char *name = awaited_by(&awaited, stack->threads.items[k].tid);
                add_workers(ret, name ? name : method->name, stack->threads.items[k].is_of_pool);
            }
        } else {
            add_workers(ret, method ? method->name : NULL, count);
        }
    }
    awaited_list_deinit(&awaited);
}

/* The method that most workers wait in; of several, the first by name. */
static void write_starvation(const struct report *report)
{
    struct output *out = report->answers.out;
    struct waiting_workers_list list = {0};
    struct waiting_workers most = {0};
    collect_workers(report, &list);
    if (list.count)
        qsort(list.items, list.count, sizeof *list.items, compare_names);
    for (size_t i = 0, next; i < list.count; i = next) {
        size_t count = 0;
        for (next = i; next < list.count && compare_names(&list.items[i], &list.items[next]) == 0; next++)
            count += list.items[next].count;
        if (count > most.count)
            most = (struct waiting_workers){list.items[i].name, count};
    }
    output_literal(out, "starvation");
    if (most.name) {
        output_literal(out, ": ");
        signature_write_name(out, most.name, strlen(most.name));
    }
    waiting_workers_list_deinit(&list);
}

/* The report of the runtime that hangs: by a deadlock or else by starvation. `report` itself if none does. */
static struct report hanging(const struct report *report)
{
    const struct report *found = report;
    struct report ret = *report;
    for (size_t i = 0; i < report->other_count && !found->deadlocks.count; i++) {
        const struct report *other = &report->others[i];
        if (other->deadlocks.count || (other->pool.starves && !found->pool.starves))
            found = other;
    }
    ret.graph = found->graph;
    ret.deadlocks = found->deadlocks;
    ret.pool = found->pool;
    return ret;
}

bool report_write_hang(const struct report *report)
{
    const struct report cause = hanging(report);
    if (cause.deadlocks.count)
        write_deadlock(&cause);
    else if (cause.pool.starves)
        write_starvation(&cause);
    else if (report->process.is_stopped)
        output_literal(report->answers.out, "stopped");
    else if (report->process.is_frozen)
        output_literal(report->answers.out, "frozen");
    else
        return false;
    return true;
}
