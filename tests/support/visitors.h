/* visitors.h: callbacks of visits and sinks that ignore what they get, for tests of how such a call ends. */
#ifndef CDACQ_TESTS_SUPPORT_VISITORS_H
#define CDACQ_TESTS_SUPPORT_VISITORS_H

#include "cdacq.h"

#define DEFINE_IGNORING_VISITOR(name, type)                 \
    static inline int name(const type *item, void *context) \
    {                                                       \
        (void)item, (void)context;                          \
        return 0;                                           \
    }

DEFINE_IGNORING_VISITOR(ignore_method, struct cdacq_method)
DEFINE_IGNORING_VISITOR(ignore_frame, struct cdacq_frame)
DEFINE_IGNORING_VISITOR(ignore_range, struct cdacq_code_range_info)
DEFINE_IGNORING_VISITOR(ignore_heap, struct cdacq_code_heap_info)
DEFINE_IGNORING_VISITOR(ignore_pdb, struct cdacq_pdb_info)
DEFINE_IGNORING_VISITOR(ignore_mapped_file, struct cdacq_code_file)

static inline int ignore_entry(uint64_t entry, void *context)
{
    (void)entry, (void)context;
    return 0;
}

static inline int ignore_bytes(const void *bytes, size_t size, void *context)
{
    (void)bytes, (void)size, (void)context;
    return 0;
}

#endif
