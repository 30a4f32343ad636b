/*
 * memory.h: memory that the caller hands over as a target: for embedders with an own way to the bytes, and for tests.
 * The caller's callback decides what is readable. Files stand in for what it does not have only where the policy says
 * where they are: by its own `find`, sysroots, module directories or over the network.
 */
#ifndef CDACQ_TARGET_MEMORY_H
#define CDACQ_TARGET_MEMORY_H

#include "target/mapped_file.h"

/* `policy`, which may be NULL, must outlive the target. */
enum cdacq_status memory_open(const struct cdacq_memory *memory, struct file_policy *policy, bool record,
                              struct target **ret, struct cdacq_error *err);

#endif
