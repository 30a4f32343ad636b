/*
 * unwind_arm64.c: the arm64 row of unwinder.h. Unwind data are a list of codes, one for each instruction of the prolog,
 * the last one first; undoing them restores the caller's registers. An epilog has an index into the same list: its
 * instructions undo the prolog in that order, so of an epilog that is half done the codes of the instructions that have
 * run are skipped. Entries whose prolog is a usual one have no unwind data: the entry itself has them packed, and the
 * codes are made from it. Vector registers are not followed.
 * A funclet saves all that it changes of what calls preserve.
 *
 * Source: Microsoft's "ARM64 exception handling"; dotnet/runtime src/coreclr/unwinder/arm64/unwinder.cpp.
 */
#include "contracts/unwind/codes_arm64.h"
#include "contracts/unwind/unwind_rows.h"

/* What a call preserves, besides the stack pointer. */
static const uint64_t preserved = ((UINT64_C(1) << (X28 - X19 + 1)) - 1) << X19 | UINT64_C(1) << FP | UINT64_C(1) << LR;

/* The first code to undo. */
static unsigned first_code(struct reader *reader, const struct xdata *codes)
{
    unsigned prolog = arm64_instruction_count(codes, 0);
    if (codes->position < prolog)
        return arm64_skip_codes(codes, 0, prolog - codes->position);
    if (codes->one_epilog) {
        unsigned count = arm64_instruction_count(codes, codes->epilog) + 1; /* and the return */
        if (codes->position < codes->length && codes->length - codes->position <= count)
            return arm64_skip_codes(codes, codes->epilog, codes->position + count - codes->length);
        return 0;
    }
    for (unsigned i = 0; i < codes->scope_count && reader_step(reader, "epilog scopes"); i++) {
        uint32_t scope = read_u32(reader, codes->scopes + 4 * (uint64_t)i);
        uint64_t start = scope & 0x3ffff;
        unsigned at = scope >> 22;
        if (reader_failed(reader) || codes->position < start)
            break; /* they are in order */
        if (codes->position - start <= arm64_instruction_count(codes, at))
            return arm64_skip_codes(codes, at, codes->position - start);
    }
    return 0;
}

/* ---- Undoing ---------------------------------------------------------------------------------------------------- */

/* `count` registers from `number` on were stored at `offset` from the stack pointer, or with a decrement by -offset. */
static void restore(struct reader *reader, struct registers *registers, int64_t offset, unsigned number, unsigned count)
{
    uint64_t address = registers->values[SP] + (offset > 0 ? (uint64_t)offset : 0);
    if (number + count > LR + 1)
        reader_fail(reader, CDACQ_ERR_CORRUPT, registers->values[PC], "unwind code: registers");
    for (unsigned i = 0; i < count && !reader_failed(reader); i++)
        register_set(registers, number + i, read_u64(reader, address + 8 * i));
    if (offset < 0)
        registers->values[SP] -= (uint64_t)offset;
}

/* Vector registers only move the stack pointer, where they were stored with a decrement. */
static void skip_vectors(struct registers *registers, unsigned decrement)
{
    registers->values[SP] += decrement;
}

/* save_any_reg: what can be a register of any number, in any way. */
static void undo_any(struct reader *reader, const uint8_t *code, unsigned pairs, struct registers *registers)
{
    unsigned pair = code[1] >> 6 & 1, decrements = code[1] >> 5 & 1, number = code[1] & 31, kind = code[2] >> 6;
    unsigned scale = decrements || pair || kind == 2 ? 16 : 8, offset = ((code[2] & 63) + decrements) * scale;
    if (code[1] & 0x80 || kind == 3)
        reader_fail(reader, CDACQ_ERR_CORRUPT, registers->values[PC], "unwind code: save_any_reg");
    if (kind == 0)
        restore(reader, registers, decrements ? -(int64_t)offset : (int64_t)offset, number, 1 + pair + 2 * pairs);
    else
        skip_vectors(registers, decrements ? offset : 0);
}

static uint64_t frame_pointer(struct reader *reader, const struct registers *registers)
{
    return register_needed(reader, registers, FP, registers->values[PC]);
}

/* Undoes a code that saves registers of the usual kinds, 0x20 to 0xdf. `pairs`: more pairs follow the first. */
static void undo_save(struct reader *reader, const uint8_t *code, unsigned pairs, struct registers *registers)
{
    unsigned first = code[0], low6 = code[1] & 63, low5 = code[1] & 31, number4 = (first & 3) << 2 | code[1] >> 6;
    if (first < 0x40) /* save_r19r20_x */
        restore(reader, registers, -8 * (int64_t)(first & 31), X19, 2 + 2 * pairs);
    else if (first < 0x80) /* save_fplr */
        restore(reader, registers, 8 * (int64_t)(first & 63), FP, 2);
    else if (first < 0xc0) /* save_fplr_x */
        restore(reader, registers, -8 * (int64_t)((first & 63) + 1), FP, 2);
    else if (first < 0xc8) /* alloc_m */
        registers->values[SP] += 16 * (uint64_t)((first & 7) << 8 | code[1]);
    else if (first < 0xcc) /* save_regp */
        restore(reader, registers, 8 * (int64_t)low6, X19 + number4, 2 + 2 * pairs);
    else if (first < 0xd0) /* save_regp_x */
        restore(reader, registers, -8 * (int64_t)(low6 + 1), X19 + number4, 2 + 2 * pairs);
    else if (first < 0xd4) /* save_reg */
        restore(reader, registers, 8 * (int64_t)low6, X19 + number4, 1);
    else if (first < 0xd6) /* save_reg_x */
        restore(reader, registers, -8 * (int64_t)(low5 + 1), X19 + ((first & 1) << 3 | code[1] >> 5), 1);
    else if (first < 0xd8) { /* save_lrpair */
        restore(reader, registers, 8 * (int64_t)low6, X19 + 2 * ((first & 1) << 2 | code[1] >> 6), 1);
        restore(reader, registers, 8 * (int64_t)low6 + 8, LR, 1);
    } else if (first >= 0xda && first < 0xdc) /* save_fregp_x */
        skip_vectors(registers, 8 * (low6 + 1));
    else if (first == 0xde) /* save_freg_x */
        skip_vectors(registers, 8 * (low5 + 1));
    else if (first == 0xdf)
        reader_fail(reader, CDACQ_ERR_CORRUPT, registers->values[PC], "unwind code");
}

static void undo_all(struct reader *reader, const struct xdata *codes, unsigned at, struct registers *registers)
{
    unsigned pairs = 0; /* of save_next codes before a save */
    uint64_t *sp = &registers->values[SP];
    for (; at < codes->size && reader_step(reader, "unwind codes"); at += arm64_code_size(codes->bytes[at])) {
        const uint8_t *code = codes->bytes + at;
        if (code[0] == OP_END)
            return;
        if (code[0] == OP_SAVE_NEXT) {
            pairs++;
            continue;
        }
        if (code[0] < 0x20)
            *sp += 16 * (uint64_t)code[0];
        else if (code[0] < OP_ALLOC_L)
            undo_save(reader, code, pairs, registers);
        else if (code[0] == OP_ALLOC_L)
            *sp += 16 * (uint64_t)(code[1] << 16 | code[2] << 8 | code[3]);
        else if (code[0] == OP_SET_FP)
            *sp = frame_pointer(reader, registers);
        else if (code[0] == OP_ADD_FP)
            *sp = frame_pointer(reader, registers) - 8 * (uint64_t)code[1];
        else if (code[0] == OP_SAVE_ANY_REG)
            undo_any(reader, code, pairs, registers);
        else if (code[0] == OP_PAC)
            registers->values[LR] = target_unsigned_address(reader->target, registers->values[LR]);
        else if (code[0] >= 0xe8 && code[0] < 0xf8)
            reader_fail(reader, CDACQ_ERR_CORRUPT, registers->values[PC], "unwind code of a frame of the system");
        pairs = 0;
    }
}

/* ----------------------------------------------------------------------------------------------------------------- */

static bool unwind(struct reader *reader, const struct unwind_function *function, bool interrupted,
                   struct registers *registers)
{
    struct registers caller = *registers;
    uint64_t pc = register_needed(reader, registers, PC, 0), sp = register_needed(reader, registers, SP, pc);
    if (pc < function->begin || pc > function->end || (pc - function->begin) % 4) /* a return address may be the end */
        reader_fail(reader, CDACQ_ERR_CORRUPT, pc, "program counter outside its function");
    if (reader_failed(reader))
        return false;
    struct xdata codes;
    if (!arm64_codes_read(reader, function, &codes))
        return false;
    codes.position = (pc - function->begin) / 4;
    unsigned first = interrupted ? first_code(reader, &codes) : 0;
    undo_all(reader, &codes, first, &caller);
    uint64_t return_address = target_unsigned_address(reader->target, register_needed(reader, &caller, LR, pc));
    /* A function that has saved nothing yet has its caller's stack pointer. */
    if (caller.values[SP] < sp || (caller.values[SP] == sp && !interrupted))
        reader_fail(reader, CDACQ_ERR_CORRUPT, sp, "stack frame that does not move up the stack");
    if (reader_failed(reader))
        return false;
    register_set(&caller, PC, return_address);
    registers_keep(&caller, preserved | UINT64_C(1) << SP | UINT64_C(1) << PC);
    *registers = caller;
    return true;
}

const struct unwinder unwinder_arm64 = {
    .pc = PC, .sp = SP, .unwind = unwind, .rows = unwind_rows_arm64, .machine = &frame_machine_arm64};
