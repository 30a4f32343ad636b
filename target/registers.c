#include "target/registers.h"

#include "formats/elf_machine.h"
#include "formats/elf.h"

enum { NONE = REGISTER_NONE };

enum {
    X86_64_ORIG_RAX = 15 * 8, /* offset in bytes */
    X86_64_RAX = 10 * 8,
    X86_64_RESTART = 219,  /* restart_syscall: a system call that goes on, whichever it is */
    X86_64_RESTARTS = 512, /* ERESTARTSYS: a system call that was interrupted while it waited */
    CALLS_MAX = 1024,      /* numbers of system calls */
};

static const char *const x86_64_names[] = {
    "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rip",
};
/* r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp, and segments */
static const uint8_t x86_64_kernel[] = {15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5, NONE, 16, NONE, NONE, 7};

static const char *const i386_names[] = {"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eip"};
/* ebx ecx edx esi edi ebp eax ds es fs gs orig_eax eip cs eflags esp ss */
static const uint8_t i386_kernel[] = {3, 1, 2, 6, 7, 5, 0, NONE, NONE, NONE, NONE, NONE, 8, NONE, NONE, 4};

static const char *const aarch64_names[] = {
    "x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",  "x7",  "x8",  "x9",  "x10",
    "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",
    "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp",  "pc",
};
static const char *const arm_names[] = {
    "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "sp", "lr", "pc",
};
static const char *const riscv_names[] = {
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1",  "a0",  "a1", "a2", "a3", "a4", "a5", "a6",
    "a7",   "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6", "pc",
};
static const char *const loongarch_names[] = {
    "r0", "ra", "tp", "sp", "a0",  "a1", "a2", "a3", "a4", "a5", "a6", "a7", "t0", "t1", "t2", "t3", "t4",
    "t5", "t6", "t7", "t8", "r21", "fp", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "pc",
};
/* Number n is word n; the program counter follows the others, on loongarch64 after orig_a0. */
static const uint8_t in_order[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
                                   17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32};
static const uint8_t riscv_kernel[] = {32, 1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                       16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
static const uint8_t loongarch_kernel[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,   16,
                                           17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, NONE, 32};

#define BITS(first, last) (((UINT64_C(2) << (last)) - 1) & ~((UINT64_C(1) << (first)) - 1))

static const struct register_machine machines[] = {
    {EM_X86_64, 8, 16, 7, 6, 16, 17, BITS(3, 3) | BITS(6, 6) | BITS(12, 15), x86_64_names, x86_64_kernel,
     ARRAY_SIZE(x86_64_kernel)},
    {EM_AARCH64, 8, 32, 31, 29, 30, 33, BITS(19, 29), aarch64_names, in_order, 33},
    {EM_ARM, 4, 15, 13, 11, 14, 16, BITS(4, 11), arm_names, in_order, 16},
    {EM_386, 4, 8, 4, 5, 8, 9, BITS(3, 3) | BITS(5, 7), i386_names, i386_kernel, ARRAY_SIZE(i386_kernel)},
    {EM_RISCV, 8, 32, 2, 8, 1, 33, BITS(3, 4) | BITS(8, 9) | BITS(18, 27), riscv_names, riscv_kernel, 32},
    {ELF_MACHINE_LOONGARCH, 8, 32, 3, 22, 1, 33, BITS(2, 2) | BITS(21, 31), loongarch_names, loongarch_kernel,
     ARRAY_SIZE(loongarch_kernel)},
};

const struct register_machine *register_machine_find(unsigned elf_machine)
{
    for (size_t i = 0; i < ARRAY_SIZE(machines); i++)
        if (machines[i].elf_machine == elf_machine)
            return &machines[i];
    return NULL;
}

bool registers_from_kernel(const struct register_machine *machine, const uint8_t *bytes, size_t size, bool big_endian,
                           struct registers *ret)
{
    *ret = (struct registers){0};
    for (size_t i = 0; i < machine->kernel_count && (i + 1) * machine->word_size <= size; i++) {
        const uint8_t *word = bytes + i * machine->word_size;
        if (machine->kernel[i] != NONE)
            register_set(ret, machine->kernel[i],
                         machine->word_size == 8 ? load_u64(word, big_endian) : load_u32(word, big_endian));
    }
    bool complete = register_is_known(ret, machine->pc) && register_is_known(ret, machine->sp);
    if (!complete)
        *ret = (struct registers){0};
    return complete;
}

void registers_add_xmm(const struct register_machine *machine, const uint8_t *bytes, size_t size,
                       struct registers *registers)
{
    enum { XMM_AT = 160, XMM_SIZE = 16 }; /* struct fxregs_state */
    if (machine->elf_machine != EM_X86_64 || size < XMM_AT + REGISTER_XMM_COUNT * XMM_SIZE)
        return;
    for (unsigned i = 0; i < REGISTER_XMM_COUNT; i++)
        register_set(registers, REGISTER_XMM0 + i, load_u64(bytes + XMM_AT + (size_t)i * XMM_SIZE, false));
}

size_t registers_to_kernel(const struct register_machine *machine, const struct registers *registers, bool big_endian,
                           uint8_t ret[REGISTERS_KERNEL_SIZE])
{
    size_t size = (size_t)machine->kernel_count * machine->word_size;
    memset(ret, 0, size);
    for (size_t i = 0; i < machine->kernel_count; i++) {
        uint8_t *word = ret + i * machine->word_size;
        uint64_t value = machine->kernel[i] != NONE ? registers->values[machine->kernel[i]] : 0;
        if (machine->word_size == 8)
            store_u64(word, value, big_endian);
        else
            store_u32(word, (uint32_t)value, big_endian);
    }
    return size;
}

uint32_t registers_call(const struct register_machine *machine, const uint8_t *bytes, size_t size)
{
    if (machine->elf_machine != EM_X86_64 || size < X86_64_ORIG_RAX + sizeof(uint64_t))
        return 0;
    uint64_t call = load_u64(bytes + X86_64_ORIG_RAX, false);
    bool is_interrupted = load_u64(bytes + X86_64_RAX, false) == (uint64_t)-X86_64_RESTARTS;
    return call >= CALLS_MAX || (!call && !is_interrupted) ? 0 : (uint32_t)call + 1;
}

enum cdacq_thread_mode registers_mode(const struct register_machine *machine, const uint8_t *bytes, size_t size)
{
    if (machine->elf_machine != EM_X86_64 || size < X86_64_ORIG_RAX + sizeof(uint64_t))
        return CDACQ_MODE_UNKNOWN;
    uint64_t call = load_u64(bytes + X86_64_ORIG_RAX, false);
    return call == UINT64_MAX                                  ? CDACQ_MODE_USER
           : call || registers_call(machine, bytes, size) != 0 ? CDACQ_MODE_KERNEL
                                                               : CDACQ_MODE_UNKNOWN;
}

void registers_put_mode(const struct register_machine *machine, enum cdacq_thread_mode mode, uint32_t call,
                        uint8_t ret[REGISTERS_KERNEL_SIZE])
{
    if (machine->elf_machine == EM_X86_64)
        store_u64(ret + X86_64_ORIG_RAX,
                  mode == CDACQ_MODE_USER     ? UINT64_MAX
                  : call                      ? call - 1
                  : mode == CDACQ_MODE_KERNEL ? X86_64_RESTART
                                              : 0,
                  false);
}
