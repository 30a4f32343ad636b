/*
 * pdb_budget.h: what the PDBs of all modules of a target may take together. Each PDB has bounds of its own, but a
 * hostile target can name any number of modules, with a large PDB to open and to compare for each. What is taken is
 * memory and work of the target, too. Threads: under the lock of the file policy.
 */
#ifndef CDACQ_FILES_PDB_BUDGET_H
#define CDACQ_FILES_PDB_BUDGET_H

#include "target/work.h"

struct pdb_budget {
    size_t memory;         /* bytes of PDBs that are not mapped files, used or refused */
    uint64_t hashed;       /* bytes of files whose checksum was compared */
    uint64_t notes_hashed; /* of these, those in a snapshot */
};

/* Each function that takes returns NULL or, with nothing taken, why that cannot be had. */

const char *pdb_budget_take_memory(struct pdb_budget *budget, struct work *work, size_t size);
void pdb_budget_return_memory(struct pdb_budget *budget, struct work *work, size_t size);

/* For the checksum of a PDB. */
const char *pdb_budget_take_hashing(struct pdb_budget *budget, struct work *work, uint64_t size);

/* To be taken before the above for a PDB in a snapshot, so that those leave something for files. */
const char *pdb_budget_take_note(struct pdb_budget *budget, uint64_t size);

#endif
