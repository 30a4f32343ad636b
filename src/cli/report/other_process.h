/*
 * other_process.h: what another process of this machine is, for which one of the target's threads waits. One thread at
 * a time. Source: proc(5).
 */
#ifndef CDACQ_CLI_REPORT_OTHER_PROCESS_H
#define CDACQ_CLI_REPORT_OTHER_PROCESS_H

#include "src/cli/report/report.h"

struct other_process {
    char command[256]; /* the command line, or else the name; empty: not known */
    char state[32];    /* the kernel's word: "sleeping", "zombie"; empty: there is no such process any more */
};

/* Reads /proc. All is empty if the target is no running process, or `pid` is 0 or that of the target. */
void other_process_read(const struct report *report, int pid, struct other_process *ret);

/* Writes "process 12 (sleep 60: sleeping)". */
void other_process_put(struct output *out, const struct report *report, int pid);

/* Members that begin with `key`: "child", "child_command" and "child_state". */
void other_process_write_members(struct json_writer *w, const struct report *report, const char *key, int pid);

#endif
