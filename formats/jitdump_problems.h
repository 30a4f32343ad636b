/*
 * jitdump_problems.h: what is wrong with a record of a jitdump: in its own bytes, where the first problem is reported
 * and the others are counted, or given the other records. One thread at a time.
 */
#ifndef CDACQ_FORMATS_JITDUMP_PROBLEMS_H
#define CDACQ_FORMATS_JITDUMP_PROBLEMS_H

#include "cdacq/jitdump.h"
#include "util/error.h"

/* Those of one record, while it is decoded. */
struct jitdump_problems {
    struct cdacq_error *err;
    uint64_t offset, count; /* of the record; of the problems */
};

void jitdump_problem(struct jitdump_problems *problems, const char *format, ...) PRINTF_LIKE(2, 3);

/* FORMAT if there is a problem; its message then says how many more there are. */
enum cdacq_status jitdump_problems_end(const struct jitdump_problems *problems);

/* Adds a problem to a decoded record that has none. *problem keeps its text, which the record points to. */
void jitdump_set_problem(struct cdacq_error *problem, struct cdacq_jitdump_record *record, const char *format, ...)
    PRINTF_LIKE(3, 4);

#endif
