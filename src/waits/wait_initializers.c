/*
 * wait_initializers.c: threads that wait for another thread to run the static constructor of a type. The runtime does
 * not publish which type a thread waits for. Two things that agree show it: a word in the frames of the waiting methods
 * is the MethodTable of a type, and another thread runs the static constructor of that type.
 */
#include "contracts/type_system/method_desc.h"
#include "src/waits/wait_graph.h"
#include "util/text.h"

enum { INITIALIZER_WORDS_MAX = 1 << 20 }; /* words of the frames of all threads */

void graph_take_initializer(struct cdacq_wait_graph *graph, uint64_t method_desc)
{
    struct reader *reader = &graph->resolver->reader;
    struct method_desc method;
    reader_begin(reader, FUEL_LOOKUP);
    if (!method_desc_read(reader, method_desc, &method) || !method.method_table)
        return;
    const struct task_link run = {.waiter = method.method_table, .other = graph->threads.count - 1};
    if (!task_table_insert(&graph->initializers, run, NULL))
        graph_note_memory(graph);
}

void graph_take_initializer_word(struct cdacq_wait_graph *graph, uint64_t word)
{
    if (!word || word % sizeof(uint32_t))
        return;
    if (graph->initializer_words.count >= INITIALIZER_WORDS_MAX)
        graph_note_too_many(graph);
    else if (!task_links_append(&graph->initializer_words,
                                (struct task_link){.waiter = word, .other = graph->threads.count - 1}))
        graph_note_memory(graph);
}

static void add_wait(struct cdacq_wait_graph *graph, size_t waiter, const struct task_link *run)
{
    const struct graph_thread *thread = &graph->threads.items[waiter];
    const struct graph_wait wait = {
        .wait = {.size = sizeof wait.wait,
                 .kind = CDACQ_WAIT_INITIALIZER,
                 .by = CDACQ_WAIT_BY_FRAME,
                 .tid = thread->tid,
                 .thread = thread->address,
                 .managed_id = thread->managed_id,
                 .name = thread->name,
                 .object = run->waiter,
                 .has_timeout = true,
                 .timeout_ms = -1,
                 .endless = CDACQ_ENDLESS_YES},
        .thread = (int)waiter,
        .blocker = (int)run->other,
    };
    if (!graph_waits_append(&graph->waits, wait))
        graph_note_memory(graph);
}

void graph_find_initializer_waits(struct cdacq_wait_graph *graph)
{
    const struct task_links *words = &graph->initializer_words;
    for (size_t i = 0, next; i < words->count; i = next) { /* the words of one thread are next to each other */
        const struct task_link *found = NULL;
        bool ambiguous = false;
        for (next = i; next < words->count && words->items[next].other == words->items[i].other; next++) {
            const struct task_link *run = task_table_find(&graph->initializers, words->items[next].waiter);
            if (!run || run->other == words->items[i].other)
                continue;
            ambiguous |= found && found != run;
            found = run;
        }
        /* A thread has one wait: what the runtime blocks it on, if that is known. */
        if (found && !ambiguous && !graph->threads.items[words->items[i].other].has_wait)
            add_wait(graph, words->items[i].other, found);
    }
}
