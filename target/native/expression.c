#include "target/native/expression.h"

#include "formats/dwarf_cursor.h"

enum { STACK_MAX = 64 };

struct evaluation {
    struct reader *reader;
    const struct register_machine *machine;
    const struct registers *registers;
    uint64_t address; /* of the expression, for messages */
    const uint8_t *bytes;
    size_t size;
    uint64_t stack[STACK_MAX];
    unsigned count;
};

enum operation {
    DW_OP_addr = 0x03,
    DW_OP_deref = 0x06,
    DW_OP_const1u = 0x08,
    DW_OP_const1s,
    DW_OP_const2u,
    DW_OP_const2s,
    DW_OP_const4u,
    DW_OP_const4s,
    DW_OP_const8u,
    DW_OP_const8s,
    DW_OP_constu,
    DW_OP_consts,
    DW_OP_dup,
    DW_OP_drop,
    DW_OP_over,
    DW_OP_pick,
    DW_OP_swap,
    DW_OP_rot,
    DW_OP_abs = 0x19,
    DW_OP_and,
    DW_OP_div,
    DW_OP_minus,
    DW_OP_mod,
    DW_OP_mul,
    DW_OP_neg,
    DW_OP_not,
    DW_OP_or,
    DW_OP_plus,
    DW_OP_plus_uconst,
    DW_OP_shl,
    DW_OP_shr,
    DW_OP_shra,
    DW_OP_xor,
    DW_OP_bra,
    DW_OP_eq,
    DW_OP_ge,
    DW_OP_gt,
    DW_OP_le,
    DW_OP_lt,
    DW_OP_ne,
    DW_OP_skip,
    DW_OP_lit0,
    DW_OP_lit31 = 0x4f,
    DW_OP_breg0 = 0x70,
    DW_OP_breg31 = 0x8f,
    DW_OP_bregx = 0x92,
    DW_OP_deref_size = 0x94,
    DW_OP_nop = 0x96,
};

static void damaged(struct evaluation *evaluation)
{
    reader_fail(evaluation->reader, CDACQ_ERR_CORRUPT, evaluation->address, "a DWARF expression");
}

static uint64_t truncated(const struct evaluation *evaluation, uint64_t value)
{
    return evaluation->machine->word_size == 4 ? (uint32_t)value : value;
}

static int64_t as_signed(const struct evaluation *evaluation, uint64_t value)
{
    return evaluation->machine->word_size == 4 ? (int32_t)value : (int64_t)value;
}

static void push(struct evaluation *evaluation, uint64_t value)
{
    if (evaluation->count == STACK_MAX)
        damaged(evaluation);
    else
        evaluation->stack[evaluation->count++] = truncated(evaluation, value);
}

/* The item `depth` below the top; 0, and the reader fails, where there is none. */
static uint64_t peek(struct evaluation *evaluation, uint64_t depth)
{
    if (depth < evaluation->count)
        return evaluation->stack[evaluation->count - 1 - depth];
    damaged(evaluation);
    return 0;
}

static uint64_t pop(struct evaluation *evaluation)
{
    uint64_t value = peek(evaluation, 0);
    evaluation->count -= evaluation->count > 0;
    return value;
}

static void push_register(struct evaluation *evaluation, uint64_t number, int64_t offset)
{
    if (number >= REGISTER_MAX)
        damaged(evaluation);
    else
        push(evaluation,
             register_needed(evaluation->reader, evaluation->registers, (unsigned)number, evaluation->address) +
                 (uint64_t)offset);
}

static uint64_t binary(struct evaluation *evaluation, unsigned code, uint64_t a, uint64_t b)
{
    int64_t x = as_signed(evaluation, a), y = as_signed(evaluation, b);
    unsigned bits = evaluation->machine->word_size * 8u;
    switch (code) {
    case DW_OP_and:
        return a & b;
    case DW_OP_or:
        return a | b;
    case DW_OP_xor:
        return a ^ b;
    case DW_OP_plus:
        return a + b;
    case DW_OP_minus:
        return a - b;
    case DW_OP_mul:
        return a * b;
    case DW_OP_mod:
        return b ? a % b : (damaged(evaluation), 0);
    case DW_OP_div:
        return !y ? (damaged(evaluation), 0) : y == -1 ? -a : (uint64_t)(x / y);
    case DW_OP_shl:
        return b < bits ? a << b : 0;
    case DW_OP_shr:
        return b < bits ? a >> b : 0;
    case DW_OP_shra:
        return (uint64_t)(x >> MIN(b, bits - 1));
    case DW_OP_eq:
        return x == y;
    case DW_OP_ge:
        return x >= y;
    case DW_OP_gt:
        return x > y;
    case DW_OP_le:
        return x <= y;
    case DW_OP_lt:
        return x < y;
    default: /* DW_OP_ne */
        return x != y;
    }
}

static void arithmetic(struct evaluation *evaluation, struct dwarf_cursor *cursor, unsigned code)
{
    uint64_t top = pop(evaluation);
    if (code == DW_OP_plus_uconst)
        push(evaluation, top + dwarf_uleb(cursor));
    else if (code == DW_OP_neg)
        push(evaluation, -top);
    else if (code == DW_OP_not)
        push(evaluation, ~top);
    else if (code == DW_OP_abs)
        push(evaluation, as_signed(evaluation, top) < 0 ? -top : top);
    else
        push(evaluation, binary(evaluation, code, pop(evaluation), top));
}

static void constant(struct evaluation *evaluation, struct dwarf_cursor *cursor, unsigned code)
{
    unsigned width = 1u << ((code - DW_OP_const1u) / 2);
    if (code == DW_OP_constu)
        push(evaluation, dwarf_uleb(cursor));
    else if (code == DW_OP_consts)
        push(evaluation, (uint64_t)dwarf_sleb(cursor));
    else
        push(evaluation, (code - DW_OP_const1u) % 2 ? (uint64_t)dwarf_int(cursor, width) : dwarf_uint(cursor, width));
}

static void stack_operation(struct evaluation *evaluation, struct dwarf_cursor *cursor, unsigned code)
{
    uint64_t a, b, c;
    switch (code) {
    case DW_OP_dup:
        push(evaluation, peek(evaluation, 0));
        break;
    case DW_OP_drop:
        pop(evaluation);
        break;
    case DW_OP_over:
        push(evaluation, peek(evaluation, 1));
        break;
    case DW_OP_pick:
        push(evaluation, peek(evaluation, dwarf_uint(cursor, 1)));
        break;
    case DW_OP_swap:
        a = pop(evaluation), b = pop(evaluation);
        push(evaluation, a), push(evaluation, b);
        break;
    default: /* DW_OP_rot: the top becomes the third */
        a = pop(evaluation), b = pop(evaluation), c = pop(evaluation);
        push(evaluation, a), push(evaluation, c), push(evaluation, b);
    }
}

static void branch(struct evaluation *evaluation, struct dwarf_cursor *cursor, bool always)
{
    int64_t distance = dwarf_int(cursor, 2);
    bool taken = always || pop(evaluation);
    size_t at = evaluation->size - dwarf_left(cursor);
    if (!taken || cursor->failed)
        return;
    if (distance < 0 ? (uint64_t)-distance > at : (uint64_t)distance > dwarf_left(cursor))
        damaged(evaluation);
    else
        cursor->at += distance;
}

static void dereference(struct evaluation *evaluation, unsigned width)
{
    if (width != 1 && width != 2 && width != 4 && width != 8)
        damaged(evaluation);
    else
        push(evaluation, read_uint(evaluation->reader, pop(evaluation), width));
}

static void operate(struct evaluation *evaluation, struct dwarf_cursor *cursor, unsigned code)
{
    if (code >= DW_OP_lit0 && code <= DW_OP_lit31)
        push(evaluation, code - DW_OP_lit0);
    else if (code >= DW_OP_breg0 && code <= DW_OP_breg31)
        push_register(evaluation, code - DW_OP_breg0, dwarf_sleb(cursor));
    else if (code >= DW_OP_const1u && code <= DW_OP_consts)
        constant(evaluation, cursor, code);
    else if (code >= DW_OP_dup && code <= DW_OP_rot)
        stack_operation(evaluation, cursor, code);
    else if (code == DW_OP_bra || code == DW_OP_skip)
        branch(evaluation, cursor, code == DW_OP_skip);
    else if (code >= DW_OP_abs && code <= DW_OP_ne)
        arithmetic(evaluation, cursor, code);
    else if (code == DW_OP_addr)
        push(evaluation, dwarf_uint(cursor, evaluation->machine->word_size));
    else if (code == DW_OP_deref)
        dereference(evaluation, evaluation->machine->word_size);
    else if (code == DW_OP_deref_size)
        dereference(evaluation, (unsigned)dwarf_uint(cursor, 1));
    else if (code == DW_OP_bregx) {
        uint64_t number = dwarf_uleb(cursor);
        push_register(evaluation, number, dwarf_sleb(cursor));
    } else if (code != DW_OP_nop)
        damaged(evaluation);
}

uint64_t expression_evaluate(struct reader *reader, const struct register_machine *machine,
                             const struct registers *registers, uint64_t address, size_t size, const uint64_t *first)
{
    uint8_t bytes[EXPRESSION_MAX];
    struct evaluation evaluation = {
        .reader = reader,
        .machine = machine,
        .registers = registers,
        .address = address,
        .bytes = bytes,
        .size = size,
    };
    if (size > sizeof bytes)
        damaged(&evaluation);
    if (first)
        push(&evaluation, *first);
    if (reader_failed(reader) || !reader_copy(reader, address, bytes, size))
        return 0;
    struct dwarf_cursor cursor = dwarf_cursor_of(bytes, size, reader->big_endian);
    while (dwarf_left(&cursor) && reader_step(reader, "a DWARF expression")) {
        operate(&evaluation, &cursor, (unsigned)dwarf_uint(&cursor, 1));
        if (cursor.failed)
            damaged(&evaluation);
    }
    uint64_t result = peek(&evaluation, 0);
    return reader_failed(reader) ? 0 : result;
}
