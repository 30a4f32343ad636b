/*
 * object_heap.h: what the heap says of an object: its generation, and the objects that refer to it.
 */
#ifndef CDACQ_CLI_COMMANDS_OBJECT_HEAP_H
#define CDACQ_CLI_COMMANDS_OBJECT_HEAP_H

#include "cdacq.h"
#include "util/vector.h"

enum { REFERRERS_SHOWN = 100 }; /* without --all */

DEFINE_VECTOR(heap_segments, struct cdacq_heap_segment);

/* The segments of a heap, which are read once; {0} at first. */
struct object_heap {
    bool is_read;
    struct heap_segments segments;
};

/* Forgets the segments: the process may have changed them. */
void object_heap_deinit(struct object_heap *heap);

/* "0", "loh" and so on; NULL: the object is not in the heap, or that cannot be read. */
const char *object_heap_generation(struct object_heap *heap, struct cdacq_session *session, uint64_t address);

struct object_referrer {
    uint64_t address, offset; /* of the reference, in the object at the address */
    uint64_t method_table;
};

DEFINE_VECTOR(object_referrers, struct object_referrer);

/*
 * Lists the references to an object, the first `limit`, and counts all. Every object of the heap is read. False: the
 * heap cannot be read, and *err says why; what was found until then is listed.
 */
bool object_referrers_read(struct cdacq_session *session, uint64_t address, uint64_t limit,
                           struct object_referrers *ret, uint64_t *ret_count, struct cdacq_error *err);

#endif
