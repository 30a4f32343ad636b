/*
 * async_operations.h: all pending async operations of a heap. An operation is a task, or a pooled box, with the methods
 * that have suspended in it: one of a state machine, or all of a RuntimeAsyncTask. The completion of what one awaits
 * leads to it, and so from the innermost operation to the outermost: a chain. Each operation is in one chain.
 */
#ifndef CDACQ_WAITS_ASYNC_OPERATIONS_H
#define CDACQ_WAITS_ASYNC_OPERATIONS_H

#include "src/waits/async_frames.h"
#include "src/waits/async_kinds.h"
#include "util/hash_table.h"
#include "util/vector.h"

struct gc;
struct gc_problems;
struct resolver;

enum {
    ASYNC_OPERATIONS_MAX = 1 << 22, /* also of semaphores, channels, sources of tasks, and failures, each */
    ASYNC_LEADS_MAX = 64,           /* tasks of other kinds between two operations */
};

#define ASYNC_NONE UINT32_MAX

struct async_operation {
    uint64_t object;
    uint64_t first_frame; /* in `frames`, from the innermost method */
    uint32_t frame_count;
    uint32_t next;    /* the operation that awaits this one alone; ASYNC_NONE: there is none */
    uint32_t chain;   /* that it is in; ASYNC_NONE: none yet */
    bool is_awaited;  /* another one's `next` is this */
    bool has_several; /* several wait for its completion */
    bool is_bounded;  /* a time-out or a token can end the wait of `next` for it (Task.WaitAsync) */
};

struct async_chain {
    uint32_t operation, last; /* the innermost and the outermost */
    uint32_t operation_count;
    uint64_t frame_count;
    uint64_t awaited; /* what the innermost method awaits; 0: not known; its own task: another method of that runs */
    bool is_cycle;
    bool is_bounded; /* a time-out or a token can end one of its waits */
};

struct async_index {
    uint64_t object;
    uint64_t other;
};

DEFINE_VECTOR(async_operation_list, struct async_operation);
DEFINE_VECTOR(async_chain_list, struct async_chain);
DEFINE_VECTOR(async_objects, uint64_t);
DEFINE_U64_TABLE(async_indices, struct async_index, object);

struct async_operations {
    struct resolver *resolver;
    struct gc_problems *problems;
    struct threading_types types;
    struct async_kinds kinds;
    struct async_frames async;
    struct async_objects objects[ASYNC_KIND_COUNT]; /* of the heap; only of the kinds that are searched for */
    struct async_frame_list frames;
    struct async_operation_list items;
    struct async_indices indices; /* from its object to the index of an operation */
    struct async_chain_list chains;
    struct async_type *recent; /* the type of the last object */
    uint64_t also_searched;    /* kinds of which all objects are kept as well, as bits */
    bool is_full, no_memory;
};

void async_operations_init(struct async_operations *operations, struct resolver *resolver,
                           struct gc_problems *problems);
void async_operations_deinit(struct async_operations *operations);

/* The second part of the next function: after `objects` were filled, finds the operations and their chains. */
bool async_operations_link(struct async_operations *operations);

/* Finds the operations of a heap, and then their chains. False, and the reader fails: out of fuel or memory. */
bool async_operations_find(struct async_operations *operations, const struct gc *gc);

/* The operation of a task or box; ASYNC_NONE: it is none that is pending. */
uint32_t async_operation_of(const struct async_operations *operations, uint64_t object);

/* The frames of a chain, one after the other, from the innermost. */
struct async_chain_frames {
    const struct async_operations *operations;
    uint32_t operation, operations_left, frame;
};

static inline struct async_chain_frames async_chain_frames(const struct async_operations *operations, uint32_t chain)
{
    const struct async_chain *item = &operations->chains.items[chain];
    return (struct async_chain_frames){operations, item->operation, item->operation_count, 0};
}

/* NULL: there are no more. */
const struct async_frame *async_next_frame(struct async_chain_frames *frames);

/* A frame of a chain's operation. */
static inline const struct async_frame *async_operation_frames(const struct async_operations *operations, uint32_t item)
{
    return &operations->frames.items[operations->items.items[item].first_frame];
}

#endif
