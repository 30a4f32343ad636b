#include "contracts/unwind/codes_arm64.h"

enum { WORDS_SHIFT = 27 }; /* of the header of unwind data */

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

unsigned arm64_instructions(const struct xdata *codes, unsigned at)
{
    unsigned count = 0;
    for (; at < codes->size && !is_end(codes->bytes[at]); at += arm64_code_size(codes->bytes[at]))
        count += instructions_of(codes->bytes[at]);
    return count;
}

unsigned arm64_skip(const struct xdata *codes, unsigned at, uint64_t count)
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
