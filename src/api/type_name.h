/* type_name.h: names of types by their MethodTables. */
#ifndef CDACQ_API_TYPE_NAME_H
#define CDACQ_API_TYPE_NAME_H

#include "src/lookup/opened_session.h"

/* Type.ToString() of a MethodTable; the session owns it. NULL: it is not known, and *ret_status, if asked, says why. */
const char *type_name(struct cdacq_session *session, uint64_t method_table, enum cdacq_status *ret_status);

#endif
