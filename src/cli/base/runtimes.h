/*
 * runtimes.h: the runtimes of a process that has several. A command answers for all of them, or says that it answers
 * for one.
 */
#ifndef CDACQ_CLI_BASE_RUNTIMES_H
#define CDACQ_CLI_BASE_RUNTIMES_H

#include "src/cli/base/common_options.h"

/* Whether a command answers for every runtime: it opens all (CDACQ_OPEN_*), and no option is about one of them. */
bool runtimes_are_asked(const struct common_options *options, unsigned flags);

/* The next session by the number of its runtime, from *next on, which counts from 0. NULL: there are no more. */
struct cdacq_session *runtimes_next(struct cdacq_session *session, unsigned *next);

/*
 * Of a target with several runtimes: prints a line if the command answers for one of them alone, or else one for each
 * runtime that cannot be read. Returns whether none is left out against the will of the user.
 */
bool runtimes_tell_left_out(const struct common_options *options, bool all_are_asked, struct cdacq_target *target);

/* The version of a runtime, or its release. NULL: neither is known. */
static inline const char *runtime_version_of(const struct cdacq_target_info *info)
{
    return info->runtime_version ? info->runtime_version : info->runtime_release;
}

/* Writes the version of a runtime, or "unknown". */
struct output;
void runtimes_put_version(struct output *out, const struct cdacq_target_info *facts);

#endif
