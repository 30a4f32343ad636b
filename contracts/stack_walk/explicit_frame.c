#include "contracts/stack_walk/explicit_frame.h"

#include "contracts/stack_walk/machine.h"
#include "contracts/unwind/unwinder.h"
#include "descriptors/fields.h"

/* Begins the registers of a caller: those that the code at `pc` has after its call has returned. */
static void begin_caller(const struct walk_machine *machine, uint64_t pc, uint64_t sp, struct frame_caller *ret)
{
    *ret = (struct frame_caller){0};
    register_set(&ret->registers, machine->pc, pc);
    register_set(&ret->registers, machine->sp, sp);
}

/* An InlinedCallFrame is active only while its call of native code runs. Only then does it have a return address. */
static bool caller_of_inlined_call(struct reader *reader, const struct walk_machine *machine, uint64_t frame,
                                   struct frame_caller *ret)
{
    enum { ARM_R9 = 9 };
    uint64_t return_address = read_field(reader, frame, F_InlinedCallFrame_CallerReturnAddress);
    if (!return_address)
        return false;
    begin_caller(machine, return_address, read_field(reader, frame, F_InlinedCallFrame_CallSiteSP), ret);
    register_set(&ret->registers, machine->fp, read_field(reader, frame, F_InlinedCallFrame_CalleeSavedFP));
    if (has_field(reader, F_InlinedCallFrame_SPAfterProlog))
        register_set(&ret->registers, ARM_R9, read_field(reader, frame, F_InlinedCallFrame_SPAfterProlog));
    return !reader_failed(reader);
}

/*
 * Frames of calls through the runtime's assembler helpers, which save registers in a TransitionBlock. On machines on
 * which the callee removes its arguments, the caller's stack pointer depends on their size. No Frame has that size, so
 * the caller is not known.
 */
static bool caller_of_transition(struct reader *reader, const struct walk_machine *machine, uint64_t frame,
                                 struct frame_caller *ret)
{
    uint64_t block = read_field(reader, frame, F_FramedMethodFrame_TransitionBlockPtr);
    uint32_t size = has_field(reader, F_TransitionBlock_OffsetOfArgs)
                        ? reader->layout->fields[F_TransitionBlock_OffsetOfArgs].offset
                        : reader->layout->sizes[T_TransitionBlock];
    if (!block || !size || machine->callee_pops)
        return false;
    begin_caller(machine, read_field(reader, block, F_TransitionBlock_ReturnAddress), block + size, ret);
    return walk_machine_read_saved(
        machine, reader, field_address(reader, block, F_TransitionBlock_CalleeSavedRegisters), &ret->registers);
}

/* A CONTEXT has the registers of code that was interrupted at any instruction. */
static bool caller_of_context(struct reader *reader, const struct walk_machine *machine, uint64_t context,
                              struct frame_caller *ret)
{
    *ret = (struct frame_caller){.interrupted = true};
    return context && walk_machine_read_context(machine, reader, context, &ret->registers);
}

static bool caller_of_fault(struct reader *reader, const struct walk_machine *machine, uint64_t frame,
                            struct frame_caller *ret)
{
    return caller_of_context(reader, machine, field_address(reader, frame, F_FaultingExceptionFrame_TargetContext),
                             ret);
}

static bool caller_of_resumable(struct reader *reader, const struct walk_machine *machine, uint64_t frame,
                                struct frame_caller *ret)
{
    return caller_of_context(reader, machine, read_field(reader, frame, F_ResumableFrame_TargetContextPtr), ret);
}

static bool caller_of_func_eval(struct reader *reader, const struct walk_machine *machine, uint64_t frame,
                                struct frame_caller *ret)
{
    uint64_t eval = read_field(reader, frame, F_FuncEvalFrame_DebuggerEvalPtr);
    return eval && caller_of_context(reader, machine, field_address(reader, eval, F_DebuggerEval_TargetContext), ret);
}

/*
 * The CONTEXT of a throw has the registers with which the helper that throws would return. The code called the helper
 * and was not interrupted, so only the registers that calls preserve are known.
 */
static bool caller_of_software_exception(struct reader *reader, const struct walk_machine *machine, uint64_t frame,
                                         struct frame_caller *ret)
{
    uint64_t context = field_address(reader, frame, F_SoftwareExceptionFrame_TargetContext);
    if (!caller_of_context(reader, machine, context, ret))
        return false;
    ret->interrupted = false;
    registers_keep(&ret->registers, walk_machine_preserved(machine));
    return true;
}

/*
 * The runtime's stub ran in place of a return, to stop the thread. The registers that it saved end at the caller's
 * stack pointer.
 */
static bool caller_of_hijack(struct reader *reader, const struct walk_machine *machine, uint64_t frame,
                             struct frame_caller *ret)
{
    uint64_t args = read_field(reader, frame, F_HijackFrame_HijackArgsPtr);
    uint64_t size = reader->layout->sizes[T_HijackArgs];
    if (!args || !size)
        return false;
    begin_caller(machine, read_field(reader, frame, F_HijackFrame_ReturnAddress),
                 align_up(args + size, reader->pointer_size), ret);
    if (machine->return_address != NO_REGISTER)
        ret->registers.values[machine->sp] = align_up(args + size, 2 * (uint64_t)reader->pointer_size);
    return !has_field(reader, F_HijackArgs_CalleeSavedRegisters) ||
           walk_machine_read_saved(machine, reader, field_address(reader, args, F_HijackArgs_CalleeSavedRegisters),
                                   &ret->registers);
}

/* The registers x19 to x29 of a LazyMachState. Those that the unwinder found on the stack have an address there. */
static void set_lazy_registers_arm64(struct reader *reader, uint64_t state, bool unwound, struct registers *registers)
{
    enum { FIRST = 19, LAST = 29 };
    uint64_t captured = field_address(reader, state, F_LazyMachState_captureX19_X29);
    uint64_t pointers = field_address(reader, state, F_LazyMachState_ptrX19_X29);
    for (unsigned i = 0; i <= LAST - FIRST; i++) {
        uint64_t place = unwound ? read_pointer(reader, pointers + 8 * i) : 0;
        register_set(registers, FIRST + i, read_pointer(reader, place ? place : captured + 8 * i));
    }
}

static bool caller_of_helper_method_arm64(struct reader *reader, const struct walk_machine *machine, uint64_t state,
                                          struct frame_caller *ret)
{
    bool unwound = read_field(reader, state, F_LazyMachState__isValid) != 0;
    begin_caller(machine, read_field(reader, state, unwound ? F_LazyMachState__pc : F_LazyMachState_captureIp),
                 read_field(reader, state, unwound ? F_LazyMachState__sp : F_LazyMachState_captureSp), ret);
    set_lazy_registers_arm64(reader, state, unwound, &ret->registers);
    return !reader_failed(reader);
}

/*
 * On .NET 8 and 9: a function of the runtime that managed code called. Once the runtime has looked for the registers of
 * the function's caller, the Frame has them. Before that, it has those of the function itself, and the walk goes on
 * from there.
 */
static bool caller_of_helper_method(struct reader *reader, const struct walk_machine *machine, uint64_t frame,
                                    struct frame_caller *ret)
{
    uint64_t state = field_address(reader, frame, F_HelperMethodFrame_MachState);
    if (machine->unwinder == &unwinder_arm64)
        return caller_of_helper_method_arm64(reader, machine, state, ret);
    bool unwound = read_field(reader, state, F_LazyMachState__pRetAddr) != 0;
    begin_caller(machine, read_field(reader, state, unwound ? F_LazyMachState_m_Rip : F_LazyMachState_m_CaptureRip),
                 read_field(reader, state, unwound ? F_LazyMachState_m_Rsp : F_LazyMachState_m_CaptureRsp), ret);
    uint64_t saved = field_address(reader, state, unwound ? F_LazyMachState_m_Unwound : F_LazyMachState_m_Capture);
    return walk_machine_read_saved(machine, reader, saved, &ret->registers);
}

/* ---- Which method a Frame belongs to ---- */

/*
 * The datum of a call through a function pointer is null or has the lowest bit set. The other low bits mark the calls
 * of the runtime's exception handling (InlinedCallFrameMarker), which may have no method.
 */
static uint64_t method_of_inlined_call(struct reader *reader, uint64_t frame)
{
    uint64_t datum = read_optional(reader, frame, F_InlinedCallFrame_Datum);
    return datum & 1 ? 0 : datum & ~(uint64_t)7;
}

static uint64_t method_of_transition(struct reader *reader, uint64_t frame)
{
    return read_optional(reader, frame, F_FramedMethodFrame_MethodDescPtr);
}

/* The runtime fills in the method when it walks the stack, so it can be null. */
static uint64_t method_of_helper_method(struct reader *reader, uint64_t frame)
{
    return read_optional(reader, frame, F_HelperMethodFrame_m_pMD);
}

static const struct frame_kind kinds[] = {
    {"InlinedCallFrame", G_InlinedCallFrameIdentifier, caller_of_inlined_call, method_of_inlined_call, false},
    {"ResumableFrame", G_ResumableFrameIdentifier, caller_of_resumable, NULL, false},
    {"RedirectedThreadFrame", G_RedirectedThreadFrameIdentifier, caller_of_resumable, NULL, false},
    {"FaultingExceptionFrame", G_FaultingExceptionFrameIdentifier, caller_of_fault, NULL, false},
    {"SoftwareExceptionFrame", G_SoftwareExceptionFrameIdentifier, caller_of_software_exception, NULL, false},
    {"FuncEvalFrame", G_FuncEvalFrameIdentifier, caller_of_func_eval, NULL, false},
    {"HijackFrame", G_HijackFrameIdentifier, caller_of_hijack, NULL, true},
    {"PInvokeCalliFrame", G_PInvokeCalliFrameIdentifier, caller_of_transition, method_of_transition, false},
    {"PrestubMethodFrame", G_PrestubMethodFrameIdentifier, caller_of_transition, method_of_transition, false},
    {"CallCountingHelperFrame", G_CallCountingHelperFrameIdentifier, caller_of_transition, method_of_transition, false},
    {"StubDispatchFrame", G_StubDispatchFrameIdentifier, caller_of_transition, method_of_transition, false},
    {"ExternalMethodFrame", G_ExternalMethodFrameIdentifier, caller_of_transition, method_of_transition, false},
    {"DynamicHelperFrame", G_DynamicHelperFrameIdentifier, caller_of_transition, method_of_transition, false},
    {"MulticastFrame", G_MulticastFrameIdentifier, caller_of_transition, method_of_transition, false},
    {"HelperMethodFrame", G_HelperMethodFrameIdentifier, caller_of_helper_method, method_of_helper_method, false},
    {"HelperMethodFrame_1OBJ", G_HelperMethodFrame_1OBJIdentifier, caller_of_helper_method, method_of_helper_method,
     false},
    {"HelperMethodFrame_2OBJ", G_HelperMethodFrame_2OBJIdentifier, caller_of_helper_method, method_of_helper_method,
     false},
    {"HelperMethodFrame_3OBJ", G_HelperMethodFrame_3OBJIdentifier, caller_of_helper_method, method_of_helper_method,
     false},
    {"HelperMethodFrame_PROTECTOBJ", G_HelperMethodFrame_PROTECTOBJIdentifier, caller_of_helper_method,
     method_of_helper_method, false},
    {"ProtectByRefsFrame", G_ProtectByRefsFrameIdentifier, NULL, NULL, false},
    {"ProtectValueClassFrame", G_ProtectValueClassFrameIdentifier, NULL, NULL, false},
    {"DebuggerClassInitMarkFrame", G_DebuggerClassInitMarkFrameIdentifier, NULL, NULL, false},
    {"DebuggerExitFrame", G_DebuggerExitFrameIdentifier, NULL, NULL, false},
    {"DebuggerU2MCatchHandlerFrame", G_DebuggerU2MCatchHandlerFrameIdentifier, NULL, NULL, false},
    {"ExceptionFilterFrame", G_ExceptionFilterFrameIdentifier, NULL, NULL, false},
    {"InterpreterFrame", G_InterpreterFrameIdentifier, NULL, NULL, false},
};

bool frame_is_last(const struct reader *reader, uint64_t frame)
{
    return !frame || frame == (reader->pointer_size == 4 ? UINT32_MAX : UINT64_MAX);
}

uint64_t frame_next(struct reader *reader, uint64_t frame)
{
    uint64_t next = read_field(reader, frame, F_Frame_Next);
    return reader_failed(reader) || frame_is_last(reader, next) ? 0 : next;
}

const struct frame_kind *frame_kind_at(struct reader *reader, uint64_t frame)
{
    const struct layout *layout = reader->layout;
    uint64_t identifier = read_pointer(reader, frame);
    for (size_t i = 0; identifier && i < ARRAY_SIZE(kinds); i++)
        if (layout->global_present[kinds[i].identifier] && layout->globals[kinds[i].identifier] == identifier)
            return &kinds[i];
    return NULL;
}

bool frame_caller(struct reader *reader, const struct walk_machine *machine, uint64_t frame, struct frame_caller *ret)
{
    const struct frame_kind *kind = frame_kind_at(reader, frame);
    if (!kind || !kind->caller || !kind->caller(reader, machine, frame, ret) || reader_failed(reader))
        return false;
    uint64_t *pc = &ret->registers.values[machine->pc];
    *pc = walk_machine_code_address(machine, reader, *pc);
    return true;
}

uint64_t frame_method(struct reader *reader, uint64_t frame)
{
    const struct frame_kind *kind = frame_kind_at(reader, frame);
    uint64_t method = kind && kind->method ? kind->method(reader, frame) : 0;
    return reader_failed(reader) ? 0 : method;
}

bool frame_is_inlined_call(struct reader *reader, uint64_t frame)
{
    const struct frame_kind *kind = frame_kind_at(reader, frame);
    return kind && kind->caller == caller_of_inlined_call;
}

unsigned frame_objects(struct reader *reader, uint64_t frame, uint64_t ret[FRAME_OBJECTS_MAX])
{
    static const enum layout_global kinds_with[FRAME_OBJECTS_MAX] = {
        G_HelperMethodFrame_1OBJIdentifier, G_HelperMethodFrame_2OBJIdentifier, G_HelperMethodFrame_3OBJIdentifier};
    const struct frame_kind *kind = frame_kind_at(reader, frame);
    unsigned count = 0;
    for (unsigned i = 0; kind && i < FRAME_OBJECTS_MAX; i++)
        if (kind->identifier == kinds_with[i])
            count = i + 1;
    if (!count || !has_field(reader, F_HelperMethodFrame_gcPtrs))
        return 0;
    uint64_t slots = field_address(reader, frame, F_HelperMethodFrame_gcPtrs);
    for (unsigned i = 0; i < count; i++)
        ret[i] = read_pointer(reader, read_pointer(reader, slots + (uint64_t)i * reader->pointer_size));
    return reader_failed(reader) ? 0 : count;
}
