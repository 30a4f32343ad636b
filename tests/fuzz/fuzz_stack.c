/*
 * fuzz_stack.c: any bytes as the stack of a thread, with the runtime's Frames in it, and as unwind data of a method.
 * The first byte chooses where the walk begins and whether Frames are visited; the next 16 are the unwind data; the
 * rest is the stack, in which each word with a high byte below 8 stands for an address: of the stack, of the method, of
 * native code or of a kind of Frame. A walk ends, and each frame of a thread's own stack is above the one before.
 */
#include <stdlib.h>

#include "cdacq.h"
#include "mocktarget/mocktarget.h"
#include "src/lookup/opened_session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STACK_SIZE = 0x1000, UNWIND_SIZE = 16, RBP = 6, RSP, RIP = 16, KINDS = 10 };

static const char *const kinds[KINDS] = {
    "InlinedCallFrameIdentifier",
    "PrestubMethodFrameIdentifier",
    "SoftwareExceptionFrameIdentifier",
    "FaultingExceptionFrameIdentifier",
    "ResumableFrameIdentifier",
    "FuncEvalFrameIdentifier",
    "HijackFrameIdentifier",
    "HelperMethodFrameIdentifier",
    "ProtectByRefsFrameIdentifier",
    "DebuggerU2MCatchHandlerFrameIdentifier",
};

struct sample {
    struct mock *mock;
    uint64_t method, native_code, stack, thread;
};

static struct sample build(const uint8_t *unwind_data)
{
    struct sample sample = {.mock = mock_create(&(struct mock_options){.pointer_size = 8})};
    struct mock *mock = sample.mock;
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x4000});
    size_t count;
    sample.method = mock_method(heap, &(struct mock_method){.size = 0x100, .tail = UNWIND_SIZE});
    const struct mock_function *function = mock_functions(mock, &count);
    uint64_t unwind = heap->begin + mock_get(mock, function->unwind_info, "RuntimeFunction.UnwindData");
    mock_write(mock, unwind, unwind_data, UNWIND_SIZE);
    sample.stack = mock_map(mock, 0, STACK_SIZE, MOCK_READ | MOCK_WRITE, NULL, 0);
    sample.native_code = mock_map(mock, 0, 0x1000, MOCK_READ | MOCK_EXECUTE, "/mock/native.so", 0);
    sample.thread = mock_new(mock, "Thread", 0);
    mock_set(mock, sample.thread, "Thread.Frame", sample.stack + 0x80);
    mock_set(mock, sample.thread, "Thread.CachedStackBase", sample.stack + STACK_SIZE);
    mock_set(mock, sample.thread, "Thread.State", 0x80);
    mock_set(mock, sample.thread, "Thread.m_ppvHJRetAddrPtr", sample.stack + 0x40);
    mock_set(mock, sample.thread, "Thread.m_pvHJRetAddr", sample.method + 8);
    for (unsigned i = 0; i < KINDS; i++)
        mock_global(mock, kinds[i], i + 1);
    mock_global(mock, "ThreadStore", sample.stack);
    mock_contract(mock, "Thread", "1");
    mock_contract(mock, "StackWalk", "1");
    return sample;
}

static uint64_t word_of(const struct sample *sample, uint64_t word)
{
    switch (word >> 56) {
    case 0: /* also small numbers: kinds of Frames */
        return word;
    case 1:
    case 2:
        return sample->stack + (word & (STACK_SIZE - 1));
    case 3:
    case 4:
        return sample->method + (word & 0x1ff);
    case 5:
        return sample->native_code + (word & 0xfff);
    case 6:
        return UINT64_MAX;
    default:
        return word;
    }
}

struct check {
    struct cdacq_session *session;
    uint64_t sp, stack_end;
};

static int check_variable(const struct cdacq_variable *variable, void *context)
{
    (void)context;
    if ((variable->state == CDACQ_VARIABLE_KNOWN) != (variable->value != NULL) ||
        (variable->state == CDACQ_VARIABLE_UNKNOWN) != (variable->problem != NULL) ||
        (variable->target && !variable->value))
        abort();
    return 0;
}

static int check_place(const struct cdacq_variable_place *place, void *context)
{
    (void)context;
    if (place->location && place->problem)
        abort();
    return 0;
}

static int check_frame(const struct cdacq_frame *frame, void *context)
{
    struct check *check = context;
    if (frame->kind == CDACQ_FRAME_EXPLICIT)
        return 0;
    if (!frame->registers || (frame->sp < check->sp && check->sp <= check->stack_end))
        abort();
    check->sp = frame->sp;
    (void)cdacq_session_visit_variables(check->session, frame, check_variable, NULL, NULL);
    (void)cdacq_session_visit_variable_places(check->session, frame->pc, check_place, NULL, NULL);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cdacq_target *target = NULL;
    struct cdacq_session *session = NULL;
    struct cdacq_error error;
    if (size < 1 + UNWIND_SIZE)
        return 0;
    struct sample sample = build(data + 1);
    for (size_t at = 1 + UNWIND_SIZE, to = 0; at + 8 <= size && to < STACK_SIZE; at += 8, to += 8)
        mock_write_pointer(sample.mock, sample.stack + to, word_of(&sample, load_u64(data + at, false)));
    mock_publish(sample.mock, NULL);
    if (mock_error(sample.mock))
        abort();
    if (cdacq_target_open_memory(mock_memory(sample.mock), NULL, &target, NULL) < 0 ||
        cdacq_session_create(target, &session, NULL) < 0)
        abort();
    struct cdacq_thread thread = {.size = sizeof thread, .thread = data[0] & 1 ? 0 : sample.thread};
    struct cdacq_registers registers = {.size = sizeof registers, .known = 1 << RIP | 1 << RSP | 1 << RBP};
    registers.values[RIP] = data[0] & 2 ? sample.native_code + 0x20 : sample.method + (data[0] >> 4);
    registers.values[RSP] = sample.stack + 0x20;
    registers.values[RBP] = sample.stack + 0x60;
    struct check check = {.session = session, .stack_end = sample.stack + STACK_SIZE};
    unsigned flags = data[0] & 4 ? CDACQ_FRAMES_EXPLICIT : 0;
    cdacq_session_visit_frames(session, &thread, &registers, flags, check_frame, &check, &error);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(sample.mock);
    return 0;
}
