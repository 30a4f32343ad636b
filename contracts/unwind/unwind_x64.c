/*
 * unwind_x64.c: the x64 row of unwinder.h. UNWIND_INFO describes a prolog as a list of codes, the last instruction
 * first; undoing them restores the caller's registers. Of a prolog that is half done, the codes of the instructions
 * that have run are undone. An epilog is described by its instructions alone, which are executed here to their end.
 *
 * A method that replaced another one on its stack frame (OSR) has codes at offset 0 for the frame of the replaced
 * method, so they are always undone; and its epilogs pop both frames, one after the other.
 *
 * A funclet may change registers that a call preserves without saving them: the method's body has saved what the method
 * changes. What the data of a funclet do not restore is therefore not known, except for the frame pointer, which the
 * funclet shares with the body.
 *
 * Source: Microsoft's "x64 exception handling"; dotnet/runtime src/coreclr/unwinder/amd64/unwinder.cpp, which also has
 * UWOP_SET_FPREG_LARGE of non-Windows systems.
 */
#include "contracts/unwind/unwinder.h"

enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, R12 = 12, R15 = 15, RIP };

/* From the numbers of instructions and unwind codes to those of DWARF. */
static const uint8_t dwarf_numbers[16] = {RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, 8, 9, 10, 11, 12, 13, 14, 15};

/* What a call preserves on System V systems, besides the stack pointer. */
static const uint64_t preserved = 1u << RBX | 1u << RBP | 1u << R12 | 1u << 13 | 1u << 14 | 1u << R15;

enum unwind_operation {
    UWOP_PUSH_NONVOL,
    UWOP_ALLOC_LARGE,
    UWOP_ALLOC_SMALL,
    UWOP_SET_FPREG,
    UWOP_SAVE_NONVOL,
    UWOP_SAVE_NONVOL_FAR,
    UWOP_EPILOG,
    UWOP_SPARE_CODE,
    UWOP_SAVE_XMM128,
    UWOP_SAVE_XMM128_FAR,
    UWOP_PUSH_MACHFRAME,
    UWOP_SET_FPREG_LARGE,
};

enum {
    CHAININFO = 4, /* flags */
    CHAIN_MAX = 32,
    CODES_MAX = 255,
    FUNCTION_SIZE = 12, /* of a RUNTIME_FUNCTION */
    INSTRUCTION_MAX = 16,
    EPILOG_WINDOW = 64, /* bytes of instructions; two frames' worth of pops take some 50 */
};

/* ---- UNWIND_INFO ------------------------------------------------------------------------------------------------ */

struct unwind_info {
    unsigned flags, prolog_size, code_count;
    unsigned frame_register; /* DWARF number; 0, which is RAX and never one, where there is none */
    uint32_t frame_offset;   /* bytes */
    uint8_t codes[2 * (CODES_MAX + 1)];
    uint32_t chained[3]; /* with CHAININFO: begin, end, unwind data */
};

static unsigned code_offset(const struct unwind_info *info, unsigned i)
{
    return info->codes[2 * i];
}

static enum unwind_operation code_operation(const struct unwind_info *info, unsigned i)
{
    return info->codes[2 * i + 1] & 15;
}

static unsigned code_info(const struct unwind_info *info, unsigned i)
{
    return info->codes[2 * i + 1] >> 4;
}

/* The number in the slots after a code: in one, or in two. */
static uint32_t operand16(const struct unwind_info *info, unsigned i)
{
    return load_u16(info->codes + 2 * (i + 1), false);
}

static uint32_t operand32(const struct unwind_info *info, unsigned i)
{
    return load_u32(info->codes + 2 * (i + 1), false);
}

/* Slots of a code with its operand; 0 for a code that does not exist. */
static unsigned code_slots(const struct unwind_info *info, unsigned i)
{
    static const uint8_t slots[] = {1, 0, 1, 1, 2, 3, 2, 3, 2, 3, 1, 3};
    enum unwind_operation operation = code_operation(info, i);
    if (operation == UWOP_ALLOC_LARGE)
        return code_info(info, i) ? 3 : 2;
    return (size_t)operation < ARRAY_SIZE(slots) ? slots[operation] : 0;
}

/* Checks that every code is known and has its operand, so that what follows need not; and finds the frame offset. */
static bool check_codes(struct unwind_info *info)
{
    unsigned i = 0, slots;
    for (; i < info->code_count; i += slots) {
        slots = code_slots(info, i);
        if (!slots || slots > info->code_count - i)
            return false;
        if (code_operation(info, i) == UWOP_SET_FPREG_LARGE)
            info->frame_offset = 16 * operand32(info, i);
    }
    return true;
}

static bool read_unwind_info(struct reader *reader, uint64_t address, struct unwind_info *ret)
{
    uint8_t header[4], chained[FUNCTION_SIZE] = {0};
    if (!reader_copy(reader, address, header, sizeof header))
        return false;
    *ret = (struct unwind_info){
        .flags = header[0] >> 3,
        .prolog_size = header[1],
        .code_count = header[2],
        .frame_register = header[3] & 15 ? dwarf_numbers[header[3] & 15] : 0,
        .frame_offset = 16 * (header[3] >> 4),
    };
    unsigned slots = (ret->code_count + 1) & ~1u;
    if ((header[0] & 7) != 1)
        return reader_fail(reader, CDACQ_ERR_CORRUPT, address, "UNWIND_INFO.Version");
    if (!reader_copy(reader, address + 4, ret->codes, 2 * (size_t)slots))
        return false;
    if (ret->flags & CHAININFO && !reader_copy(reader, address + 4 + 2 * slots, chained, sizeof chained))
        return false;
    for (unsigned i = 0; i < 3; i++)
        ret->chained[i] = load_u32(chained + 4 * i, false);
    return check_codes(ret) || reader_fail(reader, CDACQ_ERR_CORRUPT, address, "UNWIND_INFO.UnwindCode");
}

/* ---- Reading registers and the stack ---------------------------------------------------------------------------- */

static uint64_t value_of(struct reader *reader, const struct registers *registers, unsigned number)
{
    return register_needed(reader, registers, number, registers->values[RIP]);
}

static void restore(struct reader *reader, struct registers *registers, unsigned number, uint64_t address)
{
    register_set(registers, number, read_u64(reader, address));
}

static void pop(struct reader *reader, struct registers *registers, unsigned number)
{
    restore(reader, registers, number, registers->values[RSP]);
    registers->values[RSP] += 8;
}

/* ---- Prologs ---------------------------------------------------------------------------------------------------- */

/* What saved registers are stored relative to: the frame register once it is set, before that the stack pointer. */
static uint64_t frame_base(struct reader *reader, const struct unwind_info *info, uint64_t offset,
                           const struct registers *registers)
{
    bool is_set = info->frame_register != 0;
    if (is_set && offset < info->prolog_size && !(info->flags & CHAININFO)) {
        is_set = false;
        for (unsigned i = 0; i < info->code_count; i += code_slots(info, i)) {
            enum unwind_operation operation = code_operation(info, i);
            if (operation == UWOP_SET_FPREG || operation == UWOP_SET_FPREG_LARGE)
                is_set = offset >= code_offset(info, i);
        }
    }
    return is_set ? value_of(reader, registers, info->frame_register) - info->frame_offset : registers->values[RSP];
}

/* Undoes one code. */
static void undo(struct reader *reader, const struct unwind_info *info, unsigned i, uint64_t frame, bool *has_pc,
                 struct registers *registers)
{
    unsigned operand = code_info(info, i), number = dwarf_numbers[operand];
    uint64_t *sp = &registers->values[RSP];
    switch (code_operation(info, i)) {
    case UWOP_PUSH_NONVOL:
        pop(reader, registers, number);
        break;
    case UWOP_ALLOC_LARGE:
        *sp += operand ? operand32(info, i) : 8 * operand16(info, i);
        break;
    case UWOP_ALLOC_SMALL:
        *sp += 8 * operand + 8;
        break;
    case UWOP_SET_FPREG:
    case UWOP_SET_FPREG_LARGE:
        *sp = value_of(reader, registers, info->frame_register) - info->frame_offset;
        break;
    case UWOP_SAVE_NONVOL:
        restore(reader, registers, number, frame + 8 * operand16(info, i));
        break;
    case UWOP_SAVE_NONVOL_FAR:
        restore(reader, registers, number, frame + operand32(info, i));
        break;
    case UWOP_PUSH_MACHFRAME: {
        uint64_t machine_frame = *sp + (operand ? 8 : 0);
        restore(reader, registers, RIP, machine_frame);
        restore(reader, registers, RSP, machine_frame + 24);
        *has_pc = true;
        break;
    }
    default: /* XMM registers are not followed; the others do nothing */
        break;
    }
}

static void unwind_prolog(struct reader *reader, const struct unwind_function *function, struct unwind_info *info,
                          uint64_t pc, struct registers *registers)
{
    uint64_t begin = function->begin;
    uint64_t frame = frame_base(reader, info, pc - begin, registers);
    bool has_pc = false;
    for (unsigned chain = 0; reader_step(reader, "UNWIND_INFO"); chain++) {
        for (unsigned i = 0; i < info->code_count; i += code_slots(info, i))
            if (pc - begin >= code_offset(info, i)) /* also where pc is before the begin of a chained function */
                undo(reader, info, i, frame, &has_pc, registers);
        if (!(info->flags & CHAININFO))
            break;
        begin = function->base + info->chained[0];
        uint64_t address = function->base + info->chained[2];
        if (chain == CHAIN_MAX)
            reader_fail(reader, CDACQ_ERR_CORRUPT, address, "UNWIND_INFO: chained too often");
        if (reader_failed(reader) || !read_unwind_info(reader, address, info))
            return;
    }
    if (!has_pc)
        pop(reader, registers, RIP);
}

/* ---- Epilogs ---------------------------------------------------------------------------------------------------- */

/* An instruction of an epilog. */
struct instruction {
    enum { OTHER, ADD_RSP, LEA_RSP, POP } kind;
    unsigned length;
    unsigned number;      /* DWARF: of the register popped, or of the one that a LEA_RSP adds to */
    int64_t displacement; /* of ADD_RSP and LEA_RSP */
};

/* A number of 1 or 4 bytes. */
static int64_t signed_number(const uint8_t *bytes, bool wide)
{
    return wide ? (int32_t)load_u32(bytes, false) : (int8_t)bytes[0];
}

static struct instruction decode(const uint8_t *bytes)
{
    unsigned rex = (bytes[0] & 0xf0) == 0x40 ? bytes[0] : 0, high = (rex & 1) << 3;
    if ((bytes[0] & 0xf8) == 0x58)
        return (struct instruction){POP, 1, dwarf_numbers[bytes[0] & 7], 0};
    if (rex && (bytes[1] & 0xf8) == 0x58)
        return (struct instruction){POP, 2, dwarf_numbers[high | (bytes[1] & 7)], 0};
    if (rex == 0x48 && (bytes[1] == 0x83 || bytes[1] == 0x81) && bytes[2] == 0xc4) {
        bool wide = bytes[1] == 0x81;
        return (struct instruction){ADD_RSP, wide ? 7 : 4, RSP, signed_number(bytes + 3, wide)};
    }
    unsigned mode = bytes[2] & 0xf8; /* a displacement of 1 or 4 bytes, RSP the destination */
    if ((rex & 0xfe) == 0x48 && bytes[1] == 0x8d && (mode == 0x60 || mode == 0xa0)) {
        bool wide = mode == 0xa0;
        return (struct instruction){LEA_RSP, wide ? 7 : 4, dwarf_numbers[high | (bytes[2] & 7)],
                                    signed_number(bytes + 3, wide)};
    }
    return (struct instruction){OTHER, 0, 0, 0};
}

/* Whether control leaves the function at the next instruction: a return, or a jump that is a call in its place. */
static bool leaves(const uint8_t *bytes, uint64_t address, const struct unwind_function *function, bool is_chained)
{
    if (bytes[0] == 0xf2) { /* REPNE may precede it */
        bytes++;
        address++;
    }
    if (bytes[0] == 0xc3 || bytes[0] == 0xc2 || (bytes[0] == 0xf3 && bytes[1] == 0xc3))
        return true;
    if (bytes[0] == 0xeb || bytes[0] == 0xe9) {
        bool wide = bytes[0] == 0xe9;
        uint64_t to = address + (wide ? 5 : 2) + (uint64_t)signed_number(bytes + 1, wide);
        bool outside =
            (to < function->begin || to >= function->end) && (to < function->other_begin || to >= function->other_end);
        return outside || (to == function->begin && !is_chained); /* to its own begin: it calls itself */
    }
    return (bytes[0] == 0xff && bytes[1] == 0x25) ||
           ((bytes[0] & 0xf8) == 0x48 && bytes[1] == 0xff && (bytes[2] & 0x38) == 0x20);
}

/* If pc is in an epilog, runs it to its end and returns true. */
static bool unwind_epilog(struct reader *reader, const struct unwind_function *function, const struct unwind_info *info,
                          uint64_t pc, struct registers *registers)
{
    uint8_t code[EPILOG_WINDOW] = {0}; /* 0 is no instruction of an epilog */
    struct instruction instruction;
    unsigned end = 0, size = (unsigned)MIN(function->end - pc, (uint64_t)EPILOG_WINDOW - INSTRUCTION_MAX);
    /* Code that is missing is taken for none of an epilog, as the runtime does: few frames stop in one. */
    if (!reader_try_copy(reader, pc, code, size))
        return false;
    for (; end < size && (instruction = decode(code + end)).kind != OTHER; end += instruction.length)
        if (instruction.kind == LEA_RSP && instruction.number != info->frame_register)
            return false;
    if (!leaves(code + end, pc + end, function, info->flags & CHAININFO))
        return false;
    for (unsigned at = 0; at < end; at += instruction.length) {
        instruction = decode(code + at);
        if (instruction.kind == POP)
            pop(reader, registers, instruction.number);
        else
            registers->values[RSP] =
                value_of(reader, registers, instruction.number) + (uint64_t)instruction.displacement;
    }
    pop(reader, registers, RIP);
    return true;
}

/* ----------------------------------------------------------------------------------------------------------------- */

static bool unwind(struct reader *reader, const struct unwind_function *function, bool interrupted,
                   struct registers *registers)
{
    struct registers caller = *registers;
    struct unwind_info info;
    uint64_t pc = value_of(reader, registers, RIP), sp = value_of(reader, registers, RSP);
    if (pc < function->begin || pc > function->end) /* a return address may be the end */
        reader_fail(reader, CDACQ_ERR_CORRUPT, pc, "program counter outside its function");
    if (reader_failed(reader) || !read_unwind_info(reader, function->unwind_data, &info))
        return false;
    if (function->funclet)
        registers_keep(&caller, 1u << RBP | 1u << RSP | 1u << RIP);
    if (!interrupted || !unwind_epilog(reader, function, &info, pc, &caller))
        unwind_prolog(reader, function, &info, pc, &caller);
    if (!reader_failed(reader) && caller.values[RSP] <= sp)
        reader_fail(reader, CDACQ_ERR_CORRUPT, sp, "stack frame that does not move up the stack");
    if (reader_failed(reader))
        return false;
    registers_keep(&caller, preserved | 1u << RSP | 1u << RIP);
    *registers = caller;
    return true;
}

const struct unwinder unwinder_x64 = {.pc = RIP, .sp = RSP, .unwind = unwind};
