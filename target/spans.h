/*
 * spans.h: where each byte of a target comes from: sorted, non-overlapping runs. Spans are added in any order, a later
 * one overlays an earlier one, and sealing resolves all overlaps once, so that a lookup never meets one.
 * A sealed list is immutable and may be read from any thread.
 */
#ifndef CDACQ_TARGET_SPANS_H
#define CDACQ_TARGET_SPANS_H

#include "util/base.h"

struct mapped_file;

struct span {
    uint64_t begin, end;
    const uint8_t *bytes;     /* of `begin`; NULL where `file` has to be asked */
    struct mapped_file *file; /* whose bytes may stand in for what was not dumped */
    uint64_t file_offset;     /* of `begin` in it */
};

struct spans {
    struct span *items;
    size_t count, capacity;
};

void spans_deinit(struct spans *spans);

/* False when out of memory. An empty or inverted span is ignored. */
bool spans_add(struct spans *spans, struct span span);

/* Sorts, cuts overlaps so that the span added last wins. O(n log n). False when out of memory. */
bool spans_seal(struct spans *spans);

/* The span that holds `address`, or NULL. Only after sealing. */
const struct span *spans_find(const struct spans *spans, uint64_t address);

/* The first span that ends behind `address`, or NULL. Only after sealing. */
const struct span *spans_next(const struct spans *spans, uint64_t address);

#endif
