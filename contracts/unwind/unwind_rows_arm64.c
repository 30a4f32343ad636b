/*
 * unwind_rows_arm64.c: the rows of unwinder.h for arm64: what unwind_arm64.c does with registers is done here with
 * symbols, once for each instruction of the prolog and of the epilogs.
 */
#include "contracts/unwind/codes_arm64.h"
#include "contracts/unwind/unwind_rows.h"

const struct frame_machine frame_machine_arm64 = {
    .slot_count = 12,
    .slots = {X19, 20, 21, 22, 23, 24, 25, 26, 27, X28, FP, LR},
    .return_address = LR,
    .on_stack = false,
    .stack_pointer = SP,
    .code_factor = 4,
};

/* `count` registers from `number` on were stored at `offset` from the stack pointer, or with a decrement by -offset. */
static void restore(struct symbolic_frame *frame, int64_t offset, unsigned number, unsigned count)
{
    int64_t at = symbolic_add(frame->sp, offset > 0 ? offset : 0);
    frame->failed |= number + count > LR + 1;
    for (unsigned i = 0; i < count && !frame->failed; i++)
        symbolic_restore(frame, number + i, frame->base, symbolic_add(at, 8 * (int64_t)i));
    if (offset < 0)
        frame->sp = symbolic_add(frame->sp, -offset);
}

/* save_any_reg. */
static void undo_any(const uint8_t *code, unsigned pairs, struct symbolic_frame *frame)
{
    unsigned pair = code[1] >> 6 & 1, decrements = code[1] >> 5 & 1, number = code[1] & 31, kind = code[2] >> 6;
    unsigned scale = decrements || pair || kind == 2 ? 16 : 8, offset = ((code[2] & 63) + decrements) * scale;
    frame->failed |= code[1] & 0x80 || kind == 3;
    if (kind == 0)
        restore(frame, decrements ? -(int64_t)offset : (int64_t)offset, number, 1 + pair + 2 * pairs);
    else if (decrements)
        frame->sp = symbolic_add(frame->sp, offset);
}

/* Codes 0x20 to 0xdf. `pairs`: more pairs follow the first. */
static void undo_save(const uint8_t *code, unsigned pairs, struct symbolic_frame *frame)
{
    unsigned first = code[0], low6 = code[1] & 63, low5 = code[1] & 31, number4 = (first & 3) << 2 | code[1] >> 6;
    if (first < 0x40) /* save_r19r20_x */
        restore(frame, -8 * (int64_t)(first & 31), X19, 2 + 2 * pairs);
    else if (first < 0x80) /* save_fplr */
        restore(frame, 8 * (int64_t)(first & 63), FP, 2);
    else if (first < 0xc0) /* save_fplr_x */
        restore(frame, -8 * (int64_t)((first & 63) + 1), FP, 2);
    else if (first < 0xc8) /* alloc_m */
        frame->sp = symbolic_add(frame->sp, 16 * (int64_t)((first & 7) << 8 | code[1]));
    else if (first < 0xcc) /* save_regp */
        restore(frame, 8 * (int64_t)low6, X19 + number4, 2 + 2 * pairs);
    else if (first < 0xd0) /* save_regp_x */
        restore(frame, -8 * (int64_t)(low6 + 1), X19 + number4, 2 + 2 * pairs);
    else if (first < 0xd4) /* save_reg */
        restore(frame, 8 * (int64_t)low6, X19 + number4, 1);
    else if (first < 0xd6) /* save_reg_x */
        restore(frame, -8 * (int64_t)(low5 + 1), X19 + ((first & 1) << 3 | code[1] >> 5), 1);
    else if (first < 0xd8) { /* save_lrpair */
        restore(frame, 8 * (int64_t)low6, X19 + 2 * ((first & 1) << 2 | code[1] >> 6), 1);
        restore(frame, 8 * (int64_t)low6 + 8, LR, 1);
    } else if (first >= 0xda && first < 0xdc) /* save_fregp_x */
        frame->sp = symbolic_add(frame->sp, 8 * (low6 + 1));
    else if (first == 0xde) /* save_freg_x */
        frame->sp = symbolic_add(frame->sp, 8 * (low5 + 1));
    else if (first == 0xdf)
        frame->failed = true;
}

static void undo(const uint8_t *code, unsigned pairs, struct symbolic_frame *frame)
{
    if (code[0] < 0x20)
        frame->sp = symbolic_add(frame->sp, 16 * (int64_t)code[0]);
    else if (code[0] < OP_ALLOC_L)
        undo_save(code, pairs, frame);
    else if (code[0] == OP_ALLOC_L)
        frame->sp = symbolic_add(frame->sp, 16 * (int64_t)(code[1] << 16 | code[2] << 8 | code[3]));
    else if (code[0] == OP_SET_FP)
        symbolic_set_sp(frame, FP, 0);
    else if (code[0] == OP_ADD_FP)
        symbolic_set_sp(frame, FP, -8 * (int64_t)code[1]);
    else if (code[0] == OP_SAVE_ANY_REG)
        undo_any(code, pairs, frame);
    else if (code[0] == OP_PAC)
        frame->is_signed = true;
    else if (code[0] >= 0xe8 && code[0] < 0xf8)
        frame->failed = true;
}

/* The rows of a function while they are listed. Instructions are counted from its begin. */
struct listing {
    struct reader *reader;
    const struct unwind_function *function;
    const struct xdata *codes;
    uint64_t next; /* the first instruction after the prolog and the epilogs that were listed */
    struct frame_rows *rows;
};

/* Appends the row at an instruction whose first code to undo is at `at`. */
static bool add_row(struct listing *listing, uint64_t instruction, unsigned at)
{
    struct reader *reader = listing->reader;
    const struct xdata *codes = listing->codes;
    struct symbolic_frame frame = symbolic_frame_of(&frame_machine_arm64);
    struct frame_row row;
    uint64_t begin = listing->function->begin + 4 * instruction;
    unsigned pairs = 0; /* of save_next codes before a save */
    if (begin >= listing->function->end)
        return true;
    for (; at < codes->size && codes->bytes[at] != OP_END && reader_step(reader, "unwind codes");
         at += arm64_code_size(codes->bytes[at])) {
        bool is_next = codes->bytes[at] == OP_SAVE_NEXT;
        if (!is_next)
            undo(codes->bytes + at, pairs, &frame);
        pairs = is_next ? pairs + 1 : 0;
    }
    if (reader_failed(reader))
        return false;
    return symbolic_row(&frame, begin, &row) ? frame_rows_add(reader, listing->rows, &row)
                                             : frame_rows_fail(reader, listing->function);
}

/*
 * Appends the rows of an epilog and, if code follows, that of the body. `at` is its first code, `count` the number of
 * instructions after which nothing is left to undo.
 */
static bool add_epilog(struct listing *listing, uint64_t start, unsigned at, unsigned count)
{
    bool added = true;
    for (unsigned i = 0; i <= count && added; i++)
        if (start + i >= listing->next)
            added = add_row(listing, start + i, arm64_skip_codes(listing->codes, at, i));
    listing->next = MAX(listing->next, start + count + 1);
    return added && add_row(listing, listing->next, 0);
}

static bool add_scopes(struct listing *listing)
{
    struct reader *reader = listing->reader;
    const struct xdata *codes = listing->codes;
    uint64_t last = 0;
    for (unsigned i = 0; i < codes->scope_count && reader_step(reader, "epilog scopes"); i++) {
        uint32_t scope = read_u32(reader, codes->scopes + 4 * (uint64_t)i);
        uint64_t start = scope & 0x3ffff;
        unsigned at = scope >> 22;
        if (start < last) /* they are in order */
            return frame_rows_fail(reader, listing->function);
        last = start;
        if (reader_failed(reader) || !add_epilog(listing, start, at, arm64_instruction_count(codes, at)))
            return false;
    }
    return !reader_failed(reader);
}

bool unwind_rows_arm64(struct reader *reader, const struct unwind_function *function, struct frame_rows *ret,
                       bool *ret_epilogs)
{
    struct xdata codes;
    ret->count = 0;
    *ret_epilogs = true;
    if (function->end <= function->begin)
        return reader_fail(reader, CDACQ_ERR_CORRUPT, function->begin, "RUNTIME_FUNCTION");
    if (!arm64_codes_read(reader, function, &codes))
        return false;
    uint64_t prolog = arm64_instruction_count(&codes, 0);
    struct listing listing = {.reader = reader, .function = function, .codes = &codes, .next = prolog, .rows = ret};
    for (uint64_t i = 0; i < prolog; i++)
        if (!add_row(&listing, i, arm64_skip_codes(&codes, 0, prolog - i)))
            return false;
    if (!add_row(&listing, prolog, 0))
        return false;
    if (!codes.one_epilog)
        return add_scopes(&listing);
    unsigned count = arm64_instruction_count(&codes, codes.epilog);
    return codes.length <= count || add_epilog(&listing, codes.length - count - 1, codes.epilog, count);
}
