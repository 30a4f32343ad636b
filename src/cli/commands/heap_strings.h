/*
 * heap_strings.h: what `heap --strings` shows: strings of the heap that are equal, and what their copies cost.
 */
#ifndef CDACQ_CLI_COMMANDS_HEAP_STRINGS_H
#define CDACQ_CLI_COMMANDS_HEAP_STRINGS_H

#include "src/cli/base/commands.h"

/* As target_use.run, for a struct that begins with struct common_options. */
int heap_strings_show(const void *options, const struct opened_target *opened);

#endif
