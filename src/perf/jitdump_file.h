/*
 * jitdump_file.h: the bytes of a jitdump, which another process may be writing, and may truncate, rewrite or replace.
 * They are read in blocks with pread, never mapped: a file that changes gives short reads or other bytes, never a
 * signal. What a window points to is valid until the next call. One thread at a time may use a file.
 */
#ifndef CDACQ_PERF_JITDUMP_FILE_H
#define CDACQ_PERF_JITDUMP_FILE_H

#include <time.h>

#include "formats/jitdump.h"
#include "util/file.h"

/* An extent of the file in memory. */
struct jitdump_extent {
    uint8_t *data; /* room for a block, or for a larger extent that was read last */
    size_t length;
    uint64_t begin;
};

struct jitdump_file {
    int fd;
    char *path;       /* NULL: nothing is open */
    bool is_followed; /* each block is checked to be of the file whose header was read */
    dev_t device;
    ino_t inode;
    bool is_sparse;          /* it has holes, which take no time: a few bytes can claim a file of any size */
    uint64_t size;           /* when last looked at */
    struct timespec written; /* when it was, when last looked at */
    struct jitdump_extent extent;
    uint8_t header[JITDUMP_HEADER_SIZE]; /* to detect a rewritten file */
    size_t header_size;                  /* 0: it was not read */
};

/* Opens a regular file. Fails with IO, NOMEM. */
enum cdacq_status jitdump_file_open(const char *path, bool is_followed, struct jitdump_file *ret,
                                    struct cdacq_error *err);

/* A handle of its own on the same file, which need not have its path any more; it is not followed. IO, NOMEM. */
enum cdacq_status jitdump_file_open_again(const struct jitdump_file *file, struct jitdump_file *ret,
                                          struct cdacq_error *err);
void jitdump_file_close(struct jitdump_file *file);

/* Reads a block of at least `count` bytes. CDACQ_DONE: the file has changed since its size was checked. IO, NOMEM. */
enum cdacq_status jitdump_file_fill(struct jitdump_file *file, uint64_t offset, size_t count, struct cdacq_error *err);

/* The `count` bytes at `offset`, which are below the file's size. Fails as jitdump_file_fill does. */
static inline enum cdacq_status jitdump_file_window(struct jitdump_file *file, uint64_t offset, size_t count,
                                                    const uint8_t **ret, struct cdacq_error *err)
{
    struct jitdump_extent *extent = &file->extent;
    if (offset < extent->begin || !range_fits(offset - extent->begin, count, extent->length)) {
        enum cdacq_status status = jitdump_file_fill(file, offset, count, err);
        if (status != CDACQ_OK)
            return status;
    }
    *ret = extent->data + (offset - extent->begin);
    return CDACQ_OK;
}

/* The next window is read again. */
static inline void jitdump_file_forget(struct jitdump_file *file)
{
    file->extent.length = 0;
}

/* Keeps the first bytes, at most JITDUMP_HEADER_SIZE, to detect by them that the file is rewritten. */
void jitdump_file_keep_header(struct jitdump_file *file, const uint8_t *bytes, size_t size);

/* Whether the header on disk is no longer the one that was kept. */
bool jitdump_file_is_rewritten(const struct jitdump_file *file);

/* Finds its size, and whether it was written to since that was last done. Forgets the block that was read. IO. */
enum cdacq_status jitdump_file_look_again(struct jitdump_file *file, bool *ret_written, struct cdacq_error *err);

/* Opens the file that has taken the place of this one at its path. False: none has, or it cannot be opened. */
bool jitdump_file_open_successor(struct jitdump_file *file);

#endif
