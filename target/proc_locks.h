/*
 * proc_locks.h: who holds the file lock that a process waits for, from the kernel's table of file locks. A process that
 * is stopped is not in it as one that waits, so the file tells. No state: thread-safe. Source: proc_locks(5),
 * proc_pid_fdinfo(5); Linux fs/locks.c (lock_get_status).
 */
#ifndef CDACQ_TARGET_PROC_LOCKS_H
#define CDACQ_TARGET_PROC_LOCKS_H

#include "target/work.h"

/* A line of /proc/locks. */
struct proc_lock {
    bool is_held;           /* not waited for */
    bool is_flock;          /* by flock(); those by fcntl() are apart from these */
    int pid;                /* in the reader's pid namespace; -1: of an open file, not of a process */
    uint64_t device, inode; /* of the file */
};

/* False for a line that is none of a lock. */
bool proc_lock_line(const char *line, struct proc_lock *ret);

/*
 * The process that took the lock of the file that a descriptor of a process leads to, for which that process waits in
 * flock() or fcntl(). 0: not known, as where several processes have such locks, and before Linux 5.14. Takes steps of
 * `work` for each line.
 */
int proc_locks_find_holder(int pid, int descriptor, bool is_flock, struct work *work);

#endif
