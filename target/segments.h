/*
 * segments.h: where each byte of a target comes from: sorted, non-overlapping runs. Segments are added in any order, a later
 * one overlays an earlier one, and sealing resolves all overlaps once, so that a lookup never meets one.
 * A sealed list is immutable and may be read from any thread.
 */
#ifndef CDACQ_TARGET_SEGMENTS_H
#define CDACQ_TARGET_SEGMENTS_H

#include "util/vector.h"

struct mapped_file;

struct segment {
    uint64_t begin, end;
    const uint8_t *bytes;     /* of `begin`; NULL where `file` has to be asked */
    struct mapped_file *file; /* whose bytes may stand in for what was not dumped */
    uint64_t file_offset;     /* of `begin` in it */
};

DEFINE_VECTOR(segments, struct segment);

/* False when out of memory. An empty or inverted segment is ignored. */
bool segments_add(struct segments *segments, struct segment segment);

/* Sorts, cuts overlaps so that the segment added last wins. O(n log n). False when out of memory. */
bool segments_seal(struct segments *segments);

/* The segment that holds `address`, or NULL. Only after sealing. */
const struct segment *segments_find(const struct segments *segments, uint64_t address);

/* The first segment that ends behind `address`, or NULL. Only after sealing. */
const struct segment *segments_next(const struct segments *segments, uint64_t address);

#endif
