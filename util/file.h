/*
 * file.h: opening and reading files. Every call retries what a signal interrupted. No state: thread-safe.
 */
#ifndef CDACQ_UTIL_FILE_H
#define CDACQ_UTIL_FILE_H

#include <sys/stat.h>

#include "util/base.h"

/*
 * Opens a file to read and says what it is. The path may name anything: a device or a pipe never blocks, and a terminal
 * is never taken. -1 with errno set.
 */
int file_open(const char *path, struct stat *ret);

/*
 * Reads `size` bytes at `offset`. Returns how many there were: fewer only at the end of the file, with errno 0, or
 * where reading failed, with errno set.
 */
size_t file_read_at(int fd, uint64_t offset, void *buffer, size_t size);

/*
 * Reads on to the end of a file whose size nobody knows, as those in /proc. Allocated, with a NUL after the *ret_length
 * bytes. NULL with errno set; EFBIG for one of more than `most` bytes.
 */
char *file_read_all(int fd, size_t most, size_t *ret_length);

#endif
