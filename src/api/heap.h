/* heap.h: whether a session can read the heap. */
#ifndef CDACQ_API_HEAP_H
#define CDACQ_API_HEAP_H

#include "src/lookup/opened_session.h"

/* CONTRACT if this build does not read the GC of the runtime. */
enum cdacq_status heap_check_contract(struct cdacq_session *session, struct cdacq_error *err);

#endif
