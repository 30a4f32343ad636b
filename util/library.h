/*
 * library.h: loads a shared library when it is first needed, so that programs start faster and run on machines without
 * it. A library stays loaded, because its threads and exit handlers need its code. Thread-safe.
 */
#ifndef CDACQ_UTIL_LIBRARY_H
#define CDACQ_UTIL_LIBRARY_H

#include "util/base.h"

/* A library, and the functions of it that are used. Static data. */
struct library {
    const char *file;         /* "libzstd.so.1" */
    const char *package;      /* of Debian: "libzstd1" */
    const char *const *names; /* NULL-terminated */
};

/*
 * Loads the library and stores the addresses of its functions in `functions`, a struct that has only pointers to
 * functions, in the order of `names`. On failure returns false and writes one line to `why`.
 */
bool library_load(const struct library *library, void *functions, char *why, size_t why_size);

#endif
