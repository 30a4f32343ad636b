/*
 * unwind_x86.c: the x86 row of unwinder.h. Here no unwind codes describe the frame: the GC info has its size, the saved
 * registers, how long the prolog is, and where epilogs begin. Of a prolog or epilog that is half done the instructions
 * show what they have done; one of an unknown form is an error. The callee removes its arguments from the stack.
 *
 * A funclet has no frame of its own: ebp is that of the method's body, and nothing is saved. What it has pushed for its
 * calls is in the GC info. Where the System V ABI holds, a funclet begins with `sub esp, 12` to align the stack.
 *
 * Source: dotnet/runtime src/coreclr/vm/gc_unwind_x86.inl; src/coreclr/jit/codegenxarch.cpp.
 */
#include "contracts/unwind/gc_info_x86.h"
#include "contracts/unwind/unwinder.h"

enum { EAX, EBX = 3, ESP, EBP, ESI, EDI, EIP };

/* What a call preserves, besides the stack pointer. */
static const uint64_t preserved = 1u << EBX | 1u << EBP | 1u << ESI | 1u << EDI;

enum {
    CODE_MAX = 8,          /* bytes of an instruction that are looked at */
    INSTRUCTIONS_MAX = 16, /* of a prolog's part that builds the frame, or of an epilog */
    SAVED_MAX = 4,         /* registers */
    FUNCLET_PADDING = 12,
};

/* ---- Instructions of prologs and epilogs ------------------------------------------------------------------------ */

enum kind { UNKNOWN, PUSH, POP, ADD_SP, SET_FP, SET_SP, SET_SP_LEA, SET_SP_EAX, ALIGN, PROBE, NEUTRAL, RETURN, JUMP };

struct instruction {
    enum kind kind;
    unsigned number; /* register of PUSH and POP */
    int32_t amount;  /* of ADD_SP, the displacement of SET_SP_LEA and PROBE */
    unsigned length;
};

static int32_t signed_at(const uint8_t *code, bool is_byte)
{
    return is_byte ? (int8_t)code[0] : (int32_t)load_u32(code, false);
}

/* An instruction with a constant of one byte or four. */
static struct instruction with_constant(enum kind kind, const uint8_t *code, unsigned at, bool is_byte)
{
    return (struct instruction){kind, 0, signed_at(code + at, is_byte), at + (is_byte ? 1 : 4)};
}

static struct instruction decode_group(const uint8_t *code)
{
    bool is_byte = code[0] == 0x83;
    if (code[1] == 0xc4)
        return with_constant(ADD_SP, code, 2, is_byte);
    if (code[1] == 0xec) {
        struct instruction sub = with_constant(ADD_SP, code, 2, is_byte);
        sub.amount = (int32_t)(0u - (uint32_t)sub.amount);
        return sub;
    }
    return with_constant(code[1] == 0xe4 ? ALIGN : UNKNOWN, code, 2, is_byte);
}

static struct instruction decode(const uint8_t *code)
{
    uint32_t two = load_u16(code, false);
    if (code[0] >= 0x50 && code[0] < 0x58)
        return (struct instruction){PUSH, code[0] & 7, 0, 1};
    if (code[0] >= 0x58 && code[0] < 0x60)
        return (struct instruction){POP, code[0] & 7, 0, 1};
    if (code[0] == 0x81 || code[0] == 0x83)
        return decode_group(code);
    if (two == 0xec8b || two == 0xe589)
        return (struct instruction){SET_FP, 0, 0, 2};
    if (two == 0xe58b || two == 0xec89)
        return (struct instruction){SET_SP, 0, 0, 2};
    if (two == 0xe08b || two == 0xc489)
        return (struct instruction){SET_SP_EAX, 0, 0, 2};
    if (two == 0x658d || two == 0xa58d) /* lea esp, [ebp + n] */
        return with_constant(SET_SP_LEA, code, 2, two == 0x658d);
    if ((two == 0x448d || two == 0x848d) && code[2] == 0x24) /* lea eax, [esp + n] */
        return with_constant(PROBE, code, 3, two == 0x448d);
    if (code[0] == 0xc3 || code[0] == 0xc2)
        return (struct instruction){RETURN, 0, 0, code[0] == 0xc3 ? 1 : 3};
    if (code[0] == 0xe9 || code[0] == 0xeb || two == 0x25ff || (code[0] == 0xff && (code[1] & 0xf8) == 0xe0))
        return (struct instruction){JUMP, 0, 0, 1};
    if (code[0] == 0x90 || code[0] == 0xcc)
        return (struct instruction){NEUTRAL, 0, 0, 1};
    if (two == 0x0485 && code[2] == 0x24) /* test [esp], eax */
        return (struct instruction){NEUTRAL, 0, 0, 3};
    if (two == 0x8485 && code[2] == 0x24) /* test [esp + n], eax */
        return (struct instruction){NEUTRAL, 0, 0, 7};
    if (two == 0xf8c5 && code[2] == 0x77) /* vzeroupper */
        return (struct instruction){NEUTRAL, 0, 0, 3};
    if (code[0] == 0xe8) /* of the function that probes the stack */
        return (struct instruction){NEUTRAL, 0, 0, 5};
    if (two == 0x15ff)
        return (struct instruction){NEUTRAL, 0, 0, 6};
    return (struct instruction){UNKNOWN, 0, 0, 0};
}

/* The last instructions of a page may be shorter than what is read. */
static struct instruction instruction_at(struct reader *reader, uint64_t address)
{
    uint8_t code[CODE_MAX] = {0};
    if (!reader_try_copy(reader, address, code, sizeof code))
        for (unsigned i = 0; i < sizeof code && reader_try_copy(reader, address + i, code + i, 1); i++)
            continue;
    return decode(code);
}

static bool unknown_code(struct reader *reader, uint64_t address, const char *what)
{
    return reader_fail(reader, CDACQ_ERR_CORRUPT, address, what);
}

/* ---- The stack -------------------------------------------------------------------------------------------------- */

static uint32_t word_at(struct reader *reader, uint64_t address)
{
    return read_u32(reader, (uint32_t)address);
}

static void pop(struct reader *reader, struct registers *registers, unsigned number)
{
    register_set(registers, number, word_at(reader, registers->values[ESP]));
    registers->values[ESP] = (uint32_t)(registers->values[ESP] + 4);
}

/* The return address is where the stack pointer is. */
static void return_from(struct reader *reader, const struct gc_info_x86 *info, struct registers *registers)
{
    pop(reader, registers, EIP);
    registers->values[ESP] = (uint32_t)(registers->values[ESP] + (info->caller_pops ? 0 : info->arguments));
}

static bool has_frame_pointer(const struct gc_info_x86 *info)
{
    return info->has_frame || info->double_aligned;
}

/* The registers that a prolog saves, in its order; with a frame pointer ebp is not among them. */
static unsigned saved_registers(const struct gc_info_x86 *info, uint8_t ret[SAVED_MAX])
{
    unsigned count = 0;
    if (info->saves_edi)
        ret[count++] = EDI;
    if (info->saves_esi)
        ret[count++] = ESI;
    if (info->saves_ebx)
        ret[count++] = EBX;
    if (info->saves_ebp && !has_frame_pointer(info))
        ret[count++] = EBP;
    return count;
}

/* ---- Frames that are whole, or as far as the prolog has come ----------------------------------------------------- */

/* ebp is set, and the first `count` registers are saved below it. */
static void leave_by_frame_pointer(struct reader *reader, const struct gc_info_x86 *info, bool aligned, unsigned count,
                                   struct registers *registers)
{
    uint8_t saved[SAVED_MAX];
    saved_registers(info, saved);
    uint64_t fp = register_needed(reader, registers, EBP, registers->values[EIP]),
             at = aligned ? fp & ~UINT64_C(7) : fp;
    for (unsigned i = 0; i < count; i++)
        register_set(registers, saved[i], word_at(reader, at - 4 * (i + 1)));
    registers->values[ESP] = fp;
    pop(reader, registers, EBP);
    return_from(reader, info, registers);
}

/* The stack pointer is at the last of `count` registers that are saved. */
static void leave_by_stack_pointer(struct reader *reader, const struct gc_info_x86 *info, unsigned count,
                                   struct registers *registers)
{
    uint8_t saved[SAVED_MAX];
    saved_registers(info, saved);
    while (count--)
        pop(reader, registers, saved[count]);
    return_from(reader, info, registers);
}

static void leave_body(struct reader *reader, const struct gc_info_x86 *info, uint32_t offset,
                       struct registers *registers)
{
    uint8_t saved[SAVED_MAX];
    uint32_t pushed;
    unsigned count = saved_registers(info, saved);
    if (has_frame_pointer(info)) {
        leave_by_frame_pointer(reader, info, info->double_aligned, count, registers);
    } else if (gc_info_x86_pushed(reader, info, offset, &pushed)) {
        registers->values[ESP] = (uint32_t)(registers->values[ESP] + pushed + info->frame_size);
        leave_by_stack_pointer(reader, info, count, registers);
    }
}

/* ---- Prologs ---------------------------------------------------------------------------------------------------- */

/* How far a prolog has come. */
struct prolog {
    unsigned count;     /* registers saved, in order */
    int64_t depth;      /* bytes between the stack pointer and the return address */
    int64_t eax;        /* what depth would be with the stack pointer in eax */
    bool has_pushed_fp; /* it is the frame pointer's push that comes first */
    bool is_framed, is_aligned;
};

static bool is_whole(const struct gc_info_x86 *info, unsigned to_save, const struct prolog *prolog)
{
    if (prolog->count < to_save || prolog->is_framed != has_frame_pointer(info))
        return false;
    return prolog->is_framed || prolog->depth == 4 * (int64_t)to_save + info->frame_size;
}

/* Applies an instruction; false if a prolog does not have it here. */
static bool apply(const struct instruction *instruction, const uint8_t *saved, unsigned to_save, bool frame_first,
                  struct prolog *prolog)
{
    switch (instruction->kind) {
    case PUSH:
        prolog->depth += 4;
        if (frame_first && !prolog->is_framed) {
            bool is_first = !prolog->has_pushed_fp;
            prolog->has_pushed_fp = true;
            return is_first && instruction->number == EBP;
        }
        if (prolog->count < to_save)
            return instruction->number == saved[prolog->count++];
        return true;
    case POP: /* of what was pushed around the probe */
        prolog->depth -= 4;
        return prolog->depth >= 0 && prolog->count == to_save;
    case ADD_SP:
        prolog->depth -= instruction->amount;
        return instruction->amount < 0;
    case SET_FP:
        prolog->is_framed = true;
        return frame_first && prolog->has_pushed_fp;
    case ALIGN:
        prolog->is_aligned = true;
        return prolog->is_framed && instruction->amount == -8;
    case PROBE:
        prolog->eax = prolog->depth - instruction->amount;
        return true;
    case SET_SP_EAX:
        prolog->depth = prolog->eax;
        return true;
    default:
        return instruction->kind == NEUTRAL;
    }
}

/* Undoes a prolog that is half done. False if the frame is whole. */
static bool unwind_prolog(struct reader *reader, const struct unwind_function *function, const struct gc_info_x86 *info,
                          uint32_t offset, struct registers *registers)
{
    uint8_t saved[SAVED_MAX];
    unsigned to_save = saved_registers(info, saved);
    struct prolog prolog = {0};
    uint32_t at = 0;
    for (unsigned i = 0; at < offset && !is_whole(info, to_save, &prolog); i++) {
        struct instruction instruction = instruction_at(reader, function->method + at);
        if (i == INSTRUCTIONS_MAX || !apply(&instruction, saved, to_save, has_frame_pointer(info), &prolog))
            return unknown_code(reader, function->method + at, "prolog: instruction");
        at += instruction.length;
    }
    if (at > offset)
        return unknown_code(reader, function->method + offset, "prolog: within an instruction");
    if (is_whole(info, to_save, &prolog))
        return false;
    if (prolog.is_framed) {
        leave_by_frame_pointer(reader, info, prolog.is_aligned, prolog.count, registers);
        return true;
    }
    registers->values[ESP] = (uint32_t)(registers->values[ESP] + (uint64_t)(prolog.depth - 4 * (int64_t)prolog.count));
    if (prolog.has_pushed_fp) {
        registers->values[ESP] = (uint32_t)(registers->values[ESP] - 4);
        pop(reader, registers, EBP);
    }
    leave_by_stack_pointer(reader, info, prolog.count, registers);
    return true;
}

/* ---- Epilogs ---------------------------------------------------------------------------------------------------- */

static bool is_of_epilog(enum kind kind)
{
    return kind == POP || kind == ADD_SP || kind == SET_SP || kind == SET_SP_LEA || kind == NEUTRAL;
}

/* Whether `offset` is at an instruction of the epilog that begins at `start`, after the first. */
static bool is_in_epilog(struct reader *reader, const struct unwind_function *function, const struct gc_info_x86 *info,
                         uint32_t start, uint32_t offset)
{
    uint32_t at = start;
    for (unsigned i = 0; i < INSTRUCTIONS_MAX && at < offset; i++) {
        struct instruction instruction = instruction_at(reader, function->method + at);
        if (!is_of_epilog(instruction.kind))
            break;
        at += instruction.length;
    }
    if (at != offset && offset - start < info->epilog_size)
        unknown_code(reader, function->method + at, "epilog: instruction");
    return at == offset && !reader_failed(reader);
}

/* Does what remains of an epilog. False if the program counter is in none, or at the first instruction of one. */
static bool unwind_epilog(struct reader *reader, const struct unwind_function *function, const struct gc_info_x86 *info,
                          uint32_t offset, struct registers *registers)
{
    uint32_t start;
    uint64_t pc = registers->values[EIP], at = pc;
    if (!gc_info_x86_epilog(reader, info, offset, &start) || !is_in_epilog(reader, function, info, start, offset))
        return false;
    for (unsigned i = 0; i < INSTRUCTIONS_MAX && !reader_failed(reader); i++) {
        struct instruction instruction = instruction_at(reader, at);
        uint64_t *sp = &registers->values[ESP];
        at += instruction.length;
        if (instruction.kind == RETURN || instruction.kind == JUMP) {
            return_from(reader, info, registers);
            return true;
        }
        if (instruction.kind == POP)
            pop(reader, registers, instruction.number);
        else if (instruction.kind == ADD_SP)
            *sp = (uint32_t)(*sp + (uint64_t)instruction.amount);
        else if (instruction.kind == SET_SP || instruction.kind == SET_SP_LEA)
            *sp = (uint32_t)(register_needed(reader, registers, EBP, pc) + (uint64_t)instruction.amount);
        else if (instruction.kind != NEUTRAL)
            break;
    }
    return unknown_code(reader, at, "epilog: instruction");
}

/* ---- Funclets --------------------------------------------------------------------------------------------------- */

/* Methods with funclets are interruptible everywhere: without that what a funclet has pushed would not be known. */
static void leave_funclet(struct reader *reader, const struct unwind_function *function, const struct gc_info_x86 *info,
                          uint32_t offset, struct registers *registers)
{
    static const uint8_t align[] = {0x83, 0xec, FUNCLET_PADDING};
    uint8_t code[sizeof align];
    uint32_t pushed, at_begin;
    uint32_t begin = (uint32_t)(function->begin - function->method);
    if (!info->interruptible)
        reader_fail(reader, CDACQ_ERR_CORRUPT, registers->values[EIP], "GC info: no pushes of funclets");
    if (reader_failed(reader) || !gc_info_x86_pushed(reader, info, offset, &pushed))
        return;
    bool aligns = reader_try_copy(reader, function->begin, code, sizeof code) && !memcmp(code, align, sizeof align) &&
                  gc_info_x86_pushed(reader, info, begin + sizeof align, &at_begin) && !at_begin;
    if (aligns && offset != begin && instruction_at(reader, registers->values[EIP]).kind != RETURN)
        pushed += FUNCLET_PADDING;
    registers->values[ESP] = (uint32_t)(registers->values[ESP] + pushed);
    pop(reader, registers, EIP);
    registers_keep(registers, 1u << EBP | 1u << ESP | 1u << EIP);
}

/* ----------------------------------------------------------------------------------------------------------------- */

static bool unwind(struct reader *reader, const struct unwind_function *function, bool interrupted,
                   struct registers *registers)
{
    struct registers caller = *registers;
    struct gc_info_x86 info;
    uint64_t pc = register_needed(reader, registers, EIP, 0), sp = register_needed(reader, registers, ESP, pc);
    /* A return address may be the end. */
    if (pc < function->begin || pc > function->end || function->method > function->begin)
        reader_fail(reader, CDACQ_ERR_CORRUPT, pc, "program counter outside its function");
    if (reader_failed(reader) || !gc_info_x86_read(reader, function->gc_info, function->gc_info_version, &info))
        return false;
    uint32_t offset = (uint32_t)(pc - function->method);
    if (pc - function->method > info.code_size)
        reader_fail(reader, CDACQ_ERR_CORRUPT, pc, "program counter outside its function");
    if (function->funclet)
        leave_funclet(reader, function, &info, offset, &caller);
    else if (!interrupted ||
             ((offset >= info.prolog_size || !unwind_prolog(reader, function, &info, offset, &caller)) &&
              !reader_failed(reader) && !unwind_epilog(reader, function, &info, offset, &caller)))
        leave_body(reader, &info, offset, &caller);
    if (!reader_failed(reader) && caller.values[ESP] <= sp)
        reader_fail(reader, CDACQ_ERR_CORRUPT, sp, "stack frame that does not move up the stack");
    if (reader_failed(reader))
        return false;
    registers_keep(&caller, preserved | 1u << ESP | 1u << EIP);
    *registers = caller;
    return true;
}

const struct unwinder unwinder_x86 = {.pc = EIP, .sp = ESP, .unwind = unwind};
