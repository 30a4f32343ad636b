/*
 * unwind_arm.c: the arm row of unwinder.h, for Thumb-2 code. As on arm64, unwind data are a list of codes, one for each
 * instruction of the prolog, the last one first, and an epilog has an index into the list. Here an instruction has one
 * or two halfwords, and its code says how many. An epilog may depend on a condition: the flags decide whether it runs.
 * Entries whose prolog is a usual one have no unwind data: the entry itself has them packed, and the codes are made
 * from it. Floating-point registers are not followed.
 * A funclet saves all that it changes of what calls preserve.
 *
 * Source: Microsoft's "ARM exception handling"; dotnet/runtime src/coreclr/unwinder/arm/unwinder.cpp.
 */
#include "contracts/unwind/xdata.h"

enum { R4 = 4, R11 = 11, SP = 13, LR = 14, PC = 15, FLAGS = 16 }; /* FLAGS is CPSR */

/* What a call preserves, besides the stack pointer. */
static const uint64_t preserved = ((UINT64_C(1) << (R11 - R4 + 1)) - 1) << R4 | UINT64_C(1) << LR;

enum {
    WORDS_SHIFT = 28, /* of the header of unwind data */
    OP_ADD_SP_WIDE = 0xe8,
    OP_POP_LOW = 0xec,
    OP_SYSTEM = 0xee,
    OP_LOAD_LR = 0xef,
    OP_NOP = 0xfb,
    OP_NOP_WIDE,
    OP_END_RETURN, /* the instruction that ends an epilog has one halfword */
    OP_END_RETURN_WIDE,
    OP_END, /* it has no further instruction */
    ALWAYS = 14,
};

/* ---- Packed entries --------------------------------------------------------------------------------------------- */

static void put(struct xdata *codes, unsigned code)
{
    codes->bytes[codes->size++] = (uint8_t)code;
}

static void put_add_sp(struct xdata *codes, unsigned words)
{
    if (words >= 0x80)
        put(codes, OP_ADD_SP_WIDE | words >> 8);
    if (words)
        put(codes, words & 0xff);
}

/* A pop of r0 to r12 and lr, narrow where the instruction of the prolog or epilog is. */
static void put_pop(struct xdata *codes, unsigned mask)
{
    if (!mask)
        return;
    unsigned lr = mask >> LR & 1;
    put(codes, mask & 0x1f00 ? 0x80 | lr << 5 | (mask >> 8 & 0x1f) : OP_POP_LOW | lr);
    put(codes, mask & 0xff);
}

/* The codes of the prolog or of the epilog, up to the end. */
static void put_packed(struct xdata *ret, uint32_t entry, bool epilog)
{
    unsigned returns = entry >> 13 & 3, number = entry >> 16 & 7, adjust = entry >> 22;
    bool homes = entry >> 15 & 1, vectors = entry >> 19 & 1, links = entry >> 20 & 1, chains = entry >> 21 & 1;
    bool pops_pc_last = epilog && homes && returns == 0, folded = false;
    unsigned mask = vectors ? 0 : ((1u << (number + 1)) - 1) << R4;
    mask |= (unsigned)chains << R11 | (unsigned)(links && !pops_pc_last) << LR;
    if (adjust >= 0x3f4) { /* the push or the pop has further registers in place of an adjustment */
        folded = adjust & (epilog ? 8 : 4);
        adjust = (adjust & 3) + 1;
        mask |= folded ? ((1u << adjust) - 1) << (R4 - adjust) : 0;
    }
    if (!folded)
        put_add_sp(ret, adjust);
    if (vectors && number < 7)
        put(ret, 0xe0 | number);
    if (chains && !epilog) /* sets r11; undone by nothing */
        put(ret, mask & ~(1u << R11 | 1u << LR) ? OP_NOP_WIDE : OP_NOP);
    put_pop(ret, mask);
    if (pops_pc_last) {
        put(ret, OP_LOAD_LR);
        put(ret, 5);
    } else if (homes) {
        put_add_sp(ret, 4);
    }
    put(ret, !epilog || returns == 0 ? OP_END : returns == 1 ? OP_END_RETURN : OP_END_RETURN_WIDE);
}

static void expand(uint32_t entry, struct xdata *ret)
{
    ret->fragment = (entry & 3) == 2;
    ret->length = entry >> 2 & 0x7ff;
    put_packed(ret, entry, false);
    ret->one_epilog = (entry >> 13 & 3) != 3;
    ret->epilog = ret->size;
    if (ret->one_epilog)
        put_packed(ret, entry, true);
}

/* ---- Codes ------------------------------------------------------------------------------------------------------ */

static unsigned code_size(uint8_t code)
{
    static const uint8_t sizes[] = {2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 2, 2, 3, 4, 3, 4, 1, 1, 1, 1, 1};
    return code < 0x80 ? 1 : code < 0xc0 ? 2 : code < 0xe8 ? 1 : sizes[code - 0xe8];
}

/* Of the instruction that a code is for. */
static unsigned halfwords(uint8_t code)
{
    static const uint8_t counts[] = {2, 2, 2, 2, 1, 1, 0, 2, 0, 0, 0, 0, 0, 2, 2, 1, 1, 2, 2, 1, 2, 1, 2, 0};
    return code < 0x80 ? 1 : code < 0xc0 ? 2 : code < 0xd8 ? 1 : code < 0xe8 ? 2 : counts[code - 0xe8];
}

/* Halfwords of the codes from `at` to the end of its list; of an epilog, with the return. */
static unsigned scope_size(const struct xdata *codes, unsigned at, bool epilog)
{
    unsigned size = 0;
    for (; at < codes->size && codes->bytes[at] < OP_END_RETURN; at += code_size(codes->bytes[at]))
        size += halfwords(codes->bytes[at]);
    return size + (epilog && at < codes->size ? halfwords(codes->bytes[at]) : 0);
}

static unsigned skip_codes(const struct xdata *codes, unsigned at, uint64_t count)
{
    while (count && at < codes->size && codes->bytes[at] < OP_END_RETURN) {
        count -= MIN(count, halfwords(codes->bytes[at]));
        at += code_size(codes->bytes[at]);
    }
    return at;
}

/* Whether instructions with a condition run: bits 31 to 28 of the flags are negative, zero, carry, overflow. */
static bool condition_holds(struct reader *reader, const struct registers *registers, unsigned condition)
{
    if (condition >= ALWAYS)
        return condition == ALWAYS;
    uint64_t flags = register_needed(reader, registers, FLAGS, registers->values[PC]);
    bool n = flags >> 31 & 1, z = flags >> 30 & 1, c = flags >> 29 & 1, v = flags >> 28 & 1;
    const bool holds[] = {z, c, n, v, c && !z, n == v, n == v && !z};
    return holds[condition / 2] != (condition & 1);
}

/* The first code to undo. */
static unsigned first_code(struct reader *reader, const struct xdata *codes, const struct registers *registers)
{
    unsigned prolog = codes->fragment ? 0 : scope_size(codes, 0, false);
    if (codes->position < prolog)
        return skip_codes(codes, 0, prolog - codes->position);
    if (codes->one_epilog) {
        unsigned size = scope_size(codes, codes->epilog, true);
        if (codes->position < codes->length && codes->length - codes->position <= size)
            return skip_codes(codes, codes->epilog, codes->position + size - codes->length);
        return 0;
    }
    for (unsigned i = 0; i < codes->scope_count && reader_step(reader, "epilog scopes"); i++) {
        uint32_t scope = read_u32(reader, codes->scopes + 4 * (uint64_t)i);
        uint64_t start = scope & 0x3ffff;
        unsigned at = scope >> 24;
        if (reader_failed(reader) || codes->position < start)
            break; /* they are in order */
        if (codes->position - start < scope_size(codes, at, true) &&
            condition_holds(reader, registers, scope >> 20 & 15))
            return skip_codes(codes, at, codes->position - start);
    }
    return 0;
}

/* ---- Undoing ---------------------------------------------------------------------------------------------------- */

/* The lowest register is at the lowest address. */
static void pop(struct reader *reader, struct registers *registers, unsigned mask)
{
    for (unsigned number = 0; number <= LR && !reader_failed(reader); number++) {
        if (!(mask >> number & 1))
            continue;
        register_set(registers, number, read_u32(reader, registers->values[SP]));
        registers->values[SP] += 4;
    }
}

static unsigned number_at(const uint8_t *bytes, unsigned count)
{
    unsigned number = 0;
    for (unsigned i = 0; i < count; i++)
        number = number << 8 | bytes[i];
    return number;
}

/* Undoes a code from 0xe0 on that is not an end. */
static void undo_special(struct reader *reader, const uint8_t *code, struct registers *registers)
{
    uint64_t *sp = &registers->values[SP];
    if (code[0] < OP_ADD_SP_WIDE) { /* d8 and further ones */
        *sp += 8 * ((code[0] & 7) + 1);
    } else if (code[0] < OP_POP_LOW) {
        *sp += 4 * ((code[0] & 3) << 8 | code[1]);
    } else if (code[0] < OP_SYSTEM) {
        pop(reader, registers, code[1] | (code[0] & 1u) << LR);
    } else if (code[0] == OP_LOAD_LR && code[1] >= 1 && code[1] < 16) {
        pop(reader, registers, 1u << LR);
        *sp += 4 * (code[1] - 1);
    } else if ((code[0] == 0xf5 || code[0] == 0xf6) && (code[1] & 15) >= code[1] >> 4) { /* a range of d registers */
        *sp += 8 * ((code[1] & 15u) - (code[1] >> 4) + 1);
    } else if (code[0] == 0xf7 || code[0] == 0xf9) {
        *sp += 4 * number_at(code + 1, 2);
    } else if (code[0] == 0xf8 || code[0] == 0xfa) {
        *sp += 4 * number_at(code + 1, 3);
    } else if (code[0] != OP_NOP && code[0] != OP_NOP_WIDE) {
        reader_fail(reader, CDACQ_ERR_CORRUPT, registers->values[PC], "unwind code");
    }
}

static void undo_all(struct reader *reader, const struct xdata *codes, unsigned at, struct registers *registers)
{
    for (; at < codes->size && reader_step(reader, "unwind codes"); at += code_size(codes->bytes[at])) {
        const uint8_t *code = codes->bytes + at;
        if (code[0] >= OP_END_RETURN)
            return;
        if (code[0] < 0x80)
            registers->values[SP] += 4 * code[0];
        else if (code[0] < 0xc0)
            pop(reader, registers, (code[0] & 0x1fu) << 8 | code[1] | (code[0] >> 5 & 1u) << LR);
        else if (code[0] < 0xd0)
            registers->values[SP] = register_needed(reader, registers, code[0] & 15, registers->values[PC]);
        else if (code[0] < 0xe0) /* from r4 to one of r4 to r7, or of r8 to r11 */
            pop(reader, registers,
                ((2u << ((code[0] & 3) + (code[0] & 8 ? 4 : 0))) - 1) << R4 | (code[0] >> 2 & 1u) << LR);
        else
            undo_special(reader, code, registers);
    }
}

/* ----------------------------------------------------------------------------------------------------------------- */

static bool unwind(struct reader *reader, const struct unwind_function *function, bool interrupted,
                   struct registers *registers)
{
    struct registers caller = *registers;
    uint64_t pc = register_needed(reader, registers, PC, 0) & ~UINT64_C(1);
    uint64_t sp = register_needed(reader, registers, SP, pc);
    if (pc < function->begin || pc > function->end) /* a return address may be the end */
        reader_fail(reader, CDACQ_ERR_CORRUPT, pc, "program counter outside its function");
    if (reader_failed(reader))
        return false;
    struct xdata codes = {.position = (pc - function->begin) / 2};
    if (function->packed)
        expand(function->packed, &codes);
    else if (!xdata_read(reader, function, WORDS_SHIFT, &codes))
        return false;
    unsigned first = interrupted ? first_code(reader, &codes, &caller) : 0;
    undo_all(reader, &codes, first, &caller);
    uint64_t return_address = register_needed(reader, &caller, LR, pc) & ~UINT64_C(1); /* without the Thumb bit */
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

const struct unwinder unwinder_arm = {.pc = PC, .sp = SP, .unwind = unwind};
