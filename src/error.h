/*
 * error.h: forming the one line of text that a failure is told with. It is formed where the failure is understood best,
 * once, and carried up unchanged. No allocation, no global state.
 */
#ifndef CDACQ_ERROR_H
#define CDACQ_ERROR_H

#include "src/base.h"
#include "src/cdacq.h"

/* Sets *err, which may be NULL, and returns `status`, so that a failure is one statement: return error_set(...). */
enum cdacq_status error_set(struct cdacq_error *err, enum cdacq_status status, uint64_t address, const char *format,
                            ...) PRINTF_LIKE(4, 5);

/* Copies a string of the target or of a file into a message-sized buffer with control bytes replaced by '?'. */
const char *error_printable(char *buffer, size_t size, const char *string);

#endif
