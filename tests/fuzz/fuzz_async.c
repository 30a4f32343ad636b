/*
 * fuzz_async.c: the async methods of a small heap of .NET 11 with words overwritten: chains of continuations, tasks
 * that wait for each other, state machines, and what threads run. Words of five bytes each: a place (2), what is
 * written (1), and a value (2). Every chain ends, and has no more frames than its bound.
 */
#include <stdlib.h>

#include "contracts/gc/problems.h"
#include "contracts/threading/async_method.h"
#include "contracts/threading/continuation.h"
#include "src/lookup/opened_target.h"
#include "src/waits/async_reasons.h"
#include "src/waits/pending_work.h"
#include "tests/support/lock_heap.h"
#include "util/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORD = 5, WORDS_MAX = 64, TASKS = 4, METHODS = 3, CODE = 0x5000, DISPATCHED_MAX = 256 };

struct arranged {
    uint64_t tasks[TASKS], boxes[2], queue, stealing;
};

static void overwrite(struct lock_heap *heap, const uint8_t *word)
{
    unsigned place = load_u16(word, false), value = load_u16(word + 3, false);
    bool in_types = word[2] & 4; /* types, metadata and the runtime's variables, or objects */
    uint64_t begin = in_types ? LOCK_HEAP_BASE : heap->objects_begin;
    uint64_t size = heap->end - begin, address = begin + (uint64_t)place * 4 % (size - 8);
    switch (word[2] & 3) {
    case 0: /* something in the heap */
        lock_heap_put(heap, address, LOCK_HEAP_BASE + value * UINT64_C(2) % LOCK_HEAP_SIZE, 8);
        break;
    case 1: /* an object */
        lock_heap_put(heap, address, heap->objects_begin + value * UINT64_C(8) % (heap->end - heap->objects_begin), 8);
        break;
    case 2:
        lock_heap_put(heap, address, value, 4);
        break;
    default:
        lock_heap_put(heap, address, (uint64_t)value << 16, word[2] & 8 ? 8 : 4);
    }
}

static uint64_t add_task(struct lock_heap *heap, uint64_t awaited)
{
    uint64_t next = 0, task = lock_heap_object(heap, LOCK_HEAP_RUNTIME_ASYNC);
    for (unsigned i = METHODS; i--;)
        next = lock_heap_continuation(heap, LOCK_HEAP_CONTINUATION, next, CODE + i);
    if (awaited) {
        next = lock_heap_continuation(heap, LOCK_HEAP_TASK_AWAIT, next, 0);
        lock_heap_put(heap, next + AWAIT_OBJECT, awaited, 8);
        lock_heap_put(heap, next + AWAIT_OF, task, 8);
        lock_heap_put(heap, awaited + TASK_CONTINUATION, next, 8);
    }
    lock_heap_put(heap, task + TASK_STATE_OBJECT, next, 8);
    return task;
}

/* Each task waits for the one before it, and the first one for a state machine, which waits for another one. */
static void arrange(struct lock_heap *heap, struct arranged *ret)
{
    for (size_t i = 0; i < ARRAY_SIZE(ret->boxes); i++) {
        uint64_t machine = lock_heap_object(heap, LOCK_HEAP_MACHINE);
        ret->boxes[i] = lock_heap_object(heap, LOCK_HEAP_BOX);
        lock_heap_put(heap, ret->boxes[i] + FREE_WORDS, machine, 8);
        lock_heap_put(heap, machine + FREE_WORDS, i ? ret->boxes[0] : 0, 8);
        lock_heap_put(heap, machine + MACHINE_STATE, i, 4);
    }
    lock_heap_put(heap, ret->boxes[0] + TASK_CONTINUATION, ret->boxes[1], 8);
    for (unsigned i = 0; i < TASKS; i++)
        ret->tasks[i] = add_task(heap, i ? ret->tasks[i - 1] : ret->boxes[1]);
    ret->queue = lock_heap_object(heap, LOCK_HEAP_WORK_QUEUE);
    ret->stealing = lock_heap_object(heap, LOCK_HEAP_STEALING);
    uint64_t items = lock_heap_queue(heap, (const uint32_t[][2]){{2, 8}, {0, 5}}, 2, 8);
    uint64_t slots = lock_heap_get(heap, lock_heap_get(heap, items + QUEUE_HEAD) + SEGMENT_SLOTS);
    lock_heap_put(heap, slots + 16 + 2 * 16, ret->boxes[1], 8);
    lock_heap_put(heap, slots + 16 + 3 * 16, ret->tasks[0], 8);
    lock_heap_put(heap, ret->queue + WORK_QUEUE_NORMAL, items, 8);
    uint64_t list = lock_heap_list(heap, ret->tasks, TASKS);
    lock_heap_put(heap, ret->stealing + STEALING_ARRAY, lock_heap_get(heap, list + LIST_ITEMS), 8);
    lock_heap_put(heap, ret->stealing + STEALING_MASK, TASKS - 1, 4);
    lock_heap_put(heap, ret->stealing + STEALING_TAIL, TASKS, 4);
    lock_heap_dispatch(heap, 0, ret->tasks[TASKS - 1], lock_heap_get(heap, ret->tasks[0] + TASK_STATE_OBJECT));
    lock_heap_dispatch(heap, 0, lock_heap_object(heap, LOCK_HEAP_RUNTIME_ASYNC), 0);
}

static bool count_dispatched(void *context, const struct dispatched *item)
{
    unsigned *count = context;
    if (!item->running || ++*count > DISPATCHED_MAX)
        abort();
    return true;
}

/* Of an object: its methods, and those that wait for it. Returns how many of its own there are. */
static size_t find_frames(struct cdacq_wait_graph *graph, uint64_t object, struct async_frame_list *frames)
{
    frames->count = 0;
    if (!async_frames_of(&graph->async, object, frames) || frames->count > ASYNC_FRAMES_MAX)
        abort();
    size_t own = frames->count;
    if (!async_frames_awaiting(&graph->async, object, frames) || frames->count - own > 2 * ASYNC_FRAMES_MAX)
        abort();
    for (size_t i = 0; i < frames->count; i++) {
        struct cdacq_method method = {.size = sizeof method};
        const struct async_frame *frame = &frames->items[i];
        if (!frame->object || !frame->info == !frame->type)
            abort();
        if (!frame->pc && i < METHODS)
            (void)async_frame_answer(&graph->async, frame, &method);
    }
    return own;
}

static void find_machine(struct cdacq_wait_graph *graph, uint64_t box)
{
    struct async_method method;
    int32_t state = 0;
    (void)async_method_source_continuation(&graph->types, box);
    if (!async_method_find(&graph->types, box, &method))
        return;
    if (async_method_state(&graph->types, &method, &state) && state < 0)
        abort();
    (void)async_method_awaiter_task(&graph->types, &method);
}

/* What stands in the queues of the thread pool, and the objects of timers and requests, which any may be. */
static bool find_work(struct async_operations *operations, const struct arranged *arranged)
{
    struct pending_work work;
    (void)async_objects_append(&operations->objects[ASYNC_WORK_QUEUE], arranged->queue);
    (void)async_objects_append(&operations->objects[ASYNC_STEALING], arranged->stealing);
    for (size_t i = 0; i < TASKS; i++) {
        (void)async_objects_append(&operations->objects[ASYNC_TIMER], arranged->tasks[i]);
        (void)async_objects_append(&operations->objects[ASYNC_HTTP_SERVED], arranged->tasks[i]);
    }
    bool found = pending_work_find(&work, operations);
    if (work.items.count > PENDING_ITEMS_MAX)
        abort();
    pending_work_deinit(&work);
    return found;
}

/* All operations: each is in one chain, and the chains have all frames. */
static void find_operations(struct lock_heap *heap, const struct arranged *arranged, bool is_whole)
{
    struct gc_problems problems = {0};
    struct async_operations operations;
    struct async_reasons reasons = {0};
    size_t count = 0;
    async_operations_init(&operations, &heap->session.resolver, &problems);
    reader_begin(&heap->session.resolver.reader, FUEL_INDEX);
    for (size_t i = 0; i < TASKS; i++)
        (void)async_objects_append(&operations.objects[ASYNC_RUNTIME_TASK], arranged->tasks[i]);
    for (size_t i = 0; i < ARRAY_SIZE(arranged->boxes); i++)
        (void)async_objects_append(&operations.objects[ASYNC_BOX], arranged->boxes[i]);
    if (!async_operations_link(&operations) || !async_reasons_init(&reasons, &operations, 1) ||
        !async_reasons_mark_cycles(&reasons))
        abort();
    for (size_t i = 0; i < operations.chains.count; i++) {
        const struct async_chain *chain = &operations.chains.items[i];
        struct async_common common = {.reason = async_reason_of(&reasons, chain)};
        enum async_reason_kind kind = common.reason.kind;
        struct text text = {0};
        /* The heap has no code, by which the others are named. */
        if (kind != ASYNC_REASON_OPERATION && kind != ASYNC_REASON_ALL && kind != ASYNC_REASON_WORK) {
            async_reason_put(&reasons, chain, &common, &text);
            if (!text.length)
                abort();
        }
        text_deinit(&text);
        count += chain->operation_count;
    }
    if (!find_work(&operations, arranged))
        abort();
    if (count != operations.items.count || (is_whole && (operations.chains.count != 1 || count < TASKS)))
        abort();
    async_reasons_deinit(&reasons);
    async_operations_deinit(&operations);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct lock_heap heap;
    struct cdacq_wait_graph *graph;
    struct async_frame_list frames = {0};
    struct arranged arranged;
    struct cdacq_error error;
    unsigned count = 0;
    lock_heap_init_net11(&heap);
    if (cdacq_wait_graph_create(&heap.session, &graph, &error) < 0)
        abort();
    arrange(&heap, &arranged);
    for (size_t i = 0; i < WORDS_MAX && i * WORD + WORD <= size; i++)
        overwrite(&heap, data + i * WORD);
    for (unsigned i = 0; i < TASKS; i++) {
        size_t own = find_frames(graph, arranged.tasks[i], &frames);
        if (!size && (own != METHODS || frames.count != (TASKS - i) * (size_t)METHODS))
            abort();
        uint64_t first = continuation_of_task(&graph->types, arranged.tasks[i]);
        (void)continuation_awaited(&graph->types, first);
    }
    for (size_t i = 0; i < ARRAY_SIZE(arranged.boxes); i++) {
        (void)find_frames(graph, arranged.boxes[i], &frames);
        find_machine(graph, arranged.boxes[i]);
    }
    continuation_each_dispatched(&graph->types, heap.threads[0], count_dispatched, &count);
    find_operations(&heap, &arranged, !size);
    async_frame_list_deinit(&frames);
    cdacq_wait_graph_destroy(graph);
    lock_heap_deinit(&heap);
    return 0;
}
