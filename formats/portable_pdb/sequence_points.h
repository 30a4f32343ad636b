/*
 * sequence_points.h: the sequence points of a method: which IL offsets belong to which lines. Decodes one blob, which
 * is not trusted: values outside the specification's ranges end the sequence as malformed. Pure. Source: dotnet/runtime
 * docs/design/specs/PortablePdb-Metadata.md, "Sequence Points Blob".
 */
#ifndef CDACQ_FORMATS_PORTABLE_PDB_SEQUENCE_POINTS_H
#define CDACQ_FORMATS_PORTABLE_PDB_SEQUENCE_POINTS_H

#include "formats/names/signature.h"

/* The line of a hidden point, as the specification gives it: the code belongs to no line. */
#define SEQUENCE_POINT_HIDDEN_LINE 0xfeefeeu

struct sequence_point {
    uint32_t il_offset;
    uint32_t document; /* rid */
    uint32_t start_line, end_line;
    uint16_t start_column, end_column; /* 0 in a hidden point */
};

static inline bool sequence_point_is_hidden(const struct sequence_point *point)
{
    return point->start_line == SEQUENCE_POINT_HIDDEN_LINE;
}

/* A position in a blob. Only `malformed` is for the caller. */
struct sequence_points {
    struct signature at;
    uint32_t document, il_offset, line, column; /* of the point before; line and column of the last that has them */
    bool begun, has_line;
    bool malformed;
};

/*
 * Starts before the first point of a blob. `document` is the method's only document; 0: the blob names its documents.
 * An empty blob has no points.
 */
void sequence_points_begin(struct sequence_points *points, const void *blob, size_t size, uint32_t document);

/* The next point, by ascending IL offset. False at the end, with points->malformed set if the rest makes no sense. */
bool sequence_points_next(struct sequence_points *points, struct sequence_point *ret);

#endif
