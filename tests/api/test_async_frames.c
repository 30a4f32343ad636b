/*
 * test_async_frames.c: async methods that wait, in a small heap as .NET 11.0.0 lays it out (tests/support/lock_heap.h):
 * chains of continuations, what threads run, state machines; and the same with cycles, pointers that lead nowhere, and
 * layouts that lack something.
 */
#include "contracts/objects/thread_static.h"
#include "contracts/threading/async_method.h"
#include "contracts/threading/continuation.h"
#include "src/lookup/opened_target.h"
#include "src/waits/wait_graph.h"
#include "tests/support/check_main.h"
#include "tests/support/lock_heap.h"
#include "util/text.h"

enum { CODE = 0x5000, DISPATCHED_MAX = 1000 };

static struct lock_heap heap;
static struct cdacq_wait_graph *graph;
static struct async_frame_list frames;
static struct dispatched dispatched[DISPATCHED_MAX];
static size_t dispatched_count, dispatched_limit;

static void setup(void)
{
    struct cdacq_error error;
    lock_heap_init_net11(&heap);
    ck_assert_int_eq(cdacq_wait_graph_create(&heap.session, &graph, &error), CDACQ_OK);
    frames = (struct async_frame_list){0};
    dispatched_count = 0;
    dispatched_limit = DISPATCHED_MAX;
}

static void teardown(void)
{
    async_frame_list_deinit(&frames);
    cdacq_wait_graph_destroy(graph);
    lock_heap_deinit(&heap);
}

/* A task of methods that wait at CODE + 1, CODE + 2, ...: `ret`, from the innermost, if it is not NULL. */
static uint64_t add_task(unsigned count, uint64_t *ret)
{
    uint64_t next = 0, task = lock_heap_object(&heap, LOCK_HEAP_RUNTIME_ASYNC);
    for (unsigned i = count; i--;) {
        next = lock_heap_continuation(&heap, LOCK_HEAP_CONTINUATION, next, CODE + 1 + i);
        if (ret)
            ret[i] = next;
    }
    lock_heap_put(&heap, task + TASK_STATE_OBJECT, next, 8);
    return task;
}

static void set_next(uint64_t continuation, uint64_t next)
{
    lock_heap_set(&heap, continuation, F_ContinuationObject_Next, next);
}

/* `awaited` completes `task`, whose innermost method waits for it. */
static void await(uint64_t task, uint64_t awaited)
{
    uint64_t first = lock_heap_get(&heap, task + TASK_STATE_OBJECT);
    uint64_t await = lock_heap_continuation(&heap, LOCK_HEAP_TASK_AWAIT, first, 0);
    lock_heap_put(&heap, await + AWAIT_OBJECT, awaited, 8);
    lock_heap_put(&heap, await + AWAIT_OF, task, 8);
    lock_heap_put(&heap, task + TASK_STATE_OBJECT, await, 8);
    lock_heap_put(&heap, awaited + TASK_CONTINUATION, await, 8);
}

static size_t frames_of(uint64_t object)
{
    frames.count = 0;
    ck_assert(async_frames_of(&graph->async, object, &frames));
    return frames.count;
}

static bool keep_dispatched(void *context, const struct dispatched *item)
{
    (void)context;
    ck_assert_uint_lt(dispatched_count, DISPATCHED_MAX);
    dispatched[dispatched_count++] = *item;
    return dispatched_count < dispatched_limit;
}

static size_t visit_dispatched(unsigned thread)
{
    dispatched_count = 0;
    continuation_each_dispatched(&graph->types, heap.threads[thread], keep_dispatched, NULL);
    return dispatched_count;
}

/* ---- Continuations ---- */

START_TEST(a_chain)
{
    uint64_t chain[3], task = add_task(3, chain);
    struct continuation read;
    ck_assert_uint_eq(frames_of(task), 3);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_uint_eq(frames.items[i].object, chain[i]);
        ck_assert_uint_eq(frames.items[i].pc, CODE + 1 + i);
        ck_assert(continuation_read(&graph->types, chain[i], &read));
        ck_assert_uint_eq(read.next, i < 2 ? chain[i + 1] : 0);
    }
    ck_assert_uint_eq(continuation_of_task(&graph->types, task), chain[0]);
    ck_assert_uint_eq(continuation_awaited(&graph->types, chain[0]), 0);
}
END_TEST

/* The first one stands for what the innermost method waits for, and is no frame. */
START_TEST(what_is_awaited)
{
    uint64_t task = add_task(2, NULL), other = add_task(1, NULL);
    await(task, other);
    uint64_t first = continuation_of_task(&graph->types, task);
    ck_assert_uint_eq(continuation_awaited(&graph->types, first), other);
    ck_assert_uint_eq(frames_of(task), 2);
    uint64_t source = lock_heap_object(&heap, LOCK_HEAP_OBJECT);
    uint64_t await_source = lock_heap_continuation(&heap, LOCK_HEAP_SOURCE_AWAIT, 0, 0);
    lock_heap_put(&heap, await_source + AWAIT_OBJECT, source, 8);
    ck_assert_uint_eq(continuation_awaited(&graph->types, await_source), source);
}
END_TEST

/* Whatever the last one leads to, the frames before it are right. */
START_TEST(chains_that_lead_nowhere)
{
    uint64_t chain[3], task = add_task(3, chain);
    const uint64_t wrong[] = {lock_heap_object(&heap, LOCK_HEAP_OBJECT), chain[0] + 1, 8, heap.end + 0x100000,
                              UINT64_MAX - 7};
    struct continuation read = {.pc = 77};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        set_next(chain[1], wrong[i]);
        ck_assert_uint_eq(frames_of(task), 2);
        ck_assert_uint_eq(frames.items[1].object, chain[1]);
        ck_assert(!continuation_read(&graph->types, wrong[i], &read));
        ck_assert_uint_eq(read.pc, 77);
        lock_heap_put(&heap, task + TASK_STATE_OBJECT, wrong[i], 8);
        ck_assert_uint_eq(continuation_of_task(&graph->types, task), 0);
        ck_assert_uint_eq(frames_of(task), 0);
        lock_heap_put(&heap, task + TASK_STATE_OBJECT, chain[0], 8);
    }
    lock_heap_set(&heap, chain[0], F_ContinuationObject_ResumeInfo, 16); /* where the code goes on cannot be read */
    ck_assert_uint_eq(frames_of(task), 2);
    ck_assert_uint_eq(frames.items[1].pc, CODE + 2);
}
END_TEST

START_TEST(a_chain_in_a_cycle)
{
    uint64_t chain[2], task = add_task(2, chain);
    set_next(chain[1], chain[0]);
    ck_assert_uint_eq(frames_of(task), ASYNC_FRAMES_MAX);
}
END_TEST

START_TEST(no_type_of_continuations)
{
    uint64_t chain[2], task = add_task(2, chain);
    heap.target.layout.global_present[G_ContinuationMethodTable] = false;
    ck_assert_uint_eq(frames_of(task), 0);
    heap.target.layout.global_present[G_ContinuationMethodTable] = true;
    heap.target.layout.fields[F_ContinuationObject_Next].present = false;
    ck_assert_uint_eq(frames_of(task), 0);
}
END_TEST

/* ---- Who waits for a task ---- */

START_TEST(awaiting_methods)
{
    uint64_t inner = add_task(1, NULL), middle = add_task(2, NULL), outer = add_task(3, NULL);
    await(middle, inner);
    await(outer, middle);
    ck_assert(async_frames_awaiting(&graph->async, inner, &frames));
    ck_assert_uint_eq(frames.count, 5);
    ck_assert_uint_eq(frames.items[2].pc, CODE + 1);
    await(middle, outer); /* each waits for the other */
    frames.count = 0;
    ck_assert(async_frames_awaiting(&graph->async, inner, &frames));
    ck_assert_uint_ge(frames.count, 5);
    ck_assert_uint_le(frames.count, ASYNC_FRAMES_MAX + 3);
}
END_TEST

/* ---- What threads run ---- */

START_TEST(what_a_thread_runs)
{
    uint64_t chain[2], outer = add_task(2, chain), inner = add_task(0, NULL);
    ck_assert_uint_eq(visit_dispatched(1), 0);
    lock_heap_put(&heap, outer + TASK_STATE_OBJECT, 0, 8); /* it runs */
    lock_heap_dispatch(&heap, 1, outer, chain[0]);
    lock_heap_dispatch(&heap, 1, inner, 0);
    ck_assert_uint_eq(visit_dispatched(1), 2);
    ck_assert_uint_eq(dispatched[0].running, inner);
    ck_assert_uint_eq(dispatched[0].next, 0);
    ck_assert_uint_eq(dispatched[1].running, outer);
    ck_assert_uint_eq(dispatched[1].next, chain[0]);
    ck_assert_uint_eq(visit_dispatched(0), 0);
    dispatched_limit = 1;
    ck_assert_uint_eq(visit_dispatched(1), 1);
    ck_assert_uint_eq(frames_of(outer), 2);
    ck_assert_uint_eq(frames_of(inner), 0);
}
END_TEST

START_TEST(damaged_dispatchers)
{
    uint64_t task = add_task(0, NULL), info = lock_heap_dispatch(&heap, 2, task, 0);
    uint64_t current = heap.thread_data[2] + DISPATCHER_CURRENT;
    lock_heap_put(&heap, info + DISPATCHER_NEXT, info, 8);
    size_t count = visit_dispatched(2);
    ck_assert_uint_gt(count, 1);
    ck_assert_uint_le(count, 256);
    lock_heap_put(&heap, info + DISPATCHER_NEXT, 24, 8);
    ck_assert_uint_eq(visit_dispatched(2), 1);
    lock_heap_put(&heap, current, 24, 8);
    ck_assert_uint_eq(visit_dispatched(2), 0);
    lock_heap_set(&heap, heap.threads[2], F_Thread_ThreadLocalDataPtr, 0);
    ck_assert_uint_eq(visit_dispatched(2), 0);
    lock_heap_set(&heap, heap.threads[2], F_Thread_ThreadLocalDataPtr, 24);
    ck_assert_uint_eq(visit_dispatched(2), 0);
    continuation_each_dispatched(&graph->types, 0, keep_dispatched, NULL);
    continuation_each_dispatched(&graph->types, 24, keep_dispatched, NULL);
    ck_assert_uint_eq(dispatched_count, 0);
}
END_TEST

/* ---- Thread-static fields ---- */

static bool find_static(const char *name, uint64_t *ret)
{
    reader_begin(&heap.session.resolver.reader, FUEL_INDEX);
    return thread_static_find(&heap.session.resolver.modules, heap.threads[3], heap.tables[LOCK_HEAP_DISPATCHER], name,
                              ret) &&
           !reader_failed(&heap.session.resolver.reader);
}

START_TEST(thread_statics)
{
    struct layout *layout = &heap.target.layout;
    uint64_t address = 0, table = heap.tables[LOCK_HEAP_DISPATCHER];
    uint64_t auxiliary = lock_heap_get(&heap, table + layout->fields[F_MethodTable_AuxiliaryData].offset);
    uint64_t index = auxiliary - layout->sizes[T_ThreadStaticsInfo];
    ck_assert(find_static("t_current", &address));
    ck_assert_uint_eq(address, heap.thread_data[3] + DISPATCHER_CURRENT);
    ck_assert(!find_static("Next", &address)); /* of an instance */
    ck_assert(!find_static("t_other", &address));
    lock_heap_put(&heap, index, 2 << 24 | 0x10, 4);
    ck_assert(find_static("t_current", &address));
    ck_assert_uint_eq(address, heap.thread_data[3] + DISPATCHER_CURRENT + 0x10);
    for (uint32_t kind = 0; kind < 4; kind++) { /* in the arrays of other types, or not allocated */
        lock_heap_put(&heap, index, kind << 24, 4);
        ck_assert(find_static("t_current", &address) == (kind == 2));
    }
    lock_heap_put(&heap, index, 2 << 24, 4);
    lock_heap_set(&heap, table, F_MethodTable_AuxiliaryData, 64);
    ck_assert(!find_static("t_current", &address));
    lock_heap_set(&heap, table, F_MethodTable_AuxiliaryData, auxiliary);
    layout->sizes[T_ThreadStaticsInfo] = 0;
    ck_assert(!find_static("t_current", &address));
}
END_TEST

/* ---- State machines ---- */

START_TEST(state_machines)
{
    uint64_t box = lock_heap_object(&heap, LOCK_HEAP_BOX), machine = lock_heap_object(&heap, LOCK_HEAP_MACHINE);
    struct async_method method;
    int32_t state = -7;
    lock_heap_put(&heap, box + FREE_WORDS, machine, 8);
    lock_heap_put(&heap, machine + MACHINE_STATE, 3, 4);
    ck_assert(async_method_find(&graph->types, box, &method));
    ck_assert_uint_eq(method.type, heap.tables[LOCK_HEAP_MACHINE]);
    ck_assert_uint_eq(method.machine, machine);
    ck_assert(async_method_state(&graph->types, &method, &state));
    ck_assert_int_eq(state, 3);
    ck_assert_uint_eq(frames_of(box), 1);
    ck_assert_uint_eq(frames.items[0].type, method.type);
    ck_assert_int_eq(frames.items[0].state, 3);
    ck_assert_uint_eq(frames.items[0].pc, 0);
    for (int32_t ended = -1; ended > -5; ended--) { /* it runs, has ended, or has given a value */
        lock_heap_put(&heap, machine + MACHINE_STATE, (uint32_t)ended, 4);
        ck_assert(!async_method_state(&graph->types, &method, &state));
        ck_assert_uint_eq(frames_of(box), 0);
    }
    ck_assert(!async_method_find(&graph->types, box + 4, &method));
    ck_assert(!async_method_find(&graph->types, 24, &method));
    ck_assert(!async_method_find(&graph->types, lock_heap_object(&heap, LOCK_HEAP_OBJECT), &method));
    ck_assert_uint_eq(async_method_source_continuation(&graph->types, 24), 0);
}
END_TEST

/* When its reads are spent, nothing is found, and nothing is read. */
START_TEST(reads_are_bounded)
{
    uint64_t chain[2], task = add_task(2, chain);
    struct async_method method;
    graph->types.reads_left = 0;
    ck_assert_uint_eq(frames_of(task), 0);
    ck_assert(!async_method_find(&graph->types, lock_heap_object(&heap, LOCK_HEAP_BOX), &method));
    ck_assert_uint_eq(visit_dispatched(1), 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("async_frames");
    TCase *tcase = tcase_create("async_frames");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_chain);
    tcase_add_test(tcase, what_is_awaited);
    tcase_add_test(tcase, chains_that_lead_nowhere);
    tcase_add_test(tcase, a_chain_in_a_cycle);
    tcase_add_test(tcase, no_type_of_continuations);
    tcase_add_test(tcase, awaiting_methods);
    tcase_add_test(tcase, what_a_thread_runs);
    tcase_add_test(tcase, damaged_dispatchers);
    tcase_add_test(tcase, thread_statics);
    tcase_add_test(tcase, state_machines);
    tcase_add_test(tcase, reads_are_bounded);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
