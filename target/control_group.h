/*
 * control_group.h: the control groups of a process, and the limits on processor time and memory that they set. The
 * limits of a group hold for all groups below it. Source: Linux Documentation/admin-guide/cgroup-v2.rst (cpu.max,
 * cpu.stat, memory.max, memory.stat), admin-guide/cgroup-v1/memory.rst, scheduler/sched-bwc.rst; cgroups(7),
 * proc_pid_mountinfo(5). Thread-safe.
 */
#ifndef CDACQ_TARGET_CONTROL_GROUP_H
#define CDACQ_TARGET_CONTROL_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A line of /proc/PID/cgroup: "0::/a.slice" of version 2, "6:cpu,cpuacct:/a" of version 1. Nothing ends with a NUL. */
struct control_group {
    const char *controllers, *path; /* the path begins with a slash */
    size_t controllers_length, path_length;
};

/* Reads the line at *at, and moves *at to the next. False: the line names no group. */
bool control_group_next(const char **at, struct control_group *ret);

/* Whether a list of words, separated by commas, has a word. */
bool control_group_has(const char *words, size_t length, const char *word);

/* The lowest share of a processor that a group of the process may use, and what that has done. Times in nanoseconds. */
struct cpu_limit {
    uint64_t quota, period;     /* the group may use `quota` of processor time in each `period` */
    uint64_t periods;           /* in which the group wanted to run */
    uint64_t throttled_periods; /* of these, those in which it used its quota, and was held back */
    uint64_t throttled_time;    /* for which it was held back, the sum of all processors */
};

/* False: no group of the process has a quota, or its files cannot be found. */
bool cpu_limit_read(int pid, struct cpu_limit *ret);

/* The same by the texts of /proc/PID/cgroup and of mountinfo, with the mount points below `root`. */
bool cpu_limit_find(const char *groups, const char *mounts, const char *root, struct cpu_limit *ret);

/* The group of the process that is nearest to its limit. In bytes. */
struct memory_limit {
    uint64_t limit, used; /* without cached files that are not in use, which the kernel frees first */
};

/* As above. */
bool memory_limit_read(int pid, struct memory_limit *ret);
bool memory_limit_find(const char *groups, const char *mounts, const char *root, struct memory_limit *ret);

#endif
