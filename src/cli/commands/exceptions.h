/*
 * exceptions.h: what `report --exceptions` shows: the exceptions of every thread, and those of the heap, equal ones
 * together, with the text and the stack of the newest.
 */
#ifndef CDACQ_CLI_COMMANDS_EXCEPTIONS_H
#define CDACQ_CLI_COMMANDS_EXCEPTIONS_H

#include "src/cli/base/commands.h"

/* As target_use.run, for a struct that begins with struct common_options. */
int exceptions_show(const void *options, const struct opened_target *opened);

#endif
