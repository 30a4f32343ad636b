/*
 * fuzz_locks.c: the waits of a small heap of threads, locks, tasks and queues of a thread pool with words overwritten,
 * as .NET 8 and as .NET 11 have them, and GC info. The first byte is an offset in the code of the GC info; then, words
 * of five bytes each: a place (2), and a value (3), which is a number or the address of something in the heap. Every
 * graph is completed, with no more waits than threads.
 */
#include <stdlib.h>

#include "src/lookup/opened_target.h"
#include "tests/support/lock_heap.h"
#include "util/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORD = 5, WORDS_MAX = 64 };

static void overwrite(struct lock_heap *heap, const uint8_t *word)
{
    unsigned place = load_u16(word, false), value = load_u16(word + 3, false);
    uint64_t size = heap->end - heap->objects_begin;
    uint64_t address = heap->objects_begin + (uint64_t)(place & 0x7fff) * 4 % (size - 8);
    switch (word[2] & 3) {
    case 0: /* something in the heap */
        lock_heap_put(heap, address, LOCK_HEAP_BASE + value * UINT64_C(2) % LOCK_HEAP_SIZE, 8);
        break;
    case 1: /* an object, a thread, a sync block */
        lock_heap_put(heap, address, heap->objects_begin + value * UINT64_C(8) % size, 8);
        break;
    case 2:
        lock_heap_put(heap, address, value, 4);
        break;
    default:
        lock_heap_put(heap, address, (uint64_t)value << 16, place & 0x8000 ? 8 : 4);
    }
}

/* What `box` awaits: an async iterator, which awaits `task`. */
static void add_iterator(struct lock_heap *heap, uint64_t box, uint64_t task)
{
    uint64_t iterator = lock_heap_object(heap, LOCK_HEAP_MACHINE), own = lock_heap_object(heap, LOCK_HEAP_BOX);
    uint64_t machine = lock_heap_object(heap, LOCK_HEAP_MACHINE);
    lock_heap_put(heap, box + FREE_WORDS, machine, 8);
    lock_heap_put(heap, machine + FREE_WORDS, iterator, 8);
    lock_heap_put(heap, iterator + 8, lock_heap_object(heap, LOCK_HEAP_DELEGATE), 8);
    lock_heap_put(heap, iterator + 16, box, 8);
    lock_heap_put(heap, iterator + 24, own, 8);
    lock_heap_put(heap, iterator + 32, task, 8);
    lock_heap_put(heap, own + FREE_WORDS, iterator, 8);
    lock_heap_put(heap, task + TASK_CONTINUATION, own, 8);
}

/* Queues of the pool. Returns what a worker has of them. */
static uint64_t add_pool(struct lock_heap *heap, struct cdacq_wait_graph *graph)
{
    static const uint32_t ends[][2] = {{2, 32}, {0, 5}};
    uint64_t queue = lock_heap_object(heap, LOCK_HEAP_WORK_QUEUE), locals = lock_heap_object(heap, LOCK_HEAP_LOCALS);
    uint64_t items = lock_heap_queue(heap, ends, 2, 32);
    lock_heap_put(heap, queue + WORK_QUEUE_NORMAL, items, 8);
    uint64_t assigned = lock_heap_get(heap, lock_heap_list(heap, &items, 1) + LIST_ITEMS);
    lock_heap_put(heap, queue + WORK_QUEUE_ASSIGNED, assigned, 8);
    lock_heap_put(heap, locals + LOCALS_QUEUE, lock_heap_object(heap, LOCK_HEAP_STEALING), 8);
    graph->pool.queue = queue;
    graph->pool.pool = lock_heap_object(heap, LOCK_HEAP_POOL);
    return locals;
}

/*
 * For .NET 11: thread 0 waits for a pulse of the monitor that thread 1 enters, thread 2 owns a Mutex that thread 3
 * waits for, and thread 4 joins thread 2.
 */
static void add_net11(struct lock_heap *heap)
{
    uint64_t waitables[2], condition = lock_heap_object(heap, LOCK_HEAP_CONDITION);
    uint64_t ownership = lock_heap_object(heap, LOCK_HEAP_OWNERSHIP);
    lock_heap_put(heap, condition + CONDITION_LOCK, heap->locks[2], 8);
    lock_heap_put(heap, condition + CONDITION_EVENT, lock_heap_handle(heap, &waitables[0]), 8);
    lock_heap_put(heap, heap->locks[2] + LOCK_EVENT_OR_CONDITION, condition, 8);
    lock_heap_put(heap, heap->objects[2] + THREAD_JOIN, lock_heap_handle(heap, &waitables[1]), 8);
    lock_heap_put(heap, waitables[0] + WAITABLE_OWNER, ownership, 8);
    lock_heap_put(heap, ownership + OWNER_THREAD, heap->objects[2], 8);
    lock_heap_register(heap, 3, &waitables[0], 1);
    lock_heap_register(heap, 4, &waitables[1], 1);
    lock_heap_record(heap, 0, condition, -1);
    lock_heap_record(heap, 1, heap->locks[2], 1000);
}

struct arranged {
    uint64_t tasks[3], event, locals, reader_writer, handle;
};

/* Two threads that wait for each other, one of them through a task, and others for an async method. */
static void arrange(struct lock_heap *heap, struct cdacq_wait_graph *graph, struct arranged *ret)
{
    uint64_t event = ret->event = lock_heap_object(heap, LOCK_HEAP_EVENT);
    uint64_t outer = ret->tasks[0] = lock_heap_object(heap, LOCK_HEAP_TASK);
    uint64_t inner = ret->tasks[1] = lock_heap_object(heap, LOCK_HEAP_OTHER);
    uint64_t action = lock_heap_object(heap, LOCK_HEAP_DELEGATE), lock = lock_heap_object(heap, LOCK_HEAP_LOCK);
    ret->tasks[2] = lock_heap_object(heap, LOCK_HEAP_BOX);
    add_iterator(heap, ret->tasks[2], lock_heap_object(heap, LOCK_HEAP_ANY));
    lock_heap_put(heap, ret->tasks[2] + TASK_CONTINUATION, event, 8);
    lock_heap_put(heap, action + DELEGATE_TARGET, outer, 8);
    lock_heap_put(heap, outer + TASK_CONTINUATION, event, 8);
    lock_heap_put(heap, inner + TASK_CONTINUATION, lock_heap_list(heap, (const uint64_t[]){lock, action}, 2), 8);
    lock_heap_put(heap, event + EVENT_LOCK, heap->monitors[1], 8);
    if (heap->is_net11) {
        add_net11(heap);
    } else {
        lock_heap_block(heap, 0, 1, 1);
        lock_heap_block(heap, 1, 2, 0);
        lock_heap_block(heap, 2, 3, 0);
    }
    lock_heap_hold(heap, 2, 0, 1, 1);
    lock_heap_hold(heap, 3, 3, 0, 2);
    ret->locals = add_pool(heap, graph);
    ret->reader_writer = lock_heap_object(heap, LOCK_HEAP_READER_WRITER);
    ret->handle = lock_heap_object(heap, LOCK_HEAP_HANDLE);
    lock_heap_put(heap, ret->reader_writer + RW_WRITE_EVENT, ret->handle, 8);
    lock_heap_put(heap, ret->handle + HANDLE_SAFE, lock, 8);
    lock_heap_put(heap, ret->reader_writer + RW_OWNERS, 2, 4);
    lock_heap_put(heap, ret->reader_writer + RW_UPGRADER, 2, 4);
}

static int count(const struct cdacq_wait *wait, void *context)
{
    unsigned *waits = context;
    bool has_object = wait->object || wait->kind == CDACQ_WAIT_FOREGROUND;
    if (wait->task_count > TASK_CHAIN_MAX || (wait->by == CDACQ_WAIT_BY_NOTHING) != !has_object)
        abort();
    return ++*waits > LOCK_HEAP_THREADS ? (abort(), 1) : 0;
}

static int check_deadlock(const struct cdacq_deadlock *deadlock, void *context)
{
    (void)context;
    if (deadlock->count > LOCK_HEAP_THREADS)
        abort();
    for (size_t i = 0; i < deadlock->count; i++)
        if (!deadlock->waits[i])
            abort();
    return 0;
}

/* The frames of threads of .NET 11, from the innermost. */
static void add_frames(struct lock_heap *heap, struct cdacq_wait_graph *graph, unsigned thread)
{
    const struct cdacq_frame frame = lock_heap_frame(heap, thread);
    graph_find_blocking(graph, &frame);
    graph->current.roles |= thread == 3 ? 1u << WAIT_ROLE_HANDLE : thread == 4 ? 0 : 1u << WAIT_ROLE_LOCK;
}

static void add_threads(struct lock_heap *heap, struct cdacq_wait_graph *graph, const struct arranged *arranged)
{
    for (unsigned i = 0; i < LOCK_HEAP_THREADS; i++) {
        struct cdacq_thread thread = lock_heap_thread(heap, i);
        thread.state =
            heap->is_net11 ? i == 5 ? CDACQ_THREAD_EXITING | CDACQ_THREAD_BACKGROUND : CDACQ_THREAD_WAITING : 0;
        cdacq_wait_graph_add_thread(graph, &thread);
        bool has_handle = heap->is_net11 && (i == 3 || i == 4);
        graph->current.roles = has_handle ? 0 : 1u << WAIT_ROLE_EVENT | 1u << WAIT_ROLE_TASK;
        if (heap->is_net11)
            add_frames(heap, graph, i);
        graph->current.candidates[WAIT_ROLE_EVENT] =
            (struct wait_candidate){.object = arranged->event, .by = CDACQ_WAIT_BY_FRAME};
        graph->current.candidates[WAIT_ROLE_TASK] =
            (struct wait_candidate){.object = arranged->tasks[i % 3], .by = CDACQ_WAIT_BY_SCAN};
        if (i == LOCK_HEAP_THREADS - 1) {
            graph->current.roles = 1u << WAIT_ROLE_READER_WRITER | 1u << WAIT_ROLE_HANDLE;
            graph->current.candidates[WAIT_ROLE_READER_WRITER] =
                (struct wait_candidate){.object = arranged->reader_writer, .by = CDACQ_WAIT_BY_FRAME};
            graph->current.safe_handle = lock_heap_get(heap, arranged->handle + HANDLE_SAFE);
        }
        struct task_link *run = task_links_append_items(&graph->runs, 1);
        if (!run)
            abort();
        *run = (struct task_link){.waiter = arranged->tasks[1], .other = 1};
        graph->threads.items[i].is_worker = graph->threads.items[i].runs_work = i & 1;
        graph->threads.items[i].worker_locals = arranged->locals;
    }
}

static int check_lock(const struct cdacq_lock *lock, void *context)
{
    (void)context;
    if (!lock->held && !lock->waiters)
        abort();
    return 0;
}

static void find_waits(struct lock_heap *heap, const uint8_t *data, size_t size)
{
    struct cdacq_wait_graph *graph;
    struct cdacq_error error;
    struct cdacq_thread_pool pool = {.size = sizeof pool};
    struct arranged arranged;
    unsigned waits = 0;
    if (cdacq_wait_graph_create(&heap->session, &graph, &error) < 0)
        abort();
    arrange(heap, graph, &arranged);
    for (size_t i = 0; i < WORDS_MAX && 1 + i * WORD + WORD <= size; i++)
        overwrite(heap, data + 1 + i * WORD);
    add_threads(heap, graph, &arranged);
    (void)cdacq_wait_graph_complete(graph, &error);
    (void)cdacq_wait_graph_visit_locks(graph, check_lock, NULL, &error);
    (void)cdacq_wait_graph_visit_waits(graph, count, &waits, &error);
    (void)cdacq_wait_graph_visit_deadlocks(graph, check_deadlock, NULL, &error);
    if (cdacq_wait_graph_get_thread_pool(graph, &pool, &error) < 0 || pool.busy > pool.workers ||
        pool.waiting > pool.busy)
        abort();
    cdacq_wait_graph_destroy(graph);
}

static void read_gc_info(struct lock_heap *heap, const uint8_t *data, size_t size)
{
    uint64_t gc_info = heap->end + 1024;
    struct gc_slots slots = {0};
    memcpy(heap->bytes + (gc_info - LOCK_HEAP_BASE), data, MIN(size, (size_t)1024));
    for (unsigned version = 2; version <= 4 && size > 1; version++) {
        reader_begin(&heap->session.resolver.reader, FUEL_LOOKUP);
        if (!gc_slots_read(&heap->session.resolver.reader, gc_info + 1, version, data[0], data[0] & 1, &slots) &&
            slots.count)
            abort();
        slots.count = 0;
    }
    gc_slots_deinit(&slots);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct lock_heap heap;
    lock_heap_init(&heap);
    find_waits(&heap, data, size);
    read_gc_info(&heap, data, size);
    lock_heap_deinit(&heap);
    lock_heap_init_net11(&heap);
    find_waits(&heap, data, size);
    lock_heap_deinit(&heap);
    return 0;
}
