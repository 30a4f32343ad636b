/*
 * verify_methods.h: the JIT-compiled methods of a target, with the records of a file that are of them. A zeroed struct
 * has none. One thread at a time.
 */
#ifndef CDACQ_PERF_VERIFY_METHODS_H
#define CDACQ_PERF_VERIFY_METHODS_H

#include "src/lookup/opened_session.h"
#include "util/vector.h"

struct known_method {
    uint64_t start, size;
    uint64_t match; /* number of the last record that matches; 0 if none */
    bool described; /* a record that differs describes it */
};

DEFINE_VECTOR_TYPE(known_methods, struct known_method);

struct verify_methods {
    struct known_methods listed; /* by start */
    uint32_t *missing;           /* indexes of methods without a match, by size */
    size_t missing_count;
};

void verify_methods_deinit(struct verify_methods *methods);

/*
 * Lists them. `problem` becomes why some of them may be missing; empty: none is. Fails with NOMEM, and with IO if the
 * process has ended.
 */
enum cdacq_status verify_methods_list(struct cdacq_session *session, struct verify_methods *methods,
                                      char problem[CDACQ_ERROR_MESSAGE_SIZE], struct cdacq_error *err);

/* The listed method that an answer is of; NULL: it was not listed. */
struct known_method *verify_methods_find(const struct verify_methods *methods, const struct cdacq_method *method);

/* Once all matches are set: lists the methods without one. Fails with NOMEM. */
enum cdacq_status verify_methods_list_missing(struct verify_methods *methods, struct cdacq_error *err);

/* The index in `missing` of the first method of at least this size. */
size_t verify_methods_first_missing(const struct verify_methods *methods, uint64_t size);

#endif
