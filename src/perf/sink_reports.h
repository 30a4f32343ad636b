/*
 * sink.h: what all files that are written from a listing of methods do with their struct cdacq_sink.
 */
#ifndef CDACQ_PERF_SINK_REPORTS_H
#define CDACQ_PERF_SINK_REPORTS_H

#include "cdacq/perf.h"
#include "util/base.h"

/*
 * Counts code of a method that is left out, and reports it with its error: `why`, which may be NULL. False if the
 * writing is to stop.
 */
bool sink_leave_out(const struct cdacq_sink *sink, struct cdacq_written *written, const struct cdacq_method *method,
                    uint64_t begin, uint64_t size, const char *why);

/* Reports what the listing has come to. */
static inline void sink_visit(const struct cdacq_sink *sink, const struct cdacq_method *method)
{
    if (sink->visited)
        sink->visited(method, sink->context);
}

#endif
