/*
 * live.h: a running process as a target. Memory is read through process_vm_readv, a page at a time, and each page read
 * is kept: a call sees one state of a page, that of the first reading. The process is not stopped unless asked for.
 * Mappings come from /proc/PID/maps. One thread at a time.
 * Source: process_vm_readv(2), ptrace(2), proc(5).
 */
#ifndef CDACQ_TARGET_LIVE_H
#define CDACQ_TARGET_LIVE_H

#include "target/mapped_file.h"

/*
 * With `stop` every thread is held from before the first read until the target is destroyed, from whatever thread;
 * then, and also when this process ends in any way, all run on. A thread of the library does the holding; a waitpid(-1)
 * of the caller's in another thread must not run meanwhile: it would take the stops. `policy` must outlive the target.
 */
enum cdacq_status live_open(int pid, struct file_policy *policy, bool stop, bool record, struct target **ret,
                            struct cdacq_error *err);

#endif
