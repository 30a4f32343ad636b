/*
 * report_hang.c: what makes a process hang that has not ended: a deadlock, or a thread pool that starves. Whose stacks
 * show it, and the part of the signature that says it.
 */
#include <stdlib.h>
#include <string.h>

#include "src/cli/memory.h"
#include "src/cli/report.h"
#include "src/cli/signature_names.h"

enum { DEADLOCK_METHODS = 5 }; /* in a signature */

/* The first method that is none of the framework's. */
static const struct cdacq_method *waiting_method(const struct stack *stack)
{
    for (size_t i = 0; stack && i < stack->frames.count; i++) {
        const struct cdacq_method *method = &stack->frames.items[i].shared->method;
        if (method->answer == CDACQ_ANSWER_MANAGED && method->name && method->name_length &&
            !signature_is_of_framework(method->name, method->name_length))
            return method;
    }
    return NULL;
}

static bool is_deadlocked(const struct report *report, int tid)
{
    for (size_t i = 0; i < report->deadlocks.count; i++)
        for (size_t k = 0; k < report->deadlocks.items[i]->count; k++)
            if (report->deadlocks.items[i]->waits[k]->tid == tid)
                return true;
    return false;
}

/* An idle worker runs no method of the program. */
static bool is_of_starved_pool(const struct report *report, const struct stack *stack,
                               const struct stack_thread *thread)
{
    return report->pool.starves && thread->is_pool_worker && waiting_method(stack);
}

bool report_hangs(const struct report *report, const struct stack *stack)
{
    for (size_t i = 0; i < stack->threads.count; i++) {
        const struct stack_thread *thread = &stack->threads.items[i];
        if (is_deadlocked(report, thread->tid) || is_of_starved_pool(report, stack, thread))
            return true;
    }
    return false;
}

/* ---- The signature ---- */

/* The methods of the program that the threads of a deadlock wait in, sorted: which thread came first is chance. */
struct deadlocked {
    const struct cdacq_method *methods[DEADLOCK_METHODS];
    unsigned count;
};

static const struct stack *stack_of(const struct report *report, int tid)
{
    for (size_t i = 0; i < report->stacks.list.count; i++) {
        const struct stack_threads *threads = &report->stacks.list.items[i]->threads;
        for (size_t k = 0; k < threads->count; k++)
            if (threads->items[k].tid == tid)
                return report->stacks.list.items[i];
    }
    return NULL;
}

static struct deadlocked describe(const struct report *report, const struct cdacq_deadlock *deadlock)
{
    struct deadlocked ret = {.count = 0};
    for (size_t i = 0; i < deadlock->count && ret.count < DEADLOCK_METHODS; i++) {
        const struct cdacq_method *method = waiting_method(stack_of(report, deadlock->waits[i]->tid));
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

/* The method that workers wait in, and how many of them have a stack with it. */
struct waiting_workers {
    const struct cdacq_method *method;
    size_t count;
};

DEFINE_VECTOR(waiting_workers_list, struct waiting_workers);

static int compare_methods(const void *a, const void *b)
{
    return strcmp(((const struct waiting_workers *)a)->method->name, ((const struct waiting_workers *)b)->method->name);
}

static void collect_workers(const struct report *report, struct waiting_workers_list *ret)
{
    for (size_t i = 0; i < report->stacks.list.count; i++) {
        const struct stack *stack = report->stacks.list.items[i];
        struct waiting_workers workers = {.method = waiting_method(stack)};
        for (size_t k = 0; k < stack->threads.count; k++)
            workers.count += is_of_starved_pool(report, stack, &stack->threads.items[k]);
        if (workers.count && !waiting_workers_list_append(ret, workers))
            out_of_memory();
    }
}

/* The method that most workers wait in; of several, the first by name. */
static void write_starvation(const struct report *report)
{
    struct output *out = report->answers.out;
    struct waiting_workers_list list = {0};
    struct waiting_workers most = {0};
    collect_workers(report, &list);
    if (list.count)
        qsort(list.items, list.count, sizeof *list.items, compare_methods);
    for (size_t i = 0, next; i < list.count; i = next) {
        size_t count = 0;
        for (next = i; next < list.count && compare_methods(&list.items[i], &list.items[next]) == 0; next++)
            count += list.items[next].count;
        if (count > most.count)
            most = (struct waiting_workers){list.items[i].method, count};
    }
    output_literal(out, "starvation");
    if (most.method) {
        output_literal(out, ": ");
        signature_write_name(out, most.method->name, most.method->name_length);
    }
    waiting_workers_list_deinit(&list);
}

bool report_write_hang(const struct report *report)
{
    if (report->deadlocks.count)
        write_deadlock(report);
    else if (report->pool.starves)
        write_starvation(report);
    else if (report->process.is_stopped)
        output_literal(report->answers.out, "stopped");
    else
        return false;
    return true;
}
