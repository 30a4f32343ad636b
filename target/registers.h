/*
 * registers.h: the registers of a thread or a frame, by their DWARF numbers, and what each machine calls them. A row of
 * a machine also has the order in which the kernel writes registers: in NT_PRSTATUS and for PTRACE_GETREGSET.
 *
 * DWARF gives no number to the program counter of aarch64, riscv64 and loongarch64. Here it has number 32 on all three.
 * (AArch64's DWARF has since assigned 32 to it; on the others 32 is a floating-point register that calls destroy.)
 * Source: the processor supplements of the ELF ABI; Linux arch/.../include/uapi/asm/ptrace.h. Pure functions.
 */
#ifndef CDACQ_TARGET_REGISTERS_H
#define CDACQ_TARGET_REGISTERS_H

#include "cdacq/stack.h"
#include "target/reader.h"

enum {
    REGISTER_MAX = 64,
    REGISTER_NONE = 255,
    REGISTER_XMM0 = 17, /* of x86-64; the others follow */
    REGISTER_XMM_COUNT = 16,
    FXSAVE_SIZE = 512, /* bytes */
};

/* Registers by their DWARF numbers. What is not known has its bit in `known` clear and the value 0. */
struct registers {
    uint64_t values[REGISTER_MAX];
    uint64_t known;
};

static inline bool register_is_known(const struct registers *registers, unsigned number)
{
    return registers->known >> number & 1;
}

static inline void register_set(struct registers *registers, unsigned number, uint64_t value)
{
    registers->values[number] = value;
    registers->known |= UINT64_C(1) << number;
}

/* The value of a register that unwinding at `pc` needs. 0, and the reader fails, when it is not known. */
static inline uint64_t register_needed(struct reader *reader, const struct registers *registers, unsigned number,
                                       uint64_t pc)
{
    if (!register_is_known(registers, number))
        reader_fail(reader, CDACQ_ERR_CORRUPT, pc, "a register that unwinding needs");
    return registers->values[number];
}

/* Makes all registers that are not in the set unknown. */
static inline void registers_keep(struct registers *registers, uint64_t set)
{
    registers->known &= set;
    for (unsigned i = 0; i < REGISTER_MAX; i++)
        registers->values[i] = register_is_known(registers, i) ? registers->values[i] : 0;
}

struct register_machine {
    uint16_t elf_machine;     /* EM_* */
    uint8_t word_size;        /* bytes */
    uint8_t pc, sp, fp;       /* DWARF numbers */
    uint8_t return_address;   /* the column of call-frame information that holds it; may be `pc` */
    uint8_t count;            /* of integer registers and the program counter: the numbers below it */
    uint64_t preserved;       /* a bit for each register that a function returns unchanged, by the calling convention */
    const char *const *names; /* `count` of them */
    const uint8_t *kernel;    /* the DWARF number of each word that the kernel writes, or REGISTER_NONE */
    uint8_t kernel_count;
};

/* NULL for a machine that is not known. */
const struct register_machine *register_machine_find(unsigned elf_machine);

/*
 * Decodes registers as the kernel writes them, in words of the machine's width. Words that `size` cuts off are not
 * known. False, with no register known, where the program counter and the stack pointer are not both there.
 */
bool registers_from_kernel(const struct register_machine *machine, const uint8_t *bytes, size_t size, bool big_endian,
                           struct registers *ret);

/*
 * Adds the low halves of xmm0 to xmm15, as the kernel writes them in NT_PRFPREG of x86-64: an FXSAVE area. Does nothing
 * if `size` cuts them off, and on other machines. No function preserves them: only an innermost frame has them.
 */
void registers_add_xmm(const struct register_machine *machine, const uint8_t *bytes, size_t size,
                       struct registers *registers);

enum { REGISTERS_KERNEL_SIZE = 64 * 8 }; /* bytes; no machine has more */

/* The reverse: writes the machine's words to `ret` and returns their size. What is not known is written as 0. */
size_t registers_to_kernel(const struct register_machine *machine, const struct registers *registers, bool big_endian,
                           uint8_t ret[REGISTERS_KERNEL_SIZE]);

/*
 * Whether the thread was in a system call, as the kernel writes it with the registers: the word orig_rax of x86-64 is
 * the number of the call, and -1 outside of one. Some writers of cores leave it 0, the number of read(2): not known.
 * Other machines have no such word. Source: Linux arch/x86/entry/entry_64.S.
 */
enum cdacq_thread_mode registers_mode(const struct register_machine *machine, const uint8_t *bytes, size_t size);

/* The number of the system call, plus 1; 0: none, or not known. A read(2) is known by what the kernel left in rax. */
uint32_t registers_call(const struct register_machine *machine, const uint8_t *bytes, size_t size);

/* Writes them to the words that registers_to_kernel() wrote. */
void registers_put_mode(const struct register_machine *machine, enum cdacq_thread_mode mode, uint32_t call,
                        uint8_t ret[REGISTERS_KERNEL_SIZE]);

#endif
