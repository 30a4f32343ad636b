/*
 * machine.h: what the walk of a stack must know of each architecture: registers by their DWARF numbers, where they are
 * in the runtime's structures, how code calls. An architecture is a row.
 * Source: dotnet/runtime src/coreclr/pal/inc/pal.h (CONTEXT); src/coreclr/vm/{amd64,i386,arm64,arm}/cgencpu.h;
 * Linux arch/{x86/include/asm/sigframe.h,arm64/kernel/signal.c,arm/kernel/signal.h} (struct rt_sigframe).
 */
#ifndef CDACQ_CONTRACTS_STACK_WALK_MACHINE_H
#define CDACQ_CONTRACTS_STACK_WALK_MACHINE_H

#include "descriptors/layout.h"
#include "target/reader.h"

struct registers;
struct unwinder;

enum { NO_REGISTER = 255 };

/* Where a CONTEXT has a register, bytes. */
struct context_slot {
    uint8_t number;
    uint16_t offset;
};

/* Which field of CalleeSavedRegisters has a register. */
struct saved_slot {
    uint8_t number;
    enum layout_field field;
};

struct walk_machine {
    const struct unwinder *unwinder; /* of managed code */
    uint8_t pc, sp, fp;
    uint8_t return_address; /* the register that has it where a function begins; NO_REGISTER: the stack does */
    uint8_t thumb;          /* of arm: the bit that a return address to Thumb code has besides the address; else 0 */
    bool is_signed;         /* return addresses may be signed (pointer authentication) */
    bool callee_pops;       /* a call removes its arguments from the stack; their size is not in a TransitionBlock */
    uint16_t siginfo;       /* where a signal's siginfo_t is, from the stack pointer when its handler has returned */
    const struct context_slot *context;
    size_t context_count;
    const struct saved_slot *saved;
    size_t saved_count;
    /*
     * Whether the bytes in front of a return address, `size` of them, end with an instruction that calls. If so and if
     * the instruction has the callee's address, or that of a pointer to it, *ret_target is that address; else 0.
     */
    bool (*ends_with_call)(const uint8_t *bytes, size_t size, uint64_t return_address, uint64_t *ret_target,
                           bool *ret_is_pointer);
    /*
     * Whether the instructions at `pc` are those of a procedure linkage table's entry that has put nothing on the
     * stack. NULL: such entries are not known.
     */
    bool (*is_linkage)(struct reader *reader, uint64_t pc);
};

/* NULL for an architecture whose stacks this build cannot walk. */
const struct walk_machine *walk_machine_find(enum architecture architecture);

/* The address of the code that a return address leads to. */
static inline uint64_t walk_machine_code_address(const struct walk_machine *machine, const struct reader *reader,
                                                 uint64_t return_address)
{
    if (machine->is_signed)
        return_address = target_unsigned_address(reader->target, return_address);
    return return_address & ~(uint64_t)machine->thumb;
}

/* The registers of a CONTEXT. False, and the reader fails, when it cannot be read. */
bool walk_machine_read_context(const struct walk_machine *machine, struct reader *reader, uint64_t context,
                               struct registers *ret);

/* Adds the registers of a CalleeSavedRegisters. False, and the reader fails, when it cannot be read. */
bool walk_machine_read_saved(const struct walk_machine *machine, struct reader *reader, uint64_t saved,
                             struct registers *registers);

/* The registers that calls preserve, as a set; the stack pointer and the program counter too. */
uint64_t walk_machine_preserved(const struct walk_machine *machine);

#endif
