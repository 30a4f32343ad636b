/* jitdump_handle.h: what the public functions for jitdumps share. One thread at a time may use a handle. */
#ifndef CDACQ_PERF_JITDUMP_HANDLE_H
#define CDACQ_PERF_JITDUMP_HANDLE_H

#include "src/perf/jitdump_stream.h"

struct cdacq_jitdump {
    struct jitdump_stream stream;
    struct jitdump_stream found; /* has the record of the last cdacq_jitdump_find; zeroed: there is none */
    struct cdacq_error find_problem;
};

#endif
