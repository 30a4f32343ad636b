/* file.h: opens, reads and replaces files. Calls go on if a signal interrupts them. No state: thread-safe. */
#ifndef CDACQ_UTIL_FILE_H
#define CDACQ_UTIL_FILE_H

#include <sys/stat.h>

#include "util/part_file.h"

/*
 * Opens a file that the user named, or one of the kernel, for reading, and stores its fstat() in *ret. Never blocks on
 * a device or pipe, and never acquires a controlling terminal. -1 with errno set on failure.
 */
int file_open(const char *path, struct stat *ret);

/*
 * Reads `size` bytes at `offset`. Returns the number of bytes read: fewer only at the end of the file, with errno 0, or
 * if reading failed, with errno set.
 */
size_t file_read_at(int fd, uint64_t offset, void *buffer, size_t size);

/*
 * The first offset, from `offset` on, at which a file has data: not in a hole, which a file of any size costs nothing.
 * UINT64_MAX if there is none any more. `offset` itself where the file system does not know.
 */
uint64_t file_find_data(int fd, uint64_t offset);

/* The same for the next hole; the end of a file counts as one. */
uint64_t file_find_hole(int fd, uint64_t offset);

/* As file_read_at(), into memory that is zero: holes take no time. */
size_t file_read_sparse_at(int fd, uint64_t offset, void *zeroed, size_t size);

/*
 * Reads a text of the kernel, such as a file in /proc: at most `size` - 1 bytes, with a NUL after them. `folder` is as
 * for openat(2). Returns the number of bytes: 0 also if the file cannot be read.
 */
size_t file_read_text(int folder, const char *path, char *ret, size_t size);

/*
 * Reads a whole file whose size fstat() may not know, such as one in /proc. Its offset has no effect and stays: another
 * process may share it. The caller frees the result, which has *ret_length bytes and a NUL. NULL with errno set on
 * failure; EFBIG: the file has more than `most` bytes.
 */
char *file_read_all(int fd, size_t most, size_t *ret_length);

/*
 * Closes all file descriptors from `first` on, except one, or none (-1). For a child that keeps nothing of its parent.
 */
void file_close_all_from(int first, int except);

/*
 * Creates a file without a name on disk, for temporary data: in TMPDIR, or else in /var/tmp or /tmp. *ret_directory is
 * where it is, or where it could not be created: -1 with errno set.
 */
int file_create_temporary(const char **ret_directory);

/* Creates a file without a name, in memory (memfd). -1 with errno set. */
int file_in_memory(const char *label);

/*
 * A file that is being written. It has no name, or a temporary one, until it is complete; the old file stays until
 * then. A pipe, a device, and a file in whose folder no new one can be created are written to directly.
 */
struct new_file {
    int fd;
    char *name; /* in the folder; NULL: it is written to directly */
    int folder;
    char temporary[PART_NAME_SIZE]; /* likewise; "": it has no name yet */
    const char *problem;            /* why it was not begun, if errno does not say it; or NULL */
};

/*
 * Begins to write the file at `path`. The file gets the mode of the user's own file that it replaces, without bits that
 * `mode` lacks; otherwise, `mode`. A file of another user is replaced, never written to, and a link of another user is
 * not followed. An own file that more users may read than `mode` says is not written to either. False with errno set.
 * End with file_commit() or file_abandon().
 */
bool file_create(const char *path, unsigned mode, struct new_file *ret);

/* The two ways of file_create(): beside the file, which is tried first and never waits, and directly. */
bool file_create_beside(const char *path, unsigned mode, struct new_file *ret);
bool file_create_directly(const char *path, unsigned mode, struct new_file *ret);

/*
 * Puts a file that was begun beside the old one in its place at once, empty. It is then written to directly. False with
 * errno set; the old file stays then.
 */
bool file_place(struct new_file *file);

/* Puts the complete file in its place. False with errno set; the old file stays then. */
bool file_commit(struct new_file *file);

void file_abandon(struct new_file *file);

#endif
