/*
 * module_pdbs.h: the PDBs of a target's modules, each looked for when first needed: the one that is embedded in the
 * image, or else a file that belongs to it (src/files/pdb_search.h). Also remembers which modules have none, and why.
 *
 * Threads: a module's PDB is looked for once, under the lock of the file policy. Afterwards it is immutable.
 */
#ifndef CDACQ_FILES_MODULE_PDBS_H
#define CDACQ_FILES_MODULE_PDBS_H

#include "src/files/pdb_budget.h"
#include "util/hash_table.h"

struct file_candidate;
struct file_policy;
struct module;
struct module_pdb;
struct target;

DEFINE_HASH_TABLE_TYPE(pdb_table, struct module_pdb *);

struct module_pdbs {
    struct pdb_table table;   /* by image */
    const char *runtime_path; /* the executable of a single-file application, or libcoreclr.so; NULL: not known */
    struct pdb_budget budget;
};

void module_pdbs_deinit(struct module_pdbs *pdbs);

/*
 * The record of a module's PDB, usable or not, which `pdbs` owns. `module` is open and has an image; the reader of its
 * cache starts a new task. NULL when out of memory.
 */
const struct module_pdb *module_pdbs_get(struct module_pdbs *pdbs, struct target *target, struct file_policy *policy,
                                         const struct module *module);

/* Lists the PDBs that are open and in no image, at most `room`; `pdbs` keeps their bytes. Returns their number. */
size_t module_pdbs_list(const struct module_pdbs *pdbs, struct file_candidate *ret, size_t room);

#endif
