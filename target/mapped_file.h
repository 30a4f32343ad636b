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

#include <pthread.h>
#include <stdatomic.h>

#include "util/vector.h"
#include "target/target.h"

enum file_match {
    FILE_DIFFERS, /* the target contradicts the file */
    FILE_UNKNOWN, /* nothing could be compared */
    FILE_MATCHES,
};

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

struct file_candidate {
    const uint8_t *bytes;
    uint64_t size;
    uint8_t *owned; /* `bytes`, if they were read and not mapped */
    uint64_t device, inode;
    bool is_mapped_one;           /* it is the very file that the running process maps: nothing needs comparing */
    struct file_extents constant; /* set by `compare`; the first that covers an offset counts */
};

typedef enum file_match file_compare(struct target *target, const struct mapped_file *file,
                                     struct file_candidate *candidate, char *why, size_t why_size);

/* The identity of a file in the target, by which it can be requested elsewhere. */
struct file_identity {
    uint8_t build_id[64]; /* of an ELF file */
    size_t build_id_size; /* 0 where unknown */
    char key[256];        /* NAME/KEY/NAME of symbol servers; "" where unknown */
    char text[160];       /* "build-id ..." or "time stamp ..., size ..."; "" where unknown */
};

typedef void file_identify(struct target *target, const struct mapped_file *file, struct file_identity *ret);

/* Fetches a file that is at `path` in the target. Returns the allocated path of a local copy, or NULL. */
typedef char *file_fetch(void *context, const char *path, const uint8_t *build_id, size_t build_id_size);

/* How files are found. The opener owns it; it outlives the target. */
struct file_policy {
    char **sysroots, **module_paths; /* NULL-terminated; NULL where there are none */
    struct file_index *indexes;      /* of module_paths; mapped_file.c builds them when first needed */
    file_compare *compare;
    file_identify *identify; /* may be NULL */
    /* Writes the path of a file, at most `size` bytes, if the opener knows it. May be NULL. */
    bool (*find)(void *context, const struct cdacq_need *file, char *path, size_t size);
    void *find_context;
    /* Writes how to supply a need. NULL: messages say only what is missing. */
    void (*describe)(void *context, const struct cdacq_need *need, char *text, size_t size);
    void *describe_context;
    file_fetch *fetch, *fetch_debug_file; /* NULL: no network */
    void *fetch_context;
    bool no_own_paths; /* the target's own paths are not tried */
    bool pread;        /* files are read, not mapped */
    pthread_mutex_t lock;
};

void file_policy_deinit(struct file_policy *policy);

/* The index of module directory `i`, built when first needed. NULL when out of memory. The caller holds the lock. */
const struct file_index *file_policy_index(struct file_policy *policy, size_t i);

/* Appends the opener's text on a need to a message in a buffer of `size` bytes. */
void file_policy_describe(const struct file_policy *policy, const struct cdacq_need *need, char *message, size_t size);

struct mapped_file {
    struct mapped_file *next;
    char *path; /* in the target */
    struct target *target;
    struct file_policy *policy;      /* NULL: files are never looked for */
    const struct mapping **mappings; /* sorted by file offset */
    size_t mapping_count;
    uint64_t begin, end;                      /* from the lowest to the highest mapping */
    uint64_t device, inode;                   /* of the file that a running process maps; inode 0: not known */
    bool distrusted;                          /* a running process had other memory than the file */
    uint64_t missing_size;                    /* bytes of its mappings that the target lacks */
    uint64_t mapped_size;                     /* the highest mapped file offset, rounded up to pages */
    _Atomic(struct file_identity *) identity; /* NULL until first needed */
    atomic_bool resolved;
    /* Once resolved: */
    char *local_path; /* NULL where no file was accepted */
    bool verified;
    char *problem; /* one line: why there is no file; or NULL */
    struct file_candidate content;
};

/* Once resolved: whether bytes are taken from a file that nothing in the target could confirm. `file` may be NULL. */
static inline bool mapped_file_is_unconfirmed(const struct mapped_file *file)
{
    return file && file->content.bytes && !file->verified;
}

enum {
    FILE_MAX = 8192,             /* files that a target maps at once; a real process has hundreds */
    FILE_EVER_MAX = 1024 * 1024, /* and that it has mapped since it was opened: files without a mapping stay known */
};

/* The target's record of the file at `path`, created if needed. NULL when there are too many, or out of memory. */
struct mapped_file *mapped_file_get(struct target *target, struct file_policy *policy, const char *path);

/* A new record for a path that has another file than it had. The old one stays without the path. NULL as above. */
struct mapped_file *mapped_file_replace(struct target *target, struct file_policy *policy, const char *path);

/*
 * Sets mappings, begin and end of each file. A backend calls it after it has set the file of each mapping and sorted
 * them. False when out of memory: they are then as they were.
 */
bool mapped_files_index(struct target *target);

/*
 * The number of the file's mappings that begin at or before a file offset. A descending walk from there meets all that
 * cover the offset before the first whose `reach` is not above it.
 */
size_t mapped_file_mappings_to(const struct mapped_file *file, uint64_t offset);

/* The identity of the file, found by `identify` once and valid until the file is destroyed. */
const struct file_identity *mapped_file_identity(struct mapped_file *file, file_identify *identify);

/* Frees all files of a target. Call it before target_deinit(). */
void mapped_files_deinit(struct target *target);

/*
 * Writes why there is no memory at `address`: the core ends before it, or the file that it belongs to and what is wrong
 * with that. Empty where nothing is known.
 */
void mapped_file_explain(struct target *target, uint64_t address, char *buffer, size_t size);

/* Looks for the file the first time. True where one was accepted. */
bool mapped_file_resolve(struct mapped_file *file);

/* Gives back the memory that the content of a resolved file takes; bytes are read again when they are next needed. */
void mapped_file_release_pages(const struct mapped_file *file);

/* Why there is no file, one line. NULL where there is one, or none was looked for. */
const char *mapped_file_problem(const struct mapped_file *file);

/*
 * The span that the accepted file supplies around `address` in [begin, end), which a mapping of that access covers and
 * the target lacks. `offset` is the file offset of `begin`. False where the file may not stand in.
 */
bool mapped_file_memory_at(struct mapped_file *file, enum mapping_access access, uint64_t begin, uint64_t end,
                           uint64_t offset, uint64_t address, struct span *ret);

/*
 * Narrows [*begin, *end), file offsets around `offset`, to the constant extent for a mapping of that access. False
 * where none covers `offset`.
 */
bool mapped_file_constant(const struct mapped_file *file, enum mapping_access access, uint64_t offset, uint64_t *begin,
                          uint64_t *end);

/* Maps or reads a regular file. False with errno set. The caller closes it. */
bool file_candidate_open(struct file_candidate *candidate, const char *path, bool pread);
void file_candidate_close(struct file_candidate *candidate);

/*
 * False for a path of the target without a file to open (memfds, devices, shared memory, deleted files), and for one
 * with an empty, "." or ".." component: no kernel writes those, and they could lead out of a sysroot or to a device.
 */
bool mapped_path_is_file(const char *path);

/* Whether the kernel says so of a file that was deleted, or replaced by another one. */
bool mapped_path_is_deleted(const char *path);

/* Whether the kernel names memory so, and no file: what no other program can know by this path. */
bool mapped_path_is_memory(const char *path);

/* Adds a constant extent to a candidate. Ignored where there is no room, which only makes less available. */
void file_candidate_add_constant(struct file_candidate *candidate, uint64_t begin, uint64_t end, unsigned access);

#endif
