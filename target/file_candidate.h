/*
 * file_candidate.h: the contents of a file on disk that may be the one that a target maps, and the extents of it that
 * hold the same bytes in every process. It is mapped, or read where it may be truncated while it is in use.
 */
#ifndef CDACQ_TARGET_FILE_CANDIDATE_H
#define CDACQ_TARGET_FILE_CANDIDATE_H

#include <time.h>

#include "util/file_root.h"
#include "util/vector.h"
#include "target/file_tag.h"
#include "target/target.h"

/* The access of mappings under which an extent of a file holds the same bytes as every process. */
enum file_extent_access {
    FILE_EXTENT_READ_ONLY = 1 << MAPPING_READ_ONLY,
    FILE_EXTENT_UNKNOWN = 1 << MAPPING_UNKNOWN,
    FILE_EXTENT_WRITABLE = 1 << MAPPING_WRITABLE, /* a table in a data section that is never written to */
    FILE_EXTENT_CONSTANT = FILE_EXTENT_READ_ONLY | FILE_EXTENT_UNKNOWN,
    FILE_EXTENT_ALWAYS = FILE_EXTENT_CONSTANT | FILE_EXTENT_WRITABLE,
};

/* An extent of a file that is neither written to nor relocated in any process that maps it. */
struct file_extent {
    uint64_t begin, end; /* file offsets */
    unsigned access;     /* enum file_extent_access */
};

DEFINE_VECTOR(file_extents, struct file_extent);

enum { FILE_EXTENT_MAX = 8192 }; /* a single-file app has some ten for each assembly */

/* The file that a process maps: it is opened whether or not the process's user may read it. */
struct mapped_identity {
    uint64_t device, inode; /* 0: not known */
};

/* A zeroed struct holds no file. */
struct file_candidate {
    const uint8_t *bytes;
    uint64_t size;
    uint8_t *owned; /* `bytes`, if they were read and not mapped */
    uint64_t device, inode;
    struct timespec changed;      /* when the file was last written to, or its mode was set (st_ctim) */
    const struct file_root *root; /* below which it was found; NULL: it was opened as file_open_regular() does */
    bool is_mapped_one;           /* it is the very file that the running process maps: nothing needs comparing */
    struct file_extents constant; /* set by `compare`; the first that covers an offset counts */
    struct file_tag tag;          /* set by whoever considers it */
};

/*
 * Maps a regular file or, with `pread`, reads it. False with errno set. The caller closes it. The root stays valid as
 * long as the candidate. NULL: a path of the user, or of a library that he uses.
 */
bool file_candidate_open(struct file_candidate *candidate, const struct file_root *root, const char *path, bool pread,
                         const struct mapped_identity *mapped);

/*
 * Opens the file of a candidate again, by the path at which it was found, with the name of the root before it. -1 with
 * errno set: ESTALE if another file has taken its place, or it was changed: what was compared is what is read.
 */
int file_candidate_reopen(const struct file_candidate *candidate, const char *path, struct stat *ret);
void file_candidate_close(struct file_candidate *candidate);

/* Returns the candidate, for one who keeps it. `candidate` holds no file afterwards, but its tag stays. */
static inline struct file_candidate file_candidate_take(struct file_candidate *candidate)
{
    struct file_candidate taken = *candidate;
    *candidate = (struct file_candidate){.tag = taken.tag};
    return taken;
}

/* Adds a constant extent. Ignored where there is no room, which only makes less available. */
void file_candidate_add_constant(struct file_candidate *candidate, uint64_t begin, uint64_t end, unsigned access);

/* Gives back the memory that the contents take; bytes are read again when they are next needed. */
void file_candidate_release_pages(const struct file_candidate *candidate);

#endif
