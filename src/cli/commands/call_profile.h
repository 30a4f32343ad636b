/* call_profile.h: writes stacks for the programs that draw them: as folded stacks, and as a profile of speedscope. */
#ifndef CDACQ_CLI_COMMANDS_CALL_PROFILE_H
#define CDACQ_CLI_COMMANDS_CALL_PROFILE_H

#include "src/cli/commands/call_paths.h"

/*
 * "outermost;...;innermost COUNT", a line for each different path; sorts them. Programs that read such lines have a
 * limit, so of a long one the middle is left out; a message says so, and the result is false.
 */
bool call_profile_write_folded(struct output *out, struct call_paths *paths);

/*
 * JSON of the form https://www.speedscope.app/file-format-schema.json with one profile, whose samples have the weight
 * 1: each thread is one. `name` is that of the target.
 */
void call_profile_write_speedscope(struct output *out, const struct call_paths *paths, const char *name);

#endif
