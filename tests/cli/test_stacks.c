/*
 * test_stacks.c: how the tool merges identical stacks and folds frames that repeat. Stacks are written as the names of
 * their frames, a letter each, which is also the frame's address.
 */
#include <stdio.h>

#include "src/cli/base/memory.h"
#include "src/cli/base/stacks.c"
#include "tests/support/check_main.h"

void out_of_memory(void)
{
    ck_abort_msg("out of memory");
    abort();
}

void *allocate(size_t size)
{
    return calloc(1, size);
}

static struct stacks stacks;

static void setup(void)
{
    stacks = (struct stacks){0};
}

static void teardown(void)
{
    stacks_deinit(&stacks);
}

static struct stack *stack_of(const char *frames)
{
    struct stack *stack = stack_new();
    for (unsigned i = 0; frames[i]; i++) {
        struct cdacq_frame frame = {.size = sizeof frame, .index = i, .pc = (uint8_t)frames[i]};
        stack_add_frame(&stacks, stack, &frame);
    }
    return stack;
}

static void add(int tid, const char *frames, const char *problem, bool alone)
{
    struct cdacq_thread thread = {.size = sizeof thread, .tid = tid};
    stacks_add(&stacks, stack_of(frames), &thread, problem, alone);
}

/* "abc:1,2 abd:3": the frames and the threads of each stack in turn. */
static void check_stacks(const char *expected)
{
    char text[512] = "", *p = text;
    for (size_t i = 0; i < stacks.list.count; i++) {
        const struct stack *stack = stacks.list.items[i];
        p += sprintf(p, "%s", i ? " " : "");
        for (size_t k = 0; k < stack->frames.count; k++)
            *p++ = (char)stack->frames.items[k].shared->frame.pc;
        for (size_t k = 0; k < stack->threads.count; k++)
            p += sprintf(p, "%c%d", k ? ',' : ':', stack->threads.items[k].tid);
    }
    ck_assert_str_eq(text, expected);
}

START_TEST(identical_stacks_are_merged)
{
    add(1, "abc", NULL, false);
    add(2, "abd", NULL, false);
    add(3, "abc", NULL, false);
    add(4, "ab", NULL, false);
    add(5, "abd", NULL, false);
    check_stacks("abc:1,3 abd:2,5 ab:4");
}
END_TEST

static enum cdacq_frame_kind kind_of(const char *name)
{
    return !name ? CDACQ_FRAME_NATIVE : strcmp(name, "async") == 0 ? CDACQ_FRAME_ASYNC : CDACQ_FRAME_MANAGED;
}

/* A stack of native frames, of the framework's waits, and of what calls them. */
START_TEST(frames_that_only_wait)
{
    static const struct {
        const char *names[5]; /* "libc": a native frame */
        enum cdacq_thread_mode mode;
        size_t row;
    } rows[] = {
        {{"libc", "libc", "System.Threading.Monitor.Wait(object)", "Demo.Main()"}, CDACQ_MODE_KERNEL, 2},
        {{"libc", "System.Threading.ManualResetEventSlim.Wait(int)", "System.Threading.Tasks.Task.Wait()",
          "Demo.Main()"},
         0,
         2},
        {{"libc", "System.Threading.Thread.Sleep(int)", "Demo.Main()"}, CDACQ_MODE_KERNEL, 0}, /* one frame stays one */
        {{"libc", "libc", "Demo.Main()", "System.Threading.Monitor.Wait(object)"}, CDACQ_MODE_KERNEL, 0},
        {{"libc", "libc", "System.IO.File.Read()", "Demo.Main()"}, CDACQ_MODE_KERNEL, 0},
        {{"libc", "System.Threading.Tasks.Task.InternalWait(int)", "async", "System.Threading.Tasks.Task.Wait()",
          "Demo.Main()"},
         CDACQ_MODE_KERNEL,
         3},
        {{"libc", "libc", "async", "Demo.Main()"}, CDACQ_MODE_KERNEL, 0},
        {{"libc", "System.Threading.LowLevelThreadBlocker.TimedWait(int)",
          "System.Threading.LowLevelLifoSemaphore.Block(int)", "Demo.Main()"},
         CDACQ_MODE_KERNEL,
         2},
        {{"System.Threading.Monitor.Enter(object)", "System.Threading.Monitor.Enter()", "Demo.Main()"}, 0, 0},
        {{"libc", "libc", "System.Threading.Monitor.Wait(object)", "Demo.Main()"}, CDACQ_MODE_USER, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct stack *stack = stack_new();
        for (unsigned k = 0; k < ARRAY_SIZE(rows[i].names) && rows[i].names[k]; k++) {
            const char *name = strcmp(rows[i].names[k], "libc") == 0 ? NULL : rows[i].names[k];
            struct cdacq_method method = {.name = name, .name_length = name ? strlen(name) : 0};
            struct cdacq_frame frame = {.size = sizeof frame,
                                        .index = k,
                                        .pc = 100 * (i + 1) + k,
                                        .kind = kind_of(name),
                                        .module = name ? NULL : "libc.so.6",
                                        .method = name ? &method : NULL};
            stack_add_frame(&stacks, stack, &frame);
        }
        struct cdacq_thread thread = {.size = sizeof thread, .tid = 1, .mode = rows[i].mode};
        stacks_add(&stacks, stack, &thread, NULL, true);
        ck_assert_msg(stack_waiting_row(stack) == rows[i].row, "row %zu: %zu", i, stack_waiting_row(stack));
    }
}
END_TEST

START_TEST(stacks_that_end_otherwise_are_kept_apart)
{
    add(1, "abc", NULL, false);
    add(2, "abc", "no memory", false);
    add(3, "abc", "corrupt", false);
    add(4, "abc", "no memory", false);
    check_stacks("abc:1 abc:2,4 abc:3");
    ck_assert_str_eq(stacks.list.items[1]->problem, "no memory");
}
END_TEST

START_TEST(a_stack_alone_is_not_merged)
{
    add(1, "abc", NULL, true);
    add(2, "abc", NULL, false);
    add(3, "abc", NULL, false);
    add(4, "abc", NULL, true);
    check_stacks("abc:1 abc:2,3 abc:4");
}
END_TEST

START_TEST(frames_found_otherwise_are_other_frames)
{
    struct stack *guessed = stack_of("ab");
    const struct cdacq_frame c = {.size = sizeof c, .pc = 'c', .by = CDACQ_FRAME_BY_GUESS};
    stack_add_frame(&stacks, guessed, &c);
    add(1, "abc", NULL, false);
    stacks_add(&stacks, guessed, &(struct cdacq_thread){.tid = 2}, NULL, false);
    struct stack *gap = stack_of("ab");
    const struct cdacq_frame after_gap = {.size = sizeof after_gap, .pc = 'c', .after_gap = true};
    stack_add_frame(&stacks, gap, &after_gap);
    stacks_add(&stacks, gap, &(struct cdacq_thread){.tid = 3}, NULL, false);
    check_stacks("abc:1 abc:2 abc:3");
}
END_TEST

/* "a b*5 cd*4": the runs of a stack. */
static void check_runs(const char *frames, const char *expected)
{
    struct stack *stack = stack_of(frames);
    char text[512] = "", *p = text;
    for (size_t i = 0; i < stack->frames.count;) {
        struct stack_run run = stack_run_at(stack, i);
        ck_assert_uint_eq(run.first, i);
        p += sprintf(p, "%s%.*s", i ? " " : "", (int)run.period, frames + i);
        if (run.count > 1)
            p += sprintf(p, "*%zu", run.count);
        i += run.period * run.count;
    }
    ck_assert_str_eq(text, expected);
    stack_free(stack);
}

START_TEST(repeated_frames_are_folded)
{
    check_runs("", "");
    check_runs("abc", "a b c");
    check_runs("abbbc", "a b b b c"); /* too few */
    check_runs("abbbbbc", "a b*5 c");
    check_runs("xababababy", "x ab*4 y");
    check_runs("xabababaay", "x a b a b a b a a y"); /* three and a half */
    check_runs("bbbbb", "b*5");
    check_runs("xabcabcabcabcabz", "x abc*4 a b z");
    check_runs("aaaabaaaab", "a*4 b a*4 b"); /* the shorter period wins */
}
END_TEST

/* Recursion has hundreds of thousands of frames. */
START_TEST(frames_at_one_address_share_what_is_known_of_it)
{
    const struct cdacq_frame frames[] = {{.size = sizeof frames[0], .pc = 'a', .cfa = 16, .index = 0},
                                         {.size = sizeof frames[0], .pc = 'a', .cfa = 32, .index = 1},
                                         {.size = sizeof frames[0], .pc = 'a', .cfa = 48, .index = 2, .is_call = true}};
    struct stack *stack = stack_new();
    for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
        stack_add_frame(&stacks, stack, &frames[i]);
    ck_assert_ptr_eq(stack->frames.items[0].shared, stack->frames.items[1].shared);
    ck_assert_ptr_ne(stack->frames.items[0].shared, stack->frames.items[2].shared);
    for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
        struct stack_frame frame = stack_frame_at(stack, i);
        ck_assert_uint_eq(frame.frame.cfa, frames[i].cfa);
        ck_assert_uint_eq(frame.frame.index, i);
        ck_assert_uint_eq(frame.method.ip, 'a');
    }
    stack_free(stack);
}
END_TEST

START_TEST(strings_of_a_visit_are_kept)
{
    char error[] = "no memory at 0x10", name[] = "worker";
    struct cdacq_method method = {.size = sizeof method, .answer = CDACQ_ANSWER_ERROR, .error = error};
    struct cdacq_frame frame = {.size = sizeof frame, .method = &method};
    struct stack *stack = stack_new();
    stack_add_frame(&stacks, stack, &frame);
    stacks_add(&stacks, stack, &(struct cdacq_thread){.tid = 1, .name = name}, error, false);
    memset(error, 'x', sizeof error - 1);
    memset(name, 'x', sizeof name - 1);
    ck_assert_str_eq(stack_frame_at(stack, 0).method.error, "no memory at 0x10");
    ck_assert_str_eq(stack->threads.items[0].name, "worker");
    ck_assert_str_eq(stack->problem, "no memory at 0x10");
}
END_TEST

/* 'n' is native, 'm' is managed, '?' is a guess, '|' is after a gap, 's' is of a signal, '-' has no module. */
static void check_native_row(const char *kinds, size_t first, size_t expected)
{
    static const struct cdacq_method method = {.size = sizeof method, .answer = CDACQ_ANSWER_MANAGED};
    struct stack *stack = stack_new();
    for (unsigned i = 0; kinds[i]; i++) {
        struct cdacq_frame frame = {
            .size = sizeof frame, .index = i, .pc = (uint64_t)kinds[i] + 256 * i, .module = "/lib/libc.so.6"};
        frame.method = kinds[i] == 'm' ? &method : NULL;
        frame.kind = kinds[i] == 'm' ? CDACQ_FRAME_MANAGED : kinds[i] == 's' ? CDACQ_FRAME_SIGNAL : CDACQ_FRAME_NATIVE;
        frame.by = kinds[i] == '?' ? CDACQ_FRAME_BY_GUESS : CDACQ_FRAME_BY_CFI;
        frame.after_gap = kinds[i] == '|';
        frame.module = kinds[i] == '-' || kinds[i] == 'm' ? NULL : frame.module;
        stack_add_frame(&stacks, stack, &frame);
    }
    ck_assert_uint_eq(stack_native_row(stack, first), expected);
    stack_free(stack);
}

/* What a reader has to see is in no row. */
START_TEST(frames_with_variables_are_not_folded)
{
    struct stack *stack = stack_of("aaaaaa");
    ck_assert_uint_eq(stack_run_at(stack, 0).count, 6);
    stack_add_variables(&stacks, stack, "x = 1\n", 6);
    ck_assert_str_eq(stack->frames.items[5].variables, "x = 1\n");
    ck_assert_uint_eq(stack_run_at(stack, 0).count, 5);
    stack_free(stack);
}
END_TEST

START_TEST(rows_of_native_frames)
{
    check_native_row("nnnm", 0, 3);
    check_native_row("mnnn", 1, 3);
    check_native_row("mnnn", 0, 0);
    check_native_row("nn?n", 0, 2);
    check_native_row("nn|n", 0, 2);
    check_native_row("nnsn", 0, 2);
    check_native_row("nn-n", 0, 2);
}
END_TEST

static Suite *suite(void)
{
    Suite *all = suite_create("stacks");
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, identical_stacks_are_merged);
    tcase_add_test(tests, frames_that_only_wait);
    tcase_add_test(tests, stacks_that_end_otherwise_are_kept_apart);
    tcase_add_test(tests, a_stack_alone_is_not_merged);
    tcase_add_test(tests, frames_found_otherwise_are_other_frames);
    tcase_add_test(tests, repeated_frames_are_folded);
    tcase_add_test(tests, frames_at_one_address_share_what_is_known_of_it);
    tcase_add_test(tests, strings_of_a_visit_are_kept);
    tcase_add_test(tests, frames_with_variables_are_not_folded);
    tcase_add_test(tests, rows_of_native_frames);
    suite_add_tcase(all, tests);
    return all;
}

CHECK_MAIN(suite)
