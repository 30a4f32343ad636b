/*
 * heap_bounds.h: what `heap` shows of a core that lacks the objects: the bounds of the segments, and the handles that
 * the core has.
 */
#ifndef CDACQ_CLI_COMMANDS_HEAP_BOUNDS_H
#define CDACQ_CLI_COMMANDS_HEAP_BOUNDS_H

#include "cdacq.h"
#include "src/cli/base/json_writer.h"
#include "src/cli/base/output.h"
#include "util/vector.h"

DEFINE_VECTOR(heap_segments, struct cdacq_heap_segment);

struct heap_bounds {
    struct heap_segments segments;
    uint64_t handles[CDACQ_HANDLE_COUNT], handle_count;
    bool out_of_memory;
};

/* Frees nothing of *ret: heap_bounds_deinit() does, in either case. False: out of memory. */
bool heap_bounds_read(struct cdacq_session *session, struct heap_bounds *ret);
void heap_bounds_deinit(struct heap_bounds *bounds);

/* `all`: every segment. */
void heap_bounds_write_text(const struct heap_bounds *bounds, struct output *out, bool all);
/* "segments" and "handles" */
void heap_bounds_write_members(const struct heap_bounds *bounds, struct json_writer *w);

#endif
