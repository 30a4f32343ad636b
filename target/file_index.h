/*
 * file_index.h: the files below a directory by name, to find a mapped file in any layout: a publish folder, a copy of a
 * machine's file system, or a symbol server's NAME/KEY/NAME. Only the tags of its entries change once it is built.
 */
#ifndef CDACQ_TARGET_FILE_INDEX_H
#define CDACQ_TARGET_FILE_INDEX_H

#include "util/vector.h"
#include "target/file_tag.h"

enum { FILE_INDEX_MAX = 500 * 1000, FILE_INDEX_DEPTH_MAX = 24 };

struct file_index_entry {
    const char *name; /* the last component of `path` */
    char *path;
    struct file_tag *tag; /* NULL: the file was not considered yet */
};

DEFINE_VECTOR(file_entries, struct file_index_entry);

struct file_index {
    struct file_entries entries; /* sorted by name, then path */
    bool cut;                    /* more than FILE_INDEX_MAX files, or deeper ones, were left out */
};

/* Lists the regular files and links to them. Leaves out what cannot be read. False when out of memory. */
bool file_index_build(const char *directory, struct file_index *ret);
void file_index_deinit(struct file_index *index);

/* The first of *ret_count adjacent entries with that name. NULL where there is none. */
struct file_index_entry *file_index_find(struct file_index *index, const char *name, size_t *ret_count);

/* Remembers what a file was found to be. Without memory, the file is opened again. */
void file_index_set_tag(struct file_index_entry *entry, const struct file_tag *tag);

#endif
