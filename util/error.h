/*
 * error.h: forms the message of a failure, one line. The code that detects a failure forms it, and callers pass it on
 * unchanged. No allocation, no global state.
 */
#ifndef CDACQ_UTIL_ERROR_H
#define CDACQ_UTIL_ERROR_H

#include "util/base.h"
#include "cdacq/error.h"

/* Sets *err, which may be NULL, and returns `status`, so that `return error_set(...)` is all that a failure needs. */
enum cdacq_status error_set(struct cdacq_error *err, enum cdacq_status status, uint64_t address, const char *format,
                            ...) PRINTF_LIKE(4, 5);

/* Fails with ARGUMENT if a path is NULL or empty. Paths are checked because people give them. */
enum cdacq_status error_check_path(const char *path, struct cdacq_error *err);

/* Fails with ARGUMENT if a bit outside of `known` is set, because a later version may give it a meaning. */
enum cdacq_status error_check_flags(unsigned flags, unsigned known, struct cdacq_error *err);

/*
 * Copies a string of the target, a file or the user into a buffer for a message, escaped as ESCAPE_DATA. A string that
 * does not fit is cut between two characters. Returns the buffer.
 */
const char *error_printable(char *buffer, size_t size, const char *string);

#endif
