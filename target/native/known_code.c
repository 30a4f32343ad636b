#include "target/native/known_code.h"

#include "formats/x64_instruction.h"

/*
 * A signal trampoline: `mov $15, %rax; syscall`, where 15 is SYS_rt_sigreturn. When the handler has returned to it, the
 * stack pointer is at the ucontext of the interrupted code. Source: Linux arch/x86/include/uapi/asm/sigcontext.h,
 * struct sigcontext_64.
 */
static bool step_trampoline(const struct register_machine *machine, struct reader *reader, uint64_t pc, uint64_t sp,
                            struct registers *registers, uint64_t *ret_cfa)
{
    static const uint8_t instructions[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
    static const uint8_t order[] = {8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16}; /* DWARF numbers */
    enum { CONTEXT = 40 }; /* offset of uc_mcontext */
    uint8_t code[sizeof instructions], saved[8 * sizeof order];
    if (!reader_try_copy(reader, pc, code, sizeof code) || memcmp(code, instructions, sizeof code) != 0 ||
        !reader_try_copy(reader, sp + CONTEXT, saved, sizeof saved))
        return false;
    *registers = (struct registers){0};
    for (size_t i = 0; i < sizeof order; i++)
        register_set(registers, order[i], load_u64(saved + 8 * i, false));
    *ret_cfa = registers->values[machine->sp];
    return true;
}

/* Where the next instruction is `ret`, as after each system call that musl can cancel. */
static bool step_return(const struct register_machine *machine, struct reader *reader, uint64_t pc, uint64_t sp,
                        struct registers *registers, uint64_t *ret_cfa)
{
    uint8_t code, address[8];
    if (!reader_try_copy(reader, pc, &code, 1) || code != 0xc3 ||
        !reader_try_copy(reader, sp, address, sizeof address) || !load_u64(address, false))
        return false;
    registers_keep(registers, machine->preserved);
    register_set(registers, machine->pc, load_u64(address, false));
    register_set(registers, machine->sp, sp + sizeof address);
    *ret_cfa = sp + sizeof address;
    return true;
}

bool known_code_step(const struct register_machine *machine, struct reader *reader, const struct image *image,
                     bool interrupted, struct registers *registers, uint64_t *ret_cfa, bool *ret_is_signal)
{
    uint64_t pc = registers->values[machine->pc], sp = registers->values[machine->sp];
    bool is_known = machine->elf_machine == EM_X86_64;
    *ret_is_signal = is_known && step_trampoline(machine, reader, pc, sp, registers, ret_cfa);
    return *ret_is_signal ||
           (is_known && interrupted && image && step_return(machine, reader, pc, sp, registers, ret_cfa));
}

/*
 * `mov %eax, %edi; xor %eax, %eax; mov $60, %al; syscall`, where 60 is SYS_exit: what musl's clone() does when the
 * function of a thread has returned.
 */
static bool ends_thread(struct reader *reader, uint64_t pc)
{
    static const uint8_t instructions[] = {0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05};
    uint8_t code[sizeof instructions];
    return reader_try_copy(reader, pc, code, sizeof code) && memcmp(code, instructions, sizeof code) == 0;
}

/* Whether the instructions from the entry point on lead to `pc` without a jump or a return. */
static bool follows_entry(struct reader *reader, uint64_t entry, uint64_t pc)
{
    uint8_t code[64];
    size_t size = (size_t)(pc - entry), at = 0;
    if (pc <= entry || size > sizeof code || !reader_try_copy(reader, entry, code, size))
        return false;
    while (at < size) {
        unsigned length = x64_instruction_length(code + at, size - at);
        bool leaves = code[at] == 0xc3 || code[at] == 0xe9 || code[at] == 0xeb || code[at] == 0xf4;
        if (!length || leaves)
            return false;
        at += length;
    }
    return at == size;
}

bool known_code_is_outermost(const struct register_machine *machine, struct reader *reader, const struct image *image,
                             uint64_t pc)
{
    return machine->elf_machine == EM_X86_64 &&
           (ends_thread(reader, pc) ||
            (image && image->entry_vaddr && follows_entry(reader, image->base + image->entry_vaddr, pc)));
}
