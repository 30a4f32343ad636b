/*
 * jitdump_follow.h: reads a jitdump on that is still being written, or again after it was truncated, rewritten or
 * replaced. A record that was rewritten is noticed by its first bytes. One thread at a time.
 */
#ifndef CDACQ_PERF_JITDUMP_FOLLOW_H
#define CDACQ_PERF_JITDUMP_FOLLOW_H

#include "src/perf/jitdump_stream.h"

/*
 * Looks whether a file that was read to its end has changed. CDACQ_OK: read on; if it is no longer the file that was
 * read, from its beginning. CDACQ_DONE: it has not. Fails with IO.
 */
enum cdacq_status jitdump_follow(struct jitdump_stream *stream, struct cdacq_error *err);

#endif
