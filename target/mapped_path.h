/*
 * mapped_path.h: what a path that the kernel gives for a mapping says of it: whether there is a file to open. Pure
 * functions. Source: Linux fs/proc/task_mmu.c, d_path() in fs/d_path.c.
 */
#ifndef CDACQ_TARGET_MAPPED_PATH_H
#define CDACQ_TARGET_MAPPED_PATH_H

#include "util/base.h"

/*
 * False for a path of the target without a file to open (memfds, devices, shared memory, deleted files), and for one
 * with an empty, "." or ".." component: no kernel writes those, and they could lead out of a sysroot or to a device.
 */
bool mapped_path_is_file(const char *path);

/* Whether the kernel marks the path as that of a file that was deleted, or replaced by another one. */
bool mapped_path_is_deleted(const char *path);

/* Whether the path is that of a file that had the path `before`, and may have been deleted since. */
bool mapped_path_is_still(const char *path, const char *before);

/* Whether the path is the kernel's name for memory without a file, which no other program can find by this path. */
bool mapped_path_is_memory(const char *path);

#endif
