/*
 * command_line.h: the arguments of a program, from the memory above the stack of its first thread, where the kernel
 * puts them. In this order: their number, their addresses and 0, those of the environment and 0, the auxiliary vector,
 * and then the strings. The vector is found by its entry AT_EXECFN, whose value the core has in NT_AUXV.
 * Source: Linux fs/binfmt_elf.c (create_elf_tables).
 */
#ifndef CDACQ_TARGET_COMMAND_LINE_H
#define CDACQ_TARGET_COMMAND_LINE_H

#include "formats/elf.h"
#include "target/target.h"

/*
 * Writes the arguments, separated by spaces, as far as they fit; *ret_cut says whether they all did. `program` is the
 * value of AT_EXECFN. False, with nothing written, if they are not all in the target. The bytes are any: escape them
 * before they are printed.
 */
bool command_line_read(struct target *target, struct elf_class elf, uint64_t program, char *ret, size_t size,
                       bool *ret_cut);

/*
 * Calls `visit` for each variable of the environment, "NAME=VALUE", until it returns non-zero; *ret_stopped says so.
 * False if they are not all in the target: `visit` may have had some of them.
 */
bool command_line_environment(struct target *target, struct elf_class elf, uint64_t program,
                              int (*visit)(const char *variable, void *context), void *context, bool *ret_stopped);

#endif
