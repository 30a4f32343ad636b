/*
 * proc_freezer.h: whether the freezer of its control group holds a process, as `docker pause` makes it. Source: Linux
 * Documentation/admin-guide/cgroup-v2.rst (cgroup.events) and cgroup-v1/freezer-subsystem.rst; cgroups(7).
 */
#ifndef CDACQ_TARGET_PROC_FREEZER_H
#define CDACQ_TARGET_PROC_FREEZER_H

#include <stdbool.h>

/* Looks below /sys/fs/cgroup, where control groups are usually mounted. False also if nothing is found there. */
bool proc_is_frozen(int pid);

/* The same by the text of /proc/PID/cgroup and the folder below which control groups are mounted. */
bool proc_freezer_holds(const char *groups, const char *folder);

#endif
