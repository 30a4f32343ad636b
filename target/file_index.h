/*
 * file_index.h: the files below a directory by their names: for finding a mapped file in whatever layout somebody keeps
 * modules in, a publish folder, a copy of a machine's tree, or a symbol server's NAME/KEY/NAME. Made once, immutable
 * then.
 */
#ifndef CDACQ_TARGET_FILE_INDEX_H
#define CDACQ_TARGET_FILE_INDEX_H

#include "util/vector.h"

enum { FILE_INDEX_MAX = 500 * 1000, FILE_INDEX_DEPTH_MAX = 24 };

struct file_index_entry {
    const char *name; /* the last part of `path` */
    char *path;
};

DEFINE_VECTOR(file_entries, struct file_index_entry);

struct file_index {
    struct file_entries entries; /* sorted by name, then path */
    bool cut;                    /* there are more than FILE_INDEX_MAX, or deeper ones */
};

/* Lists the regular files, and links to such, below `directory`. What cannot be read is left out. False: no memory. */
bool file_index_build(const char *directory, struct file_index *ret);
void file_index_deinit(struct file_index *index);

/* The entries called `name`: *ret_count of them from the one returned on. NULL where there is none. */
const struct file_index_entry *file_index_find(const struct file_index *index, const char *name, size_t *ret_count);

#endif
