#include "formats/dwarf_frame_writer.h"

enum {
    CFA_ADVANCE_LOC = 0x40, /* with the distance in the low six bits */
    CFA_OFFSET = 0x80,      /* with the register in the low six bits, as the next */
    CFA_RESTORE = 0xc0,
    CFA_ADVANCE_LOC1 = 0x02,
    CFA_ADVANCE_LOC2,
    CFA_ADVANCE_LOC4,
    CFA_UNDEFINED = 0x07,
    CFA_REMEMBER_STATE = 0x0a,
    CFA_RESTORE_STATE,
    CFA_DEF_CFA = 0x0c,
    CFA_DEF_CFA_REGISTER,
    CFA_DEF_CFA_OFFSET,
    CFA_EXPRESSION = 0x10,
    CFA_OFFSET_EXTENDED_SF,
    CFA_NEGATE_RA_STATE = 0x2d, /* of AArch64 */
    OP_BREG0 = 0x70,
    UDATA4 = 0x03,         /* DW_EH_PE_* */
    PCREL_SDATA4 = 0x1b,   /* relative to where the number is */
    DATAREL_SDATA4 = 0x3b, /* relative to the begin of .eh_frame_hdr */
};

/* Writes the length of the record at `start`, padded to words with DW_CFA_nop, which is 0. */
static void end_record(struct dwarf_frame_writer *writer, size_t start)
{
    struct byte_writer *to = writer->to;
    while ((to->length - start) % writer->word_size && !to->broken)
        put_u8(to, 0);
    patch_u32(to, start, (uint32_t)(to->length - start - 4));
}

void dwarf_frame_begin(struct dwarf_frame_writer *writer)
{
    struct byte_writer *to = writer->to;
    const struct frame_machine *machine = writer->machine;
    put_u32(to, 0);
    put_u32(to, writer->is_eh_frame ? 0 : UINT32_MAX);
    put_u8(to, writer->is_eh_frame ? 1 : 3); /* version */
    put_string(to, "zR", writer->is_eh_frame ? 2 : 0);
    put_uleb(to, machine->code_factor);
    put_sleb(to, -(int)writer->word_size);
    put_u8(to, machine->return_address);
    if (writer->is_eh_frame) {
        put_uleb(to, 1);
        put_u8(to, PCREL_SDATA4);
    }
    put_u8(to, CFA_DEF_CFA);
    put_uleb(to, machine->stack_pointer);
    put_uleb(to, machine->on_stack ? writer->word_size : 0);
    if (machine->on_stack) {
        put_u8(to, CFA_OFFSET | machine->return_address);
        put_uleb(to, 1);
    }
    end_record(writer, 0);
}

/* The row that the CIE describes. */
static struct frame_row first_row(const struct dwarf_frame_writer *writer, uint64_t begin)
{
    return (struct frame_row){
        .begin = begin,
        .cfa_register = writer->machine->stack_pointer,
        .cfa_offset = writer->machine->on_stack ? writer->word_size : 0,
    };
}

static void put_advance(struct dwarf_frame_writer *writer, uint64_t bytes)
{
    struct byte_writer *to = writer->to;
    uint64_t units = bytes / writer->machine->code_factor;
    if (!units)
        return;
    if (units < 0x40) {
        put_u8(to, CFA_ADVANCE_LOC | (unsigned)units);
    } else if (units <= UINT8_MAX) {
        put_u8(to, CFA_ADVANCE_LOC1);
        put_u8(to, (unsigned)units);
    } else if (units <= UINT16_MAX) {
        put_u8(to, CFA_ADVANCE_LOC2);
        put_u16(to, (unsigned)units);
    } else {
        put_u8(to, CFA_ADVANCE_LOC4);
        put_u32(to, (uint32_t)units);
    }
}

static void put_cfa(struct dwarf_frame_writer *writer, const struct frame_row *from, const struct frame_row *row)
{
    struct byte_writer *to = writer->to;
    bool same_register = row->cfa_register == from->cfa_register, same_offset = row->cfa_offset == from->cfa_offset;
    if (same_register && same_offset)
        return;
    if (same_register || same_offset) {
        put_u8(to, same_register ? CFA_DEF_CFA_OFFSET : CFA_DEF_CFA_REGISTER);
        put_uleb(to, same_register ? (uint32_t)row->cfa_offset : row->cfa_register);
    } else {
        put_u8(to, CFA_DEF_CFA);
        put_uleb(to, row->cfa_register);
        put_uleb(to, (uint32_t)row->cfa_offset);
    }
}

/* The rule of a register in memory: relative to the CFA if the row's CFA has the same base. */
static void put_location(struct dwarf_frame_writer *writer, const struct frame_row *row, unsigned number,
                         const struct frame_slot *slot)
{
    struct byte_writer *to = writer->to;
    int64_t offset = (int64_t)slot->offset - row->cfa_offset;
    if (slot->base == row->cfa_register && offset % writer->word_size == 0) {
        if (offset <= 0) {
            put_u8(to, CFA_OFFSET | number);
            put_uleb(to, (uint64_t)(-offset / writer->word_size));
        } else {
            put_u8(to, CFA_OFFSET_EXTENDED_SF);
            put_uleb(to, number);
            put_sleb(to, -(offset / writer->word_size));
        }
        return;
    }
    put_u8(to, CFA_EXPRESSION);
    put_uleb(to, number);
    size_t size_at = to->length;
    put_u8(to, 0);
    put_u8(to, OP_BREG0 + slot->base); /* all bases are below 32 */
    put_sleb(to, slot->offset);
    if (!to->broken)
        to->data[size_at] = (uint8_t)(to->length - size_at - 1);
}

/* Whether a location needs another rule, because its base or the CFA has changed. */
static bool is_same_rule(const struct frame_row *from, const struct frame_slot *a, const struct frame_row *row,
                         const struct frame_slot *b)
{
    if (a->kind != b->kind || a->kind != FRAME_AT)
        return a->kind == b->kind;
    bool was_relative = a->base == from->cfa_register, is_relative = b->base == row->cfa_register;
    if (was_relative != is_relative)
        return false;
    if (is_relative)
        return (int64_t)a->offset - from->cfa_offset == (int64_t)b->offset - row->cfa_offset;
    return a->base == b->base && a->offset == b->offset;
}

static void put_change(struct dwarf_frame_writer *writer, const struct frame_row *from, const struct frame_row *row)
{
    struct byte_writer *to = writer->to;
    put_cfa(writer, from, row);
    for (unsigned i = 0; i < writer->machine->slot_count; i++) {
        unsigned number = writer->machine->slots[i];
        const struct frame_slot *slot = &row->slots[i];
        if (is_same_rule(from, &from->slots[i], row, slot))
            continue;
        if (slot->kind == FRAME_AT) {
            put_location(writer, row, number, slot);
        } else if (slot->kind == FRAME_UNDEFINED) {
            put_u8(to, CFA_UNDEFINED);
            put_uleb(to, number);
        } else {
            put_u8(to, CFA_RESTORE | number); /* the CIE has no rule for it */
        }
    }
    if (row->is_signed != from->is_signed)
        put_u8(to, CFA_NEGATE_RA_STATE);
}

/*
 * The row of the function's body: the one that applies to most of its bytes; the rows after an epilog return to it.
 * *ret_last is the last row that is the same.
 */
static size_t find_body(const struct frame_row *rows, size_t count, uint64_t end, size_t *ret_last)
{
    uint64_t most = 0;
    size_t body = 0, last = count;
    for (size_t i = 0; i < count; i++) {
        uint64_t size = (i + 1 < count ? rows[i + 1].begin : end) - rows[i].begin;
        body = size > most ? i : body;
        most = MAX(most, size);
    }
    while (body < count && !frame_row_equal(&rows[--last], &rows[body]))
        ;
    *ret_last = last;
    for (size_t i = 0; i < body; i++)
        if (frame_row_equal(&rows[i], &rows[last]))
            body = i;
    return body;
}

static void put_rows(struct dwarf_frame_writer *writer, uint64_t begin, uint64_t end, const struct frame_row *rows,
                     size_t count)
{
    struct frame_row last = first_row(writer, begin);
    size_t last_body, body = find_body(rows, count, end, &last_body);
    bool is_remembered = false, in_body = false;
    for (size_t i = 0; i < count; i++) {
        bool is_body = i >= body && i <= last_body && frame_row_equal(&rows[i], &rows[body]);
        put_advance(writer, rows[i].begin - last.begin);
        if (in_body && !is_body && i < last_body) {
            put_u8(writer->to, CFA_REMEMBER_STATE);
            is_remembered = true;
        }
        if (is_body && is_remembered) {
            put_u8(writer->to, CFA_RESTORE_STATE);
            is_remembered = false;
        } else {
            put_change(writer, &last, &rows[i]);
        }
        in_body = is_body;
        last = rows[i];
    }
}

size_t dwarf_frame_add(struct dwarf_frame_writer *writer, uint64_t begin, uint64_t end, const struct frame_row *rows,
                       size_t count)
{
    struct byte_writer *to = writer->to;
    size_t start = to->length;
    put_u32(to, 0);
    put_u32(to, writer->is_eh_frame ? (uint32_t)(start + 4) : 0); /* the CIE, which is at 0 */
    if (writer->is_eh_frame) {
        put_u32(to, (uint32_t)(begin + writer->moved - (writer->address + to->length)));
        put_u32(to, (uint32_t)(end - begin));
        put_uleb(to, 0); /* augmentation data */
    } else {
        put_word(to, begin + writer->moved, writer->word_size);
        put_word(to, end - begin, writer->word_size);
    }
    put_rows(writer, begin, end, rows, count);
    end_record(writer, start);
    return start;
}

void dwarf_frame_end(struct dwarf_frame_writer *writer)
{
    put_u32(writer->to, 0);
}

void dwarf_frame_put_index(const struct dwarf_frame_writer *writer, struct byte_writer *to, uint64_t address,
                           const struct dwarf_frame_entry *entries, size_t count)
{
    static const uint8_t head[] = {1, PCREL_SDATA4, UDATA4, DATAREL_SDATA4};
    put_bytes(to, head, sizeof head);
    put_u32(to, (uint32_t)(writer->address - (address + sizeof head)));
    put_u32(to, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        put_u32(to, (uint32_t)(entries[i].begin + writer->moved - address));
        put_u32(to, (uint32_t)(writer->address + entries[i].fde - address));
    }
}
