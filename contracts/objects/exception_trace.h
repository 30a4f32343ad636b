/*
 * exception_trace.h: the stack trace of an exception, as System.Diagnostics.StackTrace writes it.
 */
#ifndef CDACQ_CONTRACTS_OBJECTS_EXCEPTION_TRACE_H
#define CDACQ_CONTRACTS_OBJECTS_EXCEPTION_TRACE_H

#include "contracts/objects/exception_writer.h"

/* Exception.StackTrace after `before`; nothing if the exception was never thrown. */
void exception_put_trace(struct exception_writer *w, const struct exception *e, const char *before);

/* Frees what writing traces has kept. */
void exception_free_trace(struct exception_writer *w);

#endif
