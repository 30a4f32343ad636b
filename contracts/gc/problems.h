/*
 * problems.h: what of a heap was left out, and why, in words. The visitor gets the first GC_PROBLEM_MAX, and all are
 * counted.
 */
#ifndef CDACQ_CONTRACTS_GC_PROBLEMS_H
#define CDACQ_CONTRACTS_GC_PROBLEMS_H

#include "target/reader.h"

enum { GC_PROBLEM_MAX = 1000 };

struct gc_problems {
    int (*tell)(const char *text, void *context); /* NULL: they are only counted; non-zero: the visit is to end */
    void *context;
    bool *stopped; /* the visit is to end */
    uint64_t count;
    uint64_t missing; /* bytes of segments that were left out because the target does not have them */
};

void gc_problem(struct gc_problems *problems, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Tells of the reader's failure, after `prefix`, and clears it. False if it may not go on: out of fuel or memory. */
bool gc_problem_of_reader(struct gc_problems *problems, struct reader *reader, const char *prefix);

#endif
