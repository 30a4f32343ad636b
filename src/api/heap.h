/* heap.h: what all calls about the heap begin and end with. */
#ifndef CDACQ_API_HEAP_H
#define CDACQ_API_HEAP_H

#include "contracts/gc/heap.h"
#include "src/lookup/opened_session.h"

/*
 * Reads what the GC says of itself, and pins the epoch: what the callbacks of the call do is part of it. CONTRACT if
 * this build does not read the GC of the runtime.
 */
enum cdacq_status heap_begin(struct cdacq_session *session, struct gc *ret, struct cdacq_error *err);

/* Ends it, and says how it went. `stopped`: a callback has ended it. */
enum cdacq_status heap_end(struct cdacq_session *session, struct gc *gc, bool stopped, struct cdacq_error *err);

#endif
