/*
 * error.h: forming the one line of text that a failure is told with. It is formed where the failure is understood best,
 * once, and carried up unchanged. No allocation, no global state.
 */
#ifndef CDACQ_UTIL_ERROR_H
#define CDACQ_UTIL_ERROR_H

#include "util/base.h"
#include "cdacq/error.h"

/* Sets *err, which may be NULL, and returns `status`, so that a failure is one statement: return error_set(...). */
enum cdacq_status error_set(struct cdacq_error *err, enum cdacq_status status, uint64_t address, const char *format,
                            ...) PRINTF_LIKE(4, 5);

/*
 * Copies a string of the target, of a file or of the user into a buffer of a message, escaped as ESCAPE_DATA says and
 * cut between two characters where it does not fit. Returns the buffer.
 */
const char *error_printable(char *buffer, size_t size, const char *string);

#endif
