#include "contracts/unwind/codes_arm64.h"

enum { WORDS_SHIFT = 27 }; /* of the header of unwind data */

/* ---- Packed entries --------------------------------------------------------------------------------------------- */

/* Codes that a packed entry stands for, without their operands. _X: the code also decrements the stack pointer. */
enum {
    OP_ALLOC_S = 0x00,
    OP_SAVE_FPLR = 0x40,
    OP_SAVE_FPLR_X = 0x80,
    OP_ALLOC_M = 0xc000,
    OP_SAVE_REGP = 0xc800,
    OP_SAVE_REGP_X = 0xcc00,
    OP_SAVE_REG = 0xd000,
    OP_SAVE_REG_X = 0xd400,
    OP_SAVE_LRPAIR = 0xd600,
    OP_SAVE_FREGP = 0xd800,
    OP_SAVE_FREGP_X = 0xda00,
    OP_SAVE_FREG = 0xdc00,
    OP_SAVE_FREG_X = 0xde00,
};

/* What a packed entry says of its function. A slot of the frame has 8 bytes. */
struct packed {
    unsigned int_count, fp_count; /* registers that are saved, from x19 and from d8 on */
    unsigned save_slots;          /* of the frame: of these, of lr and of the parameters */
    unsigned local_slots;         /* of the rest of the frame */
    bool saves_lr;                /* on its own or with the integer registers */
    bool is_chained;              /* lr is saved with the frame pointer, which is set */
    bool is_signed;               /* the return address is */
    bool homes;                   /* the parameters that came in registers are stored */
    bool is_fragment;             /* the prolog is that of another entry */
};

static struct packed decode_packed(uint32_t entry)
{
    unsigned chain = entry >> 21 & 3, frame_slots = 2 * (entry >> 23);
    struct packed packed = {
        .int_count = entry >> 16 & 15,
        .fp_count = entry >> 13 & 7,
        .saves_lr = chain == 1,
        .is_chained = chain >= 2,
        .is_signed = chain == 2,
        .homes = entry >> 20 & 1,
        .is_fragment = (entry & 3) == 2,
    };
    packed.fp_count += packed.fp_count != 0;
    unsigned saved = packed.int_count + packed.saves_lr + packed.fp_count;
    packed.save_slots = (saved + (saved && packed.homes ? 8 : 0) + 1) & ~1u;
    packed.local_slots = frame_slots > packed.save_slots ? frame_slots - packed.save_slots : 0;
    return packed;
}

/* Codes in the order of the prolog: each is put in front of those before it. */
struct prolog {
    uint8_t bytes[64];
    unsigned size;
    unsigned slot; /* the next one that a register is saved in */
};

static void put(struct prolog *prolog, unsigned code, unsigned size)
{
    for (unsigned i = 0; i < size; i++)
        prolog->bytes[sizeof prolog->bytes - ++prolog->size] = (uint8_t)(code >> 8 * i);
}

static void put_alloc(struct prolog *prolog, unsigned slots)
{
    if (slots < 64)
        put(prolog, OP_ALLOC_S | slots / 2, 1);
    else
        put(prolog, OP_ALLOC_M | slots / 2, 2);
}

/* Saves `count` registers. The first save of a prolog, `code_x`, decrements the stack pointer by `save_slots`. */
static void put_save(struct prolog *prolog, unsigned code, unsigned code_x, unsigned count, unsigned save_slots)
{
    put(prolog, prolog->slot == 0 ? code_x | (save_slots - 1) : code | prolog->slot, 2);
    prolog->slot += count;
}

static void put_pair(struct prolog *prolog, unsigned code, unsigned code_x, unsigned number, unsigned save_slots)
{
    put_save(prolog, code | number << 6, code_x | number << 6, 2, save_slots);
}

static void put_single(struct prolog *prolog, unsigned code, unsigned code_x, unsigned number, unsigned save_slots)
{
    put_save(prolog, code | number << 6, code_x | number << 5, 1, save_slots);
}

/* The integer registers, and lr unless it is saved with the frame pointer. */
static void put_integers(struct prolog *prolog, const struct packed *packed)
{
    unsigned number = 0, count = packed->int_count, save_slots = packed->save_slots;
    if (count == 1 && packed->saves_lr) /* that pair has no form with a decrement */
        put_alloc(prolog, save_slots);
    for (; number + 1 < count; number += 2)
        put_pair(prolog, OP_SAVE_REGP, OP_SAVE_REGP_X, number, save_slots);
    if (count % 2 && packed->saves_lr) {
        put(prolog, OP_SAVE_LRPAIR | number / 2 << 6 | prolog->slot, 2);
        prolog->slot += 2;
    } else if (count % 2 || packed->saves_lr) {
        put_single(prolog, OP_SAVE_REG, OP_SAVE_REG_X, count % 2 ? number : LR - X19, save_slots);
    }
}

static void put_floats(struct prolog *prolog, const struct packed *packed)
{
    unsigned number = 0, count = packed->fp_count, save_slots = packed->save_slots;
    for (; number + 1 < count; number += 2)
        put_pair(prolog, OP_SAVE_FREGP, OP_SAVE_FREGP_X, number, save_slots);
    if (count % 2)
        put_single(prolog, OP_SAVE_FREG, OP_SAVE_FREG_X, number, save_slots);
}

/* The rest of the frame, with the frame pointer and lr at its bottom. No epilog undoes the setting of the former. */
static void put_locals(struct prolog *prolog, const struct packed *packed, bool is_epilog)
{
    if (!packed->local_slots)
        return;
    if (packed->is_chained && packed->local_slots <= 64) {
        put(prolog, OP_SAVE_FPLR_X | (packed->local_slots - 1), 1);
    } else {
        put_alloc(prolog, packed->local_slots);
        if (packed->is_chained)
            put(prolog, OP_SAVE_FPLR, 1);
    }
    if (packed->is_chained && !is_epilog)
        put(prolog, OP_SET_FP, 1);
}

static void add_codes(struct xdata *to, const struct prolog *prolog)
{
    memcpy(to->bytes + to->size, prolog->bytes + sizeof prolog->bytes - prolog->size, prolog->size);
    to->size += prolog->size;
}

/* Writes the codes that a packed entry stands for: those of its prolog, then those of its epilog. */
static void expand(uint32_t entry, struct xdata *ret)
{
    const struct packed packed = decode_packed(entry);
    struct prolog prolog = {.size = 0};
    put(&prolog, OP_END, 1);
    if (packed.is_signed)
        put(&prolog, OP_PAC, 1);
    put_integers(&prolog, &packed);
    put_floats(&prolog, &packed);
    struct prolog epilog = prolog;
    for (unsigned i = 0; i < 4 && packed.homes && prolog.slot; i++)
        put(&prolog, OP_NOP, 1);
    put_locals(&prolog, &packed, false);
    put_locals(&epilog, &packed, true);
    if (packed.is_fragment)
        put(&prolog, OP_END_C, 1);
    add_codes(ret, &prolog);
    ret->one_epilog = !packed.is_fragment;
    ret->epilog = ret->size;
    add_codes(ret, &epilog);
    ret->length = entry >> 2 & 0x7ff;
}

/* ---- Codes ------------------------------------------------------------------------------------------------------ */

unsigned arm64_code_size(uint8_t code)
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

unsigned arm64_instruction_count(const struct xdata *codes, unsigned at)
{
    unsigned count = 0;
    for (; at < codes->size && !is_end(codes->bytes[at]); at += arm64_code_size(codes->bytes[at]))
        count += instructions_of(codes->bytes[at]);
    return count;
}

unsigned arm64_skip_codes(const struct xdata *codes, unsigned at, uint64_t count)
{
    for (; count && at < codes->size && !is_end(codes->bytes[at]); count--)
        at += arm64_code_size(codes->bytes[at]);
    return at;
}

bool arm64_codes_read(struct reader *reader, const struct unwind_function *function, struct xdata *ret)
{
    *ret = (struct xdata){0};
    if (!function->packed)
        return xdata_read(reader, function, WORDS_SHIFT, ret);
    expand(function->packed, ret);
    return true;
}
