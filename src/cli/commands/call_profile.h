/* call_profile.h: writes stacks for the programs that draw them: folded, for speedscope, and for pprof. */
#ifndef CDACQ_CLI_COMMANDS_CALL_PROFILE_H
#define CDACQ_CLI_COMMANDS_CALL_PROFILE_H

#include "src/cli/base/common_options.h"
#include "src/cli/commands/call_paths.h"

/* Whether --folded, --speedscope or --pprof is given. */
bool call_profile_is_wanted(const struct common_options *options);

/*
 * Writes that form of the paths. `name` is that of the target, and `unit` what is counted: "threads".
 *
 * --folded: "outermost;...;innermost COUNT", a line for each different path; sorts them. Programs that read such lines
 * have a limit, so of a long one the middle is left out; a message says so, and the result is false.
 * --speedscope: JSON of the form https://www.speedscope.app/file-format-schema.json with one profile.
 * --pprof: profile.proto of https://github.com/google/pprof, in the form of gzip without compression.
 */
bool call_profile_write(struct output *out, struct call_paths *paths, const struct common_options *options,
                        const char *name, const char *unit);

#endif
