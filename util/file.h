/* file.h: opens, reads and replaces files. Calls retry what a signal interrupts. No state: thread-safe. */
#ifndef CDACQ_UTIL_FILE_H
#define CDACQ_UTIL_FILE_H

#include <sys/stat.h>

#include "util/base.h"

/*
 * Opens a file for reading and stores its fstat() in *ret. Never blocks on a device or pipe, and never acquires a
 * controlling terminal. -1 with errno set on failure.
 */
int file_open(const char *path, struct stat *ret);

/*
 * Reads `size` bytes at `offset`. Returns the number read: fewer only at the end of the file, with errno 0, or where
 * reading failed, with errno set.
 */
size_t file_read_at(int fd, uint64_t offset, void *buffer, size_t size);

/*
 * Reads to the end of a file whose size fstat() may not know, as in /proc. The result is allocated, *ret_length bytes
 * and a NUL. NULL with errno set; EFBIG for more than `most` bytes.
 */
char *file_read_all(int fd, size_t most, size_t *ret_length);

/*
 * A file that is being written and has no name, or a temporary one, until it is complete: what was there before stays
 * until then. What is no regular file (a pipe, a device) is written to directly.
 */
struct new_file {
    int fd;
    char *path;      /* NULL: written to directly */
    char *temporary; /* NULL: it has no name yet */
};

/*
 * Begins to write the file at `path`. A file that replaces one has its mode, at most `mode`. False with errno set.
 * Either file_commit() or file_abandon() ends it.
 */
bool file_create(const char *path, unsigned mode, struct new_file *ret);

/* Puts the complete file in its place. False with errno set; what was there before then stays. */
bool file_commit(struct new_file *file);

void file_abandon(struct new_file *file);

#endif
