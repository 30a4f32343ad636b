/*
 * file_root.h: opens the files that a target names. A target chooses its paths, and whoever it belongs to may make
 * links, FIFOs and devices at them, and replace them at any time. So a path is resolved below a root directory; links
 * of the kernel, such as those in /proc/PID/fd, are not followed; nothing but a regular file with contents of its own
 * is opened, not even for a moment; and what was looked at is what is opened. What is not on a local file system is
 * looked at by another process (util/helper), and its contents are copied to memory: ETIMEDOUT if they do not come. No
 * other file opens one by such a path (tests/test_layers.py). Thread-safe.
 */
#ifndef CDACQ_UTIL_FILE_ROOT_H
#define CDACQ_UTIL_FILE_ROOT_H

#include <sys/stat.h>

#include "util/base.h"

struct file_reader;

/* A directory below which paths are resolved. */
struct file_root {
    int fd;                     /* AT_FDCWD: paths are this program's own; -1: there is no such directory */
    bool confined;              /* it is the root of what is below: neither links nor ".." lead out of it */
    bool is_local;              /* its file system answers by itself; not asked for if it is not confined */
    dev_t device;               /* of it, if it is local; 0: not known */
    int process;                /* among whose mounts it is; 0: this program */
    const char *name;           /* what comes before a path below it in one of this program */
    char room[32];              /* for `name` */
    char *outside;              /* its own path, if the kernel puts that before the paths of the process; or NULL */
    struct file_reader *reader; /* the user who must be permitted to read a file; NULL: who runs this program */
};

/* The paths of this program. */
extern const struct file_root file_root_machine;

/*
 * A directory that the user named, and whose name stays valid. False with errno set; files are then not found below.
 * One that is not confined is the user's own: its file system may be any.
 */
bool file_root_open(struct file_root *root, const char *directory, bool confined);

/*
 * The root directory of a process. If another user than the process's runs this program, such as root, files that the
 * process's user may not read are not opened. The mode of the file and of the directories on the way decide.
 */
bool file_root_open_process(struct file_root *root, int pid);

/* Closes what the two functions above opened, or could not open. */
void file_root_close(struct file_root *root);

/* The path below the root for one that the kernel gives: it has the path of a jail (chroot) before it. */
const char *file_root_inside(const struct file_root *root, const char *path);

/* Whether a process sees the files of this program, and is of this program's user or of root. */
bool file_root_is_own(const struct file_root *root, int pid);

/*
 * Finds what is at a path, whatever it is, and opens nothing. Returns a descriptor by which nothing can be read
 * (O_PATH), and its fstat(), which should not be called again. -1 with errno set.
 */
int file_root_find(const struct file_root *root, const char *path, struct stat *ret);

/*
 * Opens the regular file at a path for reading. EINVAL: it is none, or one of the kernel's own, such as those in /proc.
 * EACCES also if the reader may not read it.
 */
int file_root_open_file(const struct file_root *root, const char *path, struct stat *ret);

/*
 * The same, but the reader need not be permitted to read a file for which `knows`, by its fstat(), returns true.
 * `context` is passed to it.
 */
int file_root_open_known(const struct file_root *root, const char *path,
                         bool (*knows)(const struct stat *st, const void *context), const void *context,
                         struct stat *ret);

/*
 * Opens a regular file, with a path as the user gives it: all links are followed. Below /proc/PID/root, the path is one
 * of that process, as file_root_open_process() has it; what the process itself has opened is at /proc/PID/fd.
 */
int file_open_regular(const char *path, struct stat *ret);

/* Opens the program that a process executes, or a copy of its first bytes, at least 4,096. -1 with errno set. */
int file_open_program(int pid);

/* Writes the path without links of an open file. False if it has none below this program's root. */
bool file_real_path(int fd, char *ret, size_t size);

#endif
