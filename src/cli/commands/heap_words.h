/*
 * heap_words.h: what the objects of a path from a root are in words, where their types say it: a timer, the delegates
 * of an event, an async method that has not ended.
 */
#ifndef CDACQ_CLI_COMMANDS_HEAP_WORDS_H
#define CDACQ_CLI_COMMANDS_HEAP_WORDS_H

#include "src/cli/commands/heap_graph.h"

enum heap_word_kind { HEAP_WORD_NONE, HEAP_WORD_TIMER, HEAP_WORD_EVENT, HEAP_WORD_ASYNC };

enum { HEAP_WORD_SIZE = 512 };

struct heap_word {
    enum heap_word_kind kind;
    char text
        [HEAP_WORD_SIZE]; /* "a timer", "event Ns.Type.Event", "async method Ns.Type.Method"; printable, may be cut */
};

/* "timer", "event", "async"; static. */
const char *heap_word_kind_text(enum heap_word_kind kind);

/* An object of a path, and those beside it; GRAPH_NONE: there is none. `by` NULL: `root` refers to it. */
struct heap_step {
    const struct graph_root *root;
    uint32_t holder, object, next;
    const char *by;
};

/* *ret has HEAP_WORD_NONE where there is nothing to say. Asks the session of the graph. */
void heap_word_of(struct heap_graph *graph, const struct heap_step *step, struct heap_word *ret);

#endif
