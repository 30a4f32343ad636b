/*
 * codes_arm64.h: the unwind codes of an arm64 function, from its unwind data or from the packed entry.
 * Source: Microsoft's "ARM64 exception handling"; dotnet/runtime src/coreclr/unwinder/arm64/unwinder.cpp.
 */
#ifndef CDACQ_CONTRACTS_UNWIND_CODES_ARM64_H
#define CDACQ_CONTRACTS_UNWIND_CODES_ARM64_H

#include "contracts/unwind/xdata.h"

enum { X0, X19 = 19, X28 = 28, FP = 29, LR = 30, SP = 31, PC = 32 };

enum arm64_code {
    OP_ALLOC_L = 0xe0,
    OP_SET_FP,
    OP_ADD_FP,
    OP_NOP,
    OP_END,
    OP_END_C, /* what follows belongs to the function that this is a fragment of */
    OP_SAVE_NEXT,
    OP_SAVE_ANY_REG,
    OP_CLEAR_UNWOUND_TO_CALL = 0xec,
    OP_PAC = 0xfc,
};

/* The codes of a function. False, and the reader fails, if they cannot be read. */
bool arm64_codes_read(struct reader *reader, const struct unwind_function *function, struct xdata *ret);

/* The length of a code in bytes, by its first byte. */
unsigned arm64_code_size(uint8_t code);

/* Instructions of the codes from `at` to the end of its list. */
unsigned arm64_instruction_count(const struct xdata *codes, unsigned at);

/* The code after `count` codes from `at` on, or the end of its list. */
unsigned arm64_skip_codes(const struct xdata *codes, unsigned at, uint64_t count);

#endif
