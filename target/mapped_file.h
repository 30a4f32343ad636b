/*
 * mapped_file.h: a file that a target maps, and when its bytes on disk may stand in for memory that was not dumped. It
 * is looked for when first needed: with the opener's callback; below each sysroot; anywhere below each module
 * directory, by name or build-id; at the target's own path; last, if enabled, over the network. A file that contradicts
 * the target is refused, and the reason is kept.
 *
 * The opener's function `compare` decides that, because target/ does not parse PE files.
 * Threads: resolving happens once, under a lock. Afterwards a mapped file is immutable.
 */
#ifndef CDACQ_TARGET_MAPPED_FILE_H
#define CDACQ_TARGET_MAPPED_FILE_H

#include <stdatomic.h>

#include "target/file_candidate.h"
#include "target/file_policy.h"
#include "target/target.h"

struct mapped_file {
    struct mapped_file *next;
    char *path; /* in the target; the path that it had, if it was deleted or replaced since */
    char *name; /* the kernel's name for it: the path, and a mark if it was deleted or replaced */
    struct target *target;
    struct file_policy *policy;      /* NULL: files are never looked for */
    const struct mapping **mappings; /* sorted by file offset */
    size_t mapping_count;
    uint64_t begin, end;                      /* from the lowest to the highest mapping */
    uint64_t device, inode;                   /* of the file that a running process maps; inode 0: not known */
    bool distrusted;                          /* a running process had other memory than the file */
    uint64_t missing_size;                    /* bytes of its mappings that the target lacks */
    uint64_t mapped_size;                     /* the highest mapped file offset, rounded up to pages */
    _Atomic(struct file_identity *) identity; /* NULL until first needed; and that of `content` */
    _Atomic(struct file_identity *) content_identity;
    atomic_bool resolved;
    /* Once resolved: */
    char *local_path; /* NULL where no file was accepted */
    bool verified;
    char *problem; /* one line: why there is no file; or NULL */
    struct file_candidate content;
};

/* The kernel's name for the file of a mapping that has one. */
static inline const char *mapped_file_name(const struct mapping *mapping)
{
    return mapping->file ? mapping->file->name : mapping->path;
}

/* Whether the file was deleted or replaced since it was mapped, as far as the target knows. */
bool mapped_file_is_deleted(const struct mapped_file *file);

/*
 * Whether the kernel shows that a candidate is not the file that was mapped. It may be a copy; and it may be another
 * build with the same identity, as tools that rewrite code leave it. (Where only the device differs, the file system
 * has several numbers for one device.)
 */
static inline bool mapped_file_is_another(const struct mapped_file *file, const struct file_candidate *candidate)
{
    return mapped_file_is_deleted(file) || (file->inode && file->inode != candidate->inode);
}

/* Once resolved: whether bytes are taken from a file that nothing in the target could confirm. `file` may be NULL. */
static inline bool mapped_file_is_unconfirmed(const struct mapped_file *file)
{
    return file && file->content.bytes && !file->verified;
}

/*
 * The number of the file's mappings that begin at or before a file offset. A descending walk from there meets all that
 * cover the offset before the first whose `reach` is not above it.
 */
size_t mapped_file_mappings_to(const struct mapped_file *file, uint64_t offset);

/* The identity of the file, found by `identify` once and valid until the file is destroyed. */
const struct file_identity *mapped_file_identity(struct mapped_file *file, file_identify *identify);

/* The same of the content of a file that was resolved and accepted. */
const struct file_identity *mapped_file_content_identity(struct mapped_file *file, file_identify *identify);

/*
 * Writes why there is no memory at `address`: the core ends before it, or the file that it belongs to and what is wrong
 * with that. Empty where nothing is known.
 */
void mapped_file_explain(struct target *target, uint64_t address, char *buffer, size_t size);

/* Looks for the file the first time. True where one was accepted. */
bool mapped_file_resolve(struct mapped_file *file);

/* Why there is no file, one line. NULL where there is one, or none was looked for. */
const char *mapped_file_problem(const struct mapped_file *file);

/* Addresses that a mapping of a file covers, or a part of one. */
struct mapped_part {
    enum mapping_access access;
    uint64_t begin, end;
    uint64_t offset; /* in the file, of `begin` */
};

/*
 * The span that the accepted file supplies around `address`, which is in a part that the target lacks. False where the
 * file may not stand in.
 */
bool mapped_file_memory_at(struct mapped_file *file, const struct mapped_part *part, uint64_t address,
                           struct span *ret);

/*
 * Narrows [*begin, *end), file offsets around `offset`, to the constant extent for a mapping of that access. False
 * where none covers `offset`.
 */
bool mapped_file_constant(const struct mapped_file *file, enum mapping_access access, uint64_t offset, uint64_t *begin,
                          uint64_t *end);

#endif
