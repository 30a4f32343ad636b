/*
 * test_report_hang.c: the signature of a process that hangs, and whose stacks come first. The frames, which a core may
 * have made up, are built by hand.
 */
#include "tests/support/given_waits.h"

#include "src/cli/report/report_hang.c"
#include "src/cli/report/signature_names.c"
#include "tests/support/check_main.h"

enum { MANY = 30000, FRAMES_MAX = 2 };

static char written[512];
static struct report report;

void out_of_memory(void)
{
    ck_abort_msg("out of memory");
    abort();
}

void output_literal(struct output *out, const char *text)
{
    (void)out;
    strncat(written, text, sizeof written - strlen(written) - 1);
}

void output_escaped(struct output *out, const char *text, size_t length, enum escape_form form)
{
    (void)out, (void)form;
    strncat(written, text, MIN(length, sizeof written - strlen(written) - 1));
}

static void setup(void)
{
    report = (struct report){0};
    written[0] = '\0';
}

static void *zeroed(size_t size)
{
    void *ret = calloc(1, size);
    ck_assert_ptr_nonnull(ret);
    return ret;
}

static void append_stack(struct stack *stack)
{
    struct stack_list *list = &report.stacks.list;
    if (list->count == list->capacity) {
        list->capacity = 2 * list->capacity + 16;
        list->items = realloc(list->items, list->capacity * sizeof *list->items);
        ck_assert_ptr_nonnull(list->items);
    }
    list->items[list->count++] = stack;
}

/* Adds the stack of some threads, of which the first has the id `tid`. A name of NULL: it cannot be read. */
static const struct stack *add_stack(int tid, size_t threads, bool is_of_pool, const char *inner, const char *outer)
{
    struct stack *stack = zeroed(sizeof *stack);
    struct stack_frame *shared = zeroed(FRAMES_MAX * sizeof *shared);
    const char *const names[FRAMES_MAX] = {inner, outer};
    stack->frames.items = zeroed(FRAMES_MAX * sizeof *stack->frames.items);
    stack->threads.items = zeroed(threads * sizeof *stack->threads.items);
    for (size_t i = 0; i < FRAMES_MAX; i++) {
        shared[i].method.answer = CDACQ_ANSWER_MANAGED;
        shared[i].method.name = names[i];
        shared[i].method.name_length = names[i] ? strlen(names[i]) : 0;
        stack->frames.items[i].shared = &shared[i];
    }
    stack->frames.count = FRAMES_MAX;
    for (size_t i = 0; i < threads; i++)
        stack->threads.items[i] = (struct stack_thread){.tid = tid + (int)i, .is_of_pool = is_of_pool};
    stack->threads.count = threads;
    append_stack(stack);
    return stack;
}

static void free_stacks(void)
{
    for (size_t i = 0; i < report.stacks.list.count; i++) {
        struct stack *stack = report.stacks.list.items[i];
        free((void *)stack->frames.items[0].shared);
        free(stack->frames.items);
        free(stack->threads.items);
        free(stack);
    }
    free(report.stacks.list.items);
    report_deadlocks_deinit(&report.deadlocks);
    report_tids_deinit(&report.deadlocked);
    thread_stacks_deinit(&report.by_tid);
}

static const char *signature(void)
{
    written[0] = '\0';
    return report_write_hang(&report) ? written : NULL;
}

START_TEST(starvation)
{
    const struct stack *one = add_stack(1, 2, true, "System.Threading.Monitor.Wait(object)", "Demo.A.Rest(int)");
    const struct stack *most = add_stack(3, 3, true, "System.Threading.Monitor.Wait(object)", "Demo.B.Fetch()");
    const struct stack *idle = add_stack(6, 9, true, "System.A()", "System.B()");
    const struct stack *unread = add_stack(15, 9, true, "System.A()", NULL);
    const struct stack *other = add_stack(24, 9, false, "System.A()", "Demo.Main()");
    ck_assert_ptr_null(signature());
    ck_assert(!report_hangs(&report, most));
    report.pool.starves = true;
    ck_assert_str_eq(signature(), "starvation: Demo.B.Fetch");
    ck_assert(report_hangs(&report, one) && report_hangs(&report, most));
    ck_assert(!report_hangs(&report, idle) && !report_hangs(&report, other));
    ck_assert(report_hangs(&report, unread)); /* its workers may be the most */
    free_stacks();
}
END_TEST

/* The compiled expression trees of all handlers have one name: the tasks that they wait for tell them apart. */
START_TEST(starvation_of_expression_trees)
{
    static const struct cdacq_task tasks[] = {{.method = "System.Net.Http.HttpClient.SendAsync()"},
                                              {.method = "Demo.Shop.FetchAsync(int)"},
                                              {.method = "Demo.Inner()"}};
    static const struct cdacq_wait waits[] = {{.tid = 2, .tasks = tasks, .task_count = 3},
                                              {.tid = 1, .tasks = &tasks[1], .task_count = 2},
                                              {.tid = 3, .tasks = tasks, .task_count = 1}};
    add_stack(1, 3, true, "System.Threading.Tasks.Task.Wait()", "dynamicClass.lambda_method17(Closure)");
    report.pool.starves = true;
    ck_assert_str_eq(signature(), "starvation: dynamicClass.lambda_method");
    given_waits = waits;
    given_count = 3;
    ck_assert_str_eq(signature(), "starvation: Demo.Shop.FetchAsync");
    given_count = 1;
    ck_assert_str_eq(signature(), "starvation: dynamicClass.lambda_method");
    given_count = 0;
    free_stacks();
}
END_TEST

START_TEST(starvation_without_names)
{
    const struct stack *stack = add_stack(1, 2, true, NULL, "System.B()");
    report.pool.starves = true;
    ck_assert_str_eq(signature(), "starvation");
    ck_assert(report_hangs(&report, stack));
    free_stacks();
}
END_TEST

START_TEST(stopped)
{
    report.process.is_frozen = true;
    ck_assert_str_eq(signature(), "frozen");
    report.process.is_stopped = true;
    ck_assert_str_eq(signature(), "stopped");
    report.pool.starves = true;
    ck_assert_str_eq(signature(), "starvation");
}
END_TEST

/* Two threads each. The work is not that of comparing each thread with each other one. */
START_TEST(many_deadlocks)
{
    struct cdacq_wait *waits = zeroed(MANY * sizeof *waits);
    const struct cdacq_wait **pairs = zeroed(MANY * sizeof *pairs);
    struct cdacq_deadlock *deadlocks = zeroed(MANY / 2 * sizeof *deadlocks);
    const struct stack *alone = add_stack(2 * MANY, 1, false, "System.A()", "Demo.Alone()");
    for (int i = 0; i < MANY; i++) {
        waits[i].tid = MANY - i;
        pairs[i] = &waits[i];
        add_stack(MANY - i, 1, false, "System.A()", i == MANY - 1 ? "Demo.A()" : i % 2 ? "Demo.B(int)" : "Demo.C()");
    }
    for (size_t i = 0; i < MANY / 2; i++) {
        deadlocks[i] = (struct cdacq_deadlock){.count = 2, .waits = &pairs[2 * i]};
        ck_assert(report_deadlocks_append(&report.deadlocks, &deadlocks[i]));
    }
    report_list_deadlocked(&report);
    report_list_stacks(&report);
    for (size_t i = 0; i < report.stacks.list.count; i++)
        ck_assert_int_eq(report_hangs(&report, report.stacks.list.items[i]), report.stacks.list.items[i] != alone);
    ck_assert_str_eq(signature(), "deadlock: Demo.A <> Demo.C");
    free_stacks();
    free(deadlocks);
    free(pairs);
    free(waits);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("report_hang");
    TCase *tc = tcase_create("hang");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, starvation);
    tcase_add_test(tc, starvation_of_expression_trees);
    tcase_add_test(tc, starvation_without_names);
    tcase_add_test(tc, stopped);
    tcase_add_test(tc, many_deadlocks);
    suite_add_tcase(suite, tc);
    return suite;
}

CHECK_MAIN(suite)
