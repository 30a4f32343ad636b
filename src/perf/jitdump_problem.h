/*
 * jitdump_problem.h: what is wrong with a record of a jitdump beyond its own bytes. The record is still returned, with
 * the text of the first problem. One thread at a time.
 */
#ifndef CDACQ_PERF_JITDUMP_PROBLEM_H
#define CDACQ_PERF_JITDUMP_PROBLEM_H

#include "cdacq/jitdump.h"
#include "util/error.h"

/* Adds a problem to a record that has none. *problem keeps its text, which the record points to. */
void jitdump_set_problem(struct cdacq_error *problem, struct cdacq_jitdump_record *record, const char *format, ...)
    PRINTF_LIKE(3, 4);

#endif
