/*
 * expression.h: evaluates the DWARF expressions of call-frame information. Memory is read through a reader, whose fuel
 * bounds the steps; the stack has a fixed size. Source: DWARF 5 section 2.5.
 */
#ifndef CDACQ_TARGET_NATIVE_EXPRESSION_H
#define CDACQ_TARGET_NATIVE_EXPRESSION_H

#include "target/registers.h"

enum { EXPRESSION_MAX = 4096 }; /* bytes */

/*
 * The value of the expression of `size` bytes at `address`. `first`: what the stack starts with, the CFA; NULL for an
 * empty stack. 0, and the reader fails, if it is damaged, uses an operation that is not known here, needs a register
 * that is not known, or reads memory that is missing.
 */
uint64_t expression_evaluate(struct reader *reader, const struct register_machine *machine,
                             const struct registers *registers, uint64_t address, size_t size, const uint64_t *first);

#endif
