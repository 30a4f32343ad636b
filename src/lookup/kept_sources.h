/*
 * kept_sources.h: what a session keeps of PDBs: their documents and the sequence points of methods.
 */
#ifndef CDACQ_LOOKUP_KEPT_SOURCES_H
#define CDACQ_LOOKUP_KEPT_SOURCES_H

#include "util/hash_table.h"

struct module_source;

/* A document of a PDB, as answers show it. */
struct source_document {
    const char *file, *url;
};

/* A sequence point that is not hidden. Of NativeAOT, a row of DWARF, and then the offset is that of the code. */
struct source_point {
    uint32_t il_offset, line, end_line;
    uint16_t column, end_column;
    const struct source_document *document;
};

DEFINE_HASH_TABLE_TYPE(module_sources, struct module_source *);

struct source_lines {
    struct module_sources sources; /* PDBs in use */
    size_t point_total;            /* of the records of an epoch */
    size_t point_bytes;            /* decoded for them */
    size_t document_bytes;         /* of the names and URLs of documents */
};

#endif
