/*
 * file_policy.h: how the files that a target maps are found and checked, as its opener wants it: where to look, and the
 * functions of higher layers that compare, identify and fetch files, because target/ does not parse PE files.
 * Threads: `lock` is held while a file is looked for; the rest does not change while a target uses it.
 */
#ifndef CDACQ_TARGET_FILE_POLICY_H
#define CDACQ_TARGET_FILE_POLICY_H

#include <pthread.h>
#include <stdatomic.h>

#include "cdacq/target.h"
#include "util/base.h"

struct file_candidate;
struct file_index;
struct file_root;
struct mapped_file;
struct target;
struct work;

enum file_match {
    FILE_DIFFERS, /* the target contradicts the file */
    FILE_UNKNOWN, /* nothing could be compared */
    FILE_MATCHES,
};

typedef enum file_match file_compare(struct target *target, const struct mapped_file *file,
                                     struct file_candidate *candidate, char *why, size_t why_size);

struct pe_identity {
    uint32_t time_stamp, image_size;
};

/* The identity of a file in the target, by which it can be requested elsewhere. */
struct file_identity {
    uint8_t build_id[64]; /* of an ELF file */
    size_t build_id_size; /* 0 where unknown */
    struct pe_identity pe;
    bool is_pe;
    char key[704];  /* NAME/KEY/NAME of symbol servers, not escaped; "" where unknown */
    char text[160]; /* "build-id ..." or "time stamp ..., size ..."; "" where unknown */
};

typedef void file_identify(struct target *target, const struct mapped_file *file, struct file_identity *ret);

/* Fetches a file that is at `path` in the target. Returns the allocated path of a local copy, or NULL. */
typedef char *file_fetch(void *context, const char *path, const uint8_t *build_id, size_t build_id_size);

/* Symbol servers, and a folder with copies of what they gave. The functions are called under the policy's lock. */
struct file_server {
    /* Returns the allocated path of a copy of what has need->symbol_key, or NULL. `cached`: no server is asked. */
    char *(*fetch)(void *context, const struct cdacq_need *need, bool cached);
    /*
     * That copy is not what was wanted: it is removed if it was just fetched. `why`: one line; "": not known. Returns
     * whether another server is left: fetch() asks that then.
     */
    bool (*refuse)(void *context, const struct cdacq_need *need, const char *path, const char *why);
    void *context;
};

/* How files are found. The opener owns it; it outlives the target. */
struct file_policy {
    char **sysroots, **module_paths;   /* NULL-terminated; NULL where there are none */
    struct file_index *indexes;        /* of module_paths; built by file_policy_index() */
    _Atomic(struct file_root *) roots; /* of sysroots, then of module_paths; opened by file_policy_sysroot() */
    file_compare *compare;
    file_identify *identify; /* may be NULL */
    /* Writes the path of a file, at most `size` bytes, if the opener knows it. May be NULL. */
    bool (*find)(const struct cdacq_need *file, char *path, size_t size, void *context);
    void *find_context;
    /* Writes how to supply a need. NULL: messages say only what is missing. */
    void (*describe)(const struct cdacq_need *need, char *text, size_t size, void *context);
    void *describe_context;
    file_fetch *fetch, *fetch_debug_file; /* NULL: no network */
    void *fetch_context;
    struct file_server server; /* no functions: none is asked */
    bool no_own_paths;         /* the target's own paths are not tried */
    bool pread;                /* files are read, not mapped */
    pthread_mutex_t lock;
    size_t accepted; /* mapped files that were found so far */
};

/*
 * Sysroot `i`, or module directory `i`, opened when first needed. NULL when out of memory; one that cannot be opened
 * has no files. Links lead out of a module directory, which the user names and fills, but not out of a sysroot.
 */
const struct file_root *file_policy_sysroot(struct file_policy *policy, size_t i);
const struct file_root *file_policy_module_root(struct file_policy *policy, size_t i);

void file_policy_deinit(struct file_policy *policy);

/*
 * The index of module directory `i`, built when first needed: a part of `work`. NULL when out of memory. The caller
 * holds the lock.
 */
struct file_index *file_policy_index(struct file_policy *policy, size_t i, struct work *work);

/* Appends the opener's text on a need to a message in a buffer of `size` bytes. */
void file_policy_describe(const struct file_policy *policy, const struct cdacq_need *need, char *message, size_t size);

#endif
