#include "target/native/known_code.h"

#include "formats/x64_instruction.h"

/* What is known of the code of a machine. NULL: nothing. */
struct machine_code {
    uint16_t elf_machine;
    /* A signal trampoline: the call of SYS_rt_sigreturn. When the handler has returned to it, the stack pointer is at
       the signal's frame. */
    struct {
        const uint8_t *bytes;
        size_t size;
    } trampoline, thread_end; /* what musl's clone() does when a thread's function has returned: the call of SYS_exit */
    /* Where the trampoline's frame has registers, from the stack pointer, and their DWARF numbers. */
    uint16_t context;
    uint8_t order_count;
    const uint8_t *order; /* NULL: in the order of their numbers */
    /* Steps to the caller where the next instruction returns, as after each system call that musl can cancel. */
    bool (*step_return)(const struct register_machine *machine, struct reader *reader, struct registers *registers);
    /* Whether code of `size` bytes ends without a jump or a return. */
    bool (*runs_through)(const uint8_t *code, size_t size);
};

/* ---- x64 ---- */

static bool step_return_x64(const struct register_machine *machine, struct reader *reader, struct registers *registers)
{
    uint64_t pc = registers->values[machine->pc], sp = registers->values[machine->sp];
    uint8_t code, address[8];
    if (!reader_try_copy(reader, pc, &code, 1) || code != 0xc3 ||
        !reader_try_copy(reader, sp, address, sizeof address) || !load_u64(address, false))
        return false;
    registers_keep(registers, machine->preserved);
    register_set(registers, machine->pc, load_u64(address, false));
    register_set(registers, machine->sp, sp + sizeof address);
    return true;
}

static bool runs_through_x64(const uint8_t *code, size_t size)
{
    size_t at = 0;
    while (at < size) {
        unsigned length = x64_instruction_length(code + at, size - at);
        bool leaves = code[at] == 0xc3 || code[at] == 0xe9 || code[at] == 0xeb || code[at] == 0xf4;
        if (!length || leaves)
            return false;
        at += length;
    }
    return at == size;
}

static const uint8_t trampoline_x64[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}; /* mov $15, %rax; syscall */
/* mov %eax, %edi; xor %eax, %eax; mov $60, %al; syscall */
static const uint8_t thread_end_x64[] = {0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05};
static const uint8_t order_x64[] = {8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16};

/* ---- arm64 ---- */

enum { ARM64_INSTRUCTION = 4, ARM64_LR = 30 };

static bool step_return_arm64(const struct register_machine *machine, struct reader *reader,
                              struct registers *registers)
{
    uint8_t code[ARM64_INSTRUCTION];
    if (!reader_try_copy(reader, registers->values[machine->pc], code, sizeof code) ||
        load_u32(code, false) != 0xd65f03c0 || !register_is_known(registers, ARM64_LR) || !registers->values[ARM64_LR])
        return false;
    uint64_t address = target_unsigned_address(reader->target, registers->values[ARM64_LR]);
    registers_keep(registers, machine->preserved | UINT64_C(1) << machine->sp);
    register_set(registers, machine->pc, address);
    return true;
}

/* B, B.cond, CBZ, TBZ and their likes; BR, RET, ERET; SVC, BRK, HLT. BL and BLR come back. */
static bool runs_through_arm64(const uint8_t *code, size_t size)
{
    for (size_t at = 0; at < size; at += ARM64_INSTRUCTION) {
        uint32_t instruction = size - at < ARM64_INSTRUCTION ? 0 : load_u32(code + at, false);
        bool is_blr = (instruction & 0xfffffc1f) == 0xd63f0000;
        bool leaves = instruction >> 26 == 0x05 || instruction >> 25 == 0x2a || (instruction >> 25 & 0x3e) == 0x1a ||
                      (instruction >> 25 == 0x6b && !is_blr) || instruction >> 24 == 0xd4;
        if (leaves || !instruction)
            return false;
    }
    return true;
}

static const uint8_t trampoline_arm64[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4}; /* mov x8, #139; svc #0 */
static const uint8_t thread_end_arm64[] = {0xa8, 0x0b, 0x80, 0xd2, 0x01, 0, 0, 0xd4}; /* mov x8, #93; svc #0 */

/* ----------------------------------------------------------------------------------------------------------------- */

#define BYTES(array)         \
    {                        \
        array, sizeof(array) \
    }

/*
 * Where registers are: on x64 in the ucontext at the stack pointer, on arm64 in the one behind the siginfo_t there, of
 * 128 bytes. Source: Linux arch/x86/include/uapi/asm/sigcontext.h, arch/arm64/kernel/signal.c (struct rt_sigframe),
 * arch/arm64/include/uapi/asm/{ucontext,sigcontext}.h.
 */
static const struct machine_code machines[] = {
    {.elf_machine = EM_X86_64,
     .trampoline = BYTES(trampoline_x64),
     .thread_end = BYTES(thread_end_x64),
     .context = 40,
     .order = order_x64,
     .order_count = sizeof order_x64,
     .step_return = step_return_x64,
     .runs_through = runs_through_x64},
    {.elf_machine = EM_AARCH64,
     .trampoline = BYTES(trampoline_arm64),
     .thread_end = BYTES(thread_end_arm64),
     .context = 128 + 176 + 8,
     .order_count = 33, /* x0 to x30, sp, pc */
     .step_return = step_return_arm64,
     .runs_through = runs_through_arm64},
};

static const struct machine_code *machine_code_of(const struct register_machine *machine)
{
    for (size_t i = 0; i < ARRAY_SIZE(machines); i++)
        if (machines[i].elf_machine == machine->elf_machine)
            return &machines[i];
    return NULL;
}

static bool has_bytes(struct reader *reader, uint64_t address, const uint8_t *bytes, size_t size)
{
    uint8_t code[16];
    return size <= sizeof code && reader_try_copy(reader, address, code, size) && memcmp(code, bytes, size) == 0;
}

static bool step_trampoline(const struct machine_code *known, const struct register_machine *machine,
                            struct reader *reader, struct registers *registers)
{
    uint8_t saved[8 * REGISTER_MAX];
    uint64_t pc = registers->values[machine->pc], sp = registers->values[machine->sp];
    if (!has_bytes(reader, pc, known->trampoline.bytes, known->trampoline.size) ||
        !reader_try_copy(reader, sp + known->context, saved, (size_t)8 * known->order_count))
        return false;
    *registers = (struct registers){0};
    for (unsigned i = 0; i < known->order_count; i++)
        register_set(registers, known->order ? known->order[i] : i, load_u64(saved + (size_t)8 * i, false));
    return true;
}

bool known_code_step(const struct register_machine *machine, struct reader *reader, const struct image *image,
                     bool interrupted, struct registers *registers, uint64_t *ret_cfa, bool *ret_is_signal)
{
    const struct machine_code *known = machine_code_of(machine);
    *ret_is_signal = known && step_trampoline(known, machine, reader, registers);
    bool steps = *ret_is_signal || (known && interrupted && image && known->step_return(machine, reader, registers));
    if (steps)
        *ret_cfa = registers->values[machine->sp];
    return steps;
}

/* Whether the instructions from the entry point on lead to `pc` without a jump or a return. */
static bool follows_entry(const struct machine_code *known, struct reader *reader, uint64_t entry, uint64_t pc)
{
    uint8_t code[64];
    size_t size = (size_t)(pc - entry);
    return pc > entry && size <= sizeof code && reader_try_copy(reader, entry, code, size) &&
           known->runs_through(code, size);
}

bool known_code_is_outermost(const struct register_machine *machine, struct reader *reader, const struct image *image,
                             uint64_t pc)
{
    const struct machine_code *known = machine_code_of(machine);
    return known &&
           (has_bytes(reader, pc, known->thread_end.bytes, known->thread_end.size) ||
            (image && image->entry_vaddr && follows_entry(known, reader, image->base + image->entry_vaddr, pc)));
}
