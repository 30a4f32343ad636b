/* mutant_commands.h: every command that takes a base, in this process. */
#ifndef CDACQ_TESTS_FUZZ_MUTANT_COMMANDS_H
#define CDACQ_TESTS_FUZZ_MUTANT_COMMANDS_H

#include "tests/fuzz/mutant_bases.h"

/* Makes a folder with a link to each image and PDB. commands_deinit() removes it, with all that commands left in it. */
void commands_init(void);
void commands_deinit(void);

/* Adds jitdumps and perf maps of the cores, which commands write. */
void commands_add_bases(void);

/* Runs a command that is chosen at random on a base. Returns NULL, or what is wrong with how it ended. */
const char *commands_run(const struct base *base, struct random *random);

/* Counts the last command, which took `seconds`. commands_print() writes what was counted of each. */
void commands_count(double seconds);
void commands_print(int fd);

/* The command line of the last one. */
const char *commands_last(void);

#endif
