/*
 * source_files.h: the PDBs of a target's modules: the one that is embedded in the image, or a file that has the id and
 * the checksum that the image names. It is looked for when first needed: with the opener's callback; below each
 * sysroot; below each module directory, by name or in the layout of a symbol server; beside the module. No server is
 * asked. A file that does not match is refused, and the reason is kept.
 *
 * Threads: a module's PDB is looked for once, under the lock of the file policy. Afterwards it is immutable.
 */
#ifndef CDACQ_API_SOURCE_FILES_H
#define CDACQ_API_SOURCE_FILES_H

#include "contracts/module_cache.h"
#include "formats/pe_debug.h"
#include "formats/portable_pdb/portable_pdb.h"
#include "target/mapped_file.h"

/* Of a module's image. A running process can map another image where one was. */
struct source_key {
    uint64_t base;
    uint32_t time_stamp, image_size;
};

static inline uint64_t hash_source_key(struct source_key key, uint64_t seed)
{
    return hash_u64(key.base ^ (uint64_t)key.time_stamp << 32, seed);
}

static inline bool equal_source_keys(struct source_key a, struct source_key b)
{
    return a.base == b.base && a.time_stamp == b.time_stamp && a.image_size == b.image_size;
}

static inline struct source_key source_key_of(const struct module *module)
{
    return (struct source_key){module->base, module->pe.time_stamp, module->pe.image_size};
}

struct source_file {
    struct source_key image; /* the key */
    bool usable;             /* `pdb` is open */
    bool embedded;           /* in the image, or in the snapshot */
    bool is_in_image;        /* the first of these: memory of the target */
    bool refused;            /* a PDB was found and is not in use: `problem` names it */
    bool unverified;         /* the image's bytes come from a file that nothing confirmed */
    struct portable_pdb pdb;
    struct file_candidate content; /* of `pdb` */
    char *path;                    /* of the file in use; NULL if it is embedded, or there is none */
    char *key;                     /* of symbol servers, NAME/KEY/NAME; NULL if the image names no PDB */
    char *problem;                 /* one line: why there is none; NULL if `usable` */
};

DEFINE_HASH_TABLE_TYPE(source_file_table, struct source_file *);

struct source_file_list {
    struct source_file_table files; /* by image */
    const char *runtime_path;       /* the executable of a single-file application, or libcoreclr.so; NULL: not known */
    size_t allocated;               /* bytes of PDBs that are not mapped files, used or refused */
    uint64_t hashed;                /* bytes of files whose checksum was compared */
    uint64_t notes_hashed;          /* of these, those in a snapshot */
};

/* Lists the PDBs that are open and in no image, at most `room`; the list keeps their bytes. Returns their number. */
size_t source_files_list(const struct source_file_list *list, struct file_candidate *ret, size_t room);

void source_files_deinit(struct source_file_list *list);

/*
 * The record of a module's PDB, usable or not; the list owns it. `module` is open and has an image; `reader` is that of
 * its cache and starts a new task. NULL when out of memory.
 */
const struct source_file *source_file_get(struct source_file_list *list, struct target *target,
                                          struct file_policy *policy, const struct module *module);

#endif
