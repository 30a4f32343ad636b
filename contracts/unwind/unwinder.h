/*
 * unwinder.h: from the registers of a frame of managed code to those of its caller, by the unwind data that the JIT
 * compiler wrote for the function. An architecture is a row; its file has its rules. Nothing here finds functions: who
 * calls has the entry that covers the program counter. Registers in, registers out, through a reader: fuel bounds every
 * loop, and a frame that does not move up the stack is an error.
 * Source: dotnet/runtime docs/design/datacontracts/StackWalk.md; src/coreclr/unwinder.
 */
#ifndef CDACQ_CONTRACTS_UNWIND_UNWINDER_H
#define CDACQ_CONTRACTS_UNWIND_UNWINDER_H

#include "formats/frame_row.h"
#include "target/registers.h"

/* The function or funclet that covers the program counter, as its RUNTIME_FUNCTION has it. Addresses. */
struct unwind_function {
    uint64_t base; /* what RVAs in the unwind data are relative to */
    uint64_t begin, end;
    uint64_t other_begin, other_end; /* of the method's cold part, seen from the hot one, and the reverse; 0: none */
    uint64_t unwind_data;
    uint64_t method, gc_info; /* of x86: where the method begins, and its GC info */
    uint32_t gc_info_version;
    uint32_t packed; /* of arm64 and arm: the entry's second word, where that is all there is; else 0 */
    bool funclet;    /* of x64 and x86: a funclet of its method, which may change registers without saving them */
};

struct unwinder {
    uint8_t pc, sp; /* register numbers */
    /*
     * Replaces the registers of a frame by those of its caller. `interrupted`: the frame stopped at any instruction, as
     * the innermost one and that of a signal or fault have; else its program counter is a return address, which is
     * never within a prolog or epilog. False, and the reader fails, when that cannot be done: memory is missing, the
     * data are damaged, a register that is needed is not known, or the caller's frame would not be further up the
     * stack. *registers is untouched then.
     */
    bool (*unwind)(struct reader *reader, const struct unwind_function *function, bool interrupted,
                   struct registers *registers);
    /*
     * The same for all instructions of a function, as rows of call-frame information that ascend by address; the first
     * begins with the function. `ret` is overwritten. At every instruction, a row leads to the registers that `unwind`
     * finds there for an interrupted frame. *ret_epilogs: whether those of epilogs are among them; where epilogs are
     * known by their instructions, these may be missing or unknown. False, and the reader fails, when the data are
     * damaged or memory is missing, or when no row can say what the data do. NULL: this build does not know.
     */
    bool (*rows)(struct reader *reader, const struct unwind_function *function, struct frame_rows *ret,
                 bool *ret_epilogs);
    const struct frame_machine *machine; /* of the rows */
};

extern const struct unwinder unwinder_x64, unwinder_x86, unwinder_arm64, unwinder_arm;

#endif
