/*
 * x64_instruction.h: the length of an x64 instruction in 64-bit mode. Code of a function can so be read instruction by
 * instruction. Pure.
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, appendix A.
 */
#ifndef CDACQ_FORMATS_X64_INSTRUCTION_H
#define CDACQ_FORMATS_X64_INSTRUCTION_H

#include "util/base.h"

/*
 * The length in bytes of the instruction at `code`, where `size` bytes are at hand. 0: there is no such instruction
 * (those of XOP, APX and processors before 64 bits are not known), or it is longer than `size` or 15 bytes.
 */
unsigned x64_instruction_length(const uint8_t *code, size_t size);

#endif
