/*
 * il.h: the IL of a method: where its code is after the header, and its instructions, one after the other. Everything
 * here is pure: bytes in, instructions out. Damaged code ends early.
 * Source: ECMA-335 II.25.4 (headers), III (instructions).
 */
#ifndef CDACQ_FORMATS_IL_H
#define CDACQ_FORMATS_IL_H

#include "util/base.h"

enum {
    IL_HEADER_MAX = 12,
    IL_CODE_MAX = 16 * 1024 * 1024, /* bytes of one method */
};

/* Opcodes that callers ask for. Those of two bytes have 0xfe as the upper byte. */
enum il_opcode {
    IL_STLOC_0 = 0x0a,
    IL_STLOC_3 = 0x0d,
    IL_STLOC_S = 0x13,
    IL_LDC_I4_M1 = 0x15,
    IL_LDC_I4_0 = 0x16,
    IL_LDC_I4_8 = 0x1e,
    IL_LDC_I4_S = 0x1f,
    IL_LDC_I4 = 0x20,
    IL_DUP = 0x25,
    IL_STFLD = 0x7d,
    IL_STLOC = 0xfe0e,
};

/* Where the code of a method is. */
struct il_body {
    uint32_t header_size;
    uint32_t code_size;
    uint32_t local_signature; /* token of a StandAloneSig; 0: it has no locals */
};

/* Reads the header at the start of `bytes`. False if it is none, or if the code has more than IL_CODE_MAX bytes. */
bool il_body_read(const uint8_t *bytes, size_t size, struct il_body *ret);

struct il_instruction {
    uint32_t offset;  /* from the start of the code */
    uint32_t size;    /* with the operand */
    uint16_t opcode;  /* enum il_opcode, or another */
    uint32_t operand; /* of 1, 2 or 4 bytes, not sign-extended; otherwise 0 */
};

struct il_code {
    const uint8_t *bytes;
    uint32_t size;
    uint32_t at; /* of the next instruction */
};

/* False at the end of the code, or where it is damaged. */
bool il_next(struct il_code *code, struct il_instruction *ret);

/* The constant that an ldc.i4 instruction loads. False if it is another instruction. */
bool il_constant(const struct il_instruction *instruction, int32_t *ret);

/* Whether an instruction stores to a local variable. */
bool il_is_stloc(const struct il_instruction *instruction);

#endif
