/*
 * proc_status.h: lines of /proc/PID/status and /proc/PID/task/TID/status, and why files of /proc/PID cannot be read.
 * Source: proc(5), pid_namespaces(7), ptrace(2), capabilities(7).
 */
#ifndef CDACQ_TARGET_PROC_STATUS_H
#define CDACQ_TARGET_PROC_STATUS_H

#include <stdbool.h>

#include "cdacq/error.h"

/* The value of a line of the file's text; "" if there is none. */
const char *proc_status_value(const char *status, const char *key);

/*
 * The id of the process or thread in its own pid namespace: the one that it knows itself by. Differs from that of the
 * reader if the process is in another namespace, such as that of a container. 0: not known.
 */
int proc_status_inner_id(const char *status);

/*
 * The id, in the reader's pid namespace, of a process that the process `pid` knows by the id `inner`. 0: not known, as
 * where there is no such process any more. Takes no more than 65,536 processes into account.
 */
int proc_outer_id(int pid, int inner);

/* Whether a signal such as SIGSTOP has stopped the process. Of one that a debugger holds, nothing is known: false. */
bool proc_status_is_stopped(const char *status);

/* What decides whether a process may be read or stopped. */
struct proc_rights {
    int scope;       /* kernel.yama.ptrace_scope; 0 if there is none */
    bool is_capable; /* this process has CAP_SYS_PTRACE */
    long own_user, user;
};

/* Why a process must not be read or stopped, and what to do about it. */
const char *proc_refusal(const struct proc_rights *rights);

enum { PROC_REFUSAL_SIZE = 200 };

/* The same of a process. */
void proc_describe_refusal(int pid, char ret[PROC_REFUSAL_SIZE]);

/* Words errno for a process. Returns IO. */
enum cdacq_status proc_error(int pid, struct cdacq_error *err);

#endif
