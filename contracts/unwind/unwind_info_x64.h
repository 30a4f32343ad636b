/*
 * unwind_info_x64.h: UNWIND_INFO of x64, decoded, and the instructions that an epilog may have.
 * Source: Microsoft's "x64 exception handling"; dotnet/runtime src/coreclr/unwinder/amd64/unwinder.cpp, which also has
 * UWOP_SET_FPREG_LARGE of non-Windows systems.
 */
#ifndef CDACQ_CONTRACTS_UNWIND_UNWIND_INFO_X64_H
#define CDACQ_CONTRACTS_UNWIND_UNWIND_INFO_X64_H

#include "contracts/unwind/unwinder.h"

enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, R12 = 12, R15 = 15, RIP };

/* From the numbers of instructions and unwind codes to those of DWARF. */
extern const uint8_t dwarf_numbers_x64[16];

enum unwind_operation {
    UWOP_PUSH_NONVOL,
    UWOP_ALLOC_LARGE,
    UWOP_ALLOC_SMALL,
    UWOP_SET_FPREG,
    UWOP_SAVE_NONVOL,
    UWOP_SAVE_NONVOL_FAR,
    UWOP_EPILOG,
    UWOP_SPARE_CODE,
    UWOP_SAVE_XMM128,
    UWOP_SAVE_XMM128_FAR,
    UWOP_PUSH_MACHFRAME,
    UWOP_SET_FPREG_LARGE,
};

enum {
    CHAININFO = 4, /* flags */
    CHAIN_MAX = 32,
    CODES_MAX = 255,
    FUNCTION_SIZE = 12, /* of a RUNTIME_FUNCTION */
    EPILOG_INSTRUCTION_MAX = 16,
    EPILOG_WINDOW = 64, /* bytes of instructions; two frames' worth of pops take some 50 */
    EPILOG_CODE_MAX = EPILOG_WINDOW - EPILOG_INSTRUCTION_MAX,
};

struct unwind_info_x64 {
    unsigned flags, prolog_size, code_count;
    unsigned frame_register; /* DWARF number; 0, which is RAX and never one, where there is none */
    uint32_t frame_offset;   /* bytes */
    uint8_t codes[2 * (CODES_MAX + 1)];
    uint32_t chained[3]; /* with CHAININFO: begin, end, unwind data */
};

static inline unsigned code_offset(const struct unwind_info_x64 *info, unsigned i)
{
    return info->codes[2 * i];
}

static inline enum unwind_operation code_operation(const struct unwind_info_x64 *info, unsigned i)
{
    return info->codes[2 * i + 1] & 15;
}

static inline unsigned code_info(const struct unwind_info_x64 *info, unsigned i)
{
    return info->codes[2 * i + 1] >> 4;
}

/* The number in the slots after a code: in one, or in two. */
static inline uint32_t operand16(const struct unwind_info_x64 *info, unsigned i)
{
    return load_u16(info->codes + 2 * (i + 1), false);
}

static inline uint32_t operand32(const struct unwind_info_x64 *info, unsigned i)
{
    return load_u32(info->codes + 2 * (i + 1), false);
}

/* Slots of a code with its operand; 0 for a code that does not exist. */
unsigned code_slots(const struct unwind_info_x64 *info, unsigned i);

/* Reads UNWIND_INFO. Afterwards every code is known and has its operand. False, and the reader fails, otherwise. */
bool unwind_info_x64_read(struct reader *reader, uint64_t address, struct unwind_info_x64 *ret);

/*
 * Whether the frame register is set at `offset` of the function; before that, saves are relative to the stack pointer.
 */
bool unwind_info_x64_has_frame(const struct unwind_info_x64 *info, uint64_t offset);

/* An instruction of an epilog. */
struct epilog_instruction_x64 {
    enum { OTHER, ADD_RSP, LEA_RSP, POP } kind;
    unsigned length;
    unsigned number;      /* DWARF: of the register popped, or of the one that a LEA_RSP adds to */
    int64_t displacement; /* of ADD_RSP and LEA_RSP */
};

/* The instruction at `bytes`, at least EPILOG_INSTRUCTION_MAX; zeros are no instruction of an epilog. */
struct epilog_instruction_x64 epilog_instruction_x64_at(const uint8_t *bytes);

/*
 * The length in bytes of the instructions from pc to where control leaves the function, if these are an epilog; the one
 * that leaves is not counted. -1 if they are none. `code` is what begins at pc: `size` bytes, at most EPILOG_CODE_MAX,
 * and zeros up to EPILOG_WINDOW.
 */
int epilog_x64_length(const uint8_t code[EPILOG_WINDOW], unsigned size, uint64_t pc,
                      const struct unwind_function *function, const struct unwind_info_x64 *info);

#endif
