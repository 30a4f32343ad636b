/*
 * mapped_file.h: a file on disk that stands behind mappings of a target, and when its bytes may stand in for memory
 * that was not dumped. It is looked for when first needed: where the opener's callback says; below each sysroot;
 * anywhere below each module directory, by its name or by its build-id; at the target's own path; last, where that is
 * wanted, over the network. A file that
 * anything in the target contradicts is refused, and why is remembered.
 *
 * Who decides that is the function `compare`, which the caller injects: target/ does not know what a PE file is.
 * Threads: resolving happens once, under a lock; afterwards a mapped file is immutable.
 */
#ifndef CDACQ_TARGET_MAPPED_FILE_H
#define CDACQ_TARGET_MAPPED_FILE_H

#include <pthread.h>
#include <stdatomic.h>

#include "util/vector.h"
#include "target/target.h"

enum file_match {
    FILE_DIFFERS, /* something in the target says that this is another file */
    FILE_UNKNOWN, /* nothing could be compared */
    FILE_MATCHES,
};

/* Under which access of the mapping a part of a file holds what every process has there. */
enum file_extent_access {
    FILE_EXTENT_READ_ONLY = 1 << MAPPING_READ_ONLY,
    FILE_EXTENT_UNKNOWN = 1 << MAPPING_UNKNOWN,
    FILE_EXTENT_WRITABLE = 1 << MAPPING_WRITABLE, /* a table in a data section that nobody writes to */
    FILE_EXTENT_CONSTANT = FILE_EXTENT_READ_ONLY | FILE_EXTENT_UNKNOWN,
    FILE_EXTENT_ALWAYS = FILE_EXTENT_CONSTANT | FILE_EXTENT_WRITABLE,
};

/* A part of a file whose bytes are the same in every process that maps it: neither written to nor relocated. */
struct file_extent {
    uint64_t begin, end; /* file offsets */
    unsigned access;     /* enum file_extent_access */
};

DEFINE_VECTOR(file_extents, struct file_extent);

enum { FILE_EXTENT_MAX = 8192 }; /* a single-file app has some ten for each of its assemblies */

/* A candidate on disk, for `compare` to look at and to describe. */
struct file_candidate {
    const uint8_t *bytes;
    uint64_t size;
    uint8_t *owned;               /* the bytes, where they were read and not mapped */
    struct file_extents constant; /* out; the first that covers an offset counts */
};

typedef enum file_match file_compare(struct target *target, const struct mapped_file *file,
                                     struct file_candidate *candidate, char *why, size_t why_size);

/* What the target itself tells of a file: by what it can be asked for elsewhere. */
struct file_identity {
    uint8_t build_id[64]; /* of an ELF file */
    size_t build_id_size; /* 0 where not known */
    char key[256];        /* NAME/KEY/NAME, as symbol servers have it; "" where not known */
    char text[160];       /* "build-id ..." or "time stamp ..., size ...", for a person; "" where not known */
};

typedef void file_identify(struct target *target, const struct mapped_file *file, struct file_identity *ret);

/* How files are found. Owned by the target's opener, outlives the target. */
struct file_policy {
    char **sysroots, **module_paths; /* NULL-terminated; NULL where there are none */
    struct file_index *indexes;      /* of module_paths, made when first needed; by mapped_file.c */
    file_compare *compare;
    file_identify *identify; /* NULL: never asked */
    /* Who opened the target knows where a file is: writes its path, at most `size` bytes. NULL: nobody does. */
    bool (*find)(void *context, const struct cdacq_need *file, char *path, size_t size);
    void *find_context;
    /* Writes how a need can be supplied. NULL: messages say only what is missing. */
    void (*describe)(void *context, const struct cdacq_need *need, char *text, size_t size);
    void *describe_context;
    char *(*fetch)(const uint8_t *build_id, size_t build_id_size); /* a path, allocated; NULL: no network */
    bool no_own_paths;                                             /* the target's own paths are not this machine's */
    bool pread;                                                    /* files are read into memory, not mapped */
    pthread_mutex_t lock;
};

void file_policy_deinit(struct file_policy *policy);

/* Appends to a message in a buffer of `size` bytes what the opener writes of a need. */
void file_policy_describe(const struct file_policy *policy, const struct cdacq_need *need, char *message, size_t size);

struct mapped_file {
    struct mapped_file *next;
    char *path; /* as the target names it */
    struct target *target;
    struct file_policy *policy;      /* NULL: never look on disk */
    const struct mapping **mappings; /* of it, by file offset */
    size_t mapping_count;
    uint64_t begin, end;                      /* from its lowest to its highest mapping */
    uint64_t missing_size;                    /* bytes of its mappings that the target itself does not hold */
    uint64_t mapped_size;                     /* the highest file offset that is mapped; page-rounded by the mapping */
    _Atomic(struct file_identity *) identity; /* NULL before somebody asked */
    atomic_bool resolved;
    /* Once resolved: */
    char *local_path; /* NULL where no file was accepted */
    bool verified;
    char *problem; /* NULL, or one line on why there is no file */
    struct file_candidate content;
};

enum { FILE_MAX = 8192 }; /* files of one target; a real process has hundreds */

/*
 * The target's record of the file at `path`, made when there is none. NULL when there are FILE_MAX, or out of memory.
 */
struct mapped_file *mapped_file_get(struct target *target, struct file_policy *policy, const char *path);

/*
 * Tells each file of the target its mappings, begin and end. For the backends: once all mappings have their files and
 * have been sorted. False when out of memory.
 */
bool mapped_files_index(struct target *target);

/*
 * How many of the file's mappings begin at or before an offset in it. Going down from there, those that cover it are
 * all met before the first whose `reach` is not beyond it.
 */
size_t mapped_file_mappings_to(const struct mapped_file *file, uint64_t offset);

/* What the target tells of the file; found out by `identify` the first time, kept until the file is destroyed. */
const struct file_identity *mapped_file_identity(struct mapped_file *file, file_identify *identify);

/* All files of a target that is being destroyed; before target_deinit(). */
void mapped_files_deinit(struct target *target);

/*
 * Appends to `buffer` why nothing is at `address`, for a person: which file it belongs to and what is wrong with it.
 * Leaves an empty string where there is nothing to say.
 */
void mapped_file_explain(const struct target *target, uint64_t address, char *buffer, size_t size);

/* Looks for the file if that has not happened. True where one was accepted. */
bool mapped_file_resolve(struct mapped_file *file);

/* Why there is no file: one line, or NULL where there is one or nobody has looked yet. */
const char *mapped_file_problem(const struct mapped_file *file);

/*
 * What the accepted file has at `address` of a mapping, by which access it has: of [begin, end), which the mapping
 * covers and lacks, `begin` being at `offset` in the file. False where the file may not stand in there.
 */
bool mapped_file_memory_at(struct mapped_file *file, enum mapping_access access, uint64_t begin, uint64_t end,
                           uint64_t offset, uint64_t address, struct span *ret);

/*
 * Narrows [*begin, *end), file offsets around `offset`, to what the accepted file can stand in for under a mapping of
 * that access. False where `offset` itself is not covered.
 */
bool mapped_file_constant(const struct mapped_file *file, enum mapping_access access, uint64_t offset, uint64_t *begin,
                          uint64_t *end);

/* Adds a constant part to a candidate; ignored when there is no room, which only makes less available. */
void file_candidate_add_constant(struct file_candidate *candidate, uint64_t begin, uint64_t end, unsigned access);

#endif
