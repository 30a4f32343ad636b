/*
 * frame_row.h: how the caller's registers are found at one instruction of a function: what the unwind data of a runtime
 * say, in the form that call-frame information can hold. The registers that calls preserve have slots; others are not
 * known in the caller. The return address is in memory just below the CFA, or in the register that has it.
 */
#ifndef CDACQ_FORMATS_FRAME_ROW_H
#define CDACQ_FORMATS_FRAME_ROW_H

#include "util/vector.h"

enum { FRAME_SLOTS_MAX = 12 };

enum frame_slot_kind {
    FRAME_SAME,      /* the register still has its value */
    FRAME_AT,        /* the value is in memory, at the register `base` + `offset` */
    FRAME_UNDEFINED, /* not known in the caller */
};

struct frame_slot {
    uint8_t kind; /* enum frame_slot_kind */
    uint8_t base; /* DWARF number */
    int32_t offset;
};

struct frame_row {
    uint64_t begin;       /* address of the first instruction that it applies to */
    uint8_t cfa_register; /* DWARF number; the CFA, the caller's stack pointer, is it + cfa_offset */
    bool is_signed;       /* the return address is signed */
    int32_t cfa_offset;   /* not negative */
    struct frame_slot slots[FRAME_SLOTS_MAX]; /* in the machine's order; those beyond its count are zeroed */
};

DEFINE_VECTOR_TYPE(frame_rows, struct frame_row);

/* The DWARF numbers of a machine. */
struct frame_machine {
    uint8_t slot_count;
    uint8_t slots[FRAME_SLOTS_MAX]; /* the registers that calls preserve */
    uint8_t return_address;         /* the column of the return address */
    bool on_stack;                  /* a call puts it on the stack; else it is in its register */
    uint8_t stack_pointer;
    uint8_t code_factor; /* bytes; the length of every instruction is a multiple of it */
};

static inline bool frame_slot_equal(const struct frame_slot *a, const struct frame_slot *b)
{
    return a->kind == b->kind && (a->kind != FRAME_AT || (a->base == b->base && a->offset == b->offset));
}

/* Whether two rows say the same, wherever they begin. */
static inline bool frame_row_equal(const struct frame_row *a, const struct frame_row *b)
{
    bool equal = a->cfa_register == b->cfa_register && a->cfa_offset == b->cfa_offset && a->is_signed == b->is_signed;
    for (unsigned i = 0; i < FRAME_SLOTS_MAX && equal; i++)
        equal = frame_slot_equal(&a->slots[i], &b->slots[i]);
    return equal;
}

#endif
