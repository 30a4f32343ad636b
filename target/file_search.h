/*
 * file_search.h: the steps that searches for a file have in common: a path is formed, the file there is opened as the
 * policy wants it, and the search is asked whether it is the right one. The searches (for mapped files, debug files and
 * PDBs) differ in their places, in the order of these, and in what makes a file the right one; these remain theirs.
 * Threads: as the policy; its lock is needed where that is said.
 */
#ifndef CDACQ_TARGET_FILE_SEARCH_H
#define CDACQ_TARGET_FILE_SEARCH_H

#include "target/file_candidate.h"
#include "target/file_policy.h"

/* The first member of the struct of each search. */
struct file_search {
    struct file_policy *policy;
    struct work *work;             /* of the target; at its bound, no file is looked for any more */
    struct mapped_identity mapped; /* the file that a process maps, if that is looked for */
    bool kept;                     /* whether the last candidate was taken */
    /* True ends the search. It takes a candidate that it keeps (file_candidate_take); others are closed after it. */
    bool (*consider)(struct file_search *search, const char *path, struct file_candidate *candidate);
    /* Told of a file that is there but cannot be opened; may be NULL. */
    void (*refused)(struct file_search *search, const char *path, const char *reason);
    /*
     * Whether what is known of a file shows that it is not the right one, so that it need not be opened; may be NULL.
     */
    bool (*excludes)(struct file_search *search, const char *path, const struct file_tag *tag);
};

/* The next five functions return true once the search has ended. */

/*
 * Considers the file at a path below a root, if there is one. A path of 4,096 bytes or more is none. NULL: there is no
 * such root.
 */
bool file_search_at(struct file_search *search, const struct file_root *root, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Considers every file of that name below module directory `i`. The caller holds the lock. */
bool file_search_named(struct file_search *search, size_t i, const char *name);

/* Considers a file that the user, or a library that he uses, names: its path is trusted. */
bool file_search_trusted(struct file_search *search, const char *path);

/* Considers the file that the opener's callback knows for a need. */
bool file_search_ask(struct file_search *search, const struct cdacq_need *need);

/*
 * Considers the file that a symbol server has under the key of a need, or a copy of it. No server is asked while the
 * process is stopped. `why`: where the search writes why it refuses a file. The caller holds the lock.
 */
bool file_search_fetch(struct file_search *search, const struct target *target, const struct cdacq_need *need,
                       const char *why);

/*
 * Below which the target's own paths are: a running process may have another root directory, and may give links, or
 * other files, to whoever reads it. NULL: that directory cannot be opened.
 */
const struct file_root *file_search_own_root(const struct target *target);

/* The path of a mapped file below file_search_own_root(). */
const char *file_search_own_path(const struct target *target, const char *path);

/* Whether a file that was accepted is at `path` below `root`. */
bool file_search_is_below(const char *local, const struct file_root *root, const char *path);

#endif
