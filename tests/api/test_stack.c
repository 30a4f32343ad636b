/*
 * test_stack.c: stacks of a synthetic process: managed frames by their unwind data, the runtime's Frames of each kind,
 * hijacked return addresses, guesses, and walks that cannot go on. Real stacks are compared with the runtime's debugger
 * services in tests/dotnet.
 */
#include <stdio.h>

#include "contracts/stack_walk/stack_walk.h"
#include "src/lookup/opened_target.h"
#include "tests/support/check_main.h"
#include "tests/support/mock_support.h"

enum { RBX = 3, RBP = 6, RSP = 7, RIP = 16, METHODS = 4, STACK_SIZE = 0x4000, FRAMES_MAX = 32 };
enum { STUB_KINDS = 11 /* .NET 10's numbers */, STUB_JUMP = 1, STUB_DYNAMIC_HELPER = 3, STUB_RESOLVE = 7 };
enum { LONG = METHODS - 1 /* the method with a long name */, LONG_NAME = 3200 };
enum { STATE_HIJACKED = 0x80, CALLED = 8 /* offset of a return address in each method */ };

/* The stack holds zeros, which end a walk; but no managed code returns to 0. */
enum { AT_ZERO = CDACQ_ERR_CORRUPT };

static struct mock *mock;
static struct cdacq_target *target;
static struct cdacq_session *session;
static uint64_t methods[METHODS], stubs[STUB_KINDS], stack, native_code, thread;
static struct cdacq_frame frames[FRAMES_MAX];
static struct cdacq_method frame_methods[FRAMES_MAX]; /* of those that have one */
static unsigned frame_count;
static struct cdacq_error error;

/* Methods without a prolog: unwinding pops the return address. */
static void add_methods(void)
{
    static const uint8_t no_codes[] = {1, 0, 0, 0}, call[] = {0xe8, 0, 0, 0, 0};
    static char long_name[LONG_NAME + 1];
    memset(long_name, 'M', LONG_NAME);
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x10000});
    size_t count;
    for (unsigned i = 0; i < METHODS; i++)
        methods[i] = mock_method(
            heap, &(struct mock_method){.size = 64,
                                        .method_desc = mock_dynamic_method_desc(mock, i == LONG ? long_name : "M")});
    const struct mock_function *functions = mock_functions(mock, &count);
    for (size_t i = 0; i < count; i++) {
        uint64_t unwind = mock_get(mock, functions[i].unwind_info, "RuntimeFunction.UnwindData");
        mock_write(mock, heap->begin + unwind, no_codes, sizeof no_codes);
    }
    for (unsigned i = 0; i < STUB_KINDS; i++)
        stubs[i] = mock_stub(heap, i, 32);
    for (unsigned i = 0; i < METHODS; i++)
        mock_write(mock, methods[i] + CALLED - sizeof call, call, sizeof call);
}

/* A Thread with the Frame `frame`, in the list of the ThreadStore. */
static void add_thread(uint64_t frame)
{
    uint64_t store = mock_new(mock, "ThreadStore", 0), pointer = mock_alloc(mock, 8, 8);
    thread = mock_new(mock, "Thread", 0);
    mock_set(mock, thread, "Thread.Frame", frame);
    mock_set(mock, thread, "Thread.OSId", 77);
    mock_set(mock, thread, "Thread.CachedStackBase", stack + STACK_SIZE);
    mock_set(mock, store, "ThreadStore.FirstThreadLink", thread + mock_offset_of(mock, "Thread.LinkNext"));
    mock_write_pointer(mock, pointer, store);
    mock_global(mock, "ThreadStore", pointer);
}

static void setup(void)
{
    uint64_t seed = 5; /* of a layout in which arguments follow the TransitionBlock, as they do in the runtime */
    mock = mock_create(&(struct mock_options){.pointer_size = 8, .seed = seed});
    while (mock_offset_of(mock, "TransitionBlock.ReturnAddress") >
           mock_offset_of(mock, "TransitionBlock.OffsetOfArgs")) {
        mock_destroy(mock);
        mock = mock_create(&(struct mock_options){.pointer_size = 8, .seed = ++seed});
    }
    add_methods();
    stack = mock_map(mock, 0, STACK_SIZE, MOCK_READ | MOCK_WRITE, NULL, 0);
    native_code = mock_map(mock, 0, 0x1000, MOCK_READ | MOCK_EXECUTE, "/mock/native.so", 0);
    for (unsigned i = 0; i < STACK_SIZE; i += 8)
        mock_write_pointer(mock, stack + i, 0);
    add_thread(UINT64_MAX);
    mock_contract(mock, "Thread", "1");
    mock_contract(mock, "StackWalk", "1");
    frame_count = 0;
}

static void teardown(void)
{
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(mock);
    session = NULL;
    target = NULL;
}

static int keep_frame(const struct cdacq_frame *frame, void *context)
{
    (void)context;
    ck_assert_uint_lt(frame_count, FRAMES_MAX);
    ck_assert_uint_eq(frame->size, sizeof *frame);
    if (frame->method)
        frame_methods[frame_count] = *frame->method;
    frames[frame_count++] = *frame;
    return 0;
}

static uint64_t return_to(unsigned method)
{
    return methods[method] + CALLED;
}

static enum cdacq_status walk(uint64_t pc, uint64_t sp, bool with_thread, unsigned flags)
{
    struct cdacq_registers registers = {.size = sizeof registers, .known = 1u << RIP | 1u << RSP};
    struct cdacq_thread of_runtime = {.size = sizeof of_runtime, .tid = 77, .thread = thread};
    registers.values[RIP] = pc;
    registers.values[RSP] = sp;
    if (!target) {
        target = mock_publish_and_open(mock);
        ck_assert_int_eq(cdacq_session_create(target, &session, NULL), CDACQ_OK);
    }
    frame_count = 0;
    return cdacq_session_visit_frames(session, with_thread ? &of_runtime : NULL, &registers, flags, keep_frame, NULL,
                                      &error);
}

static void check_frame(unsigned i, enum cdacq_frame_kind kind, enum cdacq_frame_source by, uint64_t pc, uint64_t sp)
{
    ck_assert_uint_lt(i, frame_count);
    ck_assert_int_eq(frames[i].kind, kind);
    ck_assert_int_eq(frames[i].by, by);
    ck_assert_uint_eq(frames[i].pc, pc);
    ck_assert_uint_eq(frames[i].sp, sp);
}

/* A new Frame on the stack, in front of which all others are. */
static uint64_t put_frame(uint64_t at, const char *identifier, uint64_t next)
{
    static uint64_t number;
    mock_global(mock, identifier, ++number);
    mock_write_pointer(mock, at, number);
    mock_set(mock, at, "Frame.Next", next);
    mock_set(mock, thread, "Thread.Frame", at);
    return at;
}

START_TEST(managed_frames)
{
    mock_write_pointer(mock, stack + 0x100, return_to(1));
    mock_write_pointer(mock, stack + 0x108, return_to(2));
    ck_assert_int_eq(walk(methods[0], stack + 0x100, false, 0), AT_ZERO);
    ck_assert_uint_eq(frame_count, 3);
    check_frame(0, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_CONTEXT, methods[0], stack + 0x100);
    check_frame(1, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_UNWIND, return_to(1), stack + 0x108);
    check_frame(2, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_UNWIND, return_to(2), stack + 0x110);
    ck_assert(!frames[0].is_call && frames[1].is_call);
    ck_assert_uint_eq(frames[1].cfa, stack + 0x110);
}
END_TEST

/* Walks that are made while threads are visited share their fuel. */
START_TEST(walks_share_their_fuel)
{
    uint64_t left = FUEL_FRAME_MIN + 1;
    mock_write_pointer(mock, stack + 0x100, return_to(1));
    mock_write_pointer(mock, stack + 0x108, return_to(2));
    ck_assert_int_eq(walk(methods[0], stack + 0x100, false, 0), AT_ZERO);
    session->threads.fuel = &left;
    ck_assert_int_eq(walk(methods[0], stack + 0x100, false, 0), CDACQ_ERR_FUEL);
    ck_assert_ptr_nonnull(strstr(error.message, "frames of the stacks"));
    ck_assert_uint_eq(frame_count, 1);
    session->threads.fuel = NULL;
}
END_TEST

/* The work that a walk of some frames of one method takes, when the method is known already. */
static uint64_t work_of_walk(unsigned method, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        mock_write_pointer(mock, stack + 0x100 + 8 * i, return_to(method));
    ck_assert_int_eq(walk(methods[method], stack + 0x100, false, 0), AT_ZERO);
    ck_assert_uint_eq(frame_count, count + 1);
    struct work *work = &target->memory->work;
    work_set(work, UINT32_MAX, 0, 0);
    uint64_t before = work->steps;
    ck_assert_int_eq(walk(methods[method], stack + 0x100, false, 0), AT_ZERO);
    return work->steps - before;
}

/* A visitor writes the name of a method for each of its frames: that is work, although it is formed once. */
START_TEST(names_of_frames_are_work)
{
    enum { COUNT = 20 };
    uint64_t without = work_of_walk(0, COUNT), names = work_of_walk(LONG, COUNT) - without;
    ck_assert_uint_ge(names, COUNT * LONG_NAME / WORK_BYTES_OF_A_STEP);
    work_set(&target->memory->work, target->memory->work.steps + names / 2, 0, 0);
    ck_assert_int_eq(walk(methods[LONG], stack + 0x100, false, 0), CDACQ_ERR_FUEL);
    ck_assert_uint_lt(frame_count, COUNT);
}
END_TEST

/* A snapshot holds the part of a stack that was walked, up to a bound for all stacks. */
START_TEST(stacks_of_a_snapshot)
{
    const struct cdacq_options options = {.size = sizeof options, .flags = CDACQ_OPEN_RECORD};
    const uint64_t all = UINT64_C(1) << 30;
    mock_write_pointer(mock, stack + 0x100, return_to(1));
    mock_publish(mock, NULL);
    target = mock_open(mock, CARRIER_MEMORY, &options);
    ck_assert_int_eq(cdacq_session_create(target, &session, NULL), CDACQ_OK);
    walk(methods[0], stack + 0x100, false, 0);
    ck_assert_uint_eq(target->snapshot_stacks, 0x10);
    target->snapshot_stacks = all - 8;
    for (unsigned i = 0; i < 2; i++) {
        walk(methods[0], stack + 0x100, false, 0);
        ck_assert_uint_eq(target->snapshot_stacks, all);
    }
}
END_TEST

START_TEST(a_return_address_behind_its_method)
{
    mock_write_pointer(mock, stack + 0x100, methods[0] + 64);
    ck_assert_int_eq(walk(methods[1], stack + 0x100, false, 0), AT_ZERO);
    check_frame(1, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_UNWIND, methods[0] + 64, stack + 0x108);
}
END_TEST

START_TEST(hijacked)
{
    mock_write_pointer(mock, stack + 0x100, native_code + 0x20);
    mock_set(mock, thread, "Thread.State", _i ? 0 : STATE_HIJACKED);
    mock_set(mock, thread, "Thread.m_pvHJRetAddr", return_to(3));
    mock_set(mock, thread, "Thread.m_ppvHJRetAddrPtr", stack + 0x100);
    enum cdacq_status status = walk(methods[0], stack + 0x100, true, 0);
    if (_i) {
        check_frame(1, CDACQ_FRAME_NATIVE, CDACQ_FRAME_BY_UNWIND, native_code + 0x20, stack + 0x108);
        return;
    }
    ck_assert_int_eq(status, AT_ZERO);
    check_frame(1, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_UNWIND, return_to(3), stack + 0x108);
}
END_TEST

/* Each kind of Frame that has registers: its fields lead to method 1 at stack + 0x800. */
enum { CALLER_SP = 0x800 };

static void fill_context(uint64_t context)
{
    mock_write_pointer(mock, context + 0x98, stack + CALLER_SP);
    mock_write_pointer(mock, context + 0xf8, return_to(1));
}

static void fill(const char *kind, uint64_t at)
{
    if (strcmp(kind, "InlinedCallFrame") == 0) {
        mock_set(mock, at, "InlinedCallFrame.CallSiteSP", stack + CALLER_SP);
        mock_set(mock, at, "InlinedCallFrame.CallerReturnAddress", return_to(1));
    } else if (strcmp(kind, "PrestubMethodFrame") == 0) {
        uint64_t block = stack + CALLER_SP - mock_offset_of(mock, "TransitionBlock.OffsetOfArgs");
        mock_set(mock, at, "FramedMethodFrame.TransitionBlockPtr", block);
        mock_set(mock, block, "TransitionBlock.ReturnAddress", return_to(1));
    } else if (strcmp(kind, "SoftwareExceptionFrame") == 0) {
        fill_context(at + mock_offset_of(mock, "SoftwareExceptionFrame.TargetContext"));
    } else if (strcmp(kind, "FaultingExceptionFrame") == 0) {
        fill_context(at + mock_offset_of(mock, "FaultingExceptionFrame.TargetContext"));
    } else if (strcmp(kind, "RedirectedThreadFrame") == 0) {
        mock_set(mock, at, "ResumableFrame.TargetContextPtr", stack + 0x2000);
        fill_context(stack + 0x2000);
    } else if (strcmp(kind, "FuncEvalFrame") == 0) {
        mock_set(mock, at, "FuncEvalFrame.DebuggerEvalPtr", stack + 0x2000);
        fill_context(stack + 0x2000 + mock_offset_of(mock, "DebuggerEval.TargetContext"));
    } else if (strcmp(kind, "HijackFrame") == 0) {
        mock_set(mock, at, "HijackFrame.ReturnAddress", return_to(1));
        mock_set(mock, at, "HijackFrame.HijackArgsPtr", stack + CALLER_SP - mock_size_of(mock, "HijackArgs"));
    } else { /* HelperMethodFrame */
        uint64_t state = at + mock_offset_of(mock, "HelperMethodFrame.MachState");
        mock_set(mock, state, "LazyMachState._pRetAddr", state);
        mock_set(mock, state, "LazyMachState.m_Rip", return_to(1));
        mock_set(mock, state, "LazyMachState.m_Rsp", stack + CALLER_SP);
    }
}

static const struct frame_case {
    const char *kind;
    bool interrupted;
} frame_cases[] = {
    {"InlinedCallFrame", false},      {"PrestubMethodFrame", false},   {"SoftwareExceptionFrame", false},
    {"FaultingExceptionFrame", true}, {"RedirectedThreadFrame", true}, {"FuncEvalFrame", true},
    {"HijackFrame", false},           {"HelperMethodFrame", false},
};

START_TEST(frames_of_each_kind)
{
    char identifier[64];
    const char *kind = frame_cases[_i].kind;
    snprintf(identifier, sizeof identifier, "%sIdentifier", kind);
    /* An inactive Frame is passed over, and one of another kind. */
    uint64_t active = put_frame(stack + 0x300, identifier, UINT64_MAX);
    fill(kind, active);
    uint64_t marker = put_frame(stack + 0x200, "DebuggerU2MCatchHandlerFrameIdentifier", active);
    put_frame(stack + 0x180, _i ? "InlinedCallFrameIdentifier" : "ProtectByRefsFrameIdentifier", marker);
    mock_write_pointer(mock, stack + CALLER_SP, return_to(2));
    ck_assert_int_eq(walk(native_code + 0x20, stack + 0x100, true, 0), AT_ZERO);
    ck_assert_uint_eq(frame_count, 3);
    check_frame(0, CDACQ_FRAME_NATIVE, CDACQ_FRAME_BY_CONTEXT, native_code + 0x20, stack + 0x100);
    check_frame(1, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_FRAME, return_to(1), stack + CALLER_SP);
    check_frame(2, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_UNWIND, return_to(2), stack + CALLER_SP + 8);
    ck_assert_int_eq(frames[1].is_call, !frame_cases[_i].interrupted);
    ck_assert(!frames[0].after_gap && frames[1].after_gap && !frames[2].after_gap);
    ck_assert_uint_eq(frames[0].module_offset, 0x20);

    /* The same with the Frames themselves: each once, in the order of the list. */
    ck_assert_int_eq(walk(native_code + 0x20, stack + 0x100, true, CDACQ_FRAMES_EXPLICIT), AT_ZERO);
    ck_assert_uint_eq(frame_count, 6);
    ck_assert_uint_eq(frames[1].frame, stack + 0x180);
    ck_assert_uint_eq(frames[2].frame, marker);
    ck_assert_uint_eq(frames[3].frame, active);
    ck_assert_str_eq(frames[3].frame_name, kind);
    check_frame(4, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_FRAME, return_to(1), stack + CALLER_SP);
    ck_assert(frames[4].after_gap);
}
END_TEST

/* Nothing is between a stub that ran in place of a return and the frame that its Frame leads to. */
START_TEST(a_stub_in_place_of_a_return)
{
    fill("HijackFrame", put_frame(stack + 0xa0, "HijackFrameIdentifier", UINT64_MAX));
    mock_write_pointer(mock, stack + 0x100, native_code + 0x20);
    ck_assert_int_eq(walk(methods[0], stack + 0x100, true, 0), AT_ZERO);
    ck_assert_uint_eq(frame_count, 3);
    check_frame(1, CDACQ_FRAME_NATIVE, CDACQ_FRAME_BY_UNWIND, native_code + 0x20, stack + 0x108);
    check_frame(2, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_FRAME, return_to(1), stack + CALLER_SP);
    ck_assert(!frames[2].after_gap);
}
END_TEST

static int keep_rbx(const struct cdacq_frame *frame, void *context)
{
    if (frame->index == 1)
        *(uint64_t *)context = frame->registers->values[RBX];
    return 0;
}

/* Code that was called restores its caller's registers; interrupted code goes on with those of the Frame. */
START_TEST(registers_that_code_restores)
{
    enum { CONTEXT_RBX = 0x90, CONTEXT_RSP = 0x98, CONTEXT_RIP = 0xf8, RESTORED = 5, COPIED = 7 };
    uint64_t frame = put_frame(
        stack + 0x800, _i ? "FaultingExceptionFrameIdentifier" : "SoftwareExceptionFrameIdentifier", UINT64_MAX);
    uint64_t context = frame + mock_offset_of(mock, _i ? "FaultingExceptionFrame.TargetContext"
                                                       : "SoftwareExceptionFrame.TargetContext");
    struct cdacq_registers registers = {.size = sizeof registers, .known = 1u << RIP | 1u << RSP | 1u << RBX};
    struct cdacq_thread of_runtime = {.size = sizeof of_runtime, .tid = 77, .thread = thread};
    uint64_t rbx = 0;
    mock_write_pointer(mock, context + CONTEXT_RBX, COPIED);
    mock_write_pointer(mock, context + CONTEXT_RSP, stack + 0x1008);
    mock_write_pointer(mock, context + CONTEXT_RIP, return_to(1));
    mock_write_pointer(mock, stack + 0x1000, return_to(1));
    registers.values[RIP] = methods[0];
    registers.values[RSP] = stack + 0x1000;
    registers.values[RBX] = RESTORED;
    target = mock_publish_and_open(mock);
    ck_assert_int_eq(cdacq_session_create(target, &session, NULL), CDACQ_OK);
    (void)cdacq_session_visit_frames(session, &of_runtime, &registers, 0, keep_rbx, &rbx, &error);
    ck_assert_uint_eq(rbx, _i ? COPIED : RESTORED);
}
END_TEST

/* Code is not on the stack: something has overwritten the return address. */
START_TEST(a_return_address_on_the_stack)
{
    mock_write_pointer(mock, stack + 0x100, stack + 0x500);
    walk(methods[0], stack + 0x100, true, 0);
    check_frame(1, CDACQ_FRAME_NATIVE, CDACQ_FRAME_BY_GUESS, stack + 0x500, stack + 0x108);
    mock_write_pointer(mock, stack + 0x100, native_code + 0x20);
    walk(methods[0], stack + 0x100, true, 0);
    check_frame(1, CDACQ_FRAME_NATIVE, CDACQ_FRAME_BY_UNWIND, native_code + 0x20, stack + 0x108);
}
END_TEST

/* The word after a call in front of it is taken for a return address; what rests on it is marked, up to a Frame. */
START_TEST(guesses)
{
    uint64_t frame = put_frame(stack + 0x1a0, "InlinedCallFrameIdentifier", UINT64_MAX);
    mock_set(mock, frame, "InlinedCallFrame.CallSiteSP", stack + 0x400);
    mock_set(mock, frame, "InlinedCallFrame.CallerReturnAddress", return_to(3) + 1); /* not to be guessed */
    mock_write_pointer(mock, stack + 0x120, methods[1] + CALLED + 1);                /* no call is in front */
    mock_write_pointer(mock, stack + 0x140, return_to(1));
    mock_write_pointer(mock, stack + 0x148, return_to(2));
    mock_write_pointer(mock, stack + 0x150, native_code + 0x40);
    ck_assert_int_eq(walk(native_code + 0x20, stack + 0x100, false, 0), CDACQ_ERR_MEMORY);
    ck_assert_ptr_nonnull(strstr(error.message, " has no call-frame information, and no return address was found"));
    ck_assert_uint_eq(frame_count, 4);
    for (unsigned i = 1; i < 4; i++)
        ck_assert_int_eq(frames[i].by, CDACQ_FRAME_BY_GUESS);
    check_frame(1, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_GUESS, return_to(1), stack + 0x148);
    check_frame(3, CDACQ_FRAME_NATIVE, CDACQ_FRAME_BY_GUESS, native_code + 0x40, stack + 0x158);

    ck_assert_int_eq(walk(native_code + 0x20, stack + 0x100, true, 0), AT_ZERO);
    ck_assert_uint_eq(frame_count, 2);
    check_frame(1, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_FRAME, return_to(3) + 1, stack + 0x400);
    ck_assert(frames[1].after_gap);
}
END_TEST

/* A Frame further up, in the frame of the method that it belongs to, confirms a guess that leads to its call. */
START_TEST(a_guess_that_a_frame_confirms)
{
    static const uint8_t through_register[7] = {[5] = 0xff, 0xd0};
    uint64_t frame = put_frame(stack + 0x300, "InlinedCallFrameIdentifier", UINT64_MAX);
    mock_set(mock, frame, "InlinedCallFrame.CallSiteSP", stack + 0x110 + 8 * (uint64_t)_i);
    mock_set(mock, frame, "InlinedCallFrame.CallerReturnAddress", return_to(2));
    mock_write(mock, methods[1] + CALLED - sizeof through_register, through_register, sizeof through_register);
    mock_write_pointer(mock, stack + 0x100, return_to(1));
    mock_write_pointer(mock, stack + 0x108, return_to(2));
    mock_write_pointer(mock, stack + 0x110, return_to(3));
    enum cdacq_frame_source by = _i ? CDACQ_FRAME_BY_GUESS : CDACQ_FRAME_BY_FRAME;
    for (unsigned flags = 0; flags <= CDACQ_FRAMES_EXPLICIT; flags += CDACQ_FRAMES_EXPLICIT) {
        unsigned at = flags && !_i ? 3 : 2;
        walk(0x12345, stack + 0x100, true, flags);
        check_frame(1, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_GUESS, return_to(1), stack + 0x108);
        check_frame(at, CDACQ_FRAME_MANAGED, by, return_to(2), stack + 0x110);
        ck_assert_int_eq(frames[at].after_gap, !_i);
        check_frame(at + 1, CDACQ_FRAME_MANAGED, _i ? CDACQ_FRAME_BY_GUESS : CDACQ_FRAME_BY_UNWIND, return_to(3),
                    stack + 0x118);
    }
}
END_TEST

/* Stubs that never have a frame return to the word at the stack pointer, others may not. */
START_TEST(stubs_without_a_frame)
{
    static const uint8_t numbers[] = {STUB_JUMP, STUB_DYNAMIC_HELPER, STUB_RESOLVE, 0};
    bool is_exact = _i < 2;
    mock_write_pointer(mock, stack + 0x100, return_to(1));
    walk(stubs[numbers[_i]] + 10, stack + 0x100, false, 0);
    check_frame(0, CDACQ_FRAME_STUB, CDACQ_FRAME_BY_CONTEXT, stubs[numbers[_i]] + 10, stack + 0x100);
    check_frame(1, CDACQ_FRAME_MANAGED, is_exact ? CDACQ_FRAME_BY_UNWIND : CDACQ_FRAME_BY_GUESS, return_to(1),
                stack + 0x108);
    ck_assert_uint_eq(frames[0].cfa, is_exact ? stack + 0x108 : 0);
}
END_TEST

/*
 * Entries of procedure linkage tables without call-frame information, at instructions that come before a push. In all
 * other cases the caller is a guess.
 */
enum { LINKAGE_AT = 0x100, LINKAGE_CODE_MAX = 16 };

static const struct linkage_case {
    uint8_t code[LINKAGE_CODE_MAX];
    unsigned at; /* where the thread is */
    bool is_exact;
} linkage_cases[] = {
    {{0xff, 0x25, 1, 2, 3, 4}, 0, true},
    {{0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 1, 2, 3, 4}, 0, true},
    {{0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 1, 2, 3, 4}, 4, true},
    {{0x68, 1, 0, 0, 0, 0xe9, 0xd6, 0xff, 0xff, 0xff}, 0, true},  /* to the first entry, 0x20 in front */
    {{0x68, 1, 0, 0, 0, 0xe9, 0xd6, 0xff, 0xff, 0xff}, 5, false}, /* the number is on the stack */
    {{0x68, 1, 0, 0, 0, 0xe9, 0xd7, 0xff, 0xff, 0xff}, 0, false}, /* to something else */
    {{0xf3, 0x0f, 0x1e, 0xfa, 0x68, 1, 0, 0, 0, 0xf2, 0xe9, 0xd1, 0xff, 0xff, 0xff}, 0, true},
    {{0xff, 0x35, 1, 2, 3, 4, 0xff, 0x25, 1, 2, 3, 4}, 6, false}, /* the first entry has pushed another word */
    {{0xff, 0x35, 1, 2, 3, 4}, 0, false},
    {{0xff, 0x15, 1, 2, 3, 4}, 0, false}, /* a call */
};

START_TEST(linkage_tables)
{
    static const uint8_t first[] = {0xff, 0x35, 0, 0, 0, 0, 0xff, 0x25, 0, 0, 0, 0};
    const struct linkage_case *c = &linkage_cases[_i];
    uint64_t pc = native_code + LINKAGE_AT + c->at;
    mock_write(mock, native_code + LINKAGE_AT - 0x20, first, sizeof first);
    mock_write(mock, native_code + LINKAGE_AT, c->code, sizeof c->code);
    mock_write_pointer(mock, stack + 0x100, return_to(1));
    walk(pc, stack + 0x100, false, 0);
    check_frame(0, CDACQ_FRAME_NATIVE, CDACQ_FRAME_BY_CONTEXT, pc, stack + 0x100);
    check_frame(1, CDACQ_FRAME_MANAGED, c->is_exact ? CDACQ_FRAME_BY_UNWIND : CDACQ_FRAME_BY_GUESS, return_to(1),
                stack + 0x108);

    /* A word that is no return address refutes it. */
    ck_assert_uint_eq(frames[0].cfa, c->is_exact ? stack + 0x108 : 0);
    walk(pc, stack + 0xf8, false, 0);
    check_frame(1, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_GUESS, return_to(1), stack + 0x108);
}
END_TEST

/* A call through a null pointer has put its return address where a leaf's is. */
START_TEST(null_calls)
{
    static const uint8_t through_register[7] = {[5] = 0xff, 0xd0}, direct[7] = {[2] = 0xe8, 1, 2, 3, 4};
    static const uint8_t nothing[0x1000];
    mock_write(mock, native_code, nothing, sizeof nothing);
    mock_write(mock, native_code + 0x40 - sizeof through_register, through_register, sizeof through_register);
    mock_write(mock, native_code + 0x80 - sizeof direct, direct, sizeof direct);
    mock_write_pointer(mock, stack + 0x100, native_code + 0x40);
    mock_write_pointer(mock, stack + 0x108, native_code + 0x80);
    walk(0, stack + 0x100, false, 0);
    check_frame(0, CDACQ_FRAME_NATIVE, CDACQ_FRAME_BY_CONTEXT, 0, stack + 0x100);
    check_frame(1, CDACQ_FRAME_NATIVE, CDACQ_FRAME_BY_UNWIND, native_code + 0x40, stack + 0x108);
    ck_assert_uint_eq(frames[0].cfa, stack + 0x108);

    /* No pointer leads from this call to null. */
    walk(0, stack + 0x108, false, 0);
    check_frame(1, CDACQ_FRAME_NATIVE, CDACQ_FRAME_BY_GUESS, native_code + 0x80, stack + 0x110);
}
END_TEST

/* Nothing has run at an address without memory, either: the frame pointer is still that of the caller. */
START_TEST(calls_to_nowhere)
{
    static const uint8_t through_register[7] = {[5] = 0xff, 0xd0};
    struct cdacq_registers registers = {.size = sizeof registers, .known = 1u << RIP | 1u << RSP | 1u << RBP};
    registers.values[RIP] = 0x12345;
    registers.values[RSP] = stack + 0x100;
    registers.values[RBP] = stack + 0x140;
    mock_write(mock, native_code + 0x40 - sizeof through_register, through_register, sizeof through_register);
    mock_write_pointer(mock, stack + 0x100, native_code + 0x40);
    mock_write_pointer(mock, stack + 0x140, stack + 0x180);
    mock_write_pointer(mock, stack + 0x148, return_to(1));
    target = mock_publish_and_open(mock);
    ck_assert_int_eq(cdacq_session_create(target, &session, NULL), CDACQ_OK);
    cdacq_session_visit_frames(session, NULL, &registers, 0, keep_frame, NULL, &error);
    check_frame(1, CDACQ_FRAME_NATIVE, CDACQ_FRAME_BY_GUESS, native_code + 0x40, stack + 0x108);
}
END_TEST

/* Lists of Frames that lead nowhere, downwards or in a cycle, and registers that go down, end the walk. */
START_TEST(hostile_frames)
{
    uint64_t frame = put_frame(stack + 0x300, "InlinedCallFrameIdentifier", stack + 0x300 - 0x100 * (uint64_t)_i);
    mock_set(mock, frame, "InlinedCallFrame.CallSiteSP", stack + 0x80);
    mock_set(mock, frame, "InlinedCallFrame.CallerReturnAddress", return_to(1) + 1);
    ck_assert_int_eq(walk(native_code + 0x20, stack + 0x100, true, 0), CDACQ_ERR_MEMORY);
    ck_assert_uint_eq(frame_count, 1);
    ck_assert_int_eq(walk(native_code + 0x20, stack + 0x100, true, CDACQ_FRAMES_EXPLICIT), CDACQ_ERR_MEMORY);
}
END_TEST

/* The list of Frames leads from the stack of a signal handler to the thread's own, further down, and not back. */
START_TEST(a_handler_on_a_stack_further_up)
{
    uint64_t handler = stack + STACK_SIZE / 2;
    mock_set(mock, thread, "Thread.CachedStackBase", handler);
    uint64_t outer = put_frame(stack + 0x300, "InlinedCallFrameIdentifier", _i ? handler + 0x200 : UINT64_MAX);
    mock_set(mock, outer, "InlinedCallFrame.CallSiteSP", stack + 0x400);
    mock_set(mock, outer, "InlinedCallFrame.CallerReturnAddress", return_to(3) + 1); /* not to be guessed */
    uint64_t fault = put_frame(handler + 0x200, "FaultingExceptionFrameIdentifier", outer);
    uint64_t context = fault + mock_offset_of(mock, "FaultingExceptionFrame.TargetContext");
    mock_write_pointer(mock, context + 0x98, stack + 0x200);
    mock_write_pointer(mock, context + 0xf8, native_code + 0x30);
    walk(native_code + 0x20, handler + 0x100, true, 0);
    ck_assert_uint_eq(frame_count, 3);
    check_frame(1, CDACQ_FRAME_NATIVE, CDACQ_FRAME_BY_FRAME, native_code + 0x30, stack + 0x200);
    ck_assert(!frames[1].is_call);
    check_frame(2, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_FRAME, return_to(3) + 1, stack + 0x400);

    walk(native_code + 0x20, handler + 0x100, true, CDACQ_FRAMES_EXPLICIT);
    ck_assert_uint_eq(frame_count, 5);
    ck_assert_uint_eq(frames[1].frame, fault);
    ck_assert_uint_eq(frames[3].frame, outer);
}
END_TEST

/* The handler of a fault returns to the instruction that it interrupted, whose stack pointer only the Frame knows. */
START_TEST(a_fault_on_another_stack)
{
    uint64_t handler = stack + STACK_SIZE / 2, own = stack + STACK_SIZE - 0x100, code = methods[2] + 0x20;
    uint64_t fault = put_frame(stack + 0x40, "FaultingExceptionFrameIdentifier", UINT64_MAX);
    uint64_t context = fault + mock_offset_of(mock, "FaultingExceptionFrame.TargetContext");
    mock_write_pointer(mock, context + 0x98, own);
    mock_write_pointer(mock, context + 0xf8, return_to(3));
    mock_write_pointer(mock, handler, _i ? return_to(2) : code);
    mock_write_pointer(mock, handler + 8, 0x12345);
    walk(methods[0], handler, true, 0);
    check_frame(1, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_UNWIND, _i ? return_to(2) : code, handler + 8);
    ck_assert(frames[1].is_call == _i);
    if (_i) /* the caller of the handler, which has no memory */
        check_frame(2, CDACQ_FRAME_NATIVE, CDACQ_FRAME_BY_GUESS, 0x12345, handler + 0x10);
    else
        check_frame(2, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_FRAME, return_to(3), own);
}
END_TEST

/* The stack of a signal handler may be below the libraries, and these below the thread's own stack. */
START_TEST(a_handler_on_a_stack_below_libraries)
{
    ck_assert_uint_lt(stack, native_code);
    mock_set(mock, thread, "Thread.CachedStackBase", native_code + 0x100000);
    mock_write_pointer(mock, stack + 0x100, native_code + 0x40);
    mock_write_pointer(mock, stack + 0x110, stack + 0x400);
    walk(methods[0], stack + 0x100, true, 0);
    check_frame(1, CDACQ_FRAME_NATIVE, CDACQ_FRAME_BY_UNWIND, native_code + 0x40, stack + 0x108);

    /* Memory without a file between them may be the stack. */
    walk(methods[0], stack + 0x110, true, 0);
    check_frame(1, CDACQ_FRAME_NATIVE, CDACQ_FRAME_BY_GUESS, stack + 0x400, stack + 0x118);
}
END_TEST

START_TEST(arguments)
{
    struct cdacq_registers registers = {.size = sizeof registers};
    walk(methods[0], stack + 0x100, false, 0);
    ck_assert_int_eq(cdacq_session_visit_frames(session, NULL, NULL, 0, keep_frame, NULL, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_str_eq(error.message, "a walk needs registers: its own, or those of the thread");
    ck_assert_int_eq(cdacq_session_visit_frames(session, NULL, &registers, 0, keep_frame, NULL, &error),
                     CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(cdacq_session_visit_threads(session, NULL, NULL, &error), CDACQ_ERR_ARGUMENT);
}
END_TEST

static int keep_thread(const struct cdacq_thread *visited, void *context)
{
    struct cdacq_thread *kept = context;
    kept += kept->tid != 0;
    *kept = *visited;
    kept->name = !visited->name                                   ? NULL
                 : strcmp(visited->name, "sixteen bytes al") == 0 ? "sixteen"
                 : strcmp(visited->name, ".NET Finalizer") == 0   ? ".NET Finalizer"
                                                                  : NULL;
    kept->registers =
        visited->registers->known == 1 << 7 && visited->registers->values[7] == 77 ? visited->registers : NULL;
    return 0;
}

/* The mock's memory, with threads. */
static struct cdacq_memory memory_with(const struct cdacq_memory_thread *threads, size_t count)
{
    struct cdacq_memory memory = *mock_memory(mock);
    memory.size = sizeof memory;
    memory.threads = threads;
    memory.thread_count = count;
    return memory;
}

/* The threads of the caller's memory: those that the caller lists, with what the runtime knows of them. */
START_TEST(threads_of_memory)
{
    struct cdacq_registers registers = {.size = sizeof registers, .known = 1 << 7, .values[7] = 77};
    struct cdacq_memory_thread threads[] = {
        {.size = sizeof threads[0], .tid = 70, .signal = 6, .died = true, .name = "sixteen bytes alone"},
        {.size = 0, .tid = 71, .registers = &registers}, /* the size of the first is that of all */
    };
    struct cdacq_target *other;
    struct cdacq_session *lookups;
    struct cdacq_thread kept[2] = {0};
    mock_publish(mock, NULL);
    struct cdacq_memory memory = memory_with(threads, 2);
    ck_assert_int_eq(cdacq_target_open_memory(&memory, NULL, &other, &error), CDACQ_OK);
    ck_assert_int_eq(cdacq_session_create(other, &lookups, &error), CDACQ_OK);
    cdacq_session_visit_threads(lookups, keep_thread, kept, &error); /* the mock may have no list of Threads */
    ck_assert_int_eq(kept[0].tid, 70);
    ck_assert_int_eq(kept[0].signal, 6);
    ck_assert(kept[0].died && kept[0].name && !kept[0].registers);
    ck_assert_int_eq(kept[1].tid, 71);
    ck_assert(!kept[1].died && !kept[1].name && kept[1].registers);
    registers.size = 0;
    ck_assert_int_eq(cdacq_session_visit_threads(lookups, keep_thread, kept, &error), CDACQ_ERR_ARGUMENT);
    cdacq_session_destroy(lookups);
    cdacq_target_close(other);
    threads[0].size = 0;
    ck_assert_int_eq(cdacq_target_open_memory(&memory, NULL, &other, &error), CDACQ_ERR_ARGUMENT);
    memory.threads = NULL;
    ck_assert_int_eq(cdacq_target_open_memory(&memory, NULL, &other, &error), CDACQ_ERR_ARGUMENT);
}
END_TEST

/* ---- Two runtimes ---- */

/* What the second runtime has on the stack of the first. */
struct second {
    struct mock *mock;
    uint64_t methods[METHODS], thread, frame;
};

enum { SECOND_FRAME = 0x200, SECOND_CALLER_SP = 0x400 };

/*
 * Adds a second runtime to the process. Its Thread 77 has a Frame that leads to its method 1. Memory is written by way
 * of the first mock from then on.
 */
static struct second add_second(void)
{
    struct mock *first = mock;
    uint64_t first_methods[METHODS], first_thread = thread;
    struct second second = {
        .mock = mock_create(&(struct mock_options){.pointer_size = 8, .seed = 6, .base = UINT64_C(0x7f8010000000)}),
        .frame = stack + SECOND_FRAME};
    memcpy(first_methods, methods, sizeof methods);
    mock = second.mock;
    add_methods();
    add_thread(second.frame);
    mock_contract(mock, "Thread", "1");
    mock_contract(mock, "StackWalk", "1");
    mock_global(mock, "InlinedCallFrameIdentifier", 99);
    mock_publish(mock, &(struct mock_publish_options){.path = "/mock/second/libcoreclr.so"});
    memcpy(second.methods, methods, sizeof methods);
    second.thread = thread;
    mock = first;
    thread = first_thread;
    memcpy(methods, first_methods, sizeof methods);
    mock_publish(mock, &(struct mock_publish_options){.path = "/mock/first/libcoreclr.so"});
    mock_join(mock, second.mock);
    mock_write_pointer(mock, second.frame, 99);
    mock_write_pointer(mock, second.frame + mock_offset_of(second.mock, "Frame.Next"), UINT64_MAX);
    mock_write_pointer(mock, second.frame + mock_offset_of(second.mock, "InlinedCallFrame.CallSiteSP"),
                       stack + SECOND_CALLER_SP);
    mock_write_pointer(mock, second.frame + mock_offset_of(second.mock, "InlinedCallFrame.CallerReturnAddress"),
                       second.methods[1] + CALLED);
    mock_write_pointer(mock, second.frame + mock_offset_of(second.mock, "InlinedCallFrame.CalleeSavedFP"), stack);
    return second;
}

static void check_runtime(unsigned i, uint64_t number)
{
    ck_assert_ptr_nonnull(frames[i].method);
    ck_assert_uint_eq(frame_methods[i].runtime, number);
}

static void close_target(void)
{
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    session = NULL;
    target = NULL;
}

/* Each frame is unwound by the runtime whose code it is. One runtime alone does not know the code of the other. */
START_TEST(frames_of_two_runtimes)
{
    uint64_t sp = stack + 0x100;
    struct second second = add_second();
    const uint64_t callers[] = {second.methods[2] + CALLED, return_to(1), return_to(2), second.methods[0] + CALLED};
    for (unsigned i = 0; i < ARRAY_SIZE(callers); i++)
        mock_write_pointer(mock, sp + 8 * i, callers[i]);
    for (unsigned number = 0; number < 3; number++) {
        bool all = number == 2;
        struct cdacq_options options = {
            .size = sizeof options, .flags = all ? CDACQ_OPEN_ALL_RUNTIMES : 0, .runtime = all ? 0 : number};
        target = mock_open(mock, 0, &options);
        ck_assert_int_eq(cdacq_session_create(target, &session, NULL), CDACQ_OK);
        ck_assert_int_lt(walk(number == 1 ? second.methods[1] + 3 : methods[0], sp, false, 0), 0);
        for (unsigned i = 0; all && i < 1 + ARRAY_SIZE(callers); i++) {
            check_frame(i, CDACQ_FRAME_MANAGED, i ? CDACQ_FRAME_BY_UNWIND : CDACQ_FRAME_BY_CONTEXT,
                        i ? callers[i - 1] : methods[0], sp + 8 * i);
            check_runtime(i, i == 1 || i == 4);
        }
        if (all) {
            ck_assert_uint_ge(frame_count, 5);
            ck_assert_int_eq(error.status, AT_ZERO);
        }
        for (unsigned i = 0; !all && i < frame_count; i++)
            ck_assert(!frames[i].method || frame_methods[i].runtime == number);
        close_target();
    }
    mock_destroy(second.mock);
}
END_TEST

static int walk_visited(const struct cdacq_thread *visited, void *context)
{
    enum cdacq_status *status = context;
    *status = cdacq_session_visit_frames(session, visited, NULL, 0, keep_frame, NULL, &error);
    return 0;
}

/* Native code that cannot be unwound: the Frame of the runtime that called it leads on, whichever that is. */
START_TEST(a_frame_of_another_runtime)
{
    struct cdacq_registers registers = {.size = sizeof registers, .known = 1u << RIP | 1u << RSP};
    struct cdacq_memory_thread threads[] = {{.size = sizeof threads[0], .tid = 77, .registers = &registers}};
    struct second second = add_second();
    registers.values[RIP] = native_code + 0x10;
    registers.values[RSP] = stack + 0x100;
    mock_write_pointer(mock, stack + SECOND_CALLER_SP, return_to(2));
    struct cdacq_memory memory = memory_with(threads, 1);
    for (unsigned number = 0; number < 2; number++) {
        struct cdacq_options options = {.size = sizeof options, .flags = CDACQ_OPEN_ALL_RUNTIMES, .runtime = number};
        enum cdacq_status status = CDACQ_OK;
        frame_count = 0;
        ck_assert_int_eq(cdacq_target_open_memory(&memory, &options, &target, &error), CDACQ_OK);
        ck_assert_int_eq(cdacq_session_create(target, &session, NULL), CDACQ_OK);
        ck_assert_int_eq(cdacq_session_visit_threads(session, walk_visited, &status, &error), CDACQ_OK);
        ck_assert_int_eq(status, AT_ZERO);
        check_frame(0, CDACQ_FRAME_NATIVE, CDACQ_FRAME_BY_CONTEXT, native_code + 0x10, stack + 0x100);
        check_frame(1, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_FRAME, second.methods[1] + CALLED, stack + SECOND_CALLER_SP);
        check_frame(2, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_UNWIND, return_to(2), stack + SECOND_CALLER_SP + 8);
        check_runtime(1, 1);
        check_runtime(2, 0);
        close_target();
    }
    mock_destroy(second.mock);
}
END_TEST

/* The runtime names the Thread for which it suspends the others, if it describes that. */
START_TEST(a_thread_that_suspends)
{
    struct cdacq_registers registers = {.size = sizeof registers, .known = 1 << 7, .values[7] = 77};
    struct cdacq_memory_thread threads[] = {{.size = sizeof threads[0], .tid = 77, .registers = &registers},
                                            {.size = 0, .tid = 78, .registers = &registers}};
    struct cdacq_thread kept[2] = {0};
    /* The Thread for which the others are suspended: none is described, this one, none, or another one. */
    uint64_t suspending[] = {0, thread, 0, thread + 8, thread + 8};
    if (_i) {
        uint64_t pointer = mock_alloc(mock, 8, 8);
        mock_write_pointer(mock, pointer, suspending[_i]);
        mock_global(mock, "GCThread", pointer);
    }
    mock_set(mock, thread, "Thread.PreemptiveGCDisabled", _i != 4);
    mock_publish(mock, NULL);
    struct cdacq_memory memory = memory_with(threads, 2);
    ck_assert_int_eq(cdacq_target_open_memory(&memory, NULL, &target, &error), CDACQ_OK);
    ck_assert_int_eq(cdacq_session_create(target, &session, &error), CDACQ_OK);
    ck_assert_int_eq(cdacq_session_visit_threads(session, keep_thread, kept, &error), CDACQ_OK);
    ck_assert_uint_eq(kept[0].thread, thread);
    ck_assert_int_eq(kept[0].suspends_others, _i == 1);
    ck_assert_int_eq(kept[0].delays_suspension, _i == 3);
    ck_assert(!kept[1].suspends_others && !kept[1].delays_suspension);
    struct cdacq_activity activity = {.size = sizeof activity};
    for (int call = 0; call < 2; call++) {
        ck_assert_int_eq(cdacq_session_get_activity(session, &activity, &error), CDACQ_OK);
        ck_assert_int_eq(activity.suspension_known, _i != 0);
        ck_assert(!activity.suspension_partly);
        ck_assert_int_eq(activity.suspended, suspending[_i] != 0);
        ck_assert_uint_ge(activity.thread_count, 1);
        ck_assert_uint_eq(activity.throwing + activity.thrown, 0);
    }
    ck_assert_int_eq(cdacq_session_get_activity(NULL, &activity, &error), CDACQ_ERR_ARGUMENT);
    activity.size = 0;
    ck_assert_int_eq(cdacq_session_get_activity(session, &activity, &error), CDACQ_ERR_ARGUMENT);
}
END_TEST

/* The kernel's names are not known of the caller's memory, and the Thread has no managed one. */
START_TEST(the_thread_of_finalizers)
{
    struct cdacq_registers registers = {.size = sizeof registers, .known = 1 << 7, .values[7] = 77};
    struct cdacq_memory_thread one = {.size = sizeof one, .tid = 77, .registers = &registers};
    struct cdacq_thread kept = {0};
    uint64_t pointer = mock_alloc(mock, 8, 8);
    mock_write_pointer(mock, pointer, thread + 8 * (uint64_t)_i);
    mock_global(mock, "FinalizerThread", pointer);
    mock_publish(mock, NULL);
    struct cdacq_memory memory = memory_with(&one, 1);
    ck_assert_int_eq(cdacq_target_open_memory(&memory, NULL, &target, &error), CDACQ_OK);
    ck_assert_int_eq(cdacq_session_create(target, &session, &error), CDACQ_OK);
    ck_assert_int_eq(cdacq_session_visit_threads(session, keep_thread, &kept, &error), CDACQ_OK);
    ck_assert_uint_eq(kept.thread, thread);
    if (_i == 0)
        ck_assert_str_eq(kept.name, ".NET Finalizer");
    else
        ck_assert_ptr_null(kept.name);
}
END_TEST

/* The ids of a debugger outside of the process's pid namespace: no Thread has one of them, and that is told. */
START_TEST(threads_of_another_namespace)
{
    struct cdacq_memory_thread one = {.size = sizeof one, .tid = _i ? 77 : 7077};
    struct cdacq_target *other;
    struct cdacq_session *lookups;
    struct cdacq_registers registers;
    struct cdacq_thread kept = {.registers = &registers};
    mock_publish(mock, NULL);
    struct cdacq_memory memory = memory_with(&one, 1);
    ck_assert_int_eq(cdacq_target_open_memory(&memory, NULL, &other, &error), CDACQ_OK);
    ck_assert_int_eq(cdacq_session_create(other, &lookups, &error), CDACQ_OK);
    enum cdacq_status expected = _i ? CDACQ_OK : CDACQ_ERR_CORRUPT;
    ck_assert_int_eq(cdacq_session_visit_threads(lookups, keep_thread, &kept, &error), expected);
    ck_assert_int_eq(kept.tid, one.tid);
    ck_assert_uint_eq(kept.thread, _i ? thread : 0);
    cdacq_session_destroy(lookups);
    cdacq_target_close(other);
}
END_TEST

/* A caller whose return address is the first byte after its method, as after a call that does not return. */
START_TEST(registers_of_a_caller)
{
    walk(methods[1], stack + 0x100, false, 0);
    ck_assert(frame_count && !frames[0].is_call);
    walk(methods[1], stack + 0x100, false, CDACQ_FRAMES_CALLER);
    ck_assert(frame_count && frames[0].is_call);
    ck_assert_int_eq(frames[0].by, CDACQ_FRAME_BY_CONTEXT);
}
END_TEST

/* ---- Other machines ---------------------------------------------------------------------------------------------- */

/* A target of another machine in place of the first one, with four methods of 64 bytes; their RUNTIME_FUNCTIONs. */
static const struct mock_function *begin_other(unsigned pointer_size, enum mock_unwind unwind,
                                               struct mock_heap **ret_heap)
{
    size_t count;
    mock_destroy(mock);
    mock = mock_create(&(struct mock_options){.pointer_size = pointer_size, .seed = 5, .unwind = unwind});
    *ret_heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x10000});
    for (unsigned i = 0; i < METHODS; i++)
        methods[i] = mock_method(*ret_heap,
                                 &(struct mock_method){.size = 64, .method_desc = mock_dynamic_method_desc(mock, "M")});
    stack = mock_map(mock, 0, STACK_SIZE, MOCK_READ | MOCK_WRITE, NULL, 0);
    native_code = mock_map(mock, 0, 0x1000, MOCK_READ | MOCK_EXECUTE, "/mock/native.so", 0);
    for (unsigned i = 0; i < STACK_SIZE; i += pointer_size)
        mock_write_pointer(mock, stack + i, 0);
    mock_contract(mock, "Thread", "1");
    mock_contract(mock, "StackWalk", "1");
    return mock_functions(mock, &count);
}

static void walk_registers(const struct cdacq_registers *registers)
{
    if (!target) {
        target = mock_publish_and_open(mock);
        ck_assert_int_eq(cdacq_session_create(target, &session, NULL), CDACQ_OK);
    }
    frame_count = 0;
    cdacq_session_visit_frames(session, NULL, registers, 0, keep_frame, NULL, &error);
}

static void walk_other(unsigned pc_number, uint64_t pc, unsigned sp_number, uint64_t sp)
{
    struct cdacq_registers registers = {.size = sizeof registers,
                                        .known = UINT64_C(1) << pc_number | UINT64_C(1) << sp_number};
    registers.values[pc_number] = pc;
    registers.values[sp_number] = sp;
    walk_registers(&registers);
}

/* Frames without a frame pointer: the callee removes its arguments. */
START_TEST(frames_of_x86)
{
    enum { X86_ESP = 4, X86_EIP = 8 };
    static const uint8_t call[] = {0xff, 0x50, 0x10}; /* call [eax + 16] */
    /* No saved registers; no argument or two; a call at 8 with nothing pushed, or with a word of an outer one. */
    static const uint8_t plain[] = {0x01, 0xff}, with_arguments[] = {0x06, 0xff}, nested[] = {0x01, 0x04, 0xff};
    struct mock_heap *heap;
    const struct mock_function *functions = begin_other(4, MOCK_UNWIND_FUNCTION_LENGTH, &heap);
    mock_write(mock, functions[0].gc_info + 1, with_arguments, sizeof with_arguments);
    mock_write(mock, functions[1].gc_info + 1, nested, sizeof nested);
    mock_write(mock, functions[2].gc_info + 1, plain, sizeof plain);
    mock_write(mock, return_to(1) - sizeof call, call, sizeof call);
    mock_write_pointer(mock, stack + 0x100, return_to(1));
    mock_write_pointer(mock, stack + 0x110, return_to(2));
    walk_other(X86_EIP, methods[0], X86_ESP, stack + 0x100);
    ck_assert_uint_eq(frame_count, 3);
    check_frame(1, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_UNWIND, return_to(1), stack + 0x10c);
    check_frame(2, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_UNWIND, return_to(2), stack + 0x114);
    walk_other(X86_EIP, native_code, X86_ESP, stack + 0xf0);
    ck_assert_uint_ge(frame_count, 2);
    check_frame(1, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_GUESS, return_to(1), stack + 0x104);
}
END_TEST

/* Methods that push r4 and lr. Return addresses have the Thumb bit. */
START_TEST(frames_of_arm)
{
    enum { ARM_SP = 13, ARM_LR, ARM_PC };
    static const uint8_t codes[] = {0xd4, 0xff, 0, 0}, call[] = {0x80, 0x47}; /* blx r0 */
    struct mock_heap *heap;
    const struct mock_function *functions = begin_other(4, MOCK_UNWIND_HEADER, &heap);
    for (unsigned i = 0; i < METHODS; i++) {
        uint64_t unwind = heap->begin + mock_get(mock, functions[i].unwind_info, "RuntimeFunction.UnwindData");
        mock_write_uint(mock, unwind, 4, 32 | 1 << 21 | 1 << 28);
        mock_write(mock, unwind + 4, codes, sizeof codes);
    }
    mock_write(mock, return_to(1) - sizeof call, call, sizeof call);
    mock_write_pointer(mock, stack + 0x104, return_to(1) | 1);
    mock_write_pointer(mock, stack + 0x10c, return_to(2) | 1);
    walk_other(ARM_PC, methods[0] + 4, ARM_SP, stack + 0x100);
    ck_assert_uint_eq(frame_count, 3);
    check_frame(1, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_UNWIND, return_to(1), stack + 0x108);
    check_frame(2, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_UNWIND, return_to(2), stack + 0x110);
    walk_other(ARM_PC, native_code, ARM_SP, stack + 0xf0);
    ck_assert_uint_ge(frame_count, 2);
    check_frame(1, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_GUESS, return_to(1), stack + 0x108);
}
END_TEST

/*
 * Methods that sign lr and push fp and lr: by their unwind data, and native code that called one, by lr, by the frame
 * pointer and by a word of the stack.
 */
START_TEST(signed_frames_of_arm64)
{
    enum { ARM64_FP = 29, ARM64_LR, ARM64_SP, ARM64_PC };
    static const uint8_t codes[] = {0x81, 0xfc, 0xe4, 0}, call[] = {0x00, 0x00, 0x3f, 0xd6}; /* blr x0 */
    const uint64_t signature = UINT64_C(0x6b) << 48;
    struct mock_heap *heap;
    const struct mock_function *functions = begin_other(8, MOCK_UNWIND_HEADER, &heap);
    for (unsigned i = 0; i < METHODS; i++) {
        uint64_t unwind = heap->begin + mock_get(mock, functions[i].unwind_info, "RuntimeFunction.UnwindData");
        mock_write_uint(mock, unwind, 4, 16 | 1 << 21 | 1 << 27);
        mock_write(mock, unwind + 4, codes, sizeof codes);
        mock_write(mock, return_to(i) - sizeof call, call, sizeof call);
    }
    mock_write_pointer(mock, stack + 0x100, stack + 0x110);
    mock_write_pointer(mock, stack + 0x108, return_to(1) | signature);
    mock_write_pointer(mock, stack + 0x118, return_to(2) | signature);
    walk_other(ARM64_PC, return_to(0), ARM64_SP, stack + 0x100);
    ck_assert_uint_eq(frame_count, 3);
    check_frame(1, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_UNWIND, return_to(1), stack + 0x110);
    check_frame(2, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_UNWIND, return_to(2), stack + 0x120);
    walk_other(ARM64_PC, native_code, ARM64_SP, stack + 0xf0); /* a word of the stack */
    ck_assert_uint_ge(frame_count, 2);
    check_frame(1, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_GUESS, return_to(1), stack + 0x110);
    struct cdacq_registers registers = {.size = sizeof registers, .known = UINT64_C(0xf) << ARM64_FP};
    registers.values[ARM64_FP] = stack + 0x110;
    registers.values[ARM64_SP] = stack + 0xf0;
    registers.values[ARM64_PC] = native_code;
    walk_registers(&registers);
    ck_assert_uint_ge(frame_count, 2);
    check_frame(1, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_GUESS, return_to(2), stack + 0x120);
    registers.values[ARM64_LR] = return_to(3) | signature;
    walk_registers(&registers);
    ck_assert_uint_ge(frame_count, 2);
    check_frame(1, CDACQ_FRAME_MANAGED, CDACQ_FRAME_BY_GUESS, return_to(3), stack + 0xf0);
}
END_TEST

struct saved_words {
    uint64_t pc, sp, x19, x20;
};

static int keep_words(const struct cdacq_frame *frame, void *context)
{
    const uint64_t *values = frame->registers->values;
    if (frame->index == 1)
        *(struct saved_words *)context =
            (struct saved_words){.pc = frame->pc, .sp = frame->sp, .x19 = values[19], .x20 = values[20]};
    return 0;
}

/* The Frame of a function of the runtime, with the registers of its caller, or with those of the function itself. */
START_TEST(helper_methods_of_arm64)
{
    enum { ARM64_SP = 31, ARM64_PC };
    static const uint8_t no_codes[] = {0xe4, 0, 0, 0};
    struct mock_heap *heap;
    const struct mock_function *functions = begin_other(8, MOCK_UNWIND_HEADER, &heap);
    for (unsigned i = 0; i < METHODS; i++) {
        uint64_t unwind = heap->begin + mock_get(mock, functions[i].unwind_info, "RuntimeFunction.UnwindData");
        mock_write_uint(mock, unwind, 4, 16 | 1 << 21 | 1 << 27);
        mock_write(mock, unwind + 4, no_codes, sizeof no_codes);
    }
    add_thread(UINT64_MAX);
    uint64_t frame = put_frame(stack + 0x300, "HelperMethodFrameIdentifier", UINT64_MAX);
    uint64_t state = frame + mock_offset_of(mock, "HelperMethodFrame.MachState");
    mock_set(mock, state, "LazyMachState._isValid", _i);
    mock_set(mock, state, "LazyMachState._pc", return_to(1));
    mock_set(mock, state, "LazyMachState._sp", stack + CALLER_SP);
    mock_set(mock, state, "LazyMachState.captureIp", return_to(2));
    mock_set(mock, state, "LazyMachState.captureSp", stack + CALLER_SP + 0x20);
    mock_write_pointer(mock, state + mock_offset_of(mock, "LazyMachState.captureX19_X29") + 8, 0x20);
    mock_write_pointer(mock, state + mock_offset_of(mock, "LazyMachState.captureX19_X29"), 0x19);
    mock_write_pointer(mock, state + mock_offset_of(mock, "LazyMachState.ptrX19_X29"), stack + 0x1000);
    mock_write_pointer(mock, stack + 0x1000, 0x1919);
    struct cdacq_registers registers = {.size = sizeof registers, .known = UINT64_C(3) << ARM64_SP};
    struct cdacq_thread of_runtime = {.size = sizeof of_runtime, .tid = 77, .thread = thread};
    struct saved_words words = {0};
    registers.values[ARM64_SP] = stack + 0x100;
    registers.values[ARM64_PC] = native_code + 0x20;
    target = mock_publish_and_open(mock);
    ck_assert_int_eq(cdacq_session_create(target, &session, NULL), CDACQ_OK);
    (void)cdacq_session_visit_frames(session, &of_runtime, &registers, 0, keep_words, &words, &error);
    ck_assert_uint_eq(words.pc, return_to(_i ? 1 : 2));
    ck_assert_uint_eq(words.sp, stack + CALLER_SP + (_i ? 0 : 0x20));
    ck_assert_uint_eq(words.x19, _i ? 0x1919 : 0x19); /* which the unwinder found on the stack */
    ck_assert_uint_eq(words.x20, 0x20);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("stack");
    TCase *tcase = tcase_create("stack");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, managed_frames);
    tcase_add_test(tcase, walks_share_their_fuel);
    tcase_add_test(tcase, names_of_frames_are_work);
    tcase_add_test(tcase, stacks_of_a_snapshot);
    tcase_add_test(tcase, a_return_address_behind_its_method);
    tcase_add_loop_test(tcase, hijacked, 0, 2);
    tcase_add_test(tcase, a_stub_in_place_of_a_return);
    tcase_add_loop_test(tcase, registers_that_code_restores, 0, 2);
    tcase_add_test(tcase, a_return_address_on_the_stack);
    tcase_add_loop_test(tcase, frames_of_each_kind, 0, ARRAY_SIZE(frame_cases));
    tcase_add_test(tcase, guesses);
    tcase_add_loop_test(tcase, a_guess_that_a_frame_confirms, 0, 2);
    tcase_add_loop_test(tcase, stubs_without_a_frame, 0, 4);
    tcase_add_loop_test(tcase, linkage_tables, 0, ARRAY_SIZE(linkage_cases));
    tcase_add_test(tcase, null_calls);
    tcase_add_test(tcase, calls_to_nowhere);
    tcase_add_test(tcase, frames_of_x86);
    tcase_add_test(tcase, frames_of_arm);
    tcase_add_test(tcase, signed_frames_of_arm64);
    tcase_add_loop_test(tcase, helper_methods_of_arm64, 0, 2);
    tcase_add_loop_test(tcase, hostile_frames, 0, 2);
    tcase_add_loop_test(tcase, a_handler_on_a_stack_further_up, 0, 2);
    tcase_add_loop_test(tcase, a_fault_on_another_stack, 0, 2);
    tcase_add_test(tcase, a_handler_on_a_stack_below_libraries);
    tcase_add_test(tcase, arguments);
    tcase_add_test(tcase, threads_of_memory);
    tcase_add_test(tcase, frames_of_two_runtimes);
    tcase_add_test(tcase, a_frame_of_another_runtime);
    tcase_add_loop_test(tcase, a_thread_that_suspends, 0, 5);
    tcase_add_loop_test(tcase, the_thread_of_finalizers, 0, 2);
    tcase_add_loop_test(tcase, threads_of_another_namespace, 0, 2);
    tcase_add_test(tcase, registers_of_a_caller);
    suite_add_tcase(suite, tcase);
    return suite;
}

CHECK_MAIN(suite)
