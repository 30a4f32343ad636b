/*
 * file_system.h: which file systems answer by themselves. A program (FUSE) or another machine (NFS, 9p) stands behind
 * the others, and may never answer: neither when a name is looked up there, nor when a file is opened, read or mapped.
 * Nothing here asks a file system. Thread-safe. Sources: statx(2), proc_pid_mountinfo(5).
 */
#ifndef CDACQ_UTIL_FILE_SYSTEM_H
#define CDACQ_UTIL_FILE_SYSTEM_H

#include <sys/stat.h>

#include "util/base.h"

/*
 * What the kernel remembers of an open file, which may be open for its place only (O_PATH): its mode, owner, device,
 * number, size and times. False if it is not known.
 */
bool file_system_look(int fd, struct stat *ret);

/*
 * Whether an open file is on a local file system: on a disk, in memory, or on the one on which this program's root
 * directory is. `pid`: the process among whose mounts it is; 0: this program. An overlay counts only if it is among the
 * mounts of a process in this program's user namespace: else, an unprivileged user may have laid it over FUSE.
 */
bool file_system_is_local(int fd, int pid);

/* The same for the device of a file that process `pid` maps. */
bool file_system_device_is_local(uint64_t device, int pid);

/* What is known of a type of file system by its name in mountinfo. */
enum file_system_kind { FILE_SYSTEM_FAR, FILE_SYSTEM_OVERLAY, FILE_SYSTEM_LOCAL };
enum file_system_kind file_system_kind_of(const char *type, size_t length);

/* A line of mountinfo. */
struct file_system_mount {
    uint64_t id, device;
    const char *type;
    size_t type_length;
};

/* Takes the next line that can be read. False: there is none. */
bool file_system_next_mount(const char **text, struct file_system_mount *ret);

#endif
