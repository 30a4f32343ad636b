/*
 * pdb_match.h: whether a PDB belongs to an image: it is a portable PDB with the id and, if the image has a SHA-256
 * checksum, that checksum. Checksums of other kinds are not compared. Without a known one, the id decides, and confirms
 * the PDB only if it is the PDB's hash, as compilers make it. Source: dotnet/runtime docs/design/specs/PE-COFF.md, "PDB
 * Checksum Debug Directory Entry", and PortablePdb-Metadata.md, "#Pdb stream".
 */
#ifndef CDACQ_FILES_PDB_MATCH_H
#define CDACQ_FILES_PDB_MATCH_H

#include "formats/pe_debug.h"
#include "formats/portable_pdb/portable_pdb.h"
#include "src/files/pdb_budget.h"
#include "target/file_candidate.h"

/* Why a PDB that was considered for another image is not that of this one. NULL: it may be. */
const char *pdb_match_tag(const struct pe_debug *debug, const struct file_tag *tag);

/* Whether an image has a PDB of this id, or does not say which one. */
bool pdb_match_has_id(const struct pe_debug *debug, const uint8_t id[PORTABLE_PDB_ID_SIZE]);

/*
 * Both return NULL if the candidate matches, as far as it is compared, and *ret is then open in its bytes; otherwise
 * they return why not, and *ret is undefined. They set the tag of the candidate.
 */

/* Compares the id. That is all that a PDB within the image needs. */
const char *pdb_match_id(const struct pe_debug *debug, struct file_candidate *candidate, struct portable_pdb *ret);

/*
 * Compares the id and the hash, which takes from the budget and, as work, from the target. *ret_confirmed: the hash is
 * the checksum or the id.
 */
const char *pdb_match_file(const struct pe_debug *debug, struct file_candidate *candidate, struct pdb_budget *budget,
                           struct work *work, struct portable_pdb *ret, bool *ret_confirmed);

#endif
