/*
 * part_file.h: files that have a temporary name until they are complete. Whoever writes one locks it (flock), so that
 * the next run tells what a killed one has left from what is being written. Thread-safe.
 */
#ifndef CDACQ_UTIL_PART_FILE_H
#define CDACQ_UTIL_PART_FILE_H

#include "util/base.h"

enum { PART_NAME_SIZE = 48 };

/*
 * Creates an empty file with a temporary name in an open folder, and opens it for writing. -1 with errno set.
 * `ret_name` is the name.
 */
int part_file_create(int folder, unsigned mode, char ret_name[PART_NAME_SIZE]);

/* Locks a file that has no name yet (O_TMPFILE), and later gives it a temporary one. False with errno set. */
void part_file_lock(int fd);
bool part_file_link(int fd, int folder, char ret_name[PART_NAME_SIZE]);

/* Removes what runs of this user that were killed have left in an open folder: what nobody holds. */
void part_files_clean(int folder);

#endif
