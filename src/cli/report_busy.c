/*
 * report_busy.c: the threads that use the processors, which make a process slow, and the order of the stacks in the
 * text: what has ended the process or makes it hang first, then what keeps it busy.
 */
#include <stdlib.h>

#include "src/cli/memory.h"
#include "src/cli/report.h"

enum { BUSY_SHOWN = 20 };

static const char *thread_name(const struct report *report, int tid)
{
    for (size_t i = 0; i < report->stacks.list.count; i++) {
        const struct stack_threads *threads = &report->stacks.list.items[i]->threads;
        for (size_t k = 0; k < threads->count; k++)
            if (threads->items[k].tid == tid)
                return threads->items[k].name;
    }
    return NULL;
}

void report_write_busy_text(const struct report *report)
{
    const struct busy_threads *busy = report->busy;
    struct output *out = report->answers.out;
    if (!busy || !busy->list.count)
        return;
    output_styled(out, STYLE_HEADING, "\nBusy threads:\n");
    for (size_t i = 0; i < MIN(busy->list.count, (size_t)BUSY_SHOWN); i++) {
        const struct busy_thread *thread = &busy->list.items[i];
        const char *name = thread_name(report, thread->tid);
        output_printf(out, "  TID %d", thread->tid);
        if (name)
            output_text_between(out, " \"", name, "\"");
        output_printf(out, " used %u %% of a processor for %.1f s before it was stopped\n", thread->percent,
                      busy->seconds);
    }
    if (busy->list.count > BUSY_SHOWN)
        output_printf(out, "  and %zu more\n", busy->list.count - BUSY_SHOWN);
}

static struct ordered_stack place_of(const struct report *report, size_t index)
{
    const struct stack *stack = report->stacks.list.items[index];
    struct ordered_stack placed = {.stack = stack, .index = index, .rank = STACK_OTHER};
    for (size_t i = 0; report->busy && i < stack->threads.count; i++)
        placed.percent = MAX(placed.percent, busy_percent(report->busy, stack->threads.items[i].tid));
    if (stack == report->dead)
        placed.rank = STACK_DEAD;
    else if (report_hangs(report, stack))
        placed.rank = STACK_HANGS;
    else if (placed.percent)
        placed.rank = STACK_BUSY;
    return placed;
}

static int compare_places(const void *left, const void *right)
{
    const struct ordered_stack *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->rank == STACK_BUSY && a->percent != b->percent)
        return a->percent > b->percent ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

struct ordered_stacks report_order_stacks(const struct report *report)
{
    struct ordered_stacks ret = {.count = report->stacks.list.count};
    ret.items = allocate((ret.count + 1) * sizeof *ret.items);
    for (size_t i = 0; i < ret.count; i++)
        ret.items[i] = place_of(report, i);
    qsort(ret.items, ret.count, sizeof *ret.items, compare_places);
    return ret;
}
