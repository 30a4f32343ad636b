/*
 * known_code.h: native code without call-frame information that its instructions tell all about. musl's libc has no
 * such information, nor has the code at the entry point of many programs. x86-64 and arm64. Pure, but for the reader.
 */
#ifndef CDACQ_TARGET_NATIVE_KNOWN_CODE_H
#define CDACQ_TARGET_NATIVE_KNOWN_CODE_H

#include "target/image.h"
#include "target/registers.h"

/*
 * Replaces the registers of a frame by those of its caller, and sets *ret_cfa, if the frame is a signal trampoline or,
 * with `interrupted`, about to return in code of `image`. False otherwise; missing memory does not fail the reader.
 * `image` may be NULL.
 */
bool known_code_step(const struct register_machine *machine, struct reader *reader, const struct image *image,
                     bool interrupted, struct registers *registers, uint64_t *ret_cfa, bool *ret_is_signal);

/*
 * Whether the return address `pc` is in code that has no caller: the code ends the thread when the call returns, or is
 * what follows the entry point of `image`, which may be NULL. Missing memory does not fail the reader.
 */
bool known_code_is_outermost(const struct register_machine *machine, struct reader *reader, const struct image *image,
                             uint64_t pc);

#endif
