/* test_wait_graph.c: locks, waits and deadlocks in a small memory; tests/dotnet/locks.py has real ones. */
#include <stdio.h>

#include "contracts/objects/sync_block.h"
#include "contracts/thread.h"
#include "contracts/threading/async_method.h"
#include "contracts/threading/managed_lock.h"
#include "contracts/threading/managed_wait.h"
#include "contracts/threading/thread_pool.h"
#include "src/lookup/opened_target.h"
#include "tests/support/check_main.h"
#include "tests/support/lock_heap.h"
#include "util/text.h"

static struct lock_heap heap;
static struct cdacq_wait_graph *graph;
static struct cdacq_error error;

static void setup(void)
{
    lock_heap_init(&heap);
    ck_assert_int_eq(cdacq_wait_graph_create(&heap.session, &graph, &error), CDACQ_OK);
}

static void setup_net11(void)
{
    lock_heap_init_net11(&heap);
    ck_assert_int_eq(cdacq_wait_graph_create(&heap.session, &graph, &error), CDACQ_OK);
}

static void teardown(void)
{
    cdacq_wait_graph_destroy(graph);
    lock_heap_deinit(&heap);
    graph = NULL;
}

static void complete(void)
{
    lock_heap_add_threads(&heap, graph);
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
}

/* Thread `thread` waits to enter monitor `monitor`, which `owner` holds. */
static void enter(unsigned thread, unsigned monitor, int owner)
{
    lock_heap_hold(&heap, monitor, owner, 0, 1);
    lock_heap_block(&heap, thread, monitor, 0);
}

/* "101 102;" for each deadlock. */
static char deadlocks[256];

static int put_deadlock(const struct cdacq_deadlock *deadlock, void *context)
{
    (void)context;
    size_t length = strlen(deadlocks);
    for (size_t i = 0; i < deadlock->count; i++)
        length += (size_t)snprintf(deadlocks + length, sizeof deadlocks - length, "%s%d", i ? " " : "",
                                   deadlock->waits[i]->tid);
    snprintf(deadlocks + length, sizeof deadlocks - length, ";");
    return 0;
}

static const char *found_deadlocks(void)
{
    deadlocks[0] = '\0';
    ck_assert_int_eq(cdacq_wait_graph_visit_deadlocks(graph, put_deadlock, NULL, &error), CDACQ_OK);
    return deadlocks;
}

static int keep_wait(const struct cdacq_wait *wait, void *context)
{
    const struct cdacq_wait **waits = context;
    for (unsigned i = 0; i < LOCK_HEAP_THREADS; i++)
        if (wait->thread == heap.threads[i])
            waits[i] = wait;
    return 0;
}

static const struct cdacq_wait *wait_of(unsigned thread)
{
    const struct cdacq_wait *waits[LOCK_HEAP_THREADS] = {NULL};
    ck_assert_int_eq(cdacq_wait_graph_visit_waits(graph, keep_wait, (void *)waits, &error), CDACQ_OK);
    return waits[thread];
}

START_TEST(two_monitors)
{
    enter(0, 1, 1);
    enter(1, 2, 0);
    enter(2, 1, 1); /* waits too, but nobody waits for it */
    complete();
    ck_assert_str_eq(found_deadlocks(), "101 102;");
    const struct cdacq_wait *wait = wait_of(2);
    ck_assert_int_eq(wait->kind, CDACQ_WAIT_ENTER);
    ck_assert_int_eq(wait->by, CDACQ_WAIT_BY_STATE);
    ck_assert_uint_eq(wait->object, heap.monitors[1]);
    ck_assert_str_eq(wait->type, "System.Object");
    ck_assert_int_eq(wait->blocker_tid, 102);
    ck_assert_uint_eq(wait->blocker_id, 2);
    ck_assert(wait->has_timeout);
    ck_assert_int_eq(wait->timeout_ms, -1);
}
END_TEST

/* A wait with a timeout ends by itself. */
START_TEST(timed_cycle)
{
    enter(0, 1, 1);
    enter(1, 2, 0);
    lock_heap_set(&heap, heap.items[1], F_DebugBlockingItem_dwTimeout, (uint32_t)(_i ? 15000 : -1));
    complete();
    ck_assert_str_eq(found_deadlocks(), _i ? "" : "101 102;");
    ck_assert_int_eq(wait_of(1)->timeout_ms, _i ? 15000 : -1);
    ck_assert_int_eq(wait_of(1)->blocker_tid, 101);
}
END_TEST

/* A word of the waiting frames is the MethodTable of a type whose static constructor another thread runs. */
START_TEST(initializers)
{
    enum { T = 0x1000, U = 0x2000, OTHER = 0x3000 };
    static const struct task_link runs[] = {{T, 0}, {U, 1}};
    static const struct task_link words[] = {{T, 0}, {OTHER, 0}, {U, 0}, {OTHER, 1}, {T, 1}, {U, 1},
                                             {T, 2}, {U, 2},     {T, 3}, {T, 3},     {U, 4}};
    enter(0, 1, 1);
    lock_heap_add_threads(&heap, graph);
    for (size_t i = 0; i < ARRAY_SIZE(runs); i++)
        ck_assert_ptr_nonnull(task_table_insert(&graph->initializers, runs[i], NULL));
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        ck_assert(task_links_append(&graph->initializer_words, words[i]));
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
    ck_assert_str_eq(found_deadlocks(), "101 102;");
    ck_assert_int_eq(wait_of(0)->kind, CDACQ_WAIT_ENTER); /* and for nothing else */
    ck_assert_uint_eq(graph->waits.count, 4);
    const struct cdacq_wait *wait = wait_of(1);
    ck_assert_int_eq(wait->kind, CDACQ_WAIT_INITIALIZER);
    ck_assert_int_eq(wait->by, CDACQ_WAIT_BY_FRAME);
    ck_assert_int_eq(wait->endless, CDACQ_ENDLESS_YES);
    ck_assert_uint_eq(wait->object, T);
    ck_assert_int_eq(wait->blocker_tid, 101);
    ck_assert_ptr_null(wait_of(2)); /* for which of the two is not known */
    ck_assert_int_eq(wait_of(3)->blocker_tid, 101);
    ck_assert_int_eq(wait_of(4)->blocker_tid, 102);
    graph_take_initializer_word(graph, 0);
    graph_take_initializer_word(graph, T + 1); /* no address of a MethodTable */
    ck_assert_uint_eq(graph->initializer_words.count, ARRAY_SIZE(words));
}
END_TEST

START_TEST(several_cycles)
{
    enter(0, 1, 1);
    enter(1, 2, 2);
    enter(2, 3, 0);
    enter(3, 4, 4);
    enter(4, 5, 3);
    enter(5, 1, 1);
    complete();
    ck_assert_str_eq(found_deadlocks(), "101 102 103;104 105;");
}
END_TEST

START_TEST(no_deadlock)
{
    enter(0, 1, 1);
    enter(1, 2, 2);
    lock_heap_hold(&heap, 3, 2, 4, 0);
    lock_heap_block(&heap, 2, 4, 1); /* Monitor.Wait: nobody holds it */
    enter(3, 5, 3);                  /* it has entered, and is about to notice */
    lock_heap_hold(&heap, 6, -1, 0, 1);
    lock_heap_block(&heap, 4, 6, 0); /* the owner has left, and the thread has not woken up */
    complete();
    ck_assert_str_eq(found_deadlocks(), "");
    ck_assert_ptr_null(wait_of(3));
    ck_assert_int_eq(wait_of(2)->kind, CDACQ_WAIT_PULSE);
    ck_assert_int_eq(wait_of(4)->blocker_tid, 0);
    ck_assert_ptr_null(wait_of(5));
}
END_TEST

static int count_lock(const struct cdacq_lock *lock, void *context)
{
    unsigned *count = context;
    ck_assert(lock->held || lock->waiters);
    return ++*count == 3;
}

START_TEST(locks)
{
    unsigned count = 0;
    struct cdacq_lock lock = {.size = sizeof lock};
    lock_heap_hold(&heap, 1, 0, 3, 5);
    lock_heap_hold(&heap, 2, 1, 0, 0);
    complete();
    ck_assert_int_eq(cdacq_wait_graph_visit_locks(graph, count_lock, &count, &error), CDACQ_OK);
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(cdacq_session_get_lock(&heap.session, heap.monitors[1], &lock, &error), CDACQ_OK);
    ck_assert_int_eq(cdacq_session_get_lock(&heap.session, 0, &lock, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_str_eq(error.message, "no object");
    ck_assert_int_eq(lock.kind, CDACQ_LOCK_MONITOR);
    ck_assert(lock.held && !lock.thin);
    ck_assert_uint_eq(lock.recursion, 3);
    ck_assert_uint_eq(lock.waiters, 5);
    ck_assert_uint_eq(lock.owner, heap.threads[0]);
    uint64_t object = lock_heap_object(&heap, LOCK_HEAP_LOCK);
    lock_heap_put(&heap, object + LOCK_OWNER, 103, 4);
    lock_heap_put(&heap, object + LOCK_STATE, 1 | 7 << 7, 4);
    lock_heap_put(&heap, object + LOCK_RECURSION, 2, 4);
    ck_assert_int_eq(cdacq_session_get_lock(&heap.session, object, &lock, &error), CDACQ_OK);
    ck_assert_int_eq(lock.kind, CDACQ_LOCK_LOCK);
    ck_assert(lock.held);
    ck_assert_int_eq(lock.owner_tid, 103);
    ck_assert_uint_eq(lock.recursion, 2);
    ck_assert_uint_eq(lock.waiters, 7);
    ck_assert_str_eq(lock.type, "System.Threading.Lock");
    lock_heap_put(&heap, heap.monitors[3] - 4, 5 << 16 | 4, 4);
    ck_assert_int_eq(cdacq_session_get_lock(&heap.session, heap.monitors[3], &lock, &error), CDACQ_OK);
    ck_assert(lock.held && lock.thin);
    ck_assert_uint_eq(lock.owner_id, 4);
    ck_assert_uint_eq(lock.recursion, 5);
}
END_TEST

static int keep_lock(const struct cdacq_lock *lock, void *context)
{
    *(struct cdacq_lock *)context = *lock;
    return 0;
}

/* The id that a Lock or a monitor has of an owner that has ended is known, though no thread has it. */
START_TEST(owners_that_have_ended)
{
    struct cdacq_lock lock = {.size = sizeof lock};
    enter(0, 1, -1);
    if (_i) {
        lock_heap_set(&heap, heap.monitors[1], F_Object_m_pMethTab, heap.tables[LOCK_HEAP_LOCK]);
        lock_heap_put(&heap, heap.monitors[1] + LOCK_OWNER, 999, 4);
        lock_heap_put(&heap, heap.monitors[1] + LOCK_STATE, 1, 4);
    } else {
        lock_heap_put(&heap, heap.monitors[1] - 4, 77, 4);
    }
    complete();
    ck_assert_int_eq(cdacq_wait_graph_visit_locks(graph, keep_lock, &lock, &error), CDACQ_OK);
    ck_assert(lock.held);
    ck_assert_uint_eq(lock.owner, 0);
    ck_assert_int_eq(lock.owner_tid, _i ? 999 : 0);
    ck_assert_uint_eq(lock.owner_id, _i ? 0 : 77);
    ck_assert_int_eq(wait_of(0)->blocker_tid, lock.owner_tid);
    ck_assert_uint_eq(wait_of(0)->blocker_id, lock.owner_id);
    ck_assert_str_eq(found_deadlocks(), "");
}
END_TEST

/* The Thread of an owner that has ended may remain: it has an id of the runtime and none of the kernel. */
START_TEST(owner_whose_thread_remains)
{
    struct cdacq_lock lock = {.size = sizeof lock};
    enter(0, 1, 1);
    lock_heap_set(&heap, heap.threads[1], F_Thread_State, _i ? 0x800 : 0x400);
    lock_heap_set(&heap, heap.threads[1], F_Thread_OSId, 0);
    const struct cdacq_thread waiter = lock_heap_thread(&heap, 0);
    cdacq_wait_graph_add_thread(graph, &waiter);
    for (unsigned i = 2; i < LOCK_HEAP_THREADS; i++) {
        const struct cdacq_thread other = lock_heap_thread(&heap, i);
        cdacq_wait_graph_add_thread(graph, &other);
    }
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
    ck_assert_int_eq(cdacq_wait_graph_visit_locks(graph, keep_lock, &lock, &error), CDACQ_OK);
    ck_assert(lock.held);
    ck_assert_int_eq(lock.owner_tid, 0);
    ck_assert_uint_eq(lock.owner_id, _i ? 2 : 0); /* one that has not started holds nothing */
    ck_assert_int_eq(wait_of(0)->blocker_tid, 0);
    ck_assert_uint_eq(wait_of(0)->blocker_id, lock.owner_id);
    ck_assert_str_eq(found_deadlocks(), "");
}
END_TEST

/* Thread `thread` waits for a Lock, which has the id by which the runtime knows its owner. */
static void enter_lock(unsigned thread, unsigned monitor, uint32_t owner)
{
    lock_heap_set(&heap, heap.monitors[monitor], F_Object_m_pMethTab, heap.tables[LOCK_HEAP_LOCK]);
    lock_heap_put(&heap, heap.monitors[monitor] + LOCK_OWNER, owner, 4);
    lock_heap_put(&heap, heap.monitors[monitor] + LOCK_STATE, 1, 4);
    lock_heap_block(&heap, thread, monitor, 0);
}

/* Threads `first` and on, with the ids that another pid namespace has of them: one more than the runtime. */
static void add_threads_from_outside(unsigned first)
{
    for (unsigned i = first; i < LOCK_HEAP_THREADS; i++) {
        struct cdacq_thread thread = lock_heap_thread(&heap, i);
        thread.tid++;
        cdacq_wait_graph_add_thread(graph, &thread);
    }
}

START_TEST(threads_of_another_namespace)
{
    enter_lock(0, 1, 102);
    enter_lock(1, 2, 101);
    add_threads_from_outside(0);
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
    ck_assert_int_eq(wait_of(0)->blocker_tid, 103);
    ck_assert_int_eq(wait_of(1)->blocker_tid, 102);
    ck_assert_str_eq(found_deadlocks(), "102 103;");
}
END_TEST

/* A Thread of the runtime without a thread that was added has not ended, and that it is missing is told. */
START_TEST(thread_without_a_stack)
{
    if (_i)
        enter(1, 1, 0);
    else
        enter_lock(1, 1, 101);
    add_threads_from_outside(1);
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_ERR_CORRUPT);
    ck_assert_str_eq(error.message, "the runtime knows 1 thread, such as that with the id 101, that is not among the "
                                    "threads with stacks");
    ck_assert_int_eq(wait_of(1)->tid, 103);
    ck_assert_int_eq(wait_of(1)->blocker_tid, 101);
    ck_assert_uint_eq(wait_of(1)->blocker_id, 1);
}
END_TEST

/* Adds thread 0, which waits for `task` on `event`, whose monitor is number 1, then the others. */
static void wait_for_task(uint64_t task, uint64_t event)
{
    const struct cdacq_thread thread = lock_heap_thread(&heap, 0);
    lock_heap_put(&heap, event + EVENT_LOCK, heap.monitors[1], 8);
    lock_heap_block(&heap, 0, 1, 1);
    cdacq_wait_graph_add_thread(graph, &thread);
    graph->current.roles = 1u << WAIT_ROLE_EVENT | 1u << WAIT_ROLE_TASK;
    graph->current.candidates[WAIT_ROLE_EVENT] = (struct wait_candidate){.object = event, .by = CDACQ_WAIT_BY_FRAME};
    graph->current.candidates[WAIT_ROLE_TASK] = (struct wait_candidate){.object = task, .by = CDACQ_WAIT_BY_SCAN};
    for (unsigned i = 1; i < LOCK_HEAP_THREADS; i++) {
        const struct cdacq_thread other = lock_heap_thread(&heap, i);
        cdacq_wait_graph_add_thread(graph, &other);
    }
}

static void run_task(uint64_t task, unsigned thread)
{
    struct task_link *run = task_links_append_items(&graph->runs, 1);
    ck_assert_ptr_nonnull(run);
    *run = (struct task_link){.waiter = task, .other = thread};
}

/* A task that another task completes, which runs on a thread that waits for a lock of the first. */
START_TEST(deadlock_through_tasks)
{
    uint64_t outer = lock_heap_object(&heap, LOCK_HEAP_TASK), inner = lock_heap_object(&heap, LOCK_HEAP_OTHER);
    uint64_t event = lock_heap_object(&heap, LOCK_HEAP_EVENT), action = lock_heap_object(&heap, LOCK_HEAP_DELEGATE);
    lock_heap_put(&heap, action + DELEGATE_TARGET, outer, 8);
    lock_heap_put(&heap, outer + TASK_CONTINUATION, event, 8);
    lock_heap_put(&heap, inner + TASK_CONTINUATION,
                  lock_heap_list(&heap, (const uint64_t[]){heap.monitors[2], action}, 2), 8);
    enter(2, 2, 0);
    wait_for_task(outer, event);
    run_task(inner, 2);
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
    ck_assert_str_eq(found_deadlocks(), "101 103;");
    const struct cdacq_wait *wait = wait_of(0);
    ck_assert_int_eq(wait->kind, CDACQ_WAIT_TASK);
    ck_assert_int_eq(wait->by, CDACQ_WAIT_BY_STATE); /* the continuation confirms what was found by a scan */
    ck_assert_int_eq(wait->blocker_tid, 103);
    ck_assert_uint_eq(wait->task_count, 2);
    ck_assert_uint_eq(wait->tasks[1].object, inner);
    ck_assert_int_eq(wait->tasks[1].tid, 103);
    ck_assert_str_eq(wait->tasks[0].status, "Created");
}
END_TEST

START_TEST(guessed_task)
{
    uint64_t task = lock_heap_object(&heap, LOCK_HEAP_TASK), event = lock_heap_object(&heap, LOCK_HEAP_EVENT);
    wait_for_task(task, event);
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
    ck_assert_int_eq(wait_of(0)->by, CDACQ_WAIT_BY_SCAN);
}
END_TEST

START_TEST(completed_task)
{
    uint64_t task = lock_heap_object(&heap, LOCK_HEAP_TASK), event = lock_heap_object(&heap, LOCK_HEAP_EVENT);
    lock_heap_put(&heap, task + TASK_STATE, 0x1000000, 4);
    wait_for_task(task, event);
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
    ck_assert_ptr_null(wait_of(0));
}
END_TEST

/* A scan of the stack comes upon the task that the thread runs: that is not what it waits for. */
START_TEST(guessed_own_task)
{
    uint64_t task = lock_heap_object(&heap, LOCK_HEAP_TASK), event = lock_heap_object(&heap, LOCK_HEAP_EVENT);
    run_task(task, 0);
    wait_for_task(task, event);
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
    ck_assert_int_eq(wait_of(0)->by, CDACQ_WAIT_BY_NOTHING);
    ck_assert_str_eq(found_deadlocks(), "");
}
END_TEST

/* ---- What async methods await ---- */

/* A word of an object, the first of those that are free. */
static void refer(uint64_t object, unsigned word, uint64_t to)
{
    lock_heap_put(&heap, object + FREE_WORDS + 8 * word, to, 8);
}

/* The box of an async method; thread 0 waits for it. */
static uint64_t waited_box(uint64_t *ret_event)
{
    uint64_t box = lock_heap_object(&heap, LOCK_HEAP_BOX);
    *ret_event = lock_heap_object(&heap, LOCK_HEAP_EVENT);
    lock_heap_put(&heap, box + TASK_CONTINUATION, *ret_event, 8);
    return box;
}

static const struct cdacq_wait *wait_for_box(uint64_t box, uint64_t event)
{
    wait_for_task(box, event);
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
    ck_assert_uint_ge(wait_of(0)->task_count, 1);
    return wait_of(0);
}

/* A box that holds its state machine, and one that refers to it, as builds without optimisation have it. */
START_TEST(awaited_task)
{
    uint64_t event, box = waited_box(&event), other = lock_heap_object(&heap, LOCK_HEAP_TASK);
    uint64_t inner = lock_heap_object(&heap, LOCK_HEAP_BOX), leaf = lock_heap_object(&heap, LOCK_HEAP_TASK);
    uint64_t machine = lock_heap_object(&heap, LOCK_HEAP_MACHINE);
    refer(box, 0, other); /* which it does not await */
    refer(box, 1, inner);
    lock_heap_put(&heap, inner + TASK_CONTINUATION, box, 8);
    refer(inner, 0, machine);
    refer(machine, 1, leaf);
    lock_heap_put(&heap, leaf + TASK_CONTINUATION, inner, 8);
    const struct cdacq_wait *wait = wait_for_box(box, event);
    ck_assert_uint_eq(wait->task_count, 3);
    ck_assert_uint_eq(wait->tasks[1].object, inner);
    ck_assert_uint_eq(wait->tasks[2].object, leaf);
}
END_TEST

/* A source is one only if an awaiter refers to it, and its continuation, a delegate, is given the box. */
START_TEST(awaited_source)
{
    uint64_t event, box = waited_box(&event), source = lock_heap_object(&heap, LOCK_HEAP_OBJECT);
    uint64_t continuation = _i ? lock_heap_object(&heap, LOCK_HEAP_DELEGATE) : source;
    refer(box, _i == 2, source); /* a variable may refer to what was awaited before */
    lock_heap_put(&heap, source + 8, continuation, 8);
    lock_heap_put(&heap, source + 16, box, 8);
    const struct cdacq_wait *wait = wait_for_box(box, event);
    ck_assert_uint_eq(wait->task_count, _i == 1 ? 2 : 1);
    if (_i == 1) {
        ck_assert_uint_eq(wait->tasks[1].object, source);
        ck_assert_ptr_null(wait->tasks[1].status);
    }
}
END_TEST

/* An async iterator awaits a task by a box of its own. One that has given its value is not awaited any more. */
START_TEST(awaited_iterator)
{
    static const int32_t states[] = {0, -1, -2, -4};
    uint64_t event, box = waited_box(&event), iterator = lock_heap_object(&heap, LOCK_HEAP_MACHINE);
    uint64_t own = lock_heap_object(&heap, LOCK_HEAP_BOX), leaf = lock_heap_object(&heap, LOCK_HEAP_TASK);
    uint64_t machine = lock_heap_object(&heap, LOCK_HEAP_MACHINE);
    refer(box, 0, machine);
    refer(machine, 0, iterator);
    lock_heap_put(&heap, iterator + 8, lock_heap_object(&heap, LOCK_HEAP_DELEGATE), 8);
    lock_heap_put(&heap, iterator + 16, box, 8);
    lock_heap_put(&heap, iterator + 24, own, 8);
    lock_heap_put(&heap, iterator + 32, leaf, 8);
    lock_heap_put(&heap, iterator + MACHINE_STATE, (uint32_t)states[_i], 4);
    refer(own, 0, iterator);
    lock_heap_put(&heap, leaf + TASK_CONTINUATION, own, 8);
    const struct cdacq_wait *wait = wait_for_box(box, event);
    if (states[_i] < -1) {
        ck_assert_uint_eq(wait->task_count, 1);
        return;
    }
    ck_assert_uint_eq(wait->task_count, 3);
    ck_assert_uint_eq(wait->tasks[1].object, iterator);
    ck_assert_uint_eq(wait->tasks[2].object, leaf);
}
END_TEST

/* What a task has that few have. */
static uint64_t add_contingent(uint64_t task)
{
    uint64_t contingent = lock_heap_object(&heap, LOCK_HEAP_CONTINGENT);
    lock_heap_put(&heap, task + TASK_CONTINGENT, contingent, 8);
    return contingent;
}

/* A continuation that a token cancels before it runs does not wait for its task alone. */
START_TEST(cancellable_continuation)
{
    uint64_t event = lock_heap_object(&heap, LOCK_HEAP_EVENT), run = lock_heap_object(&heap, LOCK_HEAP_TASK);
    uint64_t next = lock_heap_object(&heap, LOCK_HEAP_TASK), contingent = add_contingent(next);
    lock_heap_put(&heap, run + TASK_CONTINUATION, next, 8);
    refer(next, 0, run);
    if (_i)
        lock_heap_put(&heap, contingent + CONTINGENT_TOKEN, lock_heap_object(&heap, LOCK_HEAP_SOURCE), 8);
    run_task(run, 0);
    const struct cdacq_wait *wait = wait_for_box(next, event);
    ck_assert_uint_eq(wait->task_count, _i ? 1 : 2);
    ck_assert_str_eq(found_deadlocks(), _i ? "" : "101;");
}
END_TEST

/* A task waits for the child that runs, if it waits for children at all. */
START_TEST(task_with_children)
{
    static const uint32_t states[] = {0x800000, 0x20000};
    uint64_t event = lock_heap_object(&heap, LOCK_HEAP_EVENT), child = lock_heap_object(&heap, LOCK_HEAP_TASK);
    uint64_t parent = lock_heap_object(&heap, LOCK_HEAP_TASK);
    lock_heap_put(&heap, add_contingent(child) + CONTINGENT_PARENT, parent, 8);
    lock_heap_put(&heap, parent + TASK_STATE, states[_i], 4);
    run_task(child, 0);
    const struct cdacq_wait *wait = wait_for_box(parent, event);
    ck_assert_uint_eq(wait->task_count, _i ? 1 : 2);
    ck_assert_str_eq(found_deadlocks(), _i ? "" : "101;");
}
END_TEST

/* Searches in a type with many fields take reads by their steps, so that a process cannot make them last for hours. */
START_TEST(searches_take_reads)
{
    struct threading_types *types = &graph->types;
    uint64_t box = lock_heap_object(&heap, LOCK_HEAP_BOX);
    struct async_method method;
    heap.target.memory->work.steps_max = UINT64_MAX;
    ck_assert(async_method_find(types, box, &method));
    for (unsigned i = 0; i < 100; i++)
        ck_assert_uint_eq(async_method_awaiter_task(types, &method), 0);
    ck_assert_uint_gt(heap.target.memory->work.steps, LOCK_HEAP_VARIABLES); /* once: what was found is kept */
    ck_assert_uint_gt((uint64_t)(THREADING_READS_MAX - types->reads_left) * 2 * THREADING_STEPS_OF_A_READ,
                      heap.target.memory->work.steps);
}
END_TEST

/* The thread that runs an async iterator runs its box. */
START_TEST(running_iterator)
{
    uint64_t event, box = waited_box(&event), iterator = lock_heap_object(&heap, LOCK_HEAP_MACHINE);
    uint64_t own = lock_heap_object(&heap, LOCK_HEAP_BOX), machine = lock_heap_object(&heap, LOCK_HEAP_MACHINE);
    refer(box, 0, machine);
    refer(machine, 0, iterator);
    lock_heap_put(&heap, iterator + 8, lock_heap_object(&heap, LOCK_HEAP_DELEGATE), 8);
    lock_heap_put(&heap, iterator + 16, box, 8);
    lock_heap_put(&heap, iterator + 24, own, 8);
    lock_heap_put(&heap, iterator + MACHINE_STATE, (uint32_t)-1, 4);
    refer(own, 0, iterator);
    run_task(own, 0);
    const struct cdacq_wait *wait = wait_for_box(box, event);
    ck_assert_uint_eq(wait->task_count, 2);
    ck_assert_uint_eq(wait->tasks[1].object, iterator);
    ck_assert_int_eq(wait->tasks[1].tid, 101);
    ck_assert_str_eq(found_deadlocks(), "101;");
}
END_TEST

/* ---- ReaderWriterLockSlim ---- */

static uint64_t reader_writer(uint32_t owners, int writer, int upgrader)
{
    uint64_t lock = lock_heap_object(&heap, LOCK_HEAP_READER_WRITER);
    lock_heap_put(&heap, lock + RW_OWNERS, owners, 4);
    lock_heap_put(&heap, lock + RW_WRITER, (uint32_t)writer, 4);
    lock_heap_put(&heap, lock + RW_UPGRADER, (uint32_t)upgrader, 4);
    lock_heap_put(&heap, lock + RW_WAITERS, 1, 4);
    return lock;
}

static const struct {
    uint32_t owners;
    int writer, upgrader;
    bool held;
    uint32_t owner_id, readers;
} states[] = {
    {0, -1, -1, false, 0, 0},         {0x80000000, 3, -1, true, 3, 0},
    {0xc0000000, 3, 3, true, 3, 0},                                    /* upgraded, and a writer waits */
    {0x40000002, -1, -1, true, 0, 2}, {0x20000002, -1, 2, true, 2, 2}, /* who upgrades waits */
    {0x40000000, -1, 2, false, 0, 0},                                  /* stale */
};

START_TEST(reader_writer_states)
{
    struct cdacq_lock lock = {.size = sizeof lock};
    uint64_t object = reader_writer(states[_i].owners, states[_i].writer, states[_i].upgrader);
    complete();
    ck_assert_int_eq(cdacq_session_get_lock(&heap.session, object, &lock, &error), CDACQ_OK);
    ck_assert_int_eq(lock.kind, CDACQ_LOCK_READER_WRITER);
    ck_assert_int_eq(lock.held, states[_i].held);
    ck_assert_uint_eq(lock.owner_id, states[_i].owner_id);
    ck_assert_uint_eq(lock.readers, states[_i].readers);
    ck_assert_uint_eq(lock.waiters, 1);
}
END_TEST

/* The thread that may upgrade has entered to read, too: it is one reader. */
START_TEST(reader_writer_upgrader_reads)
{
    struct cdacq_lock lock = {.size = sizeof lock};
    uint64_t object = reader_writer(3, -1, 2);
    lock_heap_put(&heap, object + RW_UPGRADER_READS, 1, 1);
    complete();
    ck_assert_int_eq(cdacq_session_get_lock(&heap.session, object, &lock, &error), CDACQ_OK);
    ck_assert_uint_eq(lock.owner_id, 2);
    ck_assert_uint_eq(lock.readers, 2);
}
END_TEST

/* Adds the threads. The first one waits for an event of the lock. */
static const struct cdacq_wait *wait_for_reader_writer(uint64_t lock, unsigned event)
{
    uint64_t handle = lock_heap_object(&heap, LOCK_HEAP_HANDLE), safe = lock_heap_object(&heap, LOCK_HEAP_OBJECT);
    lock_heap_put(&heap, handle + HANDLE_SAFE, safe, 8);
    lock_heap_put(&heap, lock + event, handle, 8);
    for (unsigned i = 0; i < LOCK_HEAP_THREADS; i++) {
        const struct cdacq_thread thread = lock_heap_thread(&heap, i);
        cdacq_wait_graph_add_thread(graph, &thread);
        if (i)
            continue;
        graph->current.roles = 1u << WAIT_ROLE_READER_WRITER | 1u << WAIT_ROLE_HANDLE;
        graph->current.candidates[WAIT_ROLE_READER_WRITER] =
            (struct wait_candidate){.object = lock, .by = CDACQ_WAIT_BY_FRAME};
        graph->current.safe_handle = safe;
    }
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
    return wait_of(0);
}

/* Of two readers one may upgrade: only a writer and a second upgrader wait for that one. */
START_TEST(reader_writer_waits)
{
    static const struct {
        unsigned event;
        int blocker_tid;
    } rows[] = {{RW_READ_EVENT, 0}, {RW_WRITE_EVENT, 102}, {RW_UPGRADEABLE_EVENT, 102}, {RW_UPGRADE_EVENT, 0}};
    const struct cdacq_wait *wait = wait_for_reader_writer(reader_writer(2, -1, 2), rows[_i].event);
    ck_assert_int_eq(wait->kind, CDACQ_WAIT_ENTER);
    ck_assert_int_eq(wait->by, CDACQ_WAIT_BY_STATE);
    ck_assert_uint_eq(wait->readers, 2);
    ck_assert_int_eq(wait->blocker_tid, rows[_i].blocker_tid);
}
END_TEST

START_TEST(reader_writer_deadlock)
{
    enter(1, 1, 0);
    const struct cdacq_wait *wait = wait_for_reader_writer(reader_writer(0x80000000, 2, -1), RW_READ_EVENT);
    ck_assert_int_eq(wait->blocker_tid, 102);
    ck_assert_str_eq(found_deadlocks(), "101 102;");
}
END_TEST

/* ---- The thread pool ---- */

/* Ends of the segments of a queue, of 8 slots each, and how many items it has. */
static const struct {
    uint32_t ends[3][2], count;
    uint64_t items;
} queues[] = {
    {{{0, 0}}, 1, 0},
    {{{3, 3}}, 1, 0},
    {{{0, 3}}, 1, 3},
    {{{6, 9}}, 1, 3},   /* around the end */
    {{{5, 13}}, 1, 8},  /* full */
    {{{5, 29}}, 1, 8},  /* full and frozen, no segment follows yet */
    {{{13, 29}}, 1, 0}, /* empty and frozen */
    {{{UINT32_MAX - 1, 2}}, 1, 4},
    {{{2, 8}, {8, 16}, {0, 1}}, 3, 6 + 8 + 1},
    {{{8, 8}, {4, 5}}, 2, 1},
};

static uint64_t add_work_queue(uint64_t normal)
{
    uint64_t queue = lock_heap_object(&heap, LOCK_HEAP_WORK_QUEUE);
    lock_heap_put(&heap, queue + WORK_QUEUE_NORMAL, normal, 8);
    return queue;
}

START_TEST(queued_items)
{
    uint64_t items = lock_heap_queue(&heap, queues[_i].ends, queues[_i].count, 8), count = 99;
    ck_assert(work_queue_count(&graph->types, add_work_queue(items), &count));
    ck_assert_uint_eq(count, queues[_i].items);
}
END_TEST

struct positions {
    uint32_t first, next;
    unsigned count;
};

/* Whether each item follows the one before it. */
static bool take_position(void *context, uint64_t item)
{
    struct positions *positions = context;
    uint32_t position = (uint32_t)(item - LOCK_HEAP_ITEM);
    if (!positions->count++)
        positions->first = position;
    else
        ck_assert(position == positions->next || position == 0 || position == 8 || position == 4);
    positions->next = position + 1;
    return true;
}

START_TEST(visited_items)
{
    struct positions positions = {.count = 0};
    uint64_t queue = add_work_queue(lock_heap_queue(&heap, queues[_i].ends, queues[_i].count, 8));
    ck_assert(work_queue_each(&graph->types, queue, take_position, &positions));
    ck_assert_uint_eq(positions.count, queues[_i].items);
    if (positions.count && queues[_i].count == 1)
        ck_assert_uint_eq(positions.first, queues[_i].ends[0][0]);
}
END_TEST

/* A slot that a thread has taken but not filled has the number of an earlier round. */
START_TEST(unfilled_slot)
{
    struct positions positions = {.count = 0};
    uint64_t items = lock_heap_queue(&heap, (const uint32_t[][2]){{0, 4}}, 1, 8), queue = add_work_queue(items);
    uint64_t slots = lock_heap_get(&heap, lock_heap_get(&heap, items + QUEUE_HEAD) + SEGMENT_SLOTS);
    lock_heap_put(&heap, slots + 16 + 3 * 16 + 8, 3, 4);
    ck_assert(work_queue_each(&graph->types, queue, take_position, &positions));
    ck_assert_uint_eq(positions.count, 3);
    lock_heap_put(&heap, slots + 8, 4, 4); /* fewer slots than the mask says */
    ck_assert(!work_queue_each(&graph->types, queue, take_position, &positions));
}
END_TEST

START_TEST(stealing_queue)
{
    struct positions positions = {.count = 0};
    uint64_t queue = lock_heap_object(&heap, LOCK_HEAP_STEALING), objects[8];
    for (uint32_t i = 0; i < 8; i++)
        objects[i] = LOCK_HEAP_ITEM + (i < 3 ? i + 16 : i + 8);
    uint64_t list = lock_heap_list(&heap, objects, 8);
    lock_heap_put(&heap, queue + STEALING_ARRAY, lock_heap_get(&heap, list + LIST_ITEMS), 8);
    lock_heap_put(&heap, queue + STEALING_MASK, 7, 4);
    lock_heap_put(&heap, queue + STEALING_HEAD, 13, 4);
    lock_heap_put(&heap, queue + STEALING_TAIL, 19, 4);
    ck_assert(stealing_queue_each(&graph->types, queue, take_position, &positions));
    ck_assert_uint_eq(positions.count, 6);
    ck_assert_uint_eq(positions.first, 13);
    lock_heap_put(&heap, queue + STEALING_MASK, 15, 4); /* more than the array has */
    ck_assert(!stealing_queue_each(&graph->types, queue, take_position, &positions));
}
END_TEST

/* Those of all queues of the pool. */
START_TEST(queues_of_each_kind)
{
    static const uint32_t ends[][2] = {{0, 3}};
    uint64_t one = lock_heap_queue(&heap, ends, 1, 8), count = 99, queue = add_work_queue(one);
    lock_heap_put(&heap, queue + WORK_QUEUE_HIGH, lock_heap_queue(&heap, ends, 1, 8), 8);
    uint64_t list = lock_heap_list(&heap, (const uint64_t[]){one, one}, 2);
    lock_heap_put(&heap, queue + WORK_QUEUE_ASSIGNED, lock_heap_get(&heap, list + LIST_ITEMS), 8);
    ck_assert(work_queue_count(&graph->types, queue, &count));
    ck_assert_uint_eq(count, 12);
}
END_TEST

/* A number that lacks a part is none. */
START_TEST(damaged_queues)
{
    static const uint32_t ends[][2] = {{0, 3}, {0, 4}};
    uint64_t items = lock_heap_queue(&heap, ends, 2, 8), queue = add_work_queue(items), count = 99;
    uint64_t segment = lock_heap_get(&heap, items + QUEUE_HEAD);
    switch (_i) {
    case 0:
        lock_heap_put(&heap, segment + SEGMENT_NEXT, segment, 8);
        break;
    case 1:
        lock_heap_put(&heap, segment + SEGMENT_NEXT, 0x10, 8);
        break;
    case 2:
        lock_heap_put(&heap, segment + SEGMENT_MASK, UINT32_MAX, 4);
        break;
    case 3:
        lock_heap_put(&heap, queue + WORK_QUEUE_NORMAL, 0, 8);
        break;
    default:
        lock_heap_put(&heap, queue + WORK_QUEUE_ASSIGNED, items, 8); /* no array */
    }
    ck_assert(!work_queue_count(&graph->types, queue, &count));
    ck_assert_uint_eq(count, 99);
}
END_TEST

static unsigned sleeping;                      /* a bit for each thread that sleeps by its state in the runtime */
static uint32_t own_items = 5;                 /* work items in the first worker's own queue */
static bool last_is_of_pool, last_serves_pool; /* what is known of the last thread */

/* Adds the threads: all but the last are workers, and the first two of them run work items and wait. */
static void add_workers(uint64_t queue, uint64_t pool)
{
    for (unsigned i = 0; i < LOCK_HEAP_THREADS; i++) {
        struct cdacq_thread thread = lock_heap_thread(&heap, i);
        thread.state = sleeping >> i & 1 ? CDACQ_THREAD_WAITING : 0;
        thread.state |= i + 1 < LOCK_HEAP_THREADS || last_is_of_pool ? CDACQ_THREAD_POOL : 0;
        uint64_t locals = lock_heap_object(&heap, LOCK_HEAP_LOCALS), own = lock_heap_object(&heap, LOCK_HEAP_STEALING);
        lock_heap_put(&heap, locals + LOCALS_QUEUE, own, 8);
        lock_heap_put(&heap, own + STEALING_HEAD, 10, 4);
        lock_heap_put(&heap, own + STEALING_TAIL, i ? 9 : 10 + own_items, 4);
        cdacq_wait_graph_add_thread(graph, &thread);
        graph->threads.items[i].is_worker = i + 1 < LOCK_HEAP_THREADS;
        graph->threads.items[i].runs_work = i < 2;
        graph->threads.items[i].serves_pool = i + 1 == LOCK_HEAP_THREADS && last_serves_pool;
        if (i < 2) {
            graph_take_pool_object(graph, locals, THREADING_WORKER_LOCALS);
            graph_take_pool_object(graph, queue, THREADING_WORK_QUEUE);
        }
        graph_take_pool_object(graph, pool, THREADING_POOL);
    }
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
}

static struct cdacq_thread_pool described_pool(void)
{
    struct cdacq_thread_pool pool = {.size = sizeof pool};
    ck_assert_int_eq(cdacq_wait_graph_get_thread_pool(graph, &pool, &error), CDACQ_OK);
    return pool;
}

START_TEST(thread_pool)
{
    static const uint32_t ends[][2] = {{0, 7}};
    uint64_t pool = lock_heap_object(&heap, LOCK_HEAP_POOL);
    lock_heap_put(&heap, pool + POOL_MIN, 4, 2);
    lock_heap_put(&heap, pool + POOL_MAX, 32767, 2);
    enter(0, 1, 5);
    lock_heap_block(&heap, 2, 3, 1); /* a worker that runs no item */
    sleeping = 1u << 1 | 1u << 3 | 1u << 0;
    add_workers(add_work_queue(lock_heap_queue(&heap, ends, 1, 8)), pool);
    struct cdacq_thread_pool found = described_pool();
    ck_assert_uint_eq(found.object, pool);
    ck_assert_uint_eq(found.workers, 5);
    ck_assert_uint_eq(found.busy, 2);
    ck_assert_uint_eq(found.waiting, 2);
    ck_assert(found.has_limits && found.has_queued);
    ck_assert_uint_eq(found.min_workers, 4);
    ck_assert_uint_eq(found.max_workers, 32767);
    ck_assert_uint_eq(found.queued, 7 + 5);
}
END_TEST

/* Two of five workers run, and wait. The others may be idle because the pool lets only so many run. */
START_TEST(starvation)
{
    static const struct {
        uint32_t goal, tail;
        unsigned sleeping;
        bool starves, last_is_of_pool, last_serves_pool;
    } rows[] = {
        {2, 7, 3, true, false, false},
        {1, 7, 3, true, false, false},
        {3, 7, 3, false, false, false},
        {0, 7, 3, false, false, false},
        {2, 7, 1, false, false, false},
        {2, 0, 3, false, false, false},
        {2, 7, 3, true, .last_is_of_pool = true, .last_serves_pool = true},
        {2, 7, 3, false, .last_is_of_pool = true}, /* it may be a worker that runs an item */
    };
    const uint32_t ends[][2] = {{0, rows[_i].tail}};
    uint64_t pool = lock_heap_object(&heap, LOCK_HEAP_POOL);
    lock_heap_put(&heap, pool + POOL_COUNTS, UINT64_C(0xffff000000050002) | (uint64_t)rows[_i].goal << 32, 8);
    sleeping = rows[_i].sleeping;
    own_items = rows[_i].tail;
    last_is_of_pool = rows[_i].last_is_of_pool;
    last_serves_pool = rows[_i].last_serves_pool;
    add_workers(add_work_queue(lock_heap_queue(&heap, ends, 1, 8)), pool);
    ck_assert_int_eq(described_pool().starves, rows[_i].starves);
}
END_TEST

/* Two pools, or two queues: the frames of one worker are wrong, and nobody knows which. */
START_TEST(ambiguous_pool)
{
    static const uint32_t ends[][2] = {{0, 7}};
    uint64_t queue = add_work_queue(lock_heap_queue(&heap, ends, 1, 8));
    graph->pool.pool = _i ? 0 : lock_heap_object(&heap, LOCK_HEAP_POOL);
    graph->pool.queue = _i ? add_work_queue(0) : 0;
    add_workers(queue, lock_heap_object(&heap, LOCK_HEAP_POOL));
    struct cdacq_thread_pool found = described_pool();
    ck_assert_uint_eq(found.object, 0);
    ck_assert(!found.has_limits && !found.has_queued);
    ck_assert_uint_eq(found.workers, 5);
}
END_TEST

START_TEST(no_thread_pool)
{
    struct cdacq_thread_pool pool = {.size = sizeof pool};
    ck_assert_int_eq(cdacq_wait_graph_get_thread_pool(graph, &pool, &error), CDACQ_ERR_ARGUMENT); /* not complete */
    complete();
    ck_assert_uint_eq(described_pool().workers, 0);
    ck_assert(!described_pool().has_queued);
    ck_assert_int_eq(cdacq_wait_graph_get_thread_pool(graph, NULL, &error), CDACQ_ERR_ARGUMENT);
}
END_TEST

/* A thread that joins itself: whether it has a timeout is what the C library's function says. */
START_TEST(native_waits)
{
    static const struct {
        const char *symbol, *module;
        enum cdacq_wait_endless endless;
        enum cdacq_frame_source by;
        bool is_unverified;
    } rows[] = {
        {"pthread_cond_wait@@GLIBC_2.3.2", "/lib/libc.so.6", CDACQ_ENDLESS_YES, CDACQ_FRAME_BY_CFI, false},
        {"___pthread_cond_wait", "/lib/libpthread-2.31.so", CDACQ_ENDLESS_YES, CDACQ_FRAME_BY_CFI, false},
        {"pthread_cond_timedwait", "/lib/libc.so.6", CDACQ_ENDLESS_NO, CDACQ_FRAME_BY_CFI, false},
        {"__pthread_cond_clockwait64", "libc.so.6", CDACQ_ENDLESS_NO, CDACQ_FRAME_BY_CFI, false},
        {"pthread_cond_timedwait", "/lib/ld-musl-x86_64.so.1", CDACQ_ENDLESS_UNKNOWN, CDACQ_FRAME_BY_CFI, false},
        {"pthread_cond_timedwait", "/usr/lib/libc.so", CDACQ_ENDLESS_UNKNOWN, CDACQ_FRAME_BY_CFI, false},
        {"pthread_cond_wait", "/lib/libc.so.6", CDACQ_ENDLESS_UNKNOWN, CDACQ_FRAME_BY_GUESS, false},
        {"pthread_cond_waiter", "/lib/libc.so.6", CDACQ_ENDLESS_UNKNOWN, CDACQ_FRAME_BY_CFI, false},
        {NULL, "/lib/libc.so.6", CDACQ_ENDLESS_UNKNOWN, CDACQ_FRAME_BY_CFI, false},
        {"pthread_cond_wait", NULL, CDACQ_ENDLESS_UNKNOWN, CDACQ_FRAME_BY_CFI, false},
        {"pthread_cond_wait", "/lib/libc.so.6", CDACQ_ENDLESS_UNKNOWN, CDACQ_FRAME_BY_CFI, true},
    };
    const struct cdacq_thread thread = lock_heap_thread(&heap, 0);
    const struct cdacq_frame inner = {.size = sizeof inner, .kind = CDACQ_FRAME_NATIVE},
                             frame = {.size = sizeof frame,
                                      .kind = CDACQ_FRAME_NATIVE,
                                      .by = rows[_i].by,
                                      .symbol = rows[_i].symbol,
                                      .module = rows[_i].module,
                                      .files_verified = !rows[_i].is_unverified};
    uint64_t joined = lock_heap_object(&heap, LOCK_HEAP_THREAD);
    lock_heap_put(&heap, joined + THREAD_INTERNAL, heap.threads[0], 8);
    cdacq_wait_graph_add_thread(graph, &thread);
    cdacq_wait_graph_add_frame(graph, &inner);
    cdacq_wait_graph_add_frame(graph, &frame);
    graph->current.roles = 1u << WAIT_ROLE_JOIN;
    graph->current.candidates[WAIT_ROLE_JOIN] = (struct wait_candidate){.object = joined, .by = CDACQ_WAIT_BY_FRAME};
    for (unsigned i = 1; i < LOCK_HEAP_THREADS; i++) {
        const struct cdacq_thread other = {.size = sizeof other, .thread = heap.threads[i], .managed_id = i + 1};
        cdacq_wait_graph_add_thread(graph, &other);
    }
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
    ck_assert_int_eq(wait_of(0)->endless, rows[_i].endless);
    ck_assert(wait_of(0)->has_timeout == (rows[_i].endless == CDACQ_ENDLESS_YES));
    ck_assert_str_eq(found_deadlocks(), rows[_i].endless == CDACQ_ENDLESS_NO ? "" : "101;");
}
END_TEST

/* Main has returned: its thread waits for the other threads that are not background threads. */
START_TEST(main_has_returned)
{
    static const struct {
        unsigned foreground; /* a bit for each thread */
        int blocker;
        uint32_t without; /* a bit of the state that is missing */
        bool joins;       /* the thread 1 waits for the end of that of Main */
        const char *deadlock;
    } rows[] = {
        {1u << 1, 102, 0, false, ""},
        {1u << 1 | 1u << 2, 0, 0, false, ""},
        {0, 0, 0, false, ""},
        {1u << 1, 102, 0, true, "101 102;"},
        {1u << 1, -1, CDACQ_THREAD_WAITING, false, ""},
        {1u << 1, -1, CDACQ_THREAD_BACKGROUND, false, ""},
        {1u << 1, -1, CDACQ_THREAD_EXITING, false, ""},
    };
    uint64_t joined = lock_heap_object(&heap, LOCK_HEAP_THREAD);
    lock_heap_put(&heap, joined + THREAD_INTERNAL, heap.threads[0], 8);
    for (unsigned i = 0; i < LOCK_HEAP_THREADS; i++) {
        struct cdacq_thread thread = lock_heap_thread(&heap, i);
        thread.state = i == 0 ? CDACQ_THREAD_EXITING | CDACQ_THREAD_BACKGROUND | CDACQ_THREAD_WAITING : 0;
        thread.state |= rows[_i].foreground >> i & 1 ? 0 : CDACQ_THREAD_BACKGROUND;
        thread.state &= i == 0 ? ~rows[_i].without : UINT32_MAX;
        cdacq_wait_graph_add_thread(graph, &thread);
        if (i != 1 || !rows[_i].joins)
            continue;
        graph->current.timed = GRAPH_NO;
        graph->current.roles = 1u << WAIT_ROLE_JOIN;
        graph->current.candidates[WAIT_ROLE_JOIN] =
            (struct wait_candidate){.object = joined, .by = CDACQ_WAIT_BY_FRAME};
    }
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
    const struct cdacq_wait *wait = wait_of(0);
    ck_assert((wait != NULL) == (rows[_i].blocker >= 0));
    if (wait) {
        ck_assert_int_eq(wait->kind, CDACQ_WAIT_FOREGROUND);
        ck_assert_int_eq(wait->by, CDACQ_WAIT_BY_STATE);
        ck_assert_int_eq(wait->endless, CDACQ_ENDLESS_YES);
        ck_assert_int_eq(wait->blocker_tid, rows[_i].blocker);
    }
    ck_assert_str_eq(found_deadlocks(), rows[_i].deadlock);
}
END_TEST

/* Each thread of a damaged core can claim that it has run Main: the others are searched once, not for each. */
START_TEST(main_has_returned_often)
{
    enum { MANY = 500 * 1000 };
    const struct cdacq_thread thread = {
        .size = sizeof thread,
        .tid = 1,
        .state = CDACQ_THREAD_EXITING | CDACQ_THREAD_BACKGROUND | CDACQ_THREAD_WAITING,
    };
    for (unsigned i = 0; i < MANY; i++)
        cdacq_wait_graph_add_thread(graph, &thread);
    (void)cdacq_wait_graph_complete(graph, &error);
    ck_assert_uint_eq(graph->waits.count, MANY);
}
END_TEST

/* A thread that serves the pool waits for handles when it is idle; nothing else waits for that. */
START_TEST(idle_thread_of_the_pool)
{
    const struct cdacq_thread thread = lock_heap_thread(&heap, 0);
    cdacq_wait_graph_add_thread(graph, &thread);
    graph->current.roles = 1u << WAIT_ROLE_HANDLE;
    graph->threads.items[0].serves_pool = _i > 0;
    for (unsigned i = 1; i < LOCK_HEAP_THREADS; i++) {
        const struct cdacq_thread other = lock_heap_thread(&heap, i);
        cdacq_wait_graph_add_thread(graph, &other);
    }
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
    ck_assert((wait_of(0) != NULL) == (_i == 0));
}
END_TEST

/* Another task than the one that a thread runs, or a timeout, may end the wait: there is no deadlock. */
START_TEST(awaited_any)
{
    uint64_t event, box = waited_box(&event), any = lock_heap_object(&heap, _i ? LOCK_HEAP_TIMED : LOCK_HEAP_ANY);
    uint64_t run = lock_heap_object(&heap, LOCK_HEAP_TASK);
    refer(box, 0, any);
    refer(any, 0, run);
    lock_heap_put(&heap, any + TASK_CONTINUATION, box, 8);
    lock_heap_put(&heap, run + TASK_CONTINUATION, any, 8);
    run_task(run, 0);
    const struct cdacq_wait *wait = wait_for_box(box, event);
    ck_assert_uint_eq(wait->task_count, 2);
    ck_assert_uint_eq(wait->tasks[1].object, any);
    ck_assert_str_eq(found_deadlocks(), "");
}
END_TEST

/* Tasks whose continuations lead to each other, and a list that contains itself. */
START_TEST(cycles_of_tasks)
{
    uint64_t a = lock_heap_object(&heap, LOCK_HEAP_TASK), b = lock_heap_object(&heap, LOCK_HEAP_TASK);
    uint64_t event = lock_heap_object(&heap, LOCK_HEAP_EVENT);
    uint64_t list = lock_heap_list(&heap, (const uint64_t[]){a, b, 0, event}, 4);
    lock_heap_put(&heap, a + TASK_CONTINUATION, b, 8);
    lock_heap_put(&heap, b + TASK_CONTINUATION, list, 8);
    lock_heap_put(&heap, list + LIST_SIZE, INT32_MAX, 4); /* more than its array has */
    wait_for_task(a, event);
    run_task(a, 3);
    run_task(b, 3);
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
    ck_assert_int_eq(wait_of(0)->blocker_tid, 104);
    ck_assert_uint_eq(wait_of(0)->task_count, 1);
    ck_assert_str_eq(found_deadlocks(), ""); /* no thread is in the cycle of the two */
}
END_TEST

/* Adds thread 0 `count` times, which waits on the event of monitor 1 for a task or a list of tasks, then the others. */
static void wait_often(unsigned count, enum wait_role role, uint64_t object)
{
    const struct cdacq_thread thread = lock_heap_thread(&heap, 0);
    uint64_t event = lock_heap_object(&heap, LOCK_HEAP_EVENT);
    lock_heap_put(&heap, event + EVENT_LOCK, heap.monitors[1], 8);
    lock_heap_block(&heap, 0, 1, 1);
    for (unsigned i = 0; i < count; i++) {
        cdacq_wait_graph_add_thread(graph, &thread);
        graph->current.roles = 1u << WAIT_ROLE_EVENT | 1u << role;
        graph->current.candidates[WAIT_ROLE_EVENT] = (struct wait_candidate){event, CDACQ_WAIT_BY_FRAME, false};
        graph->current.candidates[role] = (struct wait_candidate){object, CDACQ_WAIT_BY_FRAME, false};
    }
    for (unsigned i = 1; i < LOCK_HEAP_THREADS; i++) {
        const struct cdacq_thread other = lock_heap_thread(&heap, i);
        cdacq_wait_graph_add_thread(graph, &other);
    }
}

static int count_tasks(const struct cdacq_wait *wait, void *context)
{
    size_t *count = context;
    *count += wait->task_count;
    return 0;
}

/* A long chain of tasks that many threads wait for: all waits are found, but not each has its chain. */
START_TEST(many_waits_for_a_chain)
{
    enum { LENGTH = 400, WAITS = TASKS_SHOWN_MAX / LENGTH + 10 };
    uint64_t first = lock_heap_object(&heap, LOCK_HEAP_TASK), last = first;
    for (unsigned i = 1; i < LENGTH; i++) {
        uint64_t next = lock_heap_object(&heap, LOCK_HEAP_TASK);
        lock_heap_put(&heap, next + TASK_CONTINUATION, last, 8);
        last = next;
    }
    size_t shown = 0;
    run_task(last, 0);
    wait_often(WAITS, WAIT_ROLE_TASK, first);
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_ERR_FUEL);
    ck_assert_uint_eq(graph->waits.count, WAITS);
    ck_assert_int_eq(cdacq_wait_graph_visit_waits(graph, count_tasks, &shown, &error), CDACQ_OK);
    ck_assert_uint_eq(shown, TASKS_SHOWN_MAX);
}
END_TEST

/* More tasks of lists than the search for deadlocks keeps: that is said. */
START_TEST(many_waits_for_a_list)
{
    enum { TASKS = 8000, WAITS = 2 * RUNNING_TASKS_MAX / TASKS + 10 };
    static uint64_t tasks[TASKS];
    uint64_t task = lock_heap_object(&heap, LOCK_HEAP_TASK);
    for (unsigned i = 0; i < TASKS; i++)
        tasks[i] = task;
    wait_often(WAITS, WAIT_ROLE_TASKS, lock_heap_list(&heap, tasks, TASKS));
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_ERR_FUEL);
    ck_assert_uint_eq(graph->waits.count, WAITS);
}
END_TEST

/* The others of a Task.WhenAll are counted up to a bound: of many threads that wait for it, too. */
START_TEST(others_of_all)
{
    enum { COMPLETED = 50, FEW = 3, MANY = 1000, TASKS = COMPLETED + MANY };
    static uint64_t tasks[TASKS];
    uint64_t all = lock_heap_object(&heap, LOCK_HEAP_ALL), event = lock_heap_object(&heap, LOCK_HEAP_EVENT);
    uint64_t completed = lock_heap_object(&heap, LOCK_HEAP_TASK), last = lock_heap_object(&heap, LOCK_HEAP_TASK);
    uint32_t count = COMPLETED + (_i == 0 ? FEW : MANY);
    lock_heap_put(&heap, completed + TASK_STATE, 0x1000000, 4);
    for (unsigned i = 0; i < TASKS; i++)
        tasks[i] = i < COMPLETED ? completed : last;
    uint64_t list = lock_heap_list(&heap, tasks, count);
    lock_heap_put(&heap, all + ALL_TASKS, lock_heap_get(&heap, list + LIST_ITEMS), 8);
    graph->other_looks_left = _i == 2 ? COMPLETED + 1 : OTHER_LOOKS_MAX;
    wait_for_task(all, event);
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
    const struct cdacq_wait *wait = wait_of(0);
    ck_assert_uint_eq(wait->task_count, 2);
    ck_assert_uint_eq(wait->tasks[0].object, all);
    ck_assert_uint_eq(wait->tasks[0].others, _i == 0 ? FEW - 1 : _i == 1 ? OTHERS_MAX : 0);
    ck_assert_uint_eq(wait->tasks[1].object, last);
    if (_i != 2)
        ck_assert_uint_eq(OTHER_LOOKS_MAX - graph->other_looks_left, COMPLETED + (_i == 0 ? FEW : OTHERS_MAX + 1));
}
END_TEST

/* Each task of a list is looked up among all others, which takes longer than reading it. */
START_TEST(tasks_of_lists_are_work)
{
    enum { TASKS = 1000, READS = 4, LOOK_UP = 12 };
    static uint64_t tasks[TASKS];
    uint64_t task = lock_heap_object(&heap, LOCK_HEAP_TASK);
    for (unsigned i = 0; i < TASKS; i++)
        tasks[i] = task;
    wait_often(1, WAIT_ROLE_TASKS, lock_heap_list(&heap, tasks, TASKS));
    work_set(&heap.target.memory->work, UINT32_MAX, 0, 0);
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
    ck_assert_uint_ge(heap.target.memory->work.steps, TASKS * (READS + LOOK_UP));
    work_set(&heap.target.memory->work, 0, 0, 0);
}
END_TEST

/* Each name that is handed out is work, and a name that is kept is memory: a core chooses how many, and how long. */
START_TEST(names_are_work)
{
    struct work *work = &heap.target.memory->work;
    uint64_t object = lock_heap_object(&heap, LOCK_HEAP_OBJECT);
    work_set(work, 1000 * 1000, 0, 0);
    ck_assert_ptr_nonnull(graph_type_name(graph, object));
    uint64_t before = work->steps;
    for (unsigned i = 0; i < 1000; i++)
        ck_assert_ptr_nonnull(graph_type_name(graph, object));
    reader_begin(&heap.session.resolver.reader, FUEL_LOOKUP); /* counts the reads */
    ck_assert_uint_ge(work->steps - before,
                      1000 * (sizeof "System.Object" * WORK_USES_OF_A_TEXT / WORK_BYTES_OF_A_STEP));
    work_set(work, work->steps, 0, 0);
    ck_assert_ptr_null(graph_type_name(graph, object));
    work_set(work, 0, 4, 0);
    ck_assert_ptr_null(graph_type_name(graph, lock_heap_object(&heap, LOCK_HEAP_LOCK)));
    work_set(work, 0, 1000, 0);
    ck_assert_ptr_nonnull(graph_type_name(graph, lock_heap_object(&heap, LOCK_HEAP_EVENT)));
    ck_assert_uint_gt(work->memory, 0);
    graph_return_names(graph);
    work_set(work, 0, 0, 0);
}
END_TEST

/* The objects of a core can refer to more tasks than are remembered, and each one is looked up. */
START_TEST(many_tasks_are_asked_for_continuations)
{
    struct work *work = &heap.target.memory->work;
    uint64_t object = lock_heap_object(&heap, LOCK_HEAP_OBJECT);
    work_set(work, UINT32_MAX, 0, 0);
    for (uint64_t task = 1; task <= RUNNING_TASKS_MAX; task++)
        (void)graph_task_leads_to(graph, task, object); /* no memory is there */
    ck_assert_int_eq(graph->problem.status, CDACQ_OK);
    ck_assert(!graph_task_leads_to(graph, RUNNING_TASKS_MAX + 1, object));
    ck_assert_uint_eq(graph->followed.count, RUNNING_TASKS_MAX);
    ck_assert_int_eq(graph->problem.status, CDACQ_ERR_FUEL);
    uint64_t before = work->steps;
    for (uint64_t task = 1; task <= 1000; task++)
        (void)graph_task_leads_to(graph, task, object);
    ck_assert_uint_ge(work->steps - before, 10 * 1000);
    work_set(work, 0, 0, 0);
}
END_TEST

/* A list of more continuations than are followed: what is missing is said. */
START_TEST(too_many_continuations)
{
    const uint32_t count = CONTINUATIONS_MAX + (uint32_t)_i;
    uint64_t task = lock_heap_object(&heap, LOCK_HEAP_TASK), event = lock_heap_object(&heap, LOCK_HEAP_EVENT);
    uint64_t list = lock_heap_object(&heap, LOCK_HEAP_LIST), items = lock_heap_object(&heap, LOCK_HEAP_OBJECT);
    lock_heap_set(&heap, items, F_Object_m_pMethTab, heap.references_table);
    lock_heap_set(&heap, items, F_Array_m_NumComponents, count); /* the memory ends before */
    lock_heap_put(&heap, list + LIST_ITEMS, items, 8);
    lock_heap_put(&heap, list + LIST_SIZE, count, 4);
    lock_heap_put(&heap, task + TASK_CONTINUATION, list, 8);
    wait_for_task(task, event);
    run_task(task, 1);
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), _i ? CDACQ_ERR_FUEL : CDACQ_OK);
}
END_TEST

/* A table that claims more entries than there is memory, entries of other objects, a monitor of no sync block. */
START_TEST(lying_tables)
{
    struct reader *reader = &heap.session.resolver.reader;
    struct sync_entry entry;
    uint64_t object = 77;
    lock_heap_hold(&heap, 1, 0, 0, 1);
    lock_heap_set(&heap, heap.cache, F_SyncBlockCache_FreeSyncTableIndex, UINT32_MAX);
    ck_assert_uint_eq(sync_table_count(reader), SYNC_BLOCKS_MAX);
    ck_assert(sync_table_entry(reader, 1, &entry));
    ck_assert(!sync_table_entry(reader, SYNC_BLOCKS_MAX, &entry));
    reader_begin(reader, FUEL_LOOKUP);
    lock_heap_set(&heap, heap.table + 16, F_SyncTableEntry_Object, heap.monitors[1] | 1);
    ck_assert(sync_table_entry(reader, 1, &entry));
    ck_assert_uint_eq(entry.object, 0); /* it is free */
    ck_assert(!sync_block_object(reader, heap.blocks[1], &object));
    ck_assert_uint_eq(object, 77);
    reader_begin(reader, FUEL_LOOKUP);
    lock_heap_set(&heap, heap.blocks[2], F_SyncBlock_m_dwSyncIndex, 3);
    ck_assert(!sync_block_object(reader, heap.blocks[2], &object)); /* the entry is another's */
    lock_heap_add_threads(&heap, graph);
    ck_assert_int_lt(cdacq_wait_graph_complete(graph, &error), 0); /* and says why */
    ck_assert_uint_ne(error.message[0], '\0');
}
END_TEST

/* What is left out is counted; all else is found. */
START_TEST(unreadable_sync_blocks)
{
    unsigned count = 0;
    enter(0, 1, 1);
    enter(1, 2, 0);
    for (unsigned i = 4; i <= 5; i++)
        lock_heap_set(&heap, heap.table + 16 * i, F_SyncTableEntry_SyncBlock, 0x7000000 + i);
    lock_heap_add_threads(&heap, graph);
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_ERR_MEMORY);
    ck_assert_ptr_nonnull(strstr(error.message, "2 sync blocks cannot be read: "));
    ck_assert_uint_gt(error.address, 0x7000000);
    ck_assert_str_eq(found_deadlocks(), "101 102;");
    ck_assert_int_eq(cdacq_wait_graph_visit_locks(graph, count_lock, &count, &error), CDACQ_OK);
    ck_assert_uint_eq(count, 2);
}
END_TEST

/* A Thread without a kernel's thread may have a stack that could not be read, unless the thread has ended. */
START_TEST(threads_without_stacks)
{
    static const uint32_t thread_states[] = {0x200, 0x80031220, 0x821};
    enter(0, 1, LOCK_HEAP_THREADS - 1);
    lock_heap_set(&heap, heap.threads[LOCK_HEAP_THREADS - 1], F_Thread_State, thread_states[_i]);
    for (unsigned i = 0; i < LOCK_HEAP_THREADS - 1; i++) {
        struct cdacq_thread thread = lock_heap_thread(&heap, i);
        cdacq_wait_graph_add_thread(graph, &thread);
    }
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), _i ? CDACQ_OK : CDACQ_ERR_CORRUPT);
    ck_assert_uint_eq(wait_of(0)->blocker_id, LOCK_HEAP_THREADS);
    ck_assert_int_eq(wait_of(0)->blocker_tid, _i ? 0 : 100 + LOCK_HEAP_THREADS);
}
END_TEST

START_TEST(blocking_items)
{
    struct thread_blocking blocking;
    struct reader *reader = &heap.session.resolver.reader;
    ck_assert(!thread_read_blocking(reader, heap.threads[0], &blocking));
    ck_assert(!reader_failed(reader));
    lock_heap_block(&heap, 0, 3, 1);
    ck_assert(thread_read_blocking(reader, heap.threads[0], &blocking));
    ck_assert_int_eq(blocking.kind, THREAD_BLOCKED_WAITING);
    ck_assert_uint_eq(blocking.sync_block, heap.blocks[3]);
    lock_heap_block(&heap, 0, 3, 2);
    ck_assert(!thread_read_blocking(reader, heap.threads[0], &blocking));
    ck_assert(reader_failed(reader));
}
END_TEST

START_TEST(arguments)
{
    struct cdacq_lock lock = {.size = 0};
    struct cdacq_wait_graph *none;
    ck_assert_int_eq(cdacq_wait_graph_create(NULL, &none, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(cdacq_wait_graph_create(&heap.session, NULL, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(cdacq_wait_graph_visit_deadlocks(graph, put_deadlock, NULL, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(cdacq_wait_graph_visit_waits(NULL, keep_wait, NULL, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(cdacq_session_get_lock(&heap.session, heap.monitors[1], &lock, &error), CDACQ_ERR_ARGUMENT);
    lock.size = sizeof lock;
    ck_assert_int_eq(cdacq_session_get_lock(NULL, heap.monitors[1], &lock, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_lt(cdacq_session_get_lock(&heap.session, 0x10, &lock, &error), 0);
    cdacq_wait_graph_add_thread(graph, NULL);
    cdacq_wait_graph_add_frame(graph, NULL);
    cdacq_wait_graph_add_thread(NULL, NULL);
    cdacq_wait_graph_destroy(NULL);
    complete();
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_ERR_ARGUMENT);
    heap.target.layout.usable = 0;
    ck_assert_int_eq(cdacq_wait_graph_create(&heap.session, &none, &error), CDACQ_ERR_CONTRACT);
}
END_TEST

static int stop_at_lock(const struct cdacq_lock *lock, void *context)
{
    (void)lock;
    (void)context;
    return 1;
}

/* ---- .NET 11 ---- */

/* The monitor is a Lock that the sync block refers to, or a thin lock in the sync block. */
START_TEST(net11_monitors)
{
    struct object_monitor monitor;
    lock_heap_hold(&heap, 1, 1, 4, 5);
    lock_heap_set(&heap, heap.blocks[2], F_SyncBlock_Lock, 0);
    lock_heap_set(&heap, heap.blocks[2], F_SyncBlock_ThinLock, 3 << 16 | 5);
    ck_assert(sync_block_monitor_read(&heap.session.resolver.reader, heap.blocks[1], &monitor));
    ck_assert_uint_eq(monitor.lock_object, heap.locks[1]);
    ck_assert(sync_block_monitor_read(&heap.session.resolver.reader, heap.blocks[2], &monitor));
    ck_assert(monitor.held);
    ck_assert_uint_eq(monitor.thread_id, 5);
    ck_assert_uint_eq(monitor.recursion, 3);
    struct cdacq_lock lock = {.size = sizeof lock};
    ck_assert_int_eq(cdacq_session_get_lock(&heap.session, heap.monitors[1], &lock, &error), CDACQ_OK);
    ck_assert_int_eq(lock.kind, CDACQ_LOCK_MONITOR);
    ck_assert(lock.held);
    ck_assert_uint_eq(lock.owner_id, 2);
    ck_assert_int_eq(lock.owner_tid, 102);
    ck_assert_uint_eq(lock.recursion, 4);
    ck_assert_uint_eq(lock.waiters, 5);
}
END_TEST

/* Adds a thread that waits. */
static void add_waiting(unsigned thread)
{
    struct cdacq_thread item = lock_heap_thread(&heap, thread);
    item.state = CDACQ_THREAD_WAITING;
    cdacq_wait_graph_add_thread(graph, &item);
    const struct cdacq_frame frame = lock_heap_frame(&heap, thread);
    graph_find_blocking(graph, &frame);
}

static void add_others(unsigned first)
{
    for (unsigned i = first; i < LOCK_HEAP_THREADS; i++) {
        const struct cdacq_thread other = lock_heap_thread(&heap, i);
        cdacq_wait_graph_add_thread(graph, &other);
    }
}

static int put_lock(const struct cdacq_lock *lock, void *context)
{
    char *text = context;
    size_t length = strlen(text);
    unsigned monitor = LOCK_HEAP_BLOCKS;
    while (monitor && heap.monitors[monitor] != lock->object)
        monitor--;
    snprintf(text + length, 256 - length, "%d %u held by %d, %u wait;", lock->kind, monitor, lock->owner_tid,
             lock->waiters);
    return 0;
}

static const char *found_locks(char *text)
{
    *text = '\0';
    ck_assert_int_eq(cdacq_wait_graph_visit_locks(graph, put_lock, text, &error), CDACQ_OK);
    return text;
}

/* A frame refers to the Lock of a monitor, too. It is shown as the monitor of its object, and once. */
START_TEST(net11_two_monitors)
{
    char text[256];
    lock_heap_hold(&heap, 1, 1, 0, 1);
    lock_heap_hold(&heap, 2, 0, 0, 1);
    lock_heap_record(&heap, 0, heap.locks[1], -1);
    lock_heap_record(&heap, 1, heap.locks[2], _i ? 15000 : -1);
    add_waiting(0);
    ck_assert_int_ge(graph_add_lock(graph, heap.locks[1]), 0);
    add_waiting(1);
    add_others(2);
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
    ck_assert_str_eq(found_deadlocks(), _i ? "" : "101 102;");
    const struct cdacq_wait *wait = wait_of(0);
    ck_assert_int_eq(wait->kind, CDACQ_WAIT_ENTER);
    ck_assert_int_eq(wait->by, CDACQ_WAIT_BY_STATE);
    ck_assert_uint_eq(wait->object, heap.monitors[1]);
    ck_assert_str_eq(wait->type, "System.Object");
    ck_assert_int_eq(wait->blocker_tid, 102);
    ck_assert(wait->has_timeout);
    ck_assert_int_eq(wait->timeout_ms, -1);
    ck_assert_int_eq(wait_of(1)->timeout_ms, _i ? 15000 : -1);
    ck_assert_str_eq(found_locks(text), "0 1 held by 102, 1 wait;0 2 held by 101, 1 wait;");
}
END_TEST

/* A Lock that is not the monitor of any object stands for itself. */
START_TEST(net11_lock)
{
    char text[256];
    uint64_t lock = lock_heap_object(&heap, LOCK_HEAP_LOCK);
    lock_heap_put(&heap, lock + LOCK_OWNER, 3, 4);
    lock_heap_put(&heap, lock + LOCK_STATE, 1 | 7 << 7, 4);
    lock_heap_record(&heap, 0, lock, -1);
    add_waiting(0);
    add_others(1);
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
    ck_assert_uint_eq(wait_of(0)->object, lock);
    ck_assert_str_eq(wait_of(0)->type, "System.Threading.Lock");
    ck_assert_int_eq(wait_of(0)->blocker_tid, 103);
    ck_assert_str_eq(found_locks(text), "1 0 held by 103, 7 wait;");
}
END_TEST

/*
 * If a sync block cannot be read, a Lock may be a monitor. It is not shown as a Lock then, but its owner is known. The
 * same with a table that cannot be read.
 */
START_TEST(net11_unreadable_sync_blocks)
{
    char text[256];
    lock_heap_hold(&heap, 1, 1, 0, 1);
    lock_heap_hold(&heap, 2, 0, 0, 1);
    lock_heap_set(&heap, heap.blocks[1], F_SyncBlock_Lock, 0x10);
    if (_i)
        lock_heap_put(&heap, heap.target.layout.globals[G_SyncTableEntries], 0x10, 8);
    lock_heap_record(&heap, 0, heap.locks[1], -1);
    lock_heap_record(&heap, 1, heap.locks[2], -1);
    add_waiting(0);
    add_waiting(1);
    add_others(2);
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_ERR_MEMORY);
    ck_assert_int_eq(wait_of(0)->kind, CDACQ_WAIT_ENTER);
    ck_assert_int_eq(wait_of(0)->by, CDACQ_WAIT_BY_NOTHING);
    ck_assert_uint_eq(wait_of(0)->object, 0);
    ck_assert_ptr_null(wait_of(0)->type);
    ck_assert_int_eq(wait_of(0)->blocker_tid, 102);
    ck_assert_uint_eq(wait_of(1)->object, _i ? 0 : heap.monitors[2]);
    ck_assert_str_eq(found_deadlocks(), "101 102;");
    ck_assert_str_eq(found_locks(text), _i ? "" : "0 2 held by 101, 1 wait;");
}
END_TEST

static uint64_t condition_of(uint64_t lock)
{
    uint64_t condition = lock_heap_object(&heap, LOCK_HEAP_CONDITION);
    lock_heap_put(&heap, condition + CONDITION_LOCK, lock, 8);
    lock_heap_put(&heap, lock + LOCK_EVENT_OR_CONDITION, condition, 8);
    return condition;
}

/* Monitor.Wait. Nobody holds the monitor, and no thread waits to enter it. */
START_TEST(net11_pulse)
{
    char text[256];
    lock_heap_record(&heap, 0, condition_of(heap.locks[3]), _i ? 500 : -1);
    add_waiting(0);
    add_others(1);
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
    ck_assert_int_eq(wait_of(0)->kind, CDACQ_WAIT_PULSE);
    ck_assert_int_eq(wait_of(0)->by, CDACQ_WAIT_BY_STATE);
    ck_assert_uint_eq(wait_of(0)->object, heap.monitors[3]);
    ck_assert_int_eq(wait_of(0)->timeout_ms, _i ? 500 : -1);
    ck_assert_int_eq(wait_of(0)->endless, _i ? CDACQ_ENDLESS_NO : CDACQ_ENDLESS_YES);
    ck_assert_str_eq(found_locks(text), "");
}
END_TEST

/* An event is confirmed by its Lock, or by the object whose monitor that Lock is. */
START_TEST(net11_event)
{
    uint64_t event = lock_heap_object(&heap, LOCK_HEAP_EVENT), other = lock_heap_object(&heap, LOCK_HEAP_LOCK);
    const uint64_t owned[] = {heap.locks[3], heap.monitors[3], other, heap.monitors[4], 0};
    lock_heap_put(&heap, event + EVENT_LOCK, owned[_i], 8);
    lock_heap_record(&heap, 0, condition_of(heap.locks[3]), -1);
    add_waiting(0);
    graph->current.roles = 1u << WAIT_ROLE_EVENT | 1u << WAIT_ROLE_PULSE | 1u << WAIT_ROLE_HANDLE;
    graph->current.candidates[WAIT_ROLE_EVENT] = (struct wait_candidate){.object = event, .by = CDACQ_WAIT_BY_SCAN};
    add_others(1);
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
    ck_assert_int_eq(wait_of(0)->kind, CDACQ_WAIT_EVENT);
    ck_assert_uint_eq(wait_of(0)->object, event);
    ck_assert_int_eq(wait_of(0)->by, _i < 2 ? CDACQ_WAIT_BY_STATE : CDACQ_WAIT_BY_SCAN);
}
END_TEST

/* Words that look like the record of a wait, but are none. */
START_TEST(net11_no_record)
{
    uint64_t reference = heap.stacks[0] + 8, outside = lock_heap_object(&heap, LOCK_HEAP_LOCK);
    const struct {
        uint64_t offset, value;
        unsigned width;
    } rows[] = {
        {0, 0, 8},                                       /* no object */
        {0, heap.monitors[1], 8},                        /* no Lock */
        {0, lock_heap_object(&heap, LOCK_HEAP_LOCK), 8}, /* a Lock, which makes the record right */
        {8, 0, 8},                                       /* the record is not in use any more */
        {8, reference + 1, 8},
        {8, outside + LOCK_EVENT_OR_CONDITION, 8}, /* a reference that is in no frame */
        {16, 0, 4},                                /* another kind */
        {16, 3, 4},                                /* a Condition */
        {20, UINT32_MAX - 1, 4},                   /* no timeout */
        {32, heap.stacks[0] + 8, 8},               /* two records; the second has the same reference */
    };
    lock_heap_put(&heap, outside + LOCK_EVENT_OR_CONDITION, heap.locks[1], 8);
    lock_heap_hold(&heap, 1, 1, 0, 1);
    lock_heap_record(&heap, 0, heap.locks[1], -1);
    lock_heap_put(&heap, reference + rows[_i].offset, rows[_i].value, rows[_i].width);
    if (rows[_i].offset == 32)
        lock_heap_put(&heap, reference + 40, 2, 4);
    add_waiting(0);
    ck_assert_uint_eq(graph->current.blocking.lock, _i == 2 ? rows[_i].value : 0);
    add_others(1);
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
    ck_assert((wait_of(0) != NULL) == (_i == 2));
}
END_TEST

/* The event of a Lock, or that of its Condition, confirms the Lock. */
START_TEST(net11_event_of_a_lock)
{
    uint64_t waitable, handle = lock_heap_handle(&heap, &waitable), safe = lock_heap_get(&heap, handle + HANDLE_SAFE);
    uint64_t lock = heap.locks[1];
    ck_assert(!managed_lock_has_handle(&graph->types, lock, safe));
    lock_heap_put(&heap, lock + LOCK_EVENT_OR_CONDITION, handle, 8);
    ck_assert(managed_lock_has_handle(&graph->types, lock, safe));
    ck_assert(!managed_lock_has_handle(&graph->types, lock, waitable));
    uint64_t condition = condition_of(lock);
    ck_assert(!managed_lock_has_handle(&graph->types, lock, safe));
    lock_heap_put(&heap, condition + CONDITION_EVENT, handle, 8);
    ck_assert(managed_lock_has_handle(&graph->types, lock, safe));
}
END_TEST

/* What a thread is registered for is the event of the thread that it joins. Its own object is in its frames, too. */
START_TEST(net11_join)
{
    enum { JOINS, INLINED, UNKNOWN, UNKNOWN_INLINED, SLEEPS, SEVERAL };
    uint64_t waitables[2], joined = lock_heap_handle(&heap, &waitables[0]),
                           own = lock_heap_handle(&heap, &waitables[1]);
    bool known = _i == JOINS || _i == INLINED;
    if (known)
        lock_heap_put(&heap, heap.objects[2] + THREAD_JOIN, joined, 8);
    lock_heap_put(&heap, heap.objects[0] + THREAD_JOIN, own, 8);
    lock_heap_register(&heap, 0, waitables, _i == SLEEPS ? 0 : _i == SEVERAL ? 2 : 1);
    add_waiting(0);
    graph->current.timed = GRAPH_NO;
    graph->current.roles = _i == JOINS || _i == UNKNOWN ? 1u << WAIT_ROLE_JOIN : 0;
    graph->current.candidates[WAIT_ROLE_JOIN] =
        (struct wait_candidate){.object = heap.objects[0], .by = CDACQ_WAIT_BY_SCAN};
    add_others(1);
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
    ck_assert_str_eq(found_deadlocks(), "");
    const struct cdacq_wait *wait = wait_of(0);
    ck_assert((wait != NULL) == (_i != SLEEPS));
    if (!wait)
        return;
    ck_assert_int_eq(wait->kind, known || _i == UNKNOWN ? CDACQ_WAIT_JOIN : CDACQ_WAIT_HANDLE);
    ck_assert_uint_eq(wait->object, known ? heap.objects[2] : 0);
    ck_assert_int_eq(wait->by, known ? CDACQ_WAIT_BY_STATE : CDACQ_WAIT_BY_NOTHING);
    ck_assert_int_eq(wait->blocker_tid, known ? 103 : 0);
    ck_assert_int_eq(wait->endless, wait->kind == CDACQ_WAIT_JOIN ? CDACQ_ENDLESS_YES : CDACQ_ENDLESS_UNKNOWN);
}
END_TEST

/* Two threads that join each other; a thread that joins itself. */
START_TEST(net11_joins_in_a_cycle)
{
    uint64_t waitables[3];
    for (unsigned i = 0; i < ARRAY_SIZE(waitables); i++)
        lock_heap_put(&heap, heap.objects[i] + THREAD_JOIN, lock_heap_handle(&heap, &waitables[i]), 8);
    lock_heap_register(&heap, 0, &waitables[1], 1);
    lock_heap_register(&heap, 1, &waitables[0], 1);
    lock_heap_register(&heap, 2, &waitables[2], 1);
    for (unsigned i = 0; i < ARRAY_SIZE(waitables); i++) {
        add_waiting(i);
        graph->current.timed = GRAPH_NO;
        graph->current.roles = 1u << WAIT_ROLE_JOIN;
    }
    add_others(3);
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
    ck_assert_str_eq(found_deadlocks(), "101 102;103;");
}
END_TEST

/* The owner of a Mutex is known. It waits for a monitor that the waiting thread holds. */
START_TEST(net11_mutex)
{
    uint64_t waitable, mutex = lock_heap_handle(&heap, &waitable);
    uint64_t ownership = lock_heap_object(&heap, LOCK_HEAP_OWNERSHIP);
    lock_heap_put(&heap, waitable + WAITABLE_OWNER, ownership, 8);
    lock_heap_put(&heap, ownership + OWNER_THREAD, _i ? 0 : heap.objects[1], 8);
    lock_heap_register(&heap, 0, &waitable, 1);
    lock_heap_hold(&heap, 1, 0, 0, 1);
    lock_heap_record(&heap, 1, heap.locks[1], -1);
    add_waiting(0);
    graph->current.timed = GRAPH_NO;
    graph->current.roles = 1u << WAIT_ROLE_HANDLE;
    graph->current.candidates[WAIT_ROLE_HANDLE] = (struct wait_candidate){.object = mutex, .by = CDACQ_WAIT_BY_STATE};
    add_waiting(1);
    add_others(2);
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
    ck_assert_int_eq(wait_of(0)->kind, CDACQ_WAIT_HANDLE);
    ck_assert_uint_eq(wait_of(0)->object, mutex);
    ck_assert_int_eq(wait_of(0)->blocker_tid, _i ? 0 : 102);
    ck_assert_str_eq(found_deadlocks(), _i ? "" : "101 102;");
}
END_TEST

/* A thread that spins has the frames of a wait, but does not wait. */
START_TEST(net11_spins)
{
    static const enum wait_role roles[] = {WAIT_ROLE_LOCK,  WAIT_ROLE_ENTER,     WAIT_ROLE_PULSE,
                                           WAIT_ROLE_EVENT, WAIT_ROLE_SEMAPHORE, WAIT_ROLE_READER_WRITER};
    const struct cdacq_thread thread = lock_heap_thread(&heap, 0);
    cdacq_wait_graph_add_thread(graph, &thread);
    graph->current.roles = 1u << roles[_i];
    add_others(1);
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
    ck_assert_ptr_null(wait_of(0));
}
END_TEST

/*
 * The state of the thread that ran Main does not say that it waits. That of a thread that is about to end is the same.
 */
START_TEST(net11_main_has_returned)
{
    enum { RETURNED, RUNS_CODE, HAS_ENDED, NOBODY_LEFT, NO_OBJECT, UNREADABLE };
    for (unsigned i = 0; i < LOCK_HEAP_THREADS; i++) {
        struct cdacq_thread thread = lock_heap_thread(&heap, i);
        thread.state = i == 1 && _i != NOBODY_LEFT ? 0 : CDACQ_THREAD_BACKGROUND;
        thread.state |= i ? 0 : CDACQ_THREAD_EXITING;
        lock_heap_put(&heap, heap.objects[i] + THREAD_DEAD, _i == HAS_ENDED, 1);
        if (_i == NO_OBJECT)
            lock_heap_set(&heap, heap.threads[i], F_Thread_ExposedObject, 0);
        if (_i == UNREADABLE)
            lock_heap_put(&heap, heap.objects[i], 0x10, 8);
        cdacq_wait_graph_add_thread(graph, &thread);
        graph->current.left_native = _i == RUNS_CODE;
    }
    ck_assert_int_eq(cdacq_wait_graph_complete(graph, &error), CDACQ_OK);
    const struct cdacq_wait *wait = wait_of(0);
    ck_assert((wait != NULL) == (_i == RETURNED || _i == NO_OBJECT));
    if (wait) {
        ck_assert_int_eq(wait->kind, CDACQ_WAIT_FOREGROUND);
        ck_assert_int_eq(wait->blocker_tid, 102);
    }
}
END_TEST

/* What a thread is registered for, as a corrupt heap has it. */
START_TEST(net11_corrupt_registrations)
{
    uint64_t waitable, handle = lock_heap_handle(&heap, &waitable), safe = lock_heap_get(&heap, handle + HANDLE_SAFE);
    struct threading_types *types = &graph->types;
    lock_heap_register(&heap, 0, &waitable, 1);
    uint64_t info = lock_heap_get(&heap, heap.objects[0] + THREAD_WAIT);
    ck_assert_uint_eq(managed_wait_read(types, heap.objects[0]).object, waitable);
    ck_assert_uint_eq(managed_wait_read(types, heap.objects[1]).count, 0); /* it has never waited */
    ck_assert_uint_eq(managed_wait_read(types, 0).count, 0);
    ck_assert_uint_eq(managed_wait_read(types, waitable).count, 0);
    lock_heap_put(&heap, info + WAIT_COUNT, 2, 4); /* more than the array has */
    ck_assert_uint_eq(managed_wait_read(types, heap.objects[0]).count, 0);
    lock_heap_register(&heap, 0, &handle, 1); /* another type */
    ck_assert_uint_eq(managed_wait_read(types, heap.objects[0]).object, 0);
    ck_assert_uint_eq(managed_wait_of_handle(types, handle), waitable);
    ck_assert_uint_eq(managed_wait_of_handle(types, safe), 0);
    ck_assert_uint_eq(managed_wait_of_safe_handle(types, safe), waitable);
    ck_assert_uint_eq(managed_wait_of_join(types, heap.objects[0]), 0);
    ck_assert_uint_eq(managed_wait_owner(types, waitable), 0);
    ck_assert_uint_eq(managed_wait_owner(types, handle), 0);
    lock_heap_put(&heap, safe + SAFE_HANDLE_VALUE, UINT64_MAX, 8); /* InvalidHandle */
    ck_assert_uint_eq(managed_wait_of_handle(types, handle), 0);
    lock_heap_put(&heap, safe + SAFE_HANDLE_VALUE, 0x10, 8);
    ck_assert_uint_eq(managed_wait_of_handle(types, handle), 0);
    ck_assert(!reader_failed(&heap.session.resolver.reader));
}
END_TEST

START_TEST(stops)
{
    lock_heap_hold(&heap, 1, 0, 3, 5);
    complete();
    ck_assert_int_eq(cdacq_wait_graph_visit_locks(graph, stop_at_lock, NULL, &error), CDACQ_STOPPED);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("wait_graph");
    TCase *tc = tcase_create("graph");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, two_monitors);
    tcase_add_loop_test(tc, timed_cycle, 0, 2);
    tcase_add_test(tc, initializers);
    tcase_add_test(tc, several_cycles);
    tcase_add_test(tc, no_deadlock);
    tcase_add_test(tc, locks);
    tcase_add_loop_test(tc, owners_that_have_ended, 0, 2);
    tcase_add_loop_test(tc, owner_whose_thread_remains, 0, 2);
    tcase_add_test(tc, threads_of_another_namespace);
    tcase_add_loop_test(tc, thread_without_a_stack, 0, 2);
    tcase_add_loop_test(tc, reader_writer_states, 0, (int)ARRAY_SIZE(states));
    tcase_add_test(tc, reader_writer_upgrader_reads);
    tcase_add_loop_test(tc, reader_writer_waits, 0, 4);
    tcase_add_test(tc, reader_writer_deadlock);
    tcase_add_loop_test(tc, queued_items, 0, (int)ARRAY_SIZE(queues));
    tcase_add_loop_test(tc, visited_items, 0, (int)ARRAY_SIZE(queues));
    tcase_add_test(tc, unfilled_slot);
    tcase_add_test(tc, stealing_queue);
    tcase_add_test(tc, queues_of_each_kind);
    tcase_add_loop_test(tc, damaged_queues, 0, 5);
    tcase_add_test(tc, thread_pool);
    tcase_add_loop_test(tc, starvation, 0, 8);
    tcase_add_loop_test(tc, ambiguous_pool, 0, 2);
    tcase_add_test(tc, no_thread_pool);
    tcase_add_test(tc, deadlock_through_tasks);
    tcase_add_test(tc, guessed_task);
    tcase_add_test(tc, guessed_own_task);
    tcase_add_test(tc, completed_task);
    tcase_add_test(tc, awaited_task);
    tcase_add_test(tc, searches_take_reads);
    tcase_add_loop_test(tc, awaited_source, 0, 3);
    tcase_add_loop_test(tc, awaited_iterator, 0, 4);
    tcase_add_loop_test(tc, cancellable_continuation, 0, 2);
    tcase_add_loop_test(tc, task_with_children, 0, 2);
    tcase_add_test(tc, running_iterator);
    tcase_add_loop_test(tc, native_waits, 0, 10);
    tcase_add_loop_test(tc, main_has_returned, 0, 7);
    tcase_add_test(tc, main_has_returned_often);
    tcase_add_loop_test(tc, idle_thread_of_the_pool, 0, 2);
    tcase_add_loop_test(tc, awaited_any, 0, 2);
    tcase_add_test(tc, cycles_of_tasks);
    tcase_add_loop_test(tc, others_of_all, 0, 3);
    tcase_add_test(tc, many_waits_for_a_chain);
    tcase_add_test(tc, many_waits_for_a_list);
    tcase_add_test(tc, tasks_of_lists_are_work);
    tcase_add_test(tc, names_are_work);
    tcase_add_test(tc, many_tasks_are_asked_for_continuations);
    tcase_add_loop_test(tc, too_many_continuations, 0, 2);
    tcase_add_test(tc, lying_tables);
    tcase_add_test(tc, unreadable_sync_blocks);
    tcase_add_loop_test(tc, threads_without_stacks, 0, 3);
    tcase_add_test(tc, blocking_items);
    tcase_add_test(tc, arguments);
    tcase_add_test(tc, stops);
    suite_add_tcase(s, tc);
    TCase *net11 = tcase_create("net11");
    tcase_add_checked_fixture(net11, setup_net11, teardown);
    tcase_add_test(net11, net11_monitors);
    tcase_add_loop_test(net11, net11_two_monitors, 0, 2);
    tcase_add_test(net11, net11_lock);
    tcase_add_loop_test(net11, net11_unreadable_sync_blocks, 0, 2);
    tcase_add_loop_test(net11, net11_pulse, 0, 2);
    tcase_add_loop_test(net11, net11_event, 0, 5);
    tcase_add_loop_test(net11, net11_no_record, 0, 10);
    tcase_add_test(net11, net11_event_of_a_lock);
    tcase_add_loop_test(net11, net11_join, 0, 6);
    tcase_add_test(net11, net11_joins_in_a_cycle);
    tcase_add_loop_test(net11, net11_mutex, 0, 2);
    tcase_add_loop_test(net11, net11_spins, 0, 6);
    tcase_add_loop_test(net11, net11_main_has_returned, 0, 6);
    tcase_add_test(net11, net11_corrupt_registrations);
    suite_add_tcase(s, net11);
    return s;
}

CHECK_MAIN(suite)
