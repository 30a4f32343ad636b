/*
 * read_write_metadata.h: the metadata of a module to which hot reload or a profiler has added. The runtime then no
 * longer uses that of the image: it keeps the tables and heaps in pieces, whose number grows. Here they are one blob: a
 * header with a `#-` stream, which is formed here, and then the pieces as they are. Source: dotnet/runtime
 * docs/design/datacontracts/EcmaMetadata.md (GetReadWriteMetadata), src/coreclr/md/inc/{metamodelrw,stgpool}.h.
 */
#ifndef CDACQ_CONTRACTS_READ_WRITE_METADATA_H
#define CDACQ_CONTRACTS_READ_WRITE_METADATA_H

#include "util/vector.h"

struct reader;

struct metadata_piece {
    uint64_t offset; /* in the blob */
    uint64_t address, size;
};

DEFINE_VECTOR_TYPE(metadata_pieces, struct metadata_piece);

struct read_write_metadata {
    uint8_t *header; /* the blob begins with it */
    size_t header_size;
    struct metadata_pieces pieces; /* ascending, without gaps; none is empty */
    uint64_t size;                 /* of the blob */
};

/*
 * Whether the runtime keeps metadata of its own for a module. False also if it does not describe that. The reader fails
 * when it cannot be read.
 */
bool read_write_metadata_exists(struct reader *reader, uint64_t module);

/*
 * Finds the pieces. False if the module has none, or if the reader failed, which is then to blame. Deinit *ret in
 * either case.
 */
bool read_write_metadata_find(struct reader *reader, uint64_t module, struct read_write_metadata *ret);
void read_write_metadata_deinit(struct read_write_metadata *metadata);

/* The piece that has the byte at `offset`, which is behind the header and inside the blob. */
const struct metadata_piece *read_write_metadata_piece(const struct read_write_metadata *metadata, uint64_t offset);

#endif
