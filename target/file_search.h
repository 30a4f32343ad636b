/*
 * file_search.h: the steps that searches for a file have in common: a path is formed, the file there is opened as the
 * policy wants it, and the search is asked whether it is the right one. The searches (for mapped files, debug files and
 * PDBs) differ in their places, in the order of these, and in what makes a file the right one; these remain theirs.
 * Threads: as the policy; its lock is needed where that is said.
 */
#ifndef CDACQ_TARGET_FILE_SEARCH_H
#define CDACQ_TARGET_FILE_SEARCH_H

#include "target/file_policy.h"

/* The first member of the struct of each search. */
struct file_search {
    struct file_policy *policy;
    /* True ends the search. It takes a candidate that it keeps (file_candidate_take); others are closed after it. */
    bool (*consider)(struct file_search *search, const char *path, struct file_candidate *candidate);
    /* Told of a file that is there but cannot be opened; may be NULL. */
    void (*refused)(struct file_search *search, const char *path, const char *reason);
};

/* The next three functions return true once the search has ended. */

/* Considers the file at a path, if there is one. A path of 4,096 bytes or more is none. */
bool file_search_at(struct file_search *search, const char *format, ...) PRINTF_LIKE(2, 3);

/* Considers every file of that name below module directory `i`. The caller holds the lock. */
bool file_search_named(struct file_search *search, size_t i, const char *name);

/* Considers the file that the opener's callback knows for a need. */
bool file_search_ask(struct file_search *search, const struct cdacq_need *need);

/* What comes before the target's own paths: a running process may have another root directory. "" for other targets. */
void file_search_own_root(const struct target *target, char ret[32]);

/* Whether `local` is the path of a target's file below the directory `root`. */
bool file_search_is_below(const char *local, const char *root, const char *path);

#endif
