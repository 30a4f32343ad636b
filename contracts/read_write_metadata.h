/*
 * read_write_metadata.h: the metadata of a module to which hot reload or a profiler has added. The runtime then no
 * longer uses that of the image: it keeps the tables and heaps in pieces, whose number grows. Here they are one blob: a
 * header with a `#-` stream, which is formed here, and then the pieces as they are. Source: dotnet/runtime
 * docs/design/datacontracts/EcmaMetadata.md (read-write metadata), src/coreclr/md/inc/{metamodelrw,stgpool}.h.
 */
#ifndef CDACQ_CONTRACTS_READ_WRITE_METADATA_H
#define CDACQ_CONTRACTS_READ_WRITE_METADATA_H

#include "util/vector.h"
#include "descriptors/field_reader.h"
#include "formats/metadata.h"

struct metadata_piece {
    uint64_t offset; /* in the blob */
    uint64_t address, size;
};

DEFINE_VECTOR_TYPE(metadata_pieces, struct metadata_piece);

struct read_write_metadata {
    uint8_t *header; /* the blob begins with it */
    size_t header_size;
    struct metadata_pieces pieces;            /* ascending, without gaps; none is empty */
    uint64_t size;                            /* of the blob */
    uint16_t row_sizes[METADATA_TABLE_COUNT]; /* as the runtime has them; 0 for an absent table */
};

/*
 * Finds the pieces. False if the module has none, or if the reader failed, which is then to blame. Deinit *ret in
 * either case.
 */
bool read_write_metadata_find(struct field_reader *reader, uint64_t module, struct read_write_metadata *ret);
void read_write_metadata_deinit(struct read_write_metadata *metadata);

/* The piece that has the byte at `offset`, which is behind the header and inside the blob. */
const struct metadata_piece *read_write_metadata_piece(const struct read_write_metadata *metadata, uint64_t offset);

/* Whether the tables were laid out as the runtime lays them out. */
bool read_write_metadata_agrees(const struct read_write_metadata *metadata, const struct metadata *opened);

#endif
