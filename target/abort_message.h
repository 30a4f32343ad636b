/*
 * abort_message.h: what glibc has printed before it ended the process: a failed assert(), "double free or corruption",
 * "stack smashing detected". It keeps the text for debuggers in a variable.
 * Source: glibc sysdeps/posix/libc_fatal.c, assert/assert.c, include/stdlib.h (struct abort_msg_s).
 */
#ifndef CDACQ_TARGET_ABORT_MESSAGE_H
#define CDACQ_TARGET_ABORT_MESSAGE_H

#include "target/target.h"

/*
 * Reads the text, without newlines at its end. False if there is none, if it is longer than `size` - 1 bytes, or if it
 * cannot be read. The bytes are any: escape them before they are printed.
 */
bool abort_message_read(struct target *target, char *ret, size_t size);

#endif
