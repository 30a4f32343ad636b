/*
 * test_report_threads.c: how busy threads were, by two lists of times, which threads suspend others, and the order that
 * this gives the stacks of a report.
 */
#include <stdarg.h>

#include "src/cli/base/busy_threads.c"
#include "src/cli/report/report_threads.c"
#include "tests/support/check_main.h"

enum { ELAPSED = 200 * 1000 * 1000, PERCENT = ELAPSED / 100, STACKS = 6 };

static struct busy_threads busy;
static struct times before, after;

void out_of_memory(void)
{
    ck_abort_msg("out of memory");
    abort();
}

void *allocate(size_t size)
{
    void *ret = calloc(1, size);
    ck_assert_ptr_nonnull(ret);
    return ret;
}

/* The stack of the thread 5. */
static struct stack_frame frames[] = {{.frame.symbol = "memcpy"},
                                      {.method = {.name = "Demo.Main()", .name_length = 11}}};

const struct cdacq_method *report_program_method(const struct stack *stack)
{
    return stack->threads.items[0].tid == 5 ? &frames[1].method : NULL;
}

void output_note(struct output *out, const char *text)
{
    output_literal(out, text);
}

void output_note_between(struct output *out, const char *prefix, const char *text, const char *suffix)
{
    output_text_between(out, prefix, text, suffix);
}

/* The thread 1 hangs. */
bool report_hangs(const struct report *report, const struct stack *stack)
{
    (void)report;
    return stack->threads.items[0].tid == 1;
}

static char written[4096];

void output_literal(struct output *out, const char *text)
{
    (void)out;
    strncat(written, text, sizeof written - strlen(written) - 1);
}

void output_styled(struct output *out, enum style style, const char *text)
{
    (void)style;
    output_literal(out, text);
}

void output_text_between(struct output *out, const char *prefix, const char *text, const char *suffix)
{
    output_literal(out, prefix);
    output_literal(out, text);
    output_literal(out, suffix);
}

void output_printf(struct output *out, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    output_literal(out, text);
}

static void add(struct times *times, int tid, uint64_t time)
{
    ck_assert(times_append(times, (struct cdacq_thread_time){.tid = tid, .processor_time_ns = time}));
}

static struct stack_thread threads[STACKS];

static void setup(void)
{
    static const struct stack_thread fresh[STACKS] = {
        {.tid = 3}, {.tid = 5, .name = "five"}, {.tid = 2}, {.tid = 1}, {.tid = 6}, {.tid = 4}};
    memcpy(threads, fresh, sizeof threads);
    written[0] = '\0';
}

static void teardown(void)
{
    times_deinit(&before);
    times_deinit(&after);
    busy_threads_release(&busy);
}

/* By how much each thread's time grew, in percent of a processor. */
START_TEST(percents)
{
    static const struct {
        int tid;
        uint64_t before, after;
        unsigned percent;
    } rows[] = {
        {10, 1000, 1000, 0},
        {11, 1000, 1000 + 4 * (uint64_t)PERCENT, 0}, /* less than the error */
        {12, 1000, 1000 + 5 * (uint64_t)PERCENT, 5},
        {13, 1000, 1000 + 42 * (uint64_t)PERCENT, 42},
        {14, UINT64_C(1) << 63, (UINT64_C(1) << 63) + 107 * (uint64_t)PERCENT, 100}, /* its last tick was before */
        {15, 2000, 1000, 0},                        /* the id belongs to another thread now */
        {16, UINT64_MAX, 7 * (uint64_t)PERCENT, 7}, /* it began meanwhile */
        {17, 1000, UINT64_MAX, 0},                  /* it has ended */
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (rows[i].before != UINT64_MAX)
            add(&before, rows[i].tid, rows[i].before);
        if (rows[i].after != UINT64_MAX)
            add(&after, rows[i].tid, rows[i].after);
    }
    compare_times(&before, &after, ELAPSED, &busy);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        ck_assert_uint_eq(busy_percent(&busy, rows[i].tid), rows[i].percent);
    ck_assert_uint_eq(busy.list.count, 4);
    for (size_t i = 1; i < busy.list.count; i++)
        ck_assert_uint_ge(busy.list.items[i - 1].percent, busy.list.items[i].percent);
}
END_TEST

/* A thread that had no processor is as busy as one that had. One whose numbers stayed was still. */
START_TEST(delays_and_stillness)
{
    static const struct cdacq_thread_time then[] = {{.tid = 10, .processor_time_ns = 500, .delay_ns = 100, .runs = 7},
                                                    {.tid = 11, .processor_time_ns = 500, .delay_ns = 100, .runs = 7},
                                                    {.tid = 12, .processor_time_ns = 500, .delay_ns = 100, .runs = 7},
                                                    {.tid = 13, .processor_time_ns = 500}},
                                          now[] = {{.tid = 10, .processor_time_ns = 500, .delay_ns = 100, .runs = 7},
                                                   {.tid = 11, .processor_time_ns = 500, .delay_ns = 100, .runs = 8},
                                                   {.tid = 12,
                                                    .processor_time_ns = 500 + 10 * (uint64_t)PERCENT,
                                                    .delay_ns = 100 + 95 * (uint64_t)PERCENT, /* it began before */
                                                    .runs = 9},
                                                   {.tid = 13, .processor_time_ns = 500},
                                                   {.tid = 14, .processor_time_ns = 500, .runs = 1}};
    for (size_t i = 0; i < ARRAY_SIZE(then); i++)
        ck_assert(times_append(&before, then[i]));
    for (size_t i = 0; i < ARRAY_SIZE(now); i++)
        ck_assert(times_append(&after, now[i]));
    compare_times(&before, &after, ELAPSED, &busy);
    ck_assert(busy.counts_runs);
    for (int tid = 9; tid <= 15; tid++)
        ck_assert_int_eq(busy_is_still(&busy, tid), tid == 10); /* of 13, nothing is counted, and 14 is new */
    ck_assert_uint_eq(busy.list.count, 1);
    ck_assert_uint_eq(busy_percent(&busy, 12), 10);
    ck_assert_uint_eq(busy_wanted(&busy, 12), 100);
    ck_assert_uint_eq(busy_wanted(&busy, 11), 0);
    ck_assert_uint_eq(busy_delayed(&busy, 12), 90);
    ck_assert_uint_eq(busy_delayed(&busy, 11), 0);
}
END_TEST

/* A thread that was ready to run all the time and did not is not still: the kernel has not counted its delay yet. */
START_TEST(starved)
{
    static const struct {
        bool then, now;
        unsigned delayed;
        bool is_still;
    } cases[] = {{false, false, 0, true}, {true, true, 100, false}, {true, false, 0, false}, {false, true, 0, false}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct cdacq_thread_time time = {.tid = 10, .processor_time_ns = 500, .runs = 7, .ready = cases[i].then};
        ck_assert(times_append(&before, time));
        time.ready = cases[i].now;
        ck_assert(times_append(&after, time));
        compare_times(&before, &after, ELAPSED, &busy);
        ck_assert_uint_eq(busy_percent(&busy, 10), 0);
        ck_assert_uint_eq(busy_delayed(&busy, 10), cases[i].delayed);
        ck_assert_int_eq(busy_is_still(&busy, 10), cases[i].is_still);
        busy_threads_release(&busy);
        before.count = after.count = 0;
    }
}
END_TEST

/* This process is busy while it is measured: it reads /proc. What a file as a target has is nothing. */
START_TEST(measuring)
{
    busy_threads_measure(getpid(), NULL, &busy);
    ck_assert(busy.measured && !busy.runtime.looks);
    ck_assert(busy.seconds >= WINDOW_NS / 1e9);
    busy_threads_measure(0, NULL, &busy);
    ck_assert(!busy.measured && !busy.list.count);
    busy_threads_measure(4194999, NULL, &busy); /* no kernel gives a process this id */
    ck_assert(!busy.measured);
}
END_TEST

static struct stack stacks[STACKS], *pointers[STACKS];

static struct report report_of(void)
{
    static struct kept_frame kept[] = {{.shared = &frames[0]}, {.shared = &frames[1]}};
    frames[1].frame.by = CDACQ_FRAME_BY_UNWIND;
    stacks[1].frames = (struct stack_frames){kept, ARRAY_SIZE(kept), ARRAY_SIZE(kept)};
    for (int i = 0; i < STACKS; i++) {
        stacks[i].threads.items = &threads[i];
        stacks[i].threads.count = 1;
        pointers[i] = &stacks[i];
    }
    return (struct report){.stacks.list = {pointers, STACKS, STACKS}, .dead = &stacks[0], .busy = &busy};
}

/* The thread 3 has died, 1 hangs, and 6, 5 and 2 were busy. */
START_TEST(order_of_stacks)
{
    static const int tids[] = {3, 1, 6, 5, 2, 4};
    static const struct busy_thread list[] = {
        {.tid = 1, .percent = 90}, {.tid = 6, .percent = 80}, {.tid = 5, .percent = 50}, {.tid = 2, .percent = 50}};
    struct report report = report_of();
    for (size_t i = 0; i < ARRAY_SIZE(list); i++)
        ck_assert(busy_list_append(&busy.list, list[i]));
    struct ordered_stacks ordered = report_order_stacks(&report);
    ck_assert_uint_eq(ordered.count, STACKS);
    for (size_t i = 0; i < STACKS; i++)
        ck_assert_int_eq(ordered.items[i].stack->threads.items[0].tid, tids[i]);
    free(ordered.items);
    report.verdict_tid = 4; /* which waits, and comes before those that are busy */
    ordered = report_order_stacks(&report);
    ck_assert_int_eq(ordered.items[1].stack->threads.items[0].tid, 1);
    ck_assert_int_eq(ordered.items[2].stack->threads.items[0].tid, 4);
    ck_assert_int_eq(ordered.items[2].rank, STACK_HANGS);
    free(ordered.items);
    report.verdict_tid = 2; /* which is busy: the waits of many threads would be before its stack */
    ordered = report_order_stacks(&report);
    ck_assert_int_eq(ordered.items[1].stack->threads.items[0].tid, 2);
    ck_assert_int_eq(ordered.items[1].rank, STACK_HANGS);
    free(ordered.items);
}
END_TEST

/* Of a core, the threads that were in no system call come first, if the process did not end by itself. */
START_TEST(running_threads_of_a_core)
{
    static const struct {
        enum cdacq_target_kind kind;
        enum report_cause cause;
        int sender;
        bool shown;
    } rows[] = {
        {CDACQ_TARGET_CORE, REPORT_ALIVE, 0, true},      {CDACQ_TARGET_CORE, REPORT_SIGNAL, 8, true},
        {CDACQ_TARGET_CORE, REPORT_SIGNAL, 7, false},    {CDACQ_TARGET_CORE, REPORT_SIGNAL, 0, false},
        {CDACQ_TARGET_CORE, REPORT_UNHANDLED, 8, false}, {CDACQ_TARGET_CORE, REPORT_FATAL, 0, false},
        {CDACQ_TARGET_PROCESS, REPORT_ALIVE, 0, false},
    };
    struct report report = report_of();
    report.busy = NULL;
    report.dead = NULL;
    report.facts.kind = rows[_i].kind;
    report.cause = rows[_i].cause;
    report.process.pid = 7;
    report.process.sender_pid = rows[_i].sender;
    threads[1].mode = threads[4].mode = CDACQ_MODE_USER;
    threads[0].mode = threads[3].mode = CDACQ_MODE_KERNEL;
    report_write_busy_text(&report);
    const char *expected = "\nBusy threads:\n  TID 5 \"five\" ran memcpy, called by Demo.Main()\n"
                           "  TID 6 ran code that is not known\n";
    ck_assert_str_eq(written, rows[_i].shown ? expected : "");
    struct ordered_stacks ordered = report_order_stacks(&report);
    ck_assert_int_eq(ordered.items[0].rank, STACK_HANGS);
    ck_assert_int_eq(ordered.items[1].rank, rows[_i].shown ? STACK_BUSY : STACK_OTHER);
    ck_assert_int_eq(ordered.items[2].rank, rows[_i].shown ? STACK_BUSY : STACK_OTHER);
    ck_assert_int_eq(ordered.items[3].rank, STACK_OTHER);
    free(ordered.items);
}
END_TEST

/* Whether all frames are native is all that is asked for. */
size_t stack_native_row(const struct stack *stack, size_t first)
{
    size_t end = first;
    while (end < stack->frames.count && stack->frames.items[end].shared->frame.module)
        end++;
    return end - first;
}

static size_t waiting;

size_t stack_waiting_row(const struct stack *stack)
{
    return stack->frames.count ? waiting : 0;
}

/* The threads 6 and 4 wait in native code of the runtime, or in other code. */
START_TEST(idle_threads)
{
    static const struct {
        const char *inner, *outer, *problem; /* NULL: managed code */
        enum cdacq_thread_mode mode;
        bool suspends, idle;
    } rows[] = {
        {"/lib/libc.so.6", "/dotnet/libcoreclr.so", NULL, CDACQ_MODE_KERNEL, false, true},
        {"/lib/ld-musl-x86_64.so.1", "/dotnet/libSystem.Native.so", NULL, CDACQ_MODE_KERNEL, false, true},
        {"/lib/libc.so.6", "/lib/libc.so.6", NULL, CDACQ_MODE_KERNEL, false, false},
        {"/dotnet/libcoreclr.so", "/app/libnative.so", NULL, CDACQ_MODE_KERNEL, false, false},
        {"/lib/libc.so.6", "/dotnet/libcoreclr.so", "no memory", CDACQ_MODE_KERNEL, false, false},
        {"/lib/libc.so.6", NULL, NULL, CDACQ_MODE_KERNEL, false, false},
        {"/lib/libc.so.6", "/dotnet/libcoreclr.so", NULL, CDACQ_MODE_USER, false, false},
        {"/lib/libc.so.6", "/dotnet/libcoreclr.so", NULL, CDACQ_MODE_UNKNOWN, false, false},
        {"/lib/libc.so.6", "/dotnet/libcoreclr.so", NULL, CDACQ_MODE_KERNEL, true, false},
    };
    static struct stack_frame own[2];
    static struct kept_frame kept[2] = {{.shared = &own[0]}, {.shared = &own[1]}};
    for (size_t row = 0; row < ARRAY_SIZE(rows); row++) {
        setup();
        struct report report = report_of();
        report.busy = NULL;
        own[0].frame.module = rows[row].inner;
        own[1].frame.module = rows[row].outer;
        threads[1].suspends_others = rows[row].suspends;
        threads[4].name = ".NET EventPipe";
        for (size_t i = 4; i < STACKS; i++) {
            stacks[i].frames = (struct stack_frames){kept, 2, 2};
            stacks[i].problem = rows[row].problem;
            threads[i].mode = rows[row].mode;
        }
        struct ordered_stacks ordered = report_order_stacks(&report);
        report_write_idle_text(&report, &ordered);
        const char *expected = "\n2 threads of the runtime are idle: TID 6 \".NET EventPipe\", TID 4\n";
        ck_assert_msg(strcmp(written, rows[row].idle ? expected : "") == 0, "row %zu: %s", row, written);
        free(ordered.items);
    }
    own[1].frame.module = NULL;
    waiting = 0;
    for (size_t i = 0; i < 2; i++) {
        static const char *const names[] = {"System.Threading.TimerQueue.TimerThread()", "Demo.Main()"};
        setup();
        struct report report = report_of();
        report.busy = NULL;
        own[1].method = (struct cdacq_method){.name = names[i], .name_length = strlen(names[i])};
        waiting = 1;
        threads[4].mode = threads[5].mode = CDACQ_MODE_KERNEL;
        static struct kept_frame third[3] = {{.shared = &own[0]}, {.shared = &own[0]}, {.shared = &own[1]}};
        stacks[4].frames = stacks[5].frames = (struct stack_frames){third, 3, 3};
        struct ordered_stacks ordered = report_order_stacks(&report);
        ck_assert_int_eq(ordered.items[STACKS - 1].rank, i ? STACK_OTHER : STACK_IDLE);
        free(ordered.items);
    }
    waiting = 0;
    memset(stacks, 0, sizeof stacks); /* of the next test, if none of them forks */
}
END_TEST

/* Of the threads 6 and 4, which wait in native code of the runtime: those that used a processor stay in the list. */
START_TEST(idle_threads_that_waited_for_a_processor)
{
    static struct stack_frame own[2] = {{.frame.module = "/lib/libc.so.6"}, {.frame.module = "/dotnet/libcoreclr.so"}};
    static struct kept_frame kept[2] = {{.shared = &own[0]}, {.shared = &own[1]}};
    static const struct busy_thread list[] = {{.tid = 6, .percent = 1, .delayed = 99},
                                              {.tid = 5, .percent = 1, .delayed = 98},
                                              {.tid = 77, .percent = 0, .delayed = 97}, /* has ended */
                                              {.tid = 4, .percent = 5, .delayed = 50}};
    struct report report = report_of();
    for (size_t i = 4; i < STACKS; i++) {
        stacks[i].frames = (struct stack_frames){kept, 2, 2};
        threads[i].mode = CDACQ_MODE_KERNEL;
    }
    for (size_t i = 0; i < ARRAY_SIZE(list); i++)
        ck_assert(busy_list_append(&busy.list, list[i]));
    busy.list.items[0].sampled[0] = strdup("Demo.Main()");
    report_drop_idle(&report);
    ck_assert_uint_eq(busy.list.count, 3);
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(busy.list.items[i].tid, list[i + 1].tid);
    report.busy = NULL;
    report_drop_idle(&report);
    memset(stacks, 0, sizeof stacks); /* of the next test, if none of them forks */
}
END_TEST

/* The thread 2 suspends the others, and 5 delays that. */
START_TEST(suspension)
{
    struct report report = report_of();
    report.busy = NULL;
    report_write_suspension_text(&report);
    ck_assert_str_eq(written, "");
    threads[2].suspends_others = _i == 0;
    threads[1].delays_suspension = _i <= 1;
    report_write_suspension_text(&report);
    ck_assert_ptr_eq(strstr(written, "\nSuspension:\n"), _i <= 1 ? written : NULL);
    ck_assert((strstr(written, "\n  TID 2 suspends the managed threads") != NULL) == (_i == 0));
    ck_assert((strstr(written,
                      "\n  TID 5 \"five\" delays the suspension: the runtime cannot stop it in memcpy, called by ") !=
               NULL) == (_i <= 1));
    struct ordered_stacks ordered = report_order_stacks(&report);
    ck_assert_int_eq(ordered.items[1].rank, STACK_HANGS);
    ck_assert_int_eq(ordered.items[2].rank, _i <= 1 ? STACK_HANGS : STACK_OTHER);
    ck_assert_int_eq(ordered.items[3].rank, _i == 0 ? STACK_HANGS : STACK_OTHER);
    free(ordered.items);
}
END_TEST

START_TEST(text)
{
    struct report report = report_of();
    report_write_busy_text(&report);
    ck_assert_str_eq(written, "");
    busy.seconds = 0.2;
    for (int i = 0; i <= BUSY_SHOWN; i++)
        ck_assert(busy_list_append(&busy.list, (struct busy_thread){.tid = 5 + i, .percent = 50}));
    report_write_busy_text(&report);
    ck_assert_ptr_nonnull(
        strstr(written,
               "  TID 5 \"five\" used 50 % of a processor for 0.2 s and was seen in memcpy, called by Demo.Main()\n"));
    ck_assert_ptr_nonnull(strstr(written, "  TID 6 used 50 %"));
    frames[1].frame.by = CDACQ_FRAME_BY_GUESS;
    report_write_busy_text(&report);
    ck_assert_ptr_nonnull(strstr(written, "called by Demo.Main() [guess]\n"));
    ck_assert_ptr_nonnull(strstr(written, "\n  and 1 more\n"));
    report.busy = NULL;
    written[0] = '\0';
    report_write_busy_text(&report);
    ck_assert_str_eq(written, "");
}
END_TEST

/* Only what a limit did between two readings counts, and not if it is another limit by then. */
START_TEST(limits)
{
    static const struct cdacq_processor_limit then = {
        .quota_ns = 5, .period_ns = 10, .periods = 100, .throttled_periods = 50, .throttled_time_ns = 900};
    struct cdacq_processor_limit now = then, found = {0};
    now.periods += 2;
    now.throttled_periods++;
    now.throttled_time_ns += 7;
    compare_limits(&then, &now, &found);
    ck_assert_uint_eq(found.quota_ns, 5);
    ck_assert_uint_eq(found.period_ns, 10);
    ck_assert_uint_eq(found.periods, 2);
    ck_assert_uint_eq(found.throttled_periods, 1);
    ck_assert_uint_eq(found.throttled_time_ns, 7);
    found = (struct cdacq_processor_limit){0};
    now.quota_ns = 6;
    compare_limits(&then, &now, &found);
    now = then;
    now.throttled_time_ns--;
    compare_limits(&then, &now, &found);
    compare_limits(&found, &found, &found);
    ck_assert_uint_eq(found.quota_ns, 0);
}
END_TEST

static const struct {
    struct busy_runtime runtime;
    struct cdacq_processor_limit limit;
    unsigned delayed;
    const char *word, *text;
} cause_rows[] = {
    {.word = NULL, .text = ""},
    {.runtime = {.looks = 100, .suspended_looks = 9, .thrown = 9}, .delayed = 49, .word = NULL, .text = ""},
    {.runtime = {.suspended_looks = 9}, .word = NULL, .text = ""}, /* no look */
    {.runtime = {.looks = 90, .suspended_looks = 45},
     .word = "garbage_collection",
     .text = "<garbage collection: it suspended the managed threads for 50 % of the time>"},
    {.runtime = {.looks = 50, .suspended_looks = 50, .suspension_partly = true},
     .word = "garbage_collection",
     .text = "<garbage collection: it suspended the managed threads for at least 100 % of the time>"},
    {.runtime = {.looks = 90, .thrown = 80},
     .word = "exceptions",
     .text = "<exceptions: at least 320 a second are thrown>"},
    {.delayed = 87,
     .word = "overload",
     .text = "<no processor was free: a thread was ready to run, and waited for 87 % of the time>"},
    {.limit = {.quota_ns = 50000000, .period_ns = 100000000, .periods = 3, .throttled_periods = 2},
     .delayed = 87, /* which the limit can cause */
     .runtime = {.looks = 10, .suspended_looks = 1},
     .word = "throttling",
     .text = "<the control group may use 0.50 of a processor, and was held back in 2 of 3 periods of 100 ms>"
             "<garbage collection: it suspended the managed threads for 10 % of the time>"},
};

/* What slows a process, the gravest first, in words for programs and for people. */
START_TEST(causes)
{
    struct busy_threads measured = {
        .measured = true, .seconds = 0.25, .runtime = cause_rows[_i].runtime, .limit = cause_rows[_i].limit};
    ck_assert(busy_list_append(&measured.list, (struct busy_thread){.tid = 1, .delayed = cause_rows[_i].delayed}));
    const struct busy_causes found = busy_find_causes(&measured);
    ck_assert_pstr_eq(busy_cause_word(&found), cause_rows[_i].word);
    report_put_causes(NULL, &measured, &found, "<", ">");
    ck_assert_str_eq(written, cause_rows[_i].text);
    busy_threads_release(&measured);
}
END_TEST

/* In how many samples the busiest thread ran the method that it was stopped in. */
START_TEST(samples)
{
    static const char *const others[][BUSY_SAMPLES - 1] = {
        {NULL, "Demo.Other()"}, {"Demo.Main()", "Demo.Other()"}, {"Demo.Main()", "Demo.Main()"}};
    struct report report = report_of();
    struct busy_thread thread = {.tid = 5, .percent = 90};
    char line[200];
    for (unsigned k = 0; k < BUSY_SAMPLES - 1; k++)
        thread.sampled[k] = others[_i][k] ? strdup(others[_i][k]) : NULL;
    busy.samples = BUSY_SAMPLES - 1;
    busy.seconds = 0.2;
    ck_assert(busy_list_append(&busy.list, thread));
    ck_assert_uint_eq(busy_samples_in(busy_find(&busy, 5), "Demo.Main()"), (unsigned)_i + 1);
    ck_assert_uint_eq(busy_samples_in(busy_find(&busy, 5), NULL), 0);
    report_write_busy_text(&report);
    snprintf(line, sizeof line,
             "\nBusy threads:\n  TID 5 \"five\" used 90 %% of a processor for 0.2 s and was seen in memcpy, "
             "called by Demo.Main() (%d of 3 samples were there)\n",
             _i + 1);
    ck_assert_str_eq(written, line);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("report_threads");
    TCase *tcase = tcase_create("report_threads");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, percents);
    tcase_add_test(tcase, delays_and_stillness);
    tcase_add_test(tcase, starved);
    tcase_add_test(tcase, measuring);
    tcase_add_test(tcase, order_of_stacks);
    tcase_add_loop_test(tcase, running_threads_of_a_core, 0, 7);
    tcase_add_test(tcase, idle_threads);
    tcase_add_test(tcase, idle_threads_that_waited_for_a_processor);
    tcase_add_loop_test(tcase, suspension, 0, 3);
    tcase_add_test(tcase, text);
    tcase_add_test(tcase, limits);
    tcase_add_loop_test(tcase, causes, 0, (int)ARRAY_SIZE(cause_rows));
    tcase_add_loop_test(tcase, samples, 0, BUSY_SAMPLES);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
