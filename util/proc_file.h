/*
 * proc_file.h: opens the files by which the kernel tells about a process: those of /proc/PID that are no links, and
 * that no process can replace. Thread-safe.
 */
#ifndef CDACQ_UTIL_PROC_FILE_H
#define CDACQ_UTIL_PROC_FILE_H

#include <dirent.h>

/* Opens /proc/PID/NAME for reading; with the pid 0, /proc/NAME. -1 with errno set. */
int proc_file_open(int pid, const char *name);

/* The same for a folder, such as "task". NULL with errno set. */
DIR *proc_folder_open(int pid, const char *name);

/* The pids of all processes, in order, to be freed. NULL with errno set. */
int *proc_list_processes(size_t *ret_count);

#endif
