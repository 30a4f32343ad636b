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
#include "contracts/unwind/xdata.h"

enum { X0, X19 = 19, X28 = 28, FP = 29, LR = 30, SP = 31, PC = 32 };

/* What a call preserves, besides the stack pointer. */
static const uint64_t preserved = ((UINT64_C(1) << (X28 - X19 + 1)) - 1) << X19 | UINT64_C(1) << FP | UINT64_C(1) << LR;

enum {
    WORDS_SHIFT = 27, /* of the header of unwind data */
    CODE_WORDS_MAX = 255,
    OP_ALLOC_L = 0xe0,
    OP_SET_FP,
    OP_ADD_FP,
    OP_NOP,
    OP_END,
    OP_END_C, /* what follows belongs to the function that this is a fragment of */
    OP_SAVE_NEXT,
    OP_SAVE_ANY_REG,
    OP_CLEAR_UNWOUND_TO_CALL = 0xec,
    OP_PAC = 0xfc,
};

/* ---- Packed entries --------------------------------------------------------------------------------------------- */

/* Codes in the order of the prolog: each is put in front of those before it. */
struct prolog {
    uint8_t bytes[64];
    unsigned size;
};

static void put(struct prolog *prolog, unsigned code, unsigned size)
{
    for (unsigned i = 0; i < size; i++)
        prolog->bytes[sizeof prolog->bytes - ++prolog->size] = (uint8_t)(code >> 8 * i);
}

static void put_alloc(struct prolog *prolog, unsigned slots)
{
    if (slots < 64)
        put(prolog, slots / 2, 1);
    else
        put(prolog, 0xc000 | slots / 2, 2);
}

/*
 * Saves a pair, the first time with a decrement of the stack pointer. `code` is that of save_regp or save_fregp.
 */
static void put_pair(struct prolog *prolog, unsigned code, unsigned number, unsigned save_slots, unsigned *slot)
{
    unsigned with_decrement = code == 0xd800 ? 0xda00 : 0xcc00;
    if (*slot == 0)
        put(prolog, with_decrement | number << 6 | (save_slots - 1), 2);
    else
        put(prolog, code | number << 6 | *slot, 2);
    *slot += 2;
}

static void expand(uint32_t entry, struct xdata *ret)
{
    unsigned fp_count = entry >> 13 & 7, int_count = entry >> 16 & 15, chain = entry >> 21 & 3;
    bool homes = entry >> 20 & 1, saves_lr = chain == 1, chained = chain >= 2, is_fragment = (entry & 3) == 2;
    unsigned frame_slots = 2 * (entry >> 23), slot = 0;
    fp_count += fp_count != 0;
    unsigned save_slots = int_count + saves_lr + fp_count;
    save_slots = (save_slots + (save_slots && homes ? 8 : 0) + 1) & ~1u;
    unsigned local_slots = frame_slots > save_slots ? frame_slots - save_slots : 0;
    struct prolog prolog = {.size = 0};
    put(&prolog, OP_END, 1);
    if (chain == 2)
        put(&prolog, OP_PAC, 1);
    bool allocated = int_count == 1 && saves_lr; /* that pair has no form with a decrement */
    if (allocated)
        put_alloc(&prolog, save_slots);
    unsigned number = 0;
    for (; number + 1 < int_count; number += 2)
        put_pair(&prolog, 0xc800, number, save_slots, &slot);
    if (int_count % 2 && saves_lr) {
        put(&prolog, 0xd600 | number / 2 << 6 | slot, 2);
        slot += 2;
    } else if (int_count % 2 || saves_lr) {
        unsigned one = int_count % 2 ? number : LR - X19;
        put(&prolog, slot ? 0xd000 | one << 6 | slot : 0xd400 | one << 5 | (save_slots - 1), 2);
        slot += 1;
    }
    for (number = 0; number + 1 < fp_count; number += 2)
        put_pair(&prolog, 0xd800, number, save_slots, &slot);
    if (fp_count % 2) {
        put(&prolog, slot ? 0xdc00 | number << 6 | slot : 0xde00 | number << 5 | (save_slots - 1), 2);
        slot += 1;
    }
    struct prolog epilog = prolog;
    for (unsigned i = 0; i < 4 && homes && slot; i++)
        put(&prolog, OP_NOP, 1);
    for (struct prolog *p = &prolog; local_slots && p; p = p == &prolog ? &epilog : NULL) {
        if (chained && local_slots <= 64) {
            put(p, 0x80 | (local_slots - 1), 1);
        } else {
            put_alloc(p, local_slots);
            if (chained)
                put(p, 0x40, 1);
        }
        if (chained && p == &prolog)
            put(p, OP_SET_FP, 1); /* no epilog undoes it */
    }
    if (is_fragment)
        put(&prolog, OP_END_C, 1);
    ret->size = prolog.size;
    memcpy(ret->bytes, prolog.bytes + sizeof prolog.bytes - prolog.size, prolog.size);
    ret->one_epilog = !is_fragment;
    ret->epilog = ret->size;
    memcpy(ret->bytes + ret->size, epilog.bytes + sizeof epilog.bytes - epilog.size, epilog.size);
    ret->size += epilog.size;
    ret->length = entry >> 2 & 0x7ff;
}

/* ---- Codes ------------------------------------------------------------------------------------------------------ */

static unsigned code_size(uint8_t code)
{
    static const uint8_t sizes[32] = {4, 1, 2, 1, 1, 1, 1, 3, 1, 1, 1, 1, 1, 1, 1, 1,
                                      1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 4, 5, 1, 1, 1, 1};
    return code < 0xc0 ? 1 : code < 0xe0 ? 2 : sizes[code - 0xe0];
}

static bool is_end(uint8_t code)
{
    return code == OP_END || code == OP_END_C;
}

/* Codes of special frames stand for no instruction. */
static unsigned instructions_of(uint8_t code)
{
    return code < 0xe8 || code >= 0xf8;
}

/* Instructions of the codes from `at` to the end of its list. */
static unsigned count_instructions(const struct xdata *codes, unsigned at)
{
    unsigned count = 0;
    for (; at < codes->size && !is_end(codes->bytes[at]); at += code_size(codes->bytes[at]))
        count += instructions_of(codes->bytes[at]);
    return count;
}

static unsigned skip_codes(const struct xdata *codes, unsigned at, uint64_t count)
{
    for (; count && at < codes->size && !is_end(codes->bytes[at]); count--)
        at += code_size(codes->bytes[at]);
    return at;
}

/* The first code to undo. */
static unsigned first_code(struct reader *reader, const struct xdata *codes)
{
    unsigned prolog = count_instructions(codes, 0);
    if (codes->position < prolog)
        return skip_codes(codes, 0, prolog - codes->position);
    if (codes->one_epilog) {
        unsigned count = count_instructions(codes, codes->epilog) + 1; /* and the return */
        if (codes->position < codes->length && codes->length - codes->position <= count)
            return skip_codes(codes, codes->epilog, codes->position + count - codes->length);
        return 0;
    }
    for (unsigned i = 0; i < codes->scope_count && reader_step(reader, "epilog scopes"); i++) {
        uint32_t scope = read_u32(reader, codes->scopes + 4 * (uint64_t)i);
        uint64_t start = scope & 0x3ffff;
        unsigned at = scope >> 22;
        if (reader_failed(reader) || codes->position < start)
            break; /* they are in order */
        if (codes->position - start <= count_instructions(codes, at))
            return skip_codes(codes, at, codes->position - start);
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
    for (; at < codes->size && reader_step(reader, "unwind codes"); at += code_size(codes->bytes[at])) {
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
        else if (code[0] == OP_PAC) /* bits above those of a user's address */
            registers->values[LR] &= (UINT64_C(1) << 55) - 1;
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
    struct xdata codes = {.position = (pc - function->begin) / 4};
    if (function->packed)
        expand(function->packed, &codes);
    else if (!xdata_read(reader, function, WORDS_SHIFT, &codes))
        return false;
    unsigned first = interrupted ? first_code(reader, &codes) : 0;
    undo_all(reader, &codes, first, &caller);
    uint64_t return_address = register_needed(reader, &caller, LR, pc);
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

const struct unwinder unwinder_arm64 = {.pc = PC, .sp = SP, .unwind = unwind};
