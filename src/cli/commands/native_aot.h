/*
 * native_aot.h: programs that NativeAOT compiled, for the commands that write or check files of code.
 */
#ifndef CDACQ_CLI_COMMANDS_NATIVE_AOT_H
#define CDACQ_CLI_COMMANDS_NATIVE_AOT_H

#include <stdbool.h>

#include <cdacq/target.h>

/* Whether the target is such a program; a message then says why there are no such files. */
bool native_aot_refused(struct cdacq_target *target);

#endif
