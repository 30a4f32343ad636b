/*
 * segments.h: the source of each byte of a target, as sorted segments without overlaps. Segments are added in any
 * order; a later one overlays an earlier one. Sealing resolves all overlaps. A sealed list is immutable and may be read
 * from any thread.
 */
#ifndef CDACQ_TARGET_SEGMENTS_H
#define CDACQ_TARGET_SEGMENTS_H

#include "util/vector.h"

struct mapped_file;

struct segment {
    uint64_t begin, end;
    const uint8_t *bytes;     /* at `begin`; NULL where `file` supplies them */
    struct mapped_file *file; /* may stand in for what was not dumped */
    uint64_t file_offset;     /* of `begin` */
};

DEFINE_VECTOR(segments, struct segment);

/* Ignores an empty or inverted segment. False when out of memory. */
bool segments_add(struct segments *segments, struct segment segment);

/* Sorts the segments and cuts overlaps so that the one added last wins. O(n log n). False when out of memory. */
bool segments_seal(struct segments *segments);

/* The segment that holds `address`, or NULL. Only after sealing. */
const struct segment *segments_find(const struct segments *segments, uint64_t address);

/* The first segment that ends after `address`, or NULL. Only after sealing. */
const struct segment *segments_next(const struct segments *segments, uint64_t address);

#endif
