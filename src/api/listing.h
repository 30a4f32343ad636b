/*
 * listing.h: listings with a filter.
 */
#ifndef CDACQ_API_LISTING_H
#define CDACQ_API_LISTING_H

#include "cdacq/perf.h"
#include "src/lookup/opened_session.h"

struct code_range;

/* All flags of a listing, and those of a jitdump, which adds its own. */
enum {
    VISIT_FLAGS = CDACQ_VISIT_STUBS | CDACQ_VISIT_R2R_ALL | CDACQ_VISIT_R2R_NONE,
    JITDUMP_WRITE_FLAGS = VISIT_FLAGS | CDACQ_WRITE_DEBUG | CDACQ_WRITE_SAMPLY,
};

/* Which parts of the code of a running process are visited. */
struct listing_filter {
    bool (*wants)(void *context, const struct code_range *range, uint64_t begin);
    void *context;
};

/* cdacq_session_visit_methods(); a `filter` of NULL wants all. */
enum cdacq_status session_visit_methods(struct cdacq_session *session, unsigned flags,
                                        const struct listing_filter *filter,
                                        int (*visit)(const struct cdacq_method *method, void *context), void *context,
                                        struct cdacq_error *err);

/* Whether a listing that has failed is right as far as it went: at a bound, or until the process ended. */
static inline bool listing_is_part(enum cdacq_status status)
{
    return status == CDACQ_ERR_FUEL || status == CDACQ_ERR_IO;
}

/* Reports MEMORY: not all ranges are known, because the map leaves out parts of the range section map. */
enum cdacq_status listing_report_left_out(const struct code_map *map, struct cdacq_error *err);

#endif
