/*
 * file_tag.h: what a file below a module directory was found to be when it was first considered. A search that wants
 * another file of the same name need not open it again: a core can name a file a thousand times that the directory has
 * in a hundred versions.
 */
#ifndef CDACQ_TARGET_FILE_TAG_H
#define CDACQ_TARGET_FILE_TAG_H

#include "util/base.h"

enum file_tag_kind {
    FILE_TAG_NONE,  /* not considered yet, or of no kind that has an id */
    FILE_TAG_ELF,   /* the id is the build-id */
    FILE_TAG_PE,    /* time stamp and SizeOfImage */
    FILE_TAG_PDB,   /* GUID and stamp */
    FILE_TAG_DEBUG, /* an ELF file as its sections describe it; the build-id */
};

enum { FILE_TAG_ID_MAX = 64 };

struct file_tag {
    enum file_tag_kind kind;
    const char *refused; /* static: why no search of this kind can use the file; or NULL */
    uint64_t size;       /* of the file */
    size_t id_size;      /* 0: it has none */
    uint8_t id[FILE_TAG_ID_MAX];
};

/* Sets a kind and an id of at most FILE_TAG_ID_MAX bytes. */
static inline void file_tag_set(struct file_tag *tag, enum file_tag_kind kind, const void *id, size_t size)
{
    tag->kind = kind;
    tag->id_size = size;
    memcpy(tag->id, id, size);
}

/* Whether the file is of a kind, has an id, and that is another one. */
static inline bool file_tag_differs(const struct file_tag *tag, enum file_tag_kind kind, const void *id, size_t size)
{
    return tag->kind == kind && tag->id_size && size && (tag->id_size != size || memcmp(tag->id, id, size) != 0);
}

#endif
