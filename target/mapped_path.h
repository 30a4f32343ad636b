/*
 * mapped_path.h: what the name that the kernel gives a mapping says of it: the path of its file, and whether there is
 * one to open. Pure functions. Source: Linux fs/proc/task_mmu.c, d_path() in fs/d_path.c; proc_pid_maps(5).
 */
#ifndef CDACQ_TARGET_MAPPED_PATH_H
#define CDACQ_TARGET_MAPPED_PATH_H

#include "util/base.h"

/*
 * False for a path of the target without a file to open (memfds, shared memory, files of the kernel), and for one with
 * an empty, "." or ".." component: no kernel writes those, and they could lead out of a sysroot. What is below /dev/
 * may be a file: that of a program in /dev/shm is.
 */
bool mapped_path_is_file(const char *path);

/*
 * The length of the path in a name that the kernel gives: without the mark, if it marks the file as one that was
 * deleted, or replaced by another one. The names of memory without a file are left as they are.
 */
size_t mapped_path_length(const char *name);

/* Whether the kernel marks the file as one that was deleted, or replaced by another one. */
bool mapped_path_is_deleted(const char *name);

/* Whether the name is that of a file that had the name `before`, and may have been deleted since. */
bool mapped_path_is_still(const char *name, const char *before);

/* Whether the path is the kernel's name for memory without a file, which no other program can find by this path. */
bool mapped_path_is_memory(const char *path);

/* Removes what the text of /proc/PID/maps has for newlines in a path: \012. Nothing else is escaped in it. */
void mapped_path_unescape(char *path);

/* Whether the path is in the directory of devices, where most files have no contents of their own. */
bool mapped_path_is_below_dev(const char *path);

#endif
