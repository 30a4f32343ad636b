/* heap.h: what all calls about the heap begin and end with. */
#ifndef CDACQ_API_HEAP_H
#define CDACQ_API_HEAP_H

#include "contracts/gc/heap.h"
#include "src/lookup/opened_session.h"

/*
 * ARGUMENT unless there are a session and a visitor of a plausible size, and `info` is NULL or of one. The names are
 * "struct cdacq_heap_visitor" and so on.
 */
enum cdacq_status heap_check(const struct cdacq_session *session, const void *visitor, const char *visitor_name,
                             const void *info, const char *info_name, struct cdacq_error *err);

/*
 * Reads what the GC says of itself, and pins the epoch: what the callbacks of the call do is part of it. CONTRACT if
 * this build does not read the GC of the runtime.
 */
enum cdacq_status heap_begin(struct cdacq_session *session, struct gc *ret, struct cdacq_error *err);

/* Ends it, and says how it went. `stopped`: a callback has ended it. */
enum cdacq_status heap_end(struct cdacq_session *session, struct gc *gc, bool stopped, struct cdacq_error *err);

#endif
