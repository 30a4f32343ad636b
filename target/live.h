/*
 * live.h: a running process as a target. Memory is read with process_vm_readv, some pages at a time, and each page is
 * kept until the next epoch, so that later reads see the same bytes. What no process changes is taken from mapped
 * files. Mappings come from /proc/PID/maps. One thread at a time. Source: process_vm_readv(2), ptrace(2), proc(5).
 */
#ifndef CDACQ_TARGET_LIVE_H
#define CDACQ_TARGET_LIVE_H

#include "target/file_policy.h"

/*
 * With `stop`, every thread is held from before the first read until the target is destroyed, by any thread, or this
 * process ends. A thread of the library holds them; the caller must not call waitpid(-1) during the open, because it
 * would take the stop events. `policy` must outlive the target.
 */
enum cdacq_status live_open(int pid, struct file_policy *policy, bool stop, bool record, struct target **ret,
                            struct cdacq_error *err);

#endif
