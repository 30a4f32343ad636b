/*
 * portable_pdb.h: portable PDBs: the sequence points and documents of methods, and custom debug information. A rid or a
 * token is one of the module that the PDB belongs to.
 *
 * The input is not trusted; what is malformed is FORMAT. Nothing is allocated. An opened `struct portable_pdb` is
 * immutable, and threads may share it. Source: dotnet/runtime docs/design/specs/PortablePdb-Metadata.md.
 */
#ifndef CDACQ_FORMATS_PORTABLE_PDB_PORTABLE_PDB_H
#define CDACQ_FORMATS_PORTABLE_PDB_PORTABLE_PDB_H

#include "formats/metadata.h"
#include "formats/portable_pdb/sequence_points.h"
#include "util/text.h"

enum { PORTABLE_PDB_ID_SIZE = 20 }; /* a GUID, and a stamp of four bytes */

struct portable_pdb {
    struct metadata metadata;
    uint8_t id[PORTABLE_PDB_ID_SIZE];
    uint64_t id_offset; /* in the bytes: a checksum covers zeros there */
};

/* Opens a PDB in a buffer, which must outlive it. */
enum cdacq_status portable_pdb_open(const void *bytes, size_t size, struct portable_pdb *ret);

/* Starts before the first sequence point of a method. A method without any has an empty sequence. */
enum cdacq_status portable_pdb_points(const struct portable_pdb *pdb, uint32_t method_rid, struct sequence_points *ret);

/* Appends the name of a document, a path on the machine that built the module: any bytes. */
enum cdacq_status portable_pdb_document_name(const struct portable_pdb *pdb, uint32_t rid, struct text *text);

/* A kind of custom debug information, a GUID as it is stored: JSON of the module, token 0x00000001. */
extern const uint8_t portable_pdb_source_link[16];

/* The custom debug information of a token, in the PDB's buffer; *ret is NULL if there is none of that kind. */
enum cdacq_status portable_pdb_custom(const struct portable_pdb *pdb, uint32_t token, const uint8_t kind[16],
                                      const uint8_t **ret, size_t *ret_size);

#endif
