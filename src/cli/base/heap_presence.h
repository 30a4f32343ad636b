/*
 * heap_presence.h: whether a core has the heap. One that is not meant to have it may have some of its pages by chance.
 * Pure functions; thread-safe.
 */
#ifndef CDACQ_CLI_BASE_HEAP_PRESENCE_H
#define CDACQ_CLI_BASE_HEAP_PRESENCE_H

#include "cdacq.h"

/* Bytes. Large objects do not count: a page with its header makes one. A zeroed struct is that of no heap. */
struct heap_presence {
    uint64_t extent;  /* of the segments, from the first object to the end of the last */
    uint64_t visited; /* of objects, with free memory */
};

static inline void heap_presence_add_segment(struct heap_presence *presence, const struct cdacq_heap_segment *segment)
{
    if (segment->generation != CDACQ_GENERATION_LOH)
        presence->extent += segment->end - segment->begin;
}

static inline void heap_presence_add_object(struct heap_presence *presence, const struct cdacq_heap_object *object)
{
    if (object->generation != CDACQ_GENERATION_LOH)
        presence->visited += object->byte_size;
}

/* Whether a core lacks the memory of most objects; other problems, as of a heap during a collection, do not count. */
static inline bool heap_is_missing(const struct heap_presence *presence, const struct cdacq_heap_info *info)
{
    return info->problem_count && presence->visited <= presence->extent / 2 &&
           info->missing_bytes >= (presence->extent - presence->visited) / 2;
}

#endif
