/*
 * memory.h: memory behind a callback of the caller, as a target: for embedders and tests. The callback decides what is
 * readable. Files stand in for the rest only where the policy names a source of files: `find`, sysroots, module
 * directories, the network or the target's own paths.
 */
#ifndef CDACQ_TARGET_MEMORY_H
#define CDACQ_TARGET_MEMORY_H

#include "target/file_policy.h"

/* `policy`, which may be NULL, must outlive the target. */
enum cdacq_status memory_open(const struct cdacq_memory *memory, struct file_policy *policy, bool record,
                              struct target **ret, struct cdacq_error *err);

#endif
