/*
 * unwind_rows_x64.c: the rows of unwinder.h for x64. What unwind_x64.c does with registers is done here with symbols:
 * once for each instruction of the prolog, and for each of an epilog. Epilogs are found by their instructions, so the
 * code is read instruction by instruction: bytes within an instruction can look like an epilog.
 */
#include "contracts/unwind/unwind_info_x64.h"
#include "contracts/unwind/unwind_rows.h"
#include "formats/x64_instruction.h"

enum {
    CHANGES_MAX = 512, /* places where codes begin to apply: of a prolog, and of those that it is chained to */
    BYTES_A_STEP = 8,  /* of code whose instructions are found for a unit of fuel */
};

const struct frame_machine frame_machine_x64 = {
    .slot_count = 6,
    .slots = {RBX, RBP, R12, 13, 14, R15},
    .return_address = RIP,
    .on_stack = true,
    .stack_pointer = RSP,
    .code_factor = 1,
};

/* The UNWIND_INFO of a function, and of those that it is chained to. */
struct chain {
    unsigned count;
    uint64_t begins[CHAIN_MAX + 1];
    struct unwind_info_x64 infos[CHAIN_MAX + 1];
};

static bool read_chain(struct reader *reader, const struct unwind_function *function, struct chain *ret)
{
    uint64_t address = function->unwind_data, begin = function->begin;
    for (ret->count = 0; reader_step(reader, "UNWIND_INFO");) {
        struct unwind_info_x64 *info = &ret->infos[ret->count];
        if (ret->count > CHAIN_MAX)
            return reader_fail(reader, CDACQ_ERR_CORRUPT, address, "UNWIND_INFO: chained too often");
        if (!unwind_info_x64_read(reader, address, info))
            return false;
        ret->begins[ret->count++] = begin;
        if (!(info->flags & CHAININFO))
            return true;
        begin = function->base + info->chained[0];
        address = function->base + info->chained[2];
    }
    return false;
}

/* A funclet does not know its caller's registers, except for the frame pointer, unless its unwind data restore them. */
static struct symbolic_frame frame_of(const struct unwind_function *function)
{
    struct symbolic_frame frame = symbolic_frame_of(&frame_machine_x64);
    for (unsigned i = 0; i < frame_machine_x64.slot_count && function->funclet; i++)
        if (frame_machine_x64.slots[i] != RBP)
            frame.slots[i].kind = FRAME_UNDEFINED;
    if (function->funclet)
        frame.changed = ~(UINT64_C(1) << RBP | UINT64_C(1) << RSP);
    return frame;
}

static void pop(struct symbolic_frame *frame, unsigned number)
{
    symbolic_restore(frame, number, frame->base, frame->sp);
    frame->sp = symbolic_add(frame->sp, 8);
}

/* The return address is the last. */
static bool end_row(struct symbolic_frame *frame, uint64_t begin, struct frame_row *ret)
{
    frame->sp = symbolic_add(frame->sp, 8);
    return symbolic_row(frame, begin, ret);
}

/* ---- Prologs ---------------------------------------------------------------------------------------------------- */

/* What saved registers are relative to. */
struct base {
    uint8_t number;
    int64_t offset;
};

static struct base frame_base(const struct chain *chain, uint64_t pc, struct symbolic_frame *frame)
{
    const struct unwind_info_x64 *info = &chain->infos[0];
    if (!unwind_info_x64_has_frame(info, pc - chain->begins[0]))
        return (struct base){RSP, 0};
    frame->failed |= frame->changed >> info->frame_register & 1;
    return (struct base){(uint8_t)info->frame_register, -(int64_t)info->frame_offset};
}

static void undo(const struct unwind_info_x64 *info, unsigned i, const struct base *base, struct symbolic_frame *frame)
{
    unsigned operand = code_info(info, i), number = dwarf_numbers_x64[operand];
    switch (code_operation(info, i)) {
    case UWOP_PUSH_NONVOL:
        pop(frame, number);
        break;
    case UWOP_ALLOC_LARGE:
        frame->sp = symbolic_add(frame->sp, operand ? operand32(info, i) : 8 * operand16(info, i));
        break;
    case UWOP_ALLOC_SMALL:
        frame->sp = symbolic_add(frame->sp, 8 * operand + 8);
        break;
    case UWOP_SET_FPREG:
    case UWOP_SET_FPREG_LARGE:
        symbolic_set_sp(frame, info->frame_register, -(int64_t)info->frame_offset);
        break;
    case UWOP_SAVE_NONVOL:
        symbolic_restore(frame, number, base->number, base->offset + 8 * (int64_t)operand16(info, i));
        break;
    case UWOP_SAVE_NONVOL_FAR:
        symbolic_restore(frame, number, base->number, base->offset + (int64_t)operand32(info, i));
        break;
    case UWOP_PUSH_MACHFRAME: /* the stack pointer is in memory */
        frame->failed = true;
        break;
    default:
        break;
    }
}

/* The row at pc if pc is not in an epilog. */
static bool prolog_row(const struct unwind_function *function, const struct chain *chain, uint64_t pc,
                       struct frame_row *ret)
{
    struct symbolic_frame frame = frame_of(function);
    struct base base = frame_base(chain, pc, &frame);
    for (unsigned k = 0; k < chain->count; k++) {
        const struct unwind_info_x64 *info = &chain->infos[k];
        for (unsigned i = 0; i < info->code_count; i += code_slots(info, i))
            if (pc - chain->begins[k] >= code_offset(info, i))
                undo(info, i, &base, &frame);
    }
    return end_row(&frame, pc, ret);
}

/* The addresses at which the rows of the prolog may change, sorted; the first is that of the function. */
struct changes {
    uint64_t items[CHANGES_MAX];
    unsigned count;
};

static bool add_change(const struct unwind_function *function, uint64_t address, struct changes *changes)
{
    unsigned i = changes->count;
    if (address <= function->begin || address >= function->end)
        return true;
    while (i && changes->items[i - 1] > address)
        i--;
    if (i && changes->items[i - 1] == address)
        return true;
    if (changes->count == CHANGES_MAX)
        return false;
    memmove(changes->items + i + 1, changes->items + i, (changes->count++ - i) * sizeof *changes->items);
    changes->items[i] = address;
    return true;
}

static bool find_changes(const struct unwind_function *function, const struct chain *chain, struct changes *ret)
{
    ret->items[0] = function->begin;
    ret->count = 1;
    bool fits = add_change(function, function->begin + chain->infos[0].prolog_size, ret);
    for (unsigned k = 0; k < chain->count && fits; k++) {
        const struct unwind_info_x64 *info = &chain->infos[k];
        fits = add_change(function, chain->begins[k], ret);
        for (unsigned i = 0; i < info->code_count && fits; i += code_slots(info, i))
            fits = add_change(function, chain->begins[k] + code_offset(info, i), ret);
    }
    return fits;
}

/* ---- Epilogs ---------------------------------------------------------------------------------------------------- */

/* Whether an epilog can begin with these bytes: a quick look, before all of it is compared. */
static bool may_begin_epilog(const uint8_t *code, size_t size)
{
    uint8_t first = code[0];
    if ((first & 0xf8) == 0x58)
        return true;
    if ((first & 0xf0) == 0x40 && size > 2)
        return (code[1] & 0xf8) == 0x58 || ((code[1] == 0x83 || code[1] == 0x81) && code[2] == 0xc4) ||
               (code[1] == 0x8d && (code[2] & 0x38) == 0x20) || (code[1] == 0xff && (code[2] & 0x38) == 0x20);
    return first == 0xc3 || first == 0xc2 || first == 0xf2 || first == 0xf3 || first == 0xeb || first == 0xe9 ||
           first == 0xff;
}

/* The row at pc if pc is in an epilog. `code` begins at pc and has `left` bytes of the function. */
static bool epilog_row(const struct unwind_function *function, const struct unwind_info_x64 *info, uint64_t pc,
                       const uint8_t *code, uint64_t left, struct frame_row *ret)
{
    uint8_t window[EPILOG_WINDOW] = {0};
    struct epilog_instruction_x64 instruction;
    unsigned size = (unsigned)MIN(left, (uint64_t)EPILOG_CODE_MAX);
    memcpy(window, code, size);
    int end = epilog_x64_length(window, size, pc, function, info);
    struct symbolic_frame frame = frame_of(function);
    for (int at = 0; at < end; at += (int)instruction.length) {
        instruction = epilog_instruction_x64_at(window + at);
        if (instruction.kind == POP)
            pop(&frame, instruction.number);
        else
            symbolic_set_sp(&frame, instruction.number, instruction.displacement);
    }
    return end >= 0 && end_row(&frame, pc, ret);
}

/* ----------------------------------------------------------------------------------------------------------------- */

/* The rows of a function while they are listed. */
struct listing {
    struct reader *reader;
    const struct unwind_function *function;
    const struct chain *chain;
    const struct changes *changes;
    struct frame_rows *rows;
};

/* The rows where nothing is known of epilogs, from the change `next` on. */
static bool add_prolog_rows(const struct listing *listing, unsigned next)
{
    const struct changes *changes = listing->changes;
    struct frame_row row;
    for (; next < changes->count; next++)
        if (!prolog_row(listing->function, listing->chain, changes->items[next], &row))
            return frame_rows_fail(listing->reader, listing->function);
        else if (!frame_rows_add(listing->reader, listing->rows, &row))
            return false;
    return true;
}

/* Reads the code instruction by instruction. */
static bool add_rows(const struct listing *listing, const uint8_t *code, bool *ret_epilogs)
{
    const struct unwind_function *function = listing->function;
    const struct changes *changes = listing->changes;
    struct frame_row body = {0}, row;
    uint64_t size = function->end - function->begin;
    unsigned length = 1, next = 0;
    bool in_body = false; /* the last row is that of the body */
    for (uint64_t at = 0; at < size; at += length) {
        uint64_t pc = function->begin + at;
        bool is_change = next < changes->count && changes->items[next] <= pc;
        while (next < changes->count && changes->items[next] <= pc)
            next++;
        if (is_change && !prolog_row(function, listing->chain, pc, &body))
            return frame_rows_fail(listing->reader, function);
        body.begin = pc;
        bool is_epilog = may_begin_epilog(code + at, (size_t)(size - at)) &&
                         epilog_row(function, &listing->chain->infos[0], pc, code + at, size - at, &row);
        if ((is_epilog || is_change || !in_body) &&
            !frame_rows_add(listing->reader, listing->rows, is_epilog ? &row : &body))
            return false;
        in_body = !is_epilog;
        length = x64_instruction_length(code + at, (size_t)(size - at));
        if (!length) {
            *ret_epilogs = false;
            return frame_rows_add(listing->reader, listing->rows, &body) && add_prolog_rows(listing, next);
        }
    }
    return true;
}

bool unwind_rows_x64(struct reader *reader, const struct unwind_function *function, struct frame_rows *ret,
                     bool *ret_epilogs)
{
    struct chain chain;
    struct changes changes;
    struct window code = {0};
    uint64_t size = function->end - function->begin;
    ret->count = 0;
    if (function->end <= function->begin || size > WINDOW_MAX)
        return reader_fail(reader, CDACQ_ERR_CORRUPT, function->begin, "RUNTIME_FUNCTION");
    if (!read_chain(reader, function, &chain))
        return false;
    if (!find_changes(function, &chain, &changes))
        return frame_rows_fail(reader, function);
    bool is_affordable = size / BYTES_A_STEP < reader_fuel(reader);
    const uint8_t *bytes = is_affordable ? reader_try_view(reader, function->begin, (size_t)size) : NULL;
    if (!bytes && is_affordable) {
        struct reader_task outer = reader_enter(reader, reader_fuel(reader));
        bytes = reader_window(reader, function->begin, size, "code", &code) ? code.bytes : NULL;
        reader_leave(reader, &outer);
    }
    if (bytes)
        reader_charge(reader, (uint32_t)(size / BYTES_A_STEP));
    *ret_epilogs = bytes != NULL;
    const struct listing listing = {
        .reader = reader, .function = function, .chain = &chain, .changes = &changes, .rows = ret};
    bool added = bytes ? add_rows(&listing, bytes, ret_epilogs) : add_prolog_rows(&listing, 0);
    window_deinit(&code);
    return added;
}
