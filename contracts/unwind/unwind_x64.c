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
#include "contracts/unwind/unwind_info_x64.h"
#include "contracts/unwind/unwind_rows.h"

/* What a call preserves on System V systems, besides the stack pointer. */
static const uint64_t preserved = 1u << RBX | 1u << RBP | 1u << R12 | 1u << 13 | 1u << 14 | 1u << R15;

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
static uint64_t frame_base(struct reader *reader, const struct unwind_info_x64 *info, uint64_t offset,
                           const struct registers *registers)
{
    if (!unwind_info_x64_has_frame(info, offset))
        return registers->values[RSP];
    return value_of(reader, registers, info->frame_register) - info->frame_offset;
}

/* Undoes one code. */
static void undo(struct reader *reader, const struct unwind_info_x64 *info, unsigned i, uint64_t frame, bool *has_pc,
                 struct registers *registers)
{
    unsigned operand = code_info(info, i), number = dwarf_numbers_x64[operand];
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

static void unwind_prolog(struct reader *reader, const struct unwind_function *function, struct unwind_info_x64 *info,
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
        if (reader_failed(reader) || !unwind_info_x64_read(reader, address, info))
            return;
    }
    if (!has_pc)
        pop(reader, registers, RIP);
}

/* ---- Epilogs ---------------------------------------------------------------------------------------------------- */

/* If pc is in an epilog, runs it to its end and returns true. */
static bool unwind_epilog(struct reader *reader, const struct unwind_function *function,
                          const struct unwind_info_x64 *info, uint64_t pc, struct registers *registers)
{
    uint8_t code[EPILOG_WINDOW] = {0};
    struct epilog_instruction_x64 instruction;
    unsigned size = (unsigned)MIN(function->end - pc, (uint64_t)EPILOG_CODE_MAX);
    /* Code that is missing is taken for none of an epilog, as the runtime does: few frames stop in one. */
    if (!reader_try_copy(reader, pc, code, size))
        return false;
    int end = epilog_x64_length(code, size, pc, function, info);
    if (end < 0)
        return false;
    for (unsigned at = 0; at < (unsigned)end; at += instruction.length) {
        instruction = epilog_instruction_x64_at(code + at);
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
    struct unwind_info_x64 info;
    uint64_t pc = value_of(reader, registers, RIP), sp = value_of(reader, registers, RSP);
    if (pc < function->begin || pc > function->end) /* a return address may be the end */
        reader_fail(reader, CDACQ_ERR_CORRUPT, pc, "program counter outside its function");
    if (reader_failed(reader) || !unwind_info_x64_read(reader, function->unwind_data, &info))
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

const struct unwinder unwinder_x64 = {
    .pc = RIP, .sp = RSP, .unwind = unwind, .rows = unwind_rows_x64, .machine = &frame_machine_x64};
