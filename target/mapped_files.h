/*
 * mapped_files.h: the records of all files that a target maps, by name, and the index from each file to its mappings.
 * A backend fills them in when it opens a target and, for a running process, when it lists the mappings again.
 */
#ifndef CDACQ_TARGET_MAPPED_FILES_H
#define CDACQ_TARGET_MAPPED_FILES_H

#include "target/mapped_file.h"

enum {
    FILE_MAX = 8192,             /* files that a target maps at once; a real process has hundreds */
    FILE_EVER_MAX = 1024 * 1024, /* and that it has mapped since it was opened: files without a mapping stay known */
};

/*
 * The target's record of the file that the kernel calls `name`, created if needed: a file that was deleted has another
 * record than the file that has its path by now. NULL when there are too many, or out of memory.
 */
struct mapped_file *mapped_files_get(struct target *target, struct file_policy *policy, const char *name);

/* A new record for a name that is of another file than it was. The old one stays without the name. NULL as above. */
struct mapped_file *mapped_files_replace(struct target *target, struct file_policy *policy, const char *name);

/*
 * Sets mappings, begin and end of each file. A backend calls it after it has set the file of each mapping and sorted
 * them. False when out of memory: they are then as they were.
 */
bool mapped_files_index(struct target *target);

/* Frees all files of a target. Call it before target_deinit(). */
void mapped_files_deinit(struct target *target);

#endif
