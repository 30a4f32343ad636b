/*
 * pdb_search.h: where the PDB of a module is looked for: in a snapshot; with the opener's callback; below each sysroot;
 * below each module directory, by name or in the layout of a symbol server; beside the module; on a symbol server, if
 * the opener names one. What does not match (src/files/pdb_match.h) is not used, and the reason is kept.
 * Threads: under the lock of the file policy.
 */
#ifndef CDACQ_FILES_PDB_SEARCH_H
#define CDACQ_FILES_PDB_SEARCH_H

#include "src/files/module_pdb.h"
#include "src/files/pdb_match.h"
#include "target/file_search.h"

enum { PDB_NAME_MAX = 255 };

struct pdb_search {
    struct file_search files;
    struct target *target;
    struct pdb_budget *budget;
    const struct pe_debug *debug;
    const char *module_path;            /* in the target */
    const char *runtime_path;           /* the same of the runtime; NULL: not known */
    char module_name[160];              /* the last component of module_path, printable */
    const char *name;                   /* of the PDB: no path, and at most PDB_NAME_MAX bytes */
    struct module_pdb *pdb;             /* is filled in from the PDB that matches */
    char why[CDACQ_ERROR_MESSAGE_SIZE]; /* why the last one that was found is not used; "": none was found */
};

/* Begins a search for the PDB of the module at `module_path`. The caller sets the rest. */
void pdb_search_init(struct pdb_search *search, struct target *target, struct file_policy *policy,
                     const char *module_path);

/*
 * Looks in all places, in the order that cdacq/source.h gives. False: `why` says what is missing, and pdb->refused
 * whether there was a PDB in any place.
 */
bool pdb_search_run(struct pdb_search *search);

#endif
