#include "src/perf/sink_reports.h"

bool sink_leave_out(const struct cdacq_sink *sink, struct cdacq_written *written, const struct cdacq_method *method,
                    uint64_t begin, uint64_t size, const char *why)
{
    struct cdacq_method part = *method;
    part.answer = CDACQ_ANSWER_ERROR;
    part.ip = part.code_start = begin;
    part.code_size = size;
    part.error = why ? why : "no reason is known";
    written->left_out++;
    return !sink->left_out || !sink->left_out(&part, sink->context);
}
