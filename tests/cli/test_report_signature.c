/*
 * test_report_signature.c: the names in a signature, which a core may have made up; the frames that it leaves out.
 */
#include "src/cli/report/report_signature.c"
#include "src/cli/report/signature_names.c"
#include "tests/support/check_main.h"

void out_of_memory(void)
{
    ck_abort_msg("out of memory");
    abort();
}

void output_literal(struct output *out, const char *text)
{
    (void)out, (void)text;
}

void output_note(struct output *out, const char *text)
{
    (void)out, (void)text;
}

void output_escaped(struct output *out, const char *text, size_t length, enum escape_form form)
{
    (void)out, (void)text, (void)length, (void)form;
}

bool report_write_hang(const struct report *report)
{
    (void)report;
    return false;
}

const char *report_cause_text(const struct report *report, char text[SIGNAL_TEXT_SIZE])
{
    (void)report, (void)text;
    return "";
}

static const struct {
    const char *name, *expected;
} symbols[] =
    {
        {"memset", "memset"},
        {"__memset_avx512_unaligned", "memset"},
        {"__memmove_evex_unaligned_erms", "memmove"},
        {"__libc_start_main@@GLIBC_2.34", "__libc_start_main"},
        {"__avx2", "__avx2"},
        {"_sse", "_sse"},
        {"_avx_sse", "_avx_sse"},
        {"run.cold", "run"},
        {"run.isra.0.part.1.cold@@V1", "run"},
        {".cold", ".cold"},
        {"@", ""},
        {"", ""},
},
  methods[] = {
      {"Demo.Cart.Add(int)", "Demo.Cart.Add"},
      {"Demo.Box<System.String>.Get()", "Demo.Box.Get"},
      {"Demo.Program.<Run>b__3_0(int)", "Demo.Program.<Run>b__"},
      {"Demo.Program.<>c__DisplayClass3_0.<Run>b__2(int)", "Demo.Program.<>c__DisplayClass.<Run>b__"},
      {"<>c__DisplayClass3_0", "<>c__DisplayClass"},
      {"Demo.DisplayClass3", "Demo.DisplayClass3"},
      {"Demo.Program._Closure$__3-0._Lambda$__12-1(int)", "Demo.Program._Closure$__._Lambda$__"},
      {"Demo.Program._Lambda$__R12-10(object)", "Demo.Program._Lambda$__R"},
      {"Demo.Program.VB$StateMachine_3_Fetch.MoveNext()", "Demo.Program.VB$StateMachine_Fetch.MoveNext"},
      {"Demo.Main.run@14.Invoke(int)", "Demo.Main.run@.Invoke"},
      {"Demo.Main.run@14-1T<int>.Invoke(int)", "Demo.Main.run@T.Invoke"},
      {"Demo.Main.Pipe #1 stage #2 at line 14@15.Invoke(int)", "Demo.Main.Pipe #1 stage #2 at line @.Invoke"},
      {"Demo.Program.<>c__DisplayClass23_0.<Run>b__1(int)", "Demo.Program.<>c__DisplayClass.<Run>b__"},
      {"<>f__AnonymousType0<int>.ToString()", "<>f__AnonymousType.ToString"},
      {"dynamicClass.lambda_method12(int)", "dynamicClass.lambda_method"},
      {"Demo.Main.DisplayClass23.Get()", "Demo.Main.DisplayClass23.Get"},
      {"Demo.R3.Get-3()", "Demo.R3.Get-3"},
      {"A._3-", "A._-"},
      {"A@", "A@"},
      {"3@4", "3@"},
      {"P.Foo<(int, int)>.Load()", "P.Foo.Load"},
      {"P.Foo<A<(int, B<int>)>>.<Load>g__Get|0_1((int, int))", "P.Foo.<Load>g__Get|"},
      {"P.Foo<(int, int)", "P.Foo"},
      {"<", "<"},
      {"A<", "A"},
      {"A.<", "A.<"},
      {">]", ">]"},
      {"(", ""},
};

START_TEST(names_of_symbols)
{
    struct text text = {0};
    signature_form_symbol(&text, symbols[_i].name);
    ck_assert(!text.broken);
    ck_assert_str_eq(text.data, symbols[_i].expected);
    text_deinit(&text);
}
END_TEST

START_TEST(names_of_methods)
{
    struct text text = {0};
    signature_form_name(&text, methods[_i].name, strlen(methods[_i].name));
    ck_assert(!text.broken);
    ck_assert_str_eq(text.data ? text.data : "", methods[_i].expected);
    text_deinit(&text);
}
END_TEST

enum { FRAMES_MAX = 5 };

static const char runtime[] = "/r/libcoreclr.so", libc[] = "/lib/libc.so.6", other[] = "/lib/libother.so";

#define NATIVE(path, name)                                         \
    {                                                              \
        .kind = CDACQ_FRAME_NATIVE, .module = path, .symbol = name \
    }
#define SIGNAL                                     \
    {                                              \
        .kind = CDACQ_FRAME_SIGNAL, .module = libc \
    }

/* Stacks, with the number of frames that are there because a core was written. */
static const struct {
    struct cdacq_frame frames[FRAMES_MAX];
    size_t count, skipped;
} stacks[] = {
    {{NATIVE(libc, "wait4"), NATIVE(runtime, NULL), NATIVE(other, "fail")}, 3, 1},
    {{NATIVE(libc, "__waitpid@@GLIBC_2.2.5"), NATIVE(runtime, NULL), SIGNAL, NATIVE(libc, "memset")}, 4, 3},
    {{NATIVE(libc, "wait4"), NATIVE(runtime, NULL), NATIVE(other, "handle"), SIGNAL, NATIVE(libc, "memset")}, 5, 4},
    {{NATIVE(libc, "raise"), NATIVE(runtime, NULL), SIGNAL, NATIVE(libc, "memset")}, 4, 3},
    {{NATIVE(libc, "memset"), NATIVE(other, "handle"), SIGNAL, NATIVE(libc, "memset")}, 4, 0}, /* its handler failed */
    {{NATIVE(libc, "wait4"), NATIVE(other, "run")}, 2, 0},                                     /* for a program */
    {{NATIVE(libc, "memset"), {.kind = CDACQ_FRAME_MANAGED}, NATIVE(runtime, NULL), SIGNAL}, 4, 0},
    {{NATIVE(libc, "wait4")}, 1, 0},
    {{{0}}, 0, 0},
};

START_TEST(frames_of_the_writer)
{
    struct stack_frame shared[FRAMES_MAX];
    struct kept_frame items[FRAMES_MAX];
    for (size_t i = 0; i < FRAMES_MAX; i++) {
        shared[i] = (struct stack_frame){.frame = stacks[_i].frames[i]};
        items[i] = (struct kept_frame){.shared = &shared[i]};
    }
    const struct stack_frames frames = {.items = items, .count = stacks[_i].count};
    ck_assert_uint_eq(skip_writer(&frames, runtime), stacks[_i].skipped);
    ck_assert_uint_eq(skip_writer(&frames, NULL), 0);
}
END_TEST

/* Who sent what ended a process. A fault and abort() are of its own making. */
static const struct {
    enum report_cause cause;
    int signal, code, sender;
    bool may_hang;
} endings[] = {
    {REPORT_ALIVE, 0, 0, 0, true},
    {REPORT_SIGNAL, SIGABRT, SI_USER, 7, true}, /* of a watchdog */
    {REPORT_SIGNAL, SIGABRT, SI_USER, 1, true}, /* the runtime has sent it again */
    {REPORT_SIGNAL, SIGABRT, SI_QUEUE, 7, true},
    {REPORT_SIGNAL, SIGABRT, SI_TKILL, 7, true}, /* to one thread */
    {REPORT_SIGNAL, SIGABRT, SI_TKILL, 1, false},
    {REPORT_SIGNAL, SIGABRT, 0, 0, false}, /* not known */
    {REPORT_SIGNAL, SIGSEGV, SEGV_MAPERR, 0, false},
    {REPORT_SIGNAL, SIGSEGV, SEGV_MAPERR, 7, false},
    {REPORT_FATAL, SIGABRT, SI_USER, 7, false},
    {REPORT_UNHANDLED, SIGABRT, SI_USER, 7, false},
};

START_TEST(a_hang_may_be_ended_by_a_signal)
{
    const struct report report = {
        .cause = endings[_i].cause,
        .process = {.pid = 1,
                    .signal = endings[_i].signal,
                    .signal_code = endings[_i].code,
                    .sender_pid = endings[_i].sender},
        .waits_problem = "problem",
    };
    ck_assert_int_eq(report_may_hang(&report), endings[_i].may_hang);
    ck_assert_int_eq(report_misses_waits(&report), endings[_i].may_hang);
}
END_TEST

/* Other runtimes have no thunk between a method and its caller. */
START_TEST(async_thunks)
{
    const struct cdacq_method thunk = {.name = "Demo.Cart.Add(int)", .name_length = 18, .async_thunk = true};
    const struct cdacq_method method = {.name = "Demo.Cart.Add(int)", .name_length = 18};
    struct signature_frames frames = {0};
    add_method(&frames, &thunk);
    ck_assert_uint_eq(frames.count, 0);
    add_method(&frames, &method);
    ck_assert_uint_eq(frames.count, 1);
    text_deinit(&frames.items[0].name);
    signature_frames_deinit(&frames);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("report_signature");
    TCase *tcase = tcase_create("names");
    tcase_add_loop_test(tcase, names_of_symbols, 0, ARRAY_SIZE(symbols));
    tcase_add_loop_test(tcase, names_of_methods, 0, ARRAY_SIZE(methods));
    tcase_add_loop_test(tcase, frames_of_the_writer, 0, ARRAY_SIZE(stacks));
    tcase_add_test(tcase, async_thunks);
    tcase_add_loop_test(tcase, a_hang_may_be_ended_by_a_signal, 0, ARRAY_SIZE(endings));
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
