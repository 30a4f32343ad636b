/*
 * module_pdb.h: the record of a module's PDB: its contents or, if none is in use, why. Immutable once the table of a
 * target has it (src/files/module_pdbs.h).
 */
#ifndef CDACQ_FILES_MODULE_PDB_H
#define CDACQ_FILES_MODULE_PDB_H

#include "contracts/loader.h"
#include "formats/portable_pdb/portable_pdb.h"
#include "target/file_candidate.h"
#include "util/hash_table.h"

/* Of a module's image. A running process can map another image where one was. */
struct image_key {
    uint64_t base;
    uint32_t time_stamp, image_size;
};

static inline uint64_t hash_image_key(struct image_key key, uint64_t seed)
{
    return hash_u64(key.base ^ (uint64_t)key.time_stamp << 32, seed);
}

static inline bool equal_image_keys(struct image_key a, struct image_key b)
{
    return a.base == b.base && a.time_stamp == b.time_stamp && a.image_size == b.image_size;
}

static inline struct image_key image_key_of(const struct module *module)
{
    return (struct image_key){module->base, module->pe.time_stamp, module->pe.image_size};
}

struct module_pdb {
    struct image_key image;
    bool usable;                   /* `tables` is open */
    bool embedded;                 /* in the image, in the program's memory, or in the snapshot */
    bool is_in_target;             /* the first two of these: memory of the target */
    bool refused;                  /* a PDB was found and is not in use: `problem` names it */
    bool unverified;               /* nothing confirmed the PDB, or the file that the image's bytes come from */
    struct file_candidate content; /* of the PDB */
    struct portable_pdb tables;    /* in `content` */
    /*
     * A PDB of another image that the program gave to the runtime (Assembly.Load(bytes, pdb)): the runtime takes lines
     * from it, but they are not those of the code.
     */
    bool has_foreign;
    struct file_candidate foreign_content;
    struct portable_pdb foreign;
    char *path;       /* of the file in use; NULL if it is embedded, or there is none */
    char *symbol_key; /* of symbol servers, NAME/KEY/NAME; NULL if the image names no PDB */
    char *problem;    /* one line: why there is none; NULL if `usable` */
};

#endif
