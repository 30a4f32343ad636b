/*
 * system_call.h: what the system call of a thread does, by its number and arguments, and which file, pipe or socket it
 * uses. Only the calls of x86-64 are known. Source: Linux arch/x86/entry/syscalls/syscall_64.tbl; syscall(2).
 */
#ifndef CDACQ_TARGET_SYSTEM_CALL_H
#define CDACQ_TARGET_SYSTEM_CALL_H

#include "util/base.h"

struct cdacq_system_call;
struct proc_net;
struct reader;
struct target_thread;

/* What a descriptor of a process leads to. Empty texts: not known. */
struct open_descriptor {
    char file[4096];
    char local[128], peer[128]; /* of a socket */
};

/*
 * Describes the system call of a thread of an x86-64 target, without what its descriptor leads to. False if it is in
 * none. The reader is used for arguments in memory, and may fail.
 */
bool system_call_describe(struct reader *reader, const struct target_thread *thread, struct cdacq_system_call *ret);

/* What a descriptor of the running process net->pid leads to. False, and *ret is empty, if that cannot be read. */
bool system_call_find_file(struct proc_net *net, int descriptor, struct open_descriptor *ret);

#endif
