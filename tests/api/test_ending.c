/*
 * test_ending.c: the search of a frame for the arguments of FailFast ends, wherever the frame is; who sent SIGABRT to a
 * process whose runtime handles it; whether the runtime has let C++ end the process; which method calls the program's
 * entry point. What the runtime writes as it ends a process is compared on real runtimes (tests/dotnet).
 */
#include "src/ending/ending.c"
#include "tests/support/check_main.h"
#include "tests/support/exception_heap.h"
#include "tests/support/mock_support.h"

static struct exception_heap heap;
static struct cdacq_target own_target;
static struct cdacq_session session;
static struct ending ending;

static void setup(void)
{
    exception_heap_init(&heap);
    own_target.memory = heap.target;
    lend_session(&session, &own_target, &heap.reader, &heap.cache);
    ending = (struct ending){.session = &session, .thread.last_thrown = heap.argument};
}

static void teardown(void)
{
    give_session_back(&session, &heap.cache, &heap.reader);
    exception_heap_deinit(&heap);
}

START_TEST(a_frame_with_the_exception)
{
    uint64_t sp = HEAP_BASE + 0x7f00;
    exception_heap_put(&heap, sp + 24, heap.bad, 8);
    ck_assert_uint_eq(search_exception(&ending, &(struct first_frame){.sp = sp, .cfa = sp + 32}), heap.bad);
    ck_assert_uint_eq(search_exception(&ending, &(struct first_frame){.sp = sp, .cfa = sp + 24}), 0);
    ck_assert_uint_eq(search_exception(&ending, &(struct first_frame){.sp = sp, .cfa = sp}), 0);
}
END_TEST

/* A stack near the end of the address space. */
static const uint64_t stack_begin = UINT64_MAX - 0x100f;
static uint8_t stack[0x800];
static const struct target_ops *heap_ops;

static bool memory_at(struct target *target, uint64_t address, struct span *ret)
{
    if (address < stack_begin || address - stack_begin >= sizeof stack)
        return heap_ops->memory_at(target, address, ret);
    *ret = (struct span){.begin = stack_begin, .end = stack_begin + sizeof stack, .bytes = stack};
    return true;
}

static uint64_t object_at(uint64_t address)
{
    reader_begin(&session.resolver.reader, FUEL_LOOKUP);
    return read_pointer(&session.resolver.reader, address);
}

START_TEST(a_frame_at_the_end_of_the_address_space)
{
    const struct first_frame frame = {.sp = stack_begin + 8, .cfa = UINT64_MAX};
    uint64_t message = object_at(heap.argument + heap.layout.fields[F_Exception__message].offset),
             parameter = object_at(heap.argument + 128), strings[STRINGS_MAX] = {0},
             characters = heap.layout.fields[F_String_m_FirstChar].offset;
    heap_ops = heap.target->ops;
    struct target_ops ops = *heap_ops;
    ops.memory_at = memory_at;
    heap.target->ops = &ops;
    store_u64(stack + 8, parameter + characters, false);
    store_u64(stack + 16, message + characters, false);
    ck_assert_uint_eq(search_strings(&ending, &frame, strings), 2);
    ck_assert_uint_eq(strings[0], parameter); /* the heap, which refers to the message first, is not of the frame */
    ck_assert_uint_eq(strings[1], message);
    ck_assert_uint_eq(search_exception(&ending, &frame), 0);
    heap.target->ops = heap_ops;
}
END_TEST

/* The innermost frame is the runtime's handler of the signal. Below it is what the signal interrupted. */
static const struct {
    int signal, code, sender;
    const char *below;
    bool of_runtime;
} signals[] = {
    {SIGABRT, SI_TKILL, 7, "/r/libcoreclr.so", true},  /* abort() of the runtime, */
    {SIGABRT, SI_TKILL, 7, "/lib/libother.so", false}, /* and of another library */
    {SIGABRT, SI_TKILL, 8, "/r/libcoreclr.so", false}, /* another process did: the runtime only waited */
    {SIGABRT, SI_USER, 8, "/r/libcoreclr.so", false},
    {SIGABRT, SI_USER, 7, "/r/libcoreclr.so", false},    /* kill() to itself */
    {SIGABRT, SI_USER, 0, "/r/libcoreclr.so", false},    /* from outside of a container */
    {SIGSEGV, SEGV_MAPERR, 0, "/lib/libother.so", true}, /* a fault, for which the runtime ended the process */
};

START_TEST(who_sent_a_signal)
{
    const uint64_t sp = HEAP_BASE + 0x7000;
    const struct cdacq_frame frames[] = {
        {.kind = CDACQ_FRAME_NATIVE, .module = "/lib/libc.so.6"}, /* wait4() */
        {.kind = CDACQ_FRAME_NATIVE, .module = "/r/libcoreclr.so"},
        {.kind = CDACQ_FRAME_SIGNAL, .module = "/lib/libc.so.6", .sp = sp},
        {.kind = CDACQ_FRAME_NATIVE, .module = "/lib/libc.so.6"},
        {.kind = CDACQ_FRAME_NATIVE, .module = signals[_i].below},
    };
    ending.pid = 7;
    ending.runtime_path = "/r/libcoreclr.so";
    ending.stack.machine = walk_machine_find(ARCHITECTURE_X64);
    exception_heap_put(&heap, sp + 304, (uint32_t)signals[_i].signal, 4);
    exception_heap_put(&heap, sp + 304 + 8, (uint32_t)signals[_i].code, 4);
    exception_heap_put(&heap, sp + 304 + 16, (uint32_t)signals[_i].sender, 4);
    for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
        if (visit_frame(&frames[i], &ending))
            break;
    ck_assert_int_eq(ending.of_runtime, signals[_i].of_runtime);
}
END_TEST

/* What called abort(), from the innermost frame on, below the frame of the C library. */
static const struct {
    const char *modules[3], *symbols[3];
    bool has_thrown;
    enum cdacq_end_kind kind;
} terminations[] = {
    {{"/lib/libstdc++.so.6", "/lib/libstdc++.so.6", "/r/libcoreclr.so"},
     {"_ZN9__gnu_cxx27__verbose_terminate_handlerEv", "_ZSt9terminatev", NULL},
     true,
     CDACQ_END_TERMINATED},
    {{"/lib/libstdc++.so.6", "/lib/libgcc_s.so.1", "/r/libcoreclr.so"},
     {"_ZSt9terminatev", "_Unwind_Resume", NULL},
     true,
     CDACQ_END_TERMINATED},
    {{"/lib/libstdc++.so.6", "/r/libcoreclr.so"}, {"_ZSt9terminatev"}, false, CDACQ_END_NONE},
    {{"/lib/libstdc++.so.6", "/r/libcoreclr.so"}, {"__cxa_pure_virtual"}, true, CDACQ_END_NONE},
    {{"/lib/libstdc++.so.6", "/lib/libother.so", "/r/libcoreclr.so"}, {"_ZSt9terminatev"}, true, CDACQ_END_NONE},
};

START_TEST(ended_by_cplusplus)
{
    struct cdacq_frame frame = {.kind = CDACQ_FRAME_NATIVE, .module = "/lib/libc.so.6", .symbol = "abort"};
    ending.runtime_path = "/r/libcoreclr.so";
    ending.thread.last_thrown = terminations[_i].has_thrown ? heap.argument : 0;
    bool ended = visit_frame(&frame, &ending);
    for (size_t i = 0; i < ARRAY_SIZE(terminations[_i].modules) && terminations[_i].modules[i] && !ended; i++) {
        frame.module = terminations[_i].modules[i];
        frame.symbol = terminations[_i].symbols[i];
        ended = visit_frame(&frame, &ending);
    }
    classify(&ending);
    ck_assert_int_eq(ending.end.kind, terminations[_i].kind);
    bool terminated = terminations[_i].kind == CDACQ_END_TERMINATED;
    ck_assert_uint_eq(ending.end.exception, terminated ? heap.argument : 0);
    ck_assert_uint_eq(ending.end.flaws, terminated ? CDACQ_EXCEPTION_INFERRED : 0);
}
END_TEST

/* Only a method of the core library is the one that the runtime leaves out. */
START_TEST(the_caller_of_the_entry_point)
{
    const uint64_t string = HEAP_BASE + HEAP_SIZE - 8;
    struct method_desc desc = {.module = heap.module, .token = 0x06000000 | HEAP_METHOD_CALL_ENTRY_POINT};
    exception_heap_put(&heap, string, heap.string_table, 8);
    heap.layout.globals[G_StringMethodTable] = string;
    heap.layout.global_present[G_StringMethodTable] = true;
    ck_assert(calls_entry_point(&ending, &desc));
    desc.token = 0x06000000 | HEAP_METHOD_AWAIT;
    ck_assert(!calls_entry_point(&ending, &desc));
    desc = (struct method_desc){.module = heap.module + 8, .token = 0x06000000 | HEAP_METHOD_CALL_ENTRY_POINT};
    ck_assert(!calls_entry_point(&ending, &desc));
    desc.module = 0;
    heap.layout.global_present[G_StringMethodTable] = false;
    ck_assert(!calls_entry_point(&ending, &desc));
}
END_TEST

/* Whether there was memory for the text of an exception: it has a stack trace, and nothing else was thrown. */
START_TEST(exceptions_without_a_text)
{
    ending.end.exception = ending.thread.last_thrown = heap.argument;
    ck_assert(!ending_lacks_text(&ending));
    ending.thread.last_thrown = heap.bad; /* no OutOfMemoryException */
    ck_assert(!ending_lacks_text(&ending));
    ending.end.exception = heap.bad; /* it was never thrown */
    ck_assert(ending_lacks_text(&ending));
    ck_assert_uint_eq(ending.end.flaws, 0);
    ending.thread.last_thrown = 0x5000;
    ck_assert(!ending_lacks_text(&ending));
    ck_assert_uint_eq(ending.end.flaws, CDACQ_EXCEPTION_MISSING);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("ending");
    TCase *tcase = tcase_create("arguments");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_frame_with_the_exception);
    tcase_add_test(tcase, a_frame_at_the_end_of_the_address_space);
    tcase_add_test(tcase, the_caller_of_the_entry_point);
    tcase_add_test(tcase, exceptions_without_a_text);
    tcase_add_loop_test(tcase, who_sent_a_signal, 0, ARRAY_SIZE(signals));
    tcase_add_loop_test(tcase, ended_by_cplusplus, 0, ARRAY_SIZE(terminations));
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
