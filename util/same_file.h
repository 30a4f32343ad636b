/* same_file.h: whether two results of fstat() are of one file. */
#ifndef CDACQ_UTIL_SAME_FILE_H
#define CDACQ_UTIL_SAME_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

static inline bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

#endif
