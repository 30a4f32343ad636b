#include "contracts/stack_walk/machine.h"

#include "contracts/unwind/unwinder.h"
#include "descriptors/fields.h"

/* ---- x64 ---- */

enum { X64_RAX, X64_RDX, X64_RCX, X64_RBX, X64_RSI, X64_RDI, X64_RBP, X64_RSP, X64_RIP = 16 };

static const struct context_slot context_x64[] = {
    {X64_RAX, 0x78}, {X64_RCX, 0x80}, {X64_RDX, 0x88}, {X64_RBX, 0x90}, {X64_RSP, 0x98}, {X64_RBP, 0xa0},
    {X64_RSI, 0xa8}, {X64_RDI, 0xb0}, {8, 0xb8},       {9, 0xc0},       {10, 0xc8},      {11, 0xd0},
    {12, 0xd8},      {13, 0xe0},      {14, 0xe8},      {15, 0xf0},      {X64_RIP, 0xf8},
};

static const struct saved_slot saved_x64[] = {
    {X64_RBX, F_CalleeSavedRegisters_Rbx}, {X64_RBP, F_CalleeSavedRegisters_Rbp}, {12, F_CalleeSavedRegisters_R12},
    {13, F_CalleeSavedRegisters_R13},      {14, F_CalleeSavedRegisters_R14},      {15, F_CalleeSavedRegisters_R15},
};

/*
 * FF /2 with any operand. The length of the instruction is not known, so every one is tried, and other bytes can look
 * like a call by chance.
 */
static bool ends_with_indirect_call(const uint8_t *bytes, size_t size)
{
    const uint8_t *end = bytes + size;
    for (unsigned length = 2; length <= 7 && length <= size; length++) {
        if (end[-(int)length] != 0xff || (end[1 - (int)length] & 0x38) != 0x10)
            continue;
        uint8_t modrm = end[1 - (int)length], mode = modrm >> 6;
        bool sib = mode != 3 && (modrm & 7) == 4;
        unsigned displacement = mode == 1 ? 1 : mode == 2 ? 4 : 0;
        if (mode == 0 && ((modrm & 7) == 5 || (sib && length >= 3 && (end[2 - (int)length] & 7) == 5)))
            displacement = 4;
        if (length == 2 + sib + displacement)
            return true;
    }
    return false;
}

/* Reads the operand of E8 rel32, or of FF /2 with an address: *ret_is_pointer is true then. False: it is neither. */
static bool read_call(const uint8_t *bytes, size_t size, uint32_t *ret, bool *ret_is_pointer)
{
    const uint8_t *end = bytes + size;
    bool is_direct = size >= 5 && end[-5] == 0xe8;
    *ret_is_pointer = !is_direct && size >= 6 && end[-6] == 0xff && end[-5] == 0x15;
    if (is_direct || *ret_is_pointer)
        *ret = load_u32(end - 4, false);
    return is_direct || *ret_is_pointer;
}

/* Calls: to an address relative to the instruction, through a pointer at such an address, or with another operand. */
static bool ends_with_call_x64(const uint8_t *bytes, size_t size, uint64_t return_address, uint64_t *ret_target,
                               bool *ret_is_pointer)
{
    uint32_t operand;
    *ret_target = 0;
    if (!read_call(bytes, size, &operand, ret_is_pointer))
        return ends_with_indirect_call(bytes, size);
    *ret_target = return_address + (uint64_t)(int64_t)(int32_t)operand;
    return true;
}

/* ---- x86 ---- */

enum { X86_EAX, X86_ECX, X86_EDX, X86_EBX, X86_ESP, X86_EBP, X86_ESI, X86_EDI, X86_EIP };

static const struct context_slot context_x86[] = {
    {X86_EDI, 0x9c}, {X86_ESI, 0xa0}, {X86_EBX, 0xa4}, {X86_EDX, 0xa8}, {X86_ECX, 0xac},
    {X86_EAX, 0xb0}, {X86_EBP, 0xb4}, {X86_EIP, 0xb8}, {X86_ESP, 0xc4},
};

static const struct saved_slot saved_x86[] = {
    {X86_EDI, F_CalleeSavedRegisters_Edi},
    {X86_ESI, F_CalleeSavedRegisters_Esi},
    {X86_EBX, F_CalleeSavedRegisters_Ebx},
    {X86_EBP, F_CalleeSavedRegisters_Ebp},
};

/* As on x64, except that an operand without registers is an address of its own. */
static bool ends_with_call_x86(const uint8_t *bytes, size_t size, uint64_t return_address, uint64_t *ret_target,
                               bool *ret_is_pointer)
{
    uint32_t operand;
    *ret_target = 0;
    if (!read_call(bytes, size, &operand, ret_is_pointer))
        return ends_with_indirect_call(bytes, size);
    *ret_target = *ret_is_pointer ? operand : (uint32_t)(return_address + operand);
    return true;
}

/*
 * An entry is a JMP through a pointer relative to RIP, perhaps after ENDBR64. An entry that has not been bound pushes
 * its number and jumps to the table's first entry; it counts until it has pushed. The first entry does not count: a
 * PUSH through such a pointer precedes its JMP.
 */
static bool is_linkage_x64(struct reader *reader, uint64_t pc)
{
    enum { BEFORE = 6, SIZE = 16 };
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    uint8_t code[SIZE], before[BEFORE], first[2];
    const uint8_t *at = code;
    if (!reader_try_copy(reader, pc, code, sizeof code))
        return false;
    if (memcmp(at, endbr64, sizeof endbr64) == 0)
        at += sizeof endbr64;
    bool is_push = at[0] == 0x68;
    if (is_push)
        at += 5;
    if (at[0] == 0xf2) /* BND */
        at++;
    if (is_push)
        return at[0] == 0xe9 &&
               reader_try_copy(reader,
                               pc + (uint64_t)(at - code) + 5 + (uint64_t)(int64_t)(int32_t)load_u32(at + 1, false),
                               first, sizeof first) &&
               first[0] == 0xff && first[1] == 0x35;
    return at[0] == 0xff && at[1] == 0x25 &&
           !(reader_try_copy(reader, pc - BEFORE, before, BEFORE) && before[0] == 0xff && before[1] == 0x35);
}

/* ---- arm64 ---- */

enum { ARM64_FP = 29, ARM64_LR = 30, ARM64_SP = 31, ARM64_PC = 32 };

#define X(n)           \
    {                  \
        n, 8 + 8 * (n) \
    }
static const struct context_slot context_arm64[] = {
    X(0),  X(1),  X(2),  X(3),  X(4),  X(5),  X(6),  X(7),  X(8),  X(9),  X(10),
    X(11), X(12), X(13), X(14), X(15), X(16), X(17), X(18), X(19), X(20), X(21),
    X(22), X(23), X(24), X(25), X(26), X(27), X(28), X(29), X(30), X(31), X(32),
};
#undef X

#define X(n)                           \
    {                                  \
        n, F_CalleeSavedRegisters_X##n \
    }
static const struct saved_slot saved_arm64[] = {
    X(19),
    X(20),
    X(21),
    X(22),
    X(23),
    X(24),
    X(25),
    X(26),
    X(27),
    X(28),
    {ARM64_FP, F_CalleeSavedRegisters_Fp},
    {ARM64_LR, F_CalleeSavedRegisters_Lr},
};
#undef X

/* BL, or BLR with or without authentication. */
static bool ends_with_call_arm64(const uint8_t *bytes, size_t size, uint64_t return_address, uint64_t *ret_target,
                                 bool *ret_is_pointer)
{
    *ret_target = 0;
    *ret_is_pointer = false;
    if (size < 4)
        return false;
    uint32_t instruction = load_u32(bytes + size - 4, false);
    if (instruction >> 26 == 0x25) {
        *ret_target = return_address - 4 + (uint64_t)((int64_t)((uint64_t)instruction << 38) >> 36);
        return true;
    }
    return (instruction & 0xfffffc1f) == 0xd63f0000 || (instruction & 0xfefff800) == 0xd63f0800;
}

/* ---- arm ---- */

enum { ARM_R11 = 11, ARM_SP = 13, ARM_LR, ARM_PC, ARM_CPSR };

#define R(n)           \
    {                  \
        n, 4 + 4 * (n) \
    }
static const struct context_slot context_arm[] = {
    R(0), R(1), R(2), R(3), R(4), R(5), R(6), R(7), R(8), R(9), R(10), R(11), R(12), R(13), R(14), R(15), R(16),
};
#undef R

#define R(n)                           \
    {                                  \
        n, F_CalleeSavedRegisters_R##n \
    }
static const struct saved_slot saved_arm[] = {
    R(4), R(5), R(6), R(7), R(8), R(9), R(10), R(11), {ARM_LR, F_CalleeSavedRegisters_Lr},
};
#undef R

/* In Thumb code: BL, or BLX to a register. BLX to an address has no target here: it leads to code that is not Thumb. */
static bool ends_with_call_arm(const uint8_t *bytes, size_t size, uint64_t return_address, uint64_t *ret_target,
                               bool *ret_is_pointer)
{
    *ret_target = 0;
    *ret_is_pointer = false;
    if (size < 4)
        return false;
    uint32_t first = load_u16(bytes + size - 4, false), second = load_u16(bytes + size - 2, false);
    if ((first & 0xf800) == 0xf000 && (second & 0xd000) == 0xd000) {
        uint32_t sign = first >> 10 & 1, i1 = !((second >> 13 & 1) ^ sign), i2 = !((second >> 11 & 1) ^ sign);
        uint32_t offset = i1 << 23 | i2 << 22 | (first & 0x3ff) << 12 | (second & 0x7ff) << 1;
        *ret_target = (uint32_t)(return_address + offset - (sign << 24));
        return true;
    }
    return (second & 0xff87) == 0x4780 || ((first & 0xf800) == 0xf000 && (second & 0xd001) == 0xc000);
}

/* ----------------------------------------------------------------------------------------------------------------- */

static const struct walk_machine machine_x64 = {
    .unwinder = &unwinder_x64,
    .pc = X64_RIP,
    .sp = X64_RSP,
    .fp = X64_RBP,
    .return_address = NO_REGISTER,
    .siginfo = 304, /* after a struct ucontext */
    .context = context_x64,
    .context_count = ARRAY_SIZE(context_x64),
    .saved = saved_x64,
    .saved_count = ARRAY_SIZE(saved_x64),
    .ends_with_call = ends_with_call_x64,
    .is_linkage = is_linkage_x64,
};

static const struct walk_machine machine_arm64 = {
    .unwinder = &unwinder_arm64,
    .pc = ARM64_PC,
    .sp = ARM64_SP,
    .fp = ARM64_FP,
    .return_address = ARM64_LR,
    .is_signed = true,
    .context = context_arm64,
    .context_count = ARRAY_SIZE(context_arm64),
    .saved = saved_arm64,
    .saved_count = ARRAY_SIZE(saved_arm64),
    .ends_with_call = ends_with_call_arm64,
    .is_linkage = NULL,
};

static const struct walk_machine machine_x86 = {
    .unwinder = &unwinder_x86,
    .pc = X86_EIP,
    .sp = X86_ESP,
    .fp = X86_EBP,
    .return_address = NO_REGISTER,
    .callee_pops = true,
    .siginfo = 12, /* after the arguments of the handler */
    .context = context_x86,
    .context_count = ARRAY_SIZE(context_x86),
    .saved = saved_x86,
    .saved_count = ARRAY_SIZE(saved_x86),
    .ends_with_call = ends_with_call_x86,
};

static const struct walk_machine machine_arm = {
    .unwinder = &unwinder_arm,
    .pc = ARM_PC,
    .sp = ARM_SP,
    .fp = ARM_R11,
    .return_address = ARM_LR,
    .thumb = 1,
    .context = context_arm,
    .context_count = ARRAY_SIZE(context_arm),
    .saved = saved_arm,
    .saved_count = ARRAY_SIZE(saved_arm),
    .ends_with_call = ends_with_call_arm,
};

const struct walk_machine *walk_machine_find(enum architecture architecture)
{
    static const struct walk_machine *const rows[ARCHITECTURE_COUNT] = {
        [ARCHITECTURE_X64] = &machine_x64,
        [ARCHITECTURE_X86] = &machine_x86,
        [ARCHITECTURE_ARM] = &machine_arm,
        [ARCHITECTURE_ARM64] = &machine_arm64,
    };
    return (size_t)architecture < ARRAY_SIZE(rows) ? rows[architecture] : NULL;
}

bool walk_machine_read_context(const struct walk_machine *machine, struct reader *reader, uint64_t context,
                               struct registers *ret)
{
    struct registers registers = {0};
    for (size_t i = 0; i < machine->context_count; i++)
        register_set(&registers, machine->context[i].number,
                     read_pointer(reader, context + machine->context[i].offset));
    if (reader_failed(reader))
        return false;
    *ret = registers;
    return true;
}

bool walk_machine_read_saved(const struct walk_machine *machine, struct reader *reader, uint64_t saved,
                             struct registers *registers)
{
    for (size_t i = 0; i < machine->saved_count; i++)
        if (has_field(reader, machine->saved[i].field))
            register_set(registers, machine->saved[i].number, read_field(reader, saved, machine->saved[i].field));
    return !reader_failed(reader);
}

uint64_t walk_machine_preserved(const struct walk_machine *machine)
{
    uint64_t set = UINT64_C(1) << machine->pc | UINT64_C(1) << machine->sp;
    for (size_t i = 0; i < machine->saved_count; i++)
        set |= UINT64_C(1) << machine->saved[i].number;
    return set;
}
