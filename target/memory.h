/*
 * memory.h: memory that the caller hands over as a target: for embedders with an own way to the bytes, and for tests.
 * The caller's callback decides what is readable; no file ever stands in.
 */
#ifndef CDACQ_TARGET_MEMORY_H
#define CDACQ_TARGET_MEMORY_H

#include "target/target.h"

enum cdacq_status memory_open(const struct cdacq_memory *memory, bool record, struct target **ret,
                              struct cdacq_error *err);

#endif
