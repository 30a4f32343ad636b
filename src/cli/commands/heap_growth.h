/*
 * heap_growth.h: what `heap A B` shows: how many objects of each type there are more in the second heap, and how many
 * bytes. Types are distinguished by name: two processes have them at different addresses.
 */
#ifndef CDACQ_CLI_COMMANDS_HEAP_GROWTH_H
#define CDACQ_CLI_COMMANDS_HEAP_GROWTH_H

#include "src/cli/base/commands.h"

struct heap_growth_options {
    const struct common_options *common;
    const struct word_list *types; /* patterns of names; none: all types */
    int generation;                /* enum cdacq_generation; -1: all */
};

/* Reads both targets in turn. Returns an exit code. */
int heap_growth_run(const struct heap_growth_options *options);

#endif
