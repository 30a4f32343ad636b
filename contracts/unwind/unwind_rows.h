/*
 * unwind_rows.h: for the `rows` of unwinder.h: a stack pointer and saved registers that are not yet known as numbers,
 * but relative to a register of the frame.
 */
#ifndef CDACQ_CONTRACTS_UNWIND_UNWIND_ROWS_H
#define CDACQ_CONTRACTS_UNWIND_UNWIND_ROWS_H

#include "contracts/unwind/unwinder.h"

DEFINE_VECTOR_FUNCTIONS(frame_rows, struct frame_row);

/* Unwinding in symbols: the stack pointer is what register `base` has in the frame, and `sp`. */
struct symbolic_frame {
    const struct frame_machine *machine;
    uint8_t base;
    int64_t sp;
    uint64_t changed; /* registers that no longer have what they have in the frame, or that are not known */
    bool is_signed;
    bool failed; /* no row can say this */
    struct frame_slot slots[FRAME_SLOTS_MAX];
};

static inline struct symbolic_frame symbolic_frame_of(const struct frame_machine *machine)
{
    return (struct symbolic_frame){.machine = machine, .base = machine->stack_pointer};
}

/* Where a number of bytes from the value of a register is. */
static inline int64_t symbolic_add(int64_t offset, int64_t more)
{
    int64_t sum;
    return __builtin_add_overflow(offset, more, &sum) ? INT64_MAX : sum;
}

/* The stack pointer becomes the value of a register and `offset`. */
static inline void symbolic_set_sp(struct symbolic_frame *frame, unsigned number, int64_t offset)
{
    if (number == frame->machine->stack_pointer) {
        frame->sp = symbolic_add(frame->sp, offset);
        return;
    }
    frame->failed |= frame->changed >> number & 1;
    frame->base = (uint8_t)number;
    frame->sp = offset;
}

/* Register `number` was saved at the value of `base` in the frame, and `offset`. */
static inline void symbolic_restore(struct symbolic_frame *frame, unsigned number, unsigned base, int64_t offset)
{
    frame->changed |= UINT64_C(1) << number;
    frame->failed |= number == frame->machine->stack_pointer || offset != (int32_t)offset;
    for (unsigned i = 0; i < frame->machine->slot_count; i++)
        if (frame->machine->slots[i] == number)
            frame->slots[i] = (struct frame_slot){FRAME_AT, (uint8_t)base, (int32_t)offset};
}

/* The row, whose CFA is the stack pointer. False if there is none. */
static inline bool symbolic_row(const struct symbolic_frame *frame, uint64_t begin, struct frame_row *ret)
{
    if (frame->failed || frame->sp < 0 || frame->sp > INT32_MAX)
        return false;
    *ret = (struct frame_row){
        .begin = begin,
        .cfa_register = frame->base,
        .is_signed = frame->is_signed,
        .cfa_offset = (int32_t)frame->sp,
    };
    memcpy(ret->slots, frame->slots, sizeof ret->slots);
    return true;
}

/*
 * Appends a row unless the last one says the same; it replaces one with the same begin. False, and the reader fails,
 * when out of memory or of fuel.
 */
bool frame_rows_add(struct reader *reader, struct frame_rows *rows, const struct frame_row *row);

/* Makes the reader fail because no row can say what the unwind data of the function do. Returns false. */
bool frame_rows_fail(struct reader *reader, const struct unwind_function *function);

extern const struct frame_machine frame_machine_x64, frame_machine_arm64;

bool unwind_rows_x64(struct reader *reader, const struct unwind_function *function, struct frame_rows *ret,
                     bool *ret_epilogs);
bool unwind_rows_arm64(struct reader *reader, const struct unwind_function *function, struct frame_rows *ret,
                       bool *ret_epilogs);

#endif
