/*
 * test_async_operations.c: chains of pending async operations, in a small heap as .NET 11.0.0 lays it out
 * (tests/support/lock_heap.h): each operation is in one chain, whatever awaits it; rings; tasks that have completed.
 */
#include "contracts/gc/problems.h"
#include "src/lookup/opened_target.h"
#include "src/waits/async_reasons.h"
#include "tests/support/check_main.h"
#include "tests/support/lock_heap.h"

enum { CODE = 0x5000, COMPLETED = 0x1000000 };

static struct lock_heap heap;
static struct async_operations operations;
static struct async_reasons reasons;
static struct gc_problems problems;

static void setup(void)
{
    lock_heap_init_net11(&heap);
    async_operations_init(&operations, &heap.session.resolver, &problems);
    reader_begin(&heap.session.resolver.reader, FUEL_HEAP);
}

static void teardown(void)
{
    async_reasons_deinit(&reasons);
    async_operations_deinit(&operations);
    lock_heap_deinit(&heap);
}

/* A task of `count` methods that wait. */
static uint64_t add_task(unsigned count)
{
    uint64_t next = 0, task = lock_heap_object(&heap, LOCK_HEAP_RUNTIME_ASYNC);
    for (unsigned i = count; i--;)
        next = lock_heap_continuation(&heap, LOCK_HEAP_CONTINUATION, next, CODE + 1 + i);
    lock_heap_put(&heap, task + TASK_STATE_OBJECT, next, 8);
    ck_assert(async_objects_append(&operations.objects[ASYNC_RUNTIME_TASK], task));
    return task;
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

static void link_all(void)
{
    ck_assert(async_operations_link(&operations));
    ck_assert(async_reasons_init(&reasons, &operations, 0));
    ck_assert(async_reasons_mark_cycles(&reasons));
}

static enum async_reason_kind reason_of(size_t chain)
{
    return async_reason_of(&reasons, &operations.chains.items[chain]).kind;
}

START_TEST(a_chain)
{
    uint64_t inner = add_task(1), middle = add_task(2), outer = add_task(3);
    uint64_t awaited = lock_heap_object(&heap, LOCK_HEAP_RUNTIME_ASYNC);
    await(middle, inner);
    await(outer, middle);
    await(inner, awaited);
    link_all();
    ck_assert_uint_eq(operations.items.count, 3);
    ck_assert_uint_eq(operations.chains.count, 1);
    ck_assert_uint_eq(operations.chains.items[0].frame_count, 6);
    ck_assert_uint_eq(operations.chains.items[0].operation, async_operation_of(&operations, inner));
    ck_assert_uint_eq(operations.chains.items[0].awaited, awaited);
    ck_assert(!operations.chains.items[0].is_cycle);
    ck_assert_int_eq(reason_of(0), ASYNC_REASON_RUNNING);
}
END_TEST

START_TEST(completed_tasks)
{
    uint64_t done = add_task(1), waits = add_task(2);
    await(waits, done);
    lock_heap_put(&heap, done + TASK_STATE, COMPLETED, 4);
    link_all();
    ck_assert_uint_eq(operations.items.count, 1);
    ck_assert_uint_eq(operations.chains.count, 1);
    ck_assert_uint_eq(operations.chains.items[0].frame_count, 2);
    ck_assert_int_eq(reason_of(0), ASYNC_REASON_COMPLETED);
}
END_TEST

START_TEST(several_that_await_one)
{
    uint64_t shared = add_task(1), one = add_task(1), other = add_task(1);
    await(one, shared);
    await(other, shared); /* the task leads to this one */
    link_all();
    ck_assert_uint_eq(operations.items.count, 3);
    ck_assert_uint_eq(operations.chains.count, 2);
    uint32_t alone = operations.items.items[async_operation_of(&operations, one)].chain;
    ck_assert_uint_eq(operations.chains.items[alone].operation_count, 1);
    ck_assert_uint_eq(operations.chains.items[!alone].operation_count, 2);
    ck_assert_int_eq(reason_of(alone), ASYNC_REASON_OPERATION);
    ck_assert(!operations.chains.items[alone].is_cycle);
}
END_TEST

START_TEST(a_ring)
{
    uint64_t one = add_task(1), other = add_task(1);
    await(one, other);
    await(other, one);
    link_all();
    ck_assert_uint_eq(operations.chains.count, 1);
    ck_assert_uint_eq(operations.chains.items[0].operation_count, 2);
    ck_assert(operations.chains.items[0].is_cycle);
    ck_assert_int_eq(reason_of(0), ASYNC_REASON_OPERATION);
}
END_TEST

START_TEST(a_ring_through_two_chains)
{
    uint64_t one = add_task(1), other = add_task(1), outside = add_task(1);
    await(one, other);
    await(other, one);
    await(outside, one); /* of the two that wait for the first, it leads to this one */
    link_all();
    uint32_t chain = operations.items.items[async_operation_of(&operations, other)].chain;
    ck_assert_uint_eq(operations.chains.count, 1);
    ck_assert(operations.chains.items[chain].is_cycle);
}
END_TEST

START_TEST(no_reads_left)
{
    (void)add_task(2);
    operations.types.reads_left = 0;
    link_all();
    ck_assert_uint_eq(operations.items.count, 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("async_operations");
    TCase *tcase = tcase_create("async_operations");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_chain);
    tcase_add_test(tcase, completed_tasks);
    tcase_add_test(tcase, several_that_await_one);
    tcase_add_test(tcase, a_ring);
    tcase_add_test(tcase, a_ring_through_two_chains);
    tcase_add_test(tcase, no_reads_left);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
